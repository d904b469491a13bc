package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNotDevelopment says that a database has tables that the development setting did not
// make.
var ErrNotDevelopment = errors.New("store: the database was not made for development")

// MarkDevelopment marks an empty database as one of the development setting, and takes one
// that is marked or holds one of the merchants, which only a development setting of before
// the mark has made. Any other is ErrNotDevelopment, and nothing is written. The mark is
// no migration: what another gateway has migrated must stay without it.
func MarkDevelopment(ctx context.Context, url string, merchants []string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errURL
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("store: connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	ask := func(sql string, arguments ...any) (yes bool, err error) {
		err = conn.QueryRow(ctx, sql, arguments...).Scan(&yes)
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == undefinedTable {
			return false, nil
		}
		return yes, err
	}
	if marked, err := ask("SELECT EXISTS (SELECT 1 FROM gerbang_dev)"); marked || err != nil {
		return err
	}
	known, err := ask("SELECT EXISTS (SELECT 1 FROM merchants WHERE merchant_id = ANY($1::TEXT[]))", merchants)
	if err != nil {
		return err
	}
	used, err := ask("SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema())")
	if err != nil {
		return err
	}
	if used && !known {
		return ErrNotDevelopment
	}
	_, err = conn.Exec(ctx, "CREATE TABLE gerbang_dev AS SELECT now() AS made_at") // a row with its table, at once
	return err
}
