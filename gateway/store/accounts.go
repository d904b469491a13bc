package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// changeShards is over how many ranges the index of changed merchants spreads.
const changeShards = 8

func changeShard(id tenants.MerchantID) int32 {
	return int32(crc32.ChecksumIEEE([]byte(id)) % changeShards)
}

// AccountByKey reads the account that a key belongs to, or tenants.ErrNotFound.
func (s *Store) AccountByKey(ctx context.Context, key tenants.KeyID) (*tenants.Account, error) {
	return s.account(ctx, func(q *dbsqlc.Queries) (string, error) {
		return q.MerchantIDByKey(ctx, string(key))
	})
}

// AccountByID reads an account, or tenants.ErrNotFound.
func (s *Store) AccountByID(ctx context.Context, id tenants.MerchantID) (*tenants.Account, error) {
	return s.account(ctx, func(*dbsqlc.Queries) (string, error) { return string(id), nil })
}

// MerchantsByID reads the records of those that there are, as of one moment.
func (s *Store) MerchantsByID(ctx context.Context, ids []string) (found []tenants.Merchant, err error) {
	err = s.Tx(ctx, func(q *dbsqlc.Queries) error {
		found, err = recordsOf(ctx, q, ids)
		return err
	})
	return found, wrap("merchants", err)
}

// recordsOf are merchants with what policies see of them: their limits, and no pauses.
func recordsOf(ctx context.Context, q *dbsqlc.Queries, ids []string) ([]tenants.Merchant, error) {
	rows, err := q.MerchantsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	own, err := q.LimitsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	limits := map[string][]tenants.Limit{}
	for _, row := range own {
		limits[row.MerchantID] = append(limits[row.MerchantID], limitFromRow(row))
	}
	records := make([]tenants.Merchant, len(rows))
	for i, row := range rows {
		if records[i], err = merchantFromRow(dbsqlc.MerchantByIDRow(row)); err != nil {
			return nil, err
		}
		records[i].Limits = limits[row.MerchantID]
	}
	return records, nil
}

// AccountByNotifyToken reads the account whose connection has this notification
// route, or tenants.ErrNotFound.
func (s *Store) AccountByNotifyToken(ctx context.Context, provider tenants.Provider, token tenants.NotifyToken) (*tenants.Account, error) {
	return s.account(ctx, func(q *dbsqlc.Queries) (string, error) {
		return q.MerchantIDByNotifyToken(ctx, dbsqlc.MerchantIDByNotifyTokenParams{NotifyToken: string(token), Provider: string(provider)})
	})
}

