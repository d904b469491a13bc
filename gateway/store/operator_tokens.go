package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// OperatorToken is what is kept of a token with which an operator comes in.
type OperatorToken struct {
	Hash      [32]byte   `json:"-"`    // SHA-256 of the token
	Name      string     `json:"name"` // the operator's
	Role      string     `json:"role"`
	Inputs    bool       `json:"inputs,omitempty"` // may read what refused requests asked for
	CreatedBy string     `json:"created_by"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // nil for never
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	MAC       []byte     `json:"-"`
}

// Digest is what a token's MAC is over: all of it. Times count in microseconds, as the
// database keeps them.
func (t OperatorToken) Digest() []byte {
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return strconv.FormatInt(t.UnixMicro(), 10)
	}
	return digestOf("gerbang.operator.token.v1", string(t.Hash[:]), t.Name, t.Role, strconv.FormatBool(t.Inputs), t.CreatedBy,
		at(&t.CreatedAt), at(t.ExpiresAt), at(t.RevokedAt))
}

// Usable tells whether the token is neither revoked nor expired.
func (t OperatorToken) Usable(now time.Time) bool {
	return t.RevokedAt == nil && (t.ExpiresAt == nil || now.Before(*t.ExpiresAt))
}

var (
	// ErrOperatorNamed says that an operator of this name has a token already.
	ErrOperatorNamed = errors.New("store: an operator of this name has a token")
	// ErrOperatorMoved says that somebody else has changed a token since it was read.
	ErrOperatorMoved = errors.New("store: the operator's token has changed meanwhile")
)

// CreateOperatorToken keeps the first token of an operator. It is ErrOperatorNamed where
// the name has one that is usable.
func (s *Store) CreateOperatorToken(ctx context.Context, audit Audit, t OperatorToken) error {
	return s.administer(ctx, "create operator token", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		rows, err := q.OperatorTokensNamed(ctx, t.Name)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if operatorTokenFromRow(row).Usable(audit.At) {
				return ErrOperatorNamed
			}
		}
		return insertOperatorToken(ctx, q, t)
	})
}

// RotateOperatorToken keeps the next token of an operator and the end of the one that it
// replaces, together. Was is the MAC of that one as it was read: it is ErrOperatorMoved
// where somebody else has changed it meanwhile.
func (s *Store) RotateOperatorToken(ctx context.Context, audit Audit, next, retiring OperatorToken, was []byte) error {
	return s.administer(ctx, "rotate operator token", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		if err := insertOperatorToken(ctx, q, next); err != nil {
			return err
		}
		return endOperatorToken(ctx, q, retiring, was)
	})
}

// EndedToken is a token with its end, and the MAC that it was read with.
type EndedToken struct {
	OperatorToken
	Was []byte
}

// EndOperatorTokens keeps the end of all tokens of an operator, whose invitations are revoked
// with them, or is ErrOperatorMoved.
func (s *Store) EndOperatorTokens(ctx context.Context, audit Audit, ended []EndedToken) error {
	return s.administerTx(ctx, "end operator tokens", audit, tenants.Platform, func(tx pgx.Tx, q *dbsqlc.Queries) error {
		for _, t := range ended {
			if err := endOperatorToken(ctx, q, t.OperatorToken, t.Was); err != nil {
				return err
			}
			if err := s.uninvite(ctx, tx, audit, everywhere, "", t.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// OperatorTokenByHash finds the token with a hash, or is ErrNotFound. Whether its MAC is
// right, and whether it is usable, is for the caller to see.
func (s *Store) OperatorTokenByHash(ctx context.Context, hash [32]byte) (OperatorToken, error) {
	row, err := s.queries.OperatorTokenByHash(ctx, hash[:])
	if err != nil {
		return OperatorToken{}, fmt.Errorf("store: operator token: %w", notFound(err))
	}
	return operatorTokenFromRow(row), nil
}

// OperatorTokens lists all, those that have ended, too, by name and of each the newest
// first.
func (s *Store) OperatorTokens(ctx context.Context) ([]OperatorToken, error) {
	rows, err := s.queries.OperatorTokens(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: operator tokens: %w", err)
	}
	all := make([]OperatorToken, len(rows))
	for i, row := range rows {
		all[i] = operatorTokenFromRow(row)
	}
	return all, nil
}

func insertOperatorToken(ctx context.Context, q *dbsqlc.Queries, t OperatorToken) error {
	return q.InsertOperatorToken(ctx, dbsqlc.InsertOperatorTokenParams{
		Hash: t.Hash[:], Name: t.Name, Role: t.Role, Inputs: t.Inputs, CreatedBy: t.CreatedBy, CreatedAt: micro(t.CreatedAt),
		ExpiresAt: t.ExpiresAt, Mac: t.MAC,
	})
}

func endOperatorToken(ctx context.Context, q *dbsqlc.Queries, t OperatorToken, was []byte) error {
	rows, err := q.EndOperatorToken(ctx, dbsqlc.EndOperatorTokenParams{
		Hash: t.Hash[:], ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt, Mac: t.MAC, Was: was,
	})
	if err == nil && rows == 0 {
		err = ErrOperatorMoved
	}
	return err
}

func operatorTokenFromRow(row dbsqlc.OperatorToken) OperatorToken {
	t := OperatorToken{
		Name: row.Name, Role: row.Role, Inputs: row.Inputs, CreatedBy: row.CreatedBy, CreatedAt: row.CreatedAt.UTC(),
		ExpiresAt: inUTC(row.ExpiresAt), RevokedAt: inUTC(row.RevokedAt), MAC: row.Mac,
	}
	copy(t.Hash[:], row.Hash)
	return t
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
