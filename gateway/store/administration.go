package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/cockroach-go/v2/crdb"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// CreateMerchant stores a new merchant with its first keys and the callback
// secrets of both modes.
func (s *Store) CreateMerchant(ctx context.Context, audit Audit, m tenants.Merchant, keys []tenants.Key, secrets []tenants.CallbackSecret) error {
	labels, err := json.Marshal(m.Labels)
	if err != nil {
		return fmt.Errorf("store: create merchant: %w", err)
	}
	return s.ofMerchant(ctx, "create merchant", audit, m.ID, func(q *dbsqlc.Queries) error {
		if err := q.InsertMerchant(ctx, dbsqlc.InsertMerchantParams{
			MerchantID: string(m.ID), Name: m.Name, Tier: string(m.Tier), Status: string(m.Status), Labels: string(labels),
			Now: micro(audit.At), ChangeShard: changeShard(m.ID),
		}); err != nil {
			return err
		}
		for _, key := range keys {
			if err := insertKey(ctx, q, key); err != nil {
				return err
			}
		}
		for _, secret := range secrets {
			if err := putCallbackSecret(ctx, q, secret); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetStatus stops a merchant, whose people have to sign in again, or lets it go on.
func (s *Store) SetStatus(ctx context.Context, audit Audit, id tenants.MerchantID, status tenants.Status) error {
	return s.ofMerchant(ctx, "set status", audit, id, func(q *dbsqlc.Queries) error {
		if status == tenants.Suspended {
			if err := q.EndSessionsOf(ctx, string(id)); err != nil {
				return err
			}
		}
		return found(q.SetMerchantStatus(ctx, dbsqlc.SetMerchantStatusParams{MerchantID: string(id), Status: string(status)}))
	})
}

// SetTier moves a merchant to another tier.
func (s *Store) SetTier(ctx context.Context, audit Audit, id tenants.MerchantID, tier tenants.Tier) error {
	return s.ofMerchant(ctx, "set tier", audit, id, func(q *dbsqlc.Queries) error {
		rows, err := q.SetMerchantTier(ctx, dbsqlc.SetMerchantTierParams{MerchantID: string(id), Tier: string(tier)})
		return found(rows, err)
	})
}

// SetLabels changes a merchant's labels: change is given its record and leaves in it what
// is kept. Of two changes at once neither is lost. An error of change's own comes back as
// it is.
func (s *Store) SetLabels(ctx context.Context, audit Audit, id tenants.MerchantID, change func(m *tenants.Merchant) error) error {
	return s.ofMerchant(ctx, "set labels", audit, id, func(q *dbsqlc.Queries) error {
		row, err := q.MerchantByID(ctx, string(id))
		if err != nil {
			return err
		}
		m, err := merchantFromRow(row)
		if err != nil {
			return err
		}
		if err := change(&m); err != nil {
			return err
		}
		labels, err := json.Marshal(m.Labels)
		if err != nil {
			return err
		}
		return found(q.SetMerchantLabels(ctx, dbsqlc.SetMerchantLabelsParams{MerchantID: string(id), Labels: string(labels)}))
	})
}

// AddKey stores another key of a merchant.
func (s *Store) AddKey(ctx context.Context, audit Audit, key tenants.Key) error {
	return s.ofMerchant(ctx, "add key", audit, key.MerchantID, func(q *dbsqlc.Queries) error {
		return insertKey(ctx, q, key)
	})
}

// EndKey stores the end of a key, its overlap's or a revocation. Of two ends the
// earlier one stays, and a revocation for ever.
func (s *Store) EndKey(ctx context.Context, audit Audit, key tenants.Key) error {
	return s.administer(ctx, "end key", audit, key.MerchantID, func(q *dbsqlc.Queries) error {
		return endKey(ctx, q, key)
	})
}

// RenameKey stores the name of a key.
func (s *Store) RenameKey(ctx context.Context, audit Audit, key tenants.Key) error {
	return s.administer(ctx, "rename key", audit, key.MerchantID, func(q *dbsqlc.Queries) error {
		return found(q.RenameKey(ctx, dbsqlc.RenameKeyParams{
			MerchantID: string(key.MerchantID), Mode: string(key.Mode), KeyID: string(key.ID), Name: key.Name,
		}))
	})
}

// ReplaceKey stores a rotation: the next key, and the end of the one that
// retires, together. It is ErrNotFound when that one was revoked meanwhile.
func (s *Store) ReplaceKey(ctx context.Context, audit Audit, next, retiring tenants.Key) error {
	return s.ofMerchant(ctx, "rotate key", audit, next.MerchantID, func(q *dbsqlc.Queries) error {
		if err := insertKey(ctx, q, next); err != nil {
			return err
		}
		return endKey(ctx, q, retiring)
	})
}

// PutConnection stores a merchant's account at a provider, new or changed, and
// returns it with its version and its notification route, which stays the same
// when the credentials change.
func (s *Store) PutConnection(ctx context.Context, audit Audit, c tenants.Connection) (tenants.Connection, error) {
	return s.putConnection(ctx, "put connection", audit, c, true)
}

// ErrConnected says that there is a connection already.
var ErrConnected = errors.New("store: there is a connection already")

// AddConnection stores a connection with its audit entry where there is none, and is
// ErrConnected where there is one.
func (s *Store) AddConnection(ctx context.Context, audit Audit, c tenants.Connection) (tenants.Connection, error) {
	return s.putConnection(ctx, "add connection", audit, c, false)
}

func (s *Store) putConnection(ctx context.Context, what string, audit Audit, c tenants.Connection, replaces bool) (tenants.Connection, error) {
	var stored dbsqlc.PutConnectionRow
	err := s.administer(ctx, what, audit, c.MerchantID, func(q *dbsqlc.Queries) (err error) {
		if err := keepsPlugin(ctx, q, string(c.Provider)); err != nil {
			return err
		}
		stored, err = q.PutConnection(ctx, dbsqlc.PutConnectionParams{
			MerchantID: string(c.MerchantID), Mode: string(c.Mode), Provider: string(c.Provider), Owner: string(c.Owner),
			Sealed: c.Sealed, NotifyToken: string(c.NotifyToken), Replaces: replaces,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrConnected
		}
		return err
	})
	if err != nil {
		return tenants.Connection{}, err
	}
	c.Version, c.NotifyToken = stored.Version, tenants.NotifyToken(stored.NotifyToken)
	return c, nil
}

// ErrConflict says that somebody else has changed the account since it was read.
var ErrConflict = errors.New("store: the account has changed meanwhile")

// SetCallbackSecret stores a merchant's callback secret of a mode anew, with its
// rotation and its default URL. It is ErrConflict unless the account still has
// the version that the secret was read at: of two rotations at once, one would
// else overwrite a secret that its merchant has already.
func (s *Store) SetCallbackSecret(ctx context.Context, audit Audit, secret tenants.CallbackSecret, version int64) error {
	return s.ofMerchant(ctx, "set callback secret", audit, secret.MerchantID, func(q *dbsqlc.Queries) error {
		merchant, err := q.MerchantByID(ctx, string(secret.MerchantID))
		if err != nil {
			return err
		}
		if merchant.Version != version {
			return ErrConflict
		}
		return putCallbackSecret(ctx, q, secret)
	})
}

// ofMerchant administers a merchant alone: the platform is none.
func (s *Store) ofMerchant(ctx context.Context, what string, audit Audit, id tenants.MerchantID, change func(*dbsqlc.Queries) error) error {
	if id == tenants.Platform {
		return fmt.Errorf("store: %s: %w", what, ErrNotFound)
	}
	return s.administer(ctx, what, audit, id, change)
}

// NoteAudit writes an audit entry for what changes no account, before it is done.
func (s *Store) NoteAudit(ctx context.Context, audit Audit, id tenants.MerchantID) error {
	return s.administer(ctx, "note audit", audit, id, func(*dbsqlc.Queries) error { return nil })
}

func putCallbackSecret(ctx context.Context, q *dbsqlc.Queries, s tenants.CallbackSecret) error {
	return q.PutCallbackSecret(ctx, dbsqlc.PutCallbackSecretParams{
		MerchantID: string(s.MerchantID), Mode: string(s.Mode), Sealed: s.Sealed, NextSealed: s.Next, NextSigns: s.NextSigns, Url: s.URL,
	})
}

// Merchants lists merchants in the order of their ids, after one of them.
func (s *Store) Merchants(ctx context.Context, after tenants.MerchantID, most int) ([]tenants.Merchant, error) {
	rows, err := s.queries.MerchantsAfter(ctx, dbsqlc.MerchantsAfterParams{After: string(after), Most: int32(most)}) //nolint:gosec // a page
	if err != nil {
		return nil, fmt.Errorf("store: merchants: %w", err)
	}
	merchants := make([]tenants.Merchant, len(rows))
	for i, row := range rows {
		if merchants[i], err = merchantFromRow(dbsqlc.MerchantByIDRow(row)); err != nil {
			return nil, fmt.Errorf("store: merchants: %w", err)
		}
	}
	return merchants, nil
}

// administer runs a change of an account, writes its audit entry and raises
// the account's version, all in one transaction.
func (s *Store) administer(ctx context.Context, what string, audit Audit, id tenants.MerchantID, change func(*dbsqlc.Queries) error) error {
	return s.administerTx(ctx, what, audit, id, func(_ pgx.Tx, q *dbsqlc.Queries) error { return change(q) })
}

// administerTx is administer for a change that writes audit entries of other accounts, or with
// mails.
func (s *Store) administerTx(ctx context.Context, what string, audit Audit, id tenants.MerchantID, change func(pgx.Tx, *dbsqlc.Queries) error, mails ...movement.Mail) error {
	if audit.At.IsZero() || audit.Operator == "" || audit.Action == "" {
		// Without its time no replica would learn of the change.
		return fmt.Errorf("store: %s: an audit entry needs an operator, an action and a time", what)
	}
	entry := s.auditing(ctx, audit, movement.Owner{MerchantID: string(id)})
	err := s.within(ctx, serializable, func(tx pgx.Tx) error {
		q := dbsqlc.New(tx)
		if err := keepRecord(ctx, q, id, audit.At); err != nil {
			return err
		}
		if err := change(tx, q); err != nil {
			return err
		}
		if err := audited(ctx, tx, entry); err != nil {
			return err
		}
		if err := mailed(ctx, tx, entry.owner, audit.At, mails); err != nil {
			return err
		}
		_, err := q.TouchMerchant(ctx, dbsqlc.TouchMerchantParams{MerchantID: string(id), Now: micro(audit.At)})
		return err
	})
	if _, cut := errors.AsType[*crdb.AmbiguousCommitError](err); cut && ambiguous(sent(err)) && s.wasAudited(ctx, entry.audit) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store: %s: %w", what, notFound(err))
	}
	return nil
}

func insertKey(ctx context.Context, q *dbsqlc.Queries, key tenants.Key) error {
	return q.InsertKey(ctx, dbsqlc.InsertKeyParams{
		MerchantID: string(key.MerchantID), Mode: string(key.Mode), KeyID: string(key.ID), Hash: key.Hash[:],
		Scopes: int32(key.Scopes), Ips: joinPrefixes(key.IPs), CreatedAt: micro(key.CreatedAt),
		ExpiresAt: key.ExpiresAt, RevokedAt: key.RevokedAt, Name: key.Name,
	})
}

func endKey(ctx context.Context, q *dbsqlc.Queries, key tenants.Key) error {
	rows, err := q.EndKey(ctx, dbsqlc.EndKeyParams{
		MerchantID: string(key.MerchantID), Mode: string(key.Mode), KeyID: string(key.ID),
		ExpiresAt: key.ExpiresAt, RevokedAt: key.RevokedAt,
	})
	return found(rows, err)
}

func found(rows int64, err error) error {
	if err == nil && rows == 0 {
		return ErrNotFound
	}
	return err
}
