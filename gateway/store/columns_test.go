package store_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// A row is taken in as pgx would, into every type that our tables have and from every
// value that one can hold, with the same errors.
func TestColumnsAreReadAsByPgx(t *testing.T) {
	t.Parallel()
	connection, err := pgx.Connect(t.Context(), database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(t.Context()) }()
	values := map[string][]string{
		"TEXT": {`''`, `'é "x" 😀'`, `NULL`}, "VARCHAR": {`'v'`, `NULL`}, "JSONB": {`'{"a":1}'`, `NULL`}, "TEXT[]": {`ARRAY['a','b']`, `NULL`},
		"INT8": {`0`, `(-1)`, `9223372036854775807`, `NULL`}, "INT4": {`7`, `(-7)`, `2147483647`, `NULL`}, "BOOL": {`TRUE`, `FALSE`, `NULL`},
		"UUID": {`'6ba7b810-9dad-11d1-80b4-00c04fd430c8'`, `NULL`}, "DATE": {`'2026-01-02'`, `NULL`},
		"TIMESTAMPTZ": {
			`'2026-01-02 03:04:05.678901Z'`, `'1999-12-31 23:59:59.999999Z'`, `'0001-01-01 00:00:00Z'`, `'1969-07-20 20:17:40.000001Z'`, `'infinity'`, `'-infinity'`, `NULL`,
		},
	}
	into := []func() any{
		func() any { return new(string) }, func() any { return new(*string) }, func() any { return new(int64) }, func() any { return new(*int64) },
		func() any { return new(int32) }, func() any { return new(*int32) }, func() any { return new(bool) }, func() any { return new(*bool) },
		func() any { return new(time.Time) }, func() any { return new(*time.Time) }, func() any { return new(uuid.UUID) }, func() any { return new(*uuid.UUID) },
		func() any { return new([16]byte) }, func() any { return new([]byte) }, func() any { return new([]string) }, func() any { return new(int) },
	}
	for column, values := range values {
		for _, place := range into {
			for i, value := range values {
				want, got, sql := place(), place(), "SELECT 1::INT4, "+value+"::"+column
				wantErr := connection.QueryRow(t.Context(), sql).Scan(new(int32), want)
				gotErr := connection.QueryRow(t.Context(), sql).Scan(store.Columns(new(int32), got))
				if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || wantErr == nil && !reflect.DeepEqual(got, want) {
					t.Errorf("%s into a %T: %v (%v), want %v (%v)", sql, want, reflect.ValueOf(got).Elem(), gotErr, reflect.ValueOf(want).Elem(), wantErr)
				}
				if i == 0 && wantErr != nil {
					break // where a type does not fit, pgx takes in a NULL now and then
				}
			}
		}
	}
	for _, into := range [][]any{{}, {new(int32)}, {new(int32), new(int32), new(int32)}} {
		if err := connection.QueryRow(t.Context(), "SELECT 1::INT4, 2::INT4").Scan(store.Columns(into...)); err == nil {
			t.Errorf("two columns go into %d places", len(into))
		}
	}
}
