package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestOutcomeOfStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&pgconn.PgError{Code: serialization}, outcomeConflict},
		{&pgconn.PgError{Code: deadlock}, outcomeConflict},
		{&pgconn.PgError{Code: lockTimedOut}, outcomeLocked},
		{&pgconn.PgError{Code: duplicateKey}, outcomeRefused},
		{&pgconn.PgError{Code: timedOut}, outcomeTimeout},
		{&pgconn.PgError{Code: tooMany}, outcomeUnavailable},
		{&pgconn.PgError{Code: readOnly}, outcomeUnavailable},
		{&pgconn.PgError{Code: "57P01"}, outcomeUnavailable},
		{&pgconn.PgError{Code: "42601"}, outcomeOther},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), outcomeUnavailable},
		{notBegun{errNoConnections}, outcomeUnavailable},
		{context.Canceled, outcomeCancelled},
		{fmt.Errorf("acquire: %w", context.DeadlineExceeded), outcomeTimeout},
		{errors.New("a row can't be scanned"), outcomeOther},
	} {
		var o outcomes
		o.count(c.err)
		if o.all()[c.want].Load() != 1 {
			t.Errorf("%v is %q, want %q", c.err, outcomeOf(c.err), c.want)
		}
	}
	var o outcomes
	o.count(nil)
	o.count(pgx.ErrNoRows)
	if o.ok.Load() != 2 {
		t.Errorf("%d are ok, want 2", o.ok.Load())
	}
}