// account reads one account as of one moment.
func (s *Store) account(ctx context.Context, find func(*dbsqlc.Queries) (string, error)) (*tenants.Account, error) {
	var account *tenants.Account
	err := s.Tx(ctx, func(q *dbsqlc.Queries) error {
		id, err := find(q)
		if err != nil {
			return err
		}
		merchant, err := q.MerchantByID(ctx, id)
		if err != nil {
			return err
		}
		keys, err := q.KeysOf(ctx, id)
		if err != nil {
			return err
		}
		connections, err := q.ConnectionsOf(ctx, id)
		if err != nil {
			return err
		}
		secrets, err := q.CallbackSecretsOf(ctx, id)
		if err != nil {
			return err
		}
		limits, err := q.LimitsOf(ctx, []string{id})
		if err != nil {
			return err
		}
		pauses, err := q.PausesOf(ctx, id)
		if err != nil {
			return err
		}
		account, err = assemble(merchant, limits, pauses, keys, connections, secrets)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, tenants.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("store: account: %w", err)
	}
	return account, nil
}

// ChangedSince tells every merchant whose account changed at or after a time.
func (s *Store) ChangedSince(ctx context.Context, since time.Time) ([]tenants.Change, error) {
	shards := make([]int32, changeShards)
	for i := range shards {
		shards[i] = int32(i)
	}
	rows, err := s.queries.MerchantsChangedSince(ctx, dbsqlc.MerchantsChangedSinceParams{Shards: shards, Since: micro(since)})
	if err != nil {
		return nil, fmt.Errorf("store: changed accounts: %w", err)
	}
	changes := make([]tenants.Change, len(rows))
	for i, row := range rows {
		changes[i] = tenants.Change{MerchantID: tenants.MerchantID(row.MerchantID), Version: row.Version}
	}
	return changes, nil
}

func assemble(
	merchant dbsqlc.MerchantByIDRow, limits []dbsqlc.MerchantLimit, pauses []dbsqlc.Pause,
	keys []dbsqlc.ApiKey, connections []dbsqlc.Connection, secrets []dbsqlc.CallbackSecret,
) (*tenants.Account, error) {
	m, err := merchantFromRow(merchant)
	if err != nil {
		return nil, err
	}
	for _, row := range limits {
		m.Limits = append(m.Limits, limitFromRow(row))
	}
	m.Pauses = pausesFromRows(pauses)
	accountKeys := make([]tenants.Key, len(keys))
	for i, row := range keys {
		if accountKeys[i], err = keyFromRow(row); err != nil {
			return nil, err
		}
	}
	accountConnections := make([]tenants.Connection, len(connections))
	for i, row := range connections {
		accountConnections[i] = tenants.Connection{
			MerchantID: tenants.MerchantID(row.MerchantID), Mode: tenants.Mode(row.Mode), Provider: tenants.Provider(row.Provider),
			Owner: tenants.Owner(row.Owner), Version: row.Version, Sealed: row.Sealed, NotifyToken: tenants.NotifyToken(row.NotifyToken),
		}
	}
	accountSecrets := make([]tenants.CallbackSecret, len(secrets))
	for i, row := range secrets {
		accountSecrets[i] = tenants.CallbackSecret{
			MerchantID: tenants.MerchantID(row.MerchantID), Mode: tenants.Mode(row.Mode),
			Sealed: row.Sealed, Next: row.NextSealed, NextSigns: row.NextSigns, URL: row.Url,
		}
	}
	return tenants.NewAccount(m, accountKeys, accountConnections, accountSecrets)
}

func merchantFromRow(row dbsqlc.MerchantByIDRow) (tenants.Merchant, error) {
	labels := map[string]string{}
	if err := json.Unmarshal([]byte(row.Labels), &labels); err != nil {
		return tenants.Merchant{}, fmt.Errorf("merchant %s: labels: %w", row.MerchantID, err)
	}
	return tenants.Merchant{
		ID: tenants.MerchantID(row.MerchantID), Name: row.Name, Tier: tenants.Tier(row.Tier),
		Status: tenants.Status(row.Status), Labels: labels, Version: row.Version, CreatedAt: row.CreatedAt.UTC(),
	}, nil
}

func keyFromRow(row dbsqlc.ApiKey) (tenants.Key, error) {
	key := tenants.Key{
		ID: tenants.KeyID(row.KeyID), MerchantID: tenants.MerchantID(row.MerchantID), Mode: tenants.Mode(row.Mode),
		Scopes: tenants.Scopes(row.Scopes), CreatedAt: row.CreatedAt.UTC(), ExpiresAt: row.ExpiresAt, RevokedAt: row.RevokedAt, Name: row.Name, //nolint:gosec // a bitset of eight
	}
	if copy(key.Hash[:], row.Hash) != len(key.Hash) {
		return tenants.Key{}, fmt.Errorf("key %s: the hash is cut", row.KeyID)
	}
	for prefix := range strings.FieldsSeq(row.Ips) {
		parsed, err := netip.ParsePrefix(prefix)
		if err != nil {
			return tenants.Key{}, fmt.Errorf("key %s: %w", row.KeyID, err)
		}
		key.IPs = append(key.IPs, parsed)
	}
	return key, nil
}

func joinPrefixes(prefixes []netip.Prefix) string {
	words := make([]string, len(prefixes))
	for i, p := range prefixes {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}
