package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

func postgres(code string) error {
	return fmt.Errorf("a statement: %w", &pgconn.PgError{Code: code})
}

// TestOnlySentStatementsAreAmbiguous holds the two errors apart on which money depends:
// what may have been committed is read back, and what was not committed isn't.
func TestOnlySentStatementsAreAmbiguous(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"completion unknown":            postgres("40003"),
		"connection failure":            postgres("08006"),
		"admin shutdown":                postgres("57P01"),
		"crash shutdown":                postgres("57P02"),
		"I/O error":                     postgres("58030"),
		"internal error":                postgres("XX000"),
		"connection cut during COMMIT":  fmt.Errorf("commit: %w", pgconn.ErrConnClosed),
		"answer cut":                    io.ErrUnexpectedEOF,
		"connection reset":              &net.OpError{Op: "read", Err: errors.New("connection reset by peer")},
		"context ended during COMMIT":   context.Canceled,
		"deadline passed during COMMIT": context.DeadlineExceeded,
		"answer does not fit":           pgx.ScanArgError{Err: errors.New("a text is no number")},
		"answer can't be read":          errors.New("invalid message length"),
	} {
		if !ambiguous(fmt.Errorf("store: %w", sent(err))) {
			t.Errorf("%s: not ambiguous after it was sent", name)
		}
		if ambiguous(err) {
			t.Errorf("%s: ambiguous although nothing was sent", name)
		}
		if !errors.Is(sent(err), err) {
			t.Errorf("%s: its cause is lost", name)
		}
	}
	for name, err := range map[string]error{
		"no error":              nil,
		"no row":                pgx.ErrNoRows,
		"serialization failure": postgres(serialization),
		"deadlock":              postgres(deadlock),
		"duplicate key":         postgres(duplicateKey),
		"check violation":       postgres(checkViolation),
		"lock timeout":          postgres(lockTimedOut),
		"disk full":             postgres(diskFull),
		"COMMIT rolled back":    pgx.ErrTxCommitRollback,
		"not connected":         &pgconn.ConnectError{Config: &pgconn.Config{}},
		"not begun":             notBegun{context.Canceled},
	} {
		if ambiguous(sent(err)) {
			t.Errorf("%s: ambiguous", name)
		}
	}
	for _, err := range []error{errOvertaken, errClosed, errAgain, errByItself, errRoomAgain, ErrNotFound, ErrInvalid} {
		if ambiguous(err) || passes(err) {
			t.Errorf("%v is our own and is read back", err)
		}
	}
}

// overtaken is a database whose batch of usage was overtaken by a later one.
type overtaken struct{ dbsqlc.DBTX }

func (overtaken) QueryRow(context.Context, string, ...any) pgx.Row {
	return scanning(func(into ...any) error {
		for _, column := range into {
			if n, ok := column.(*int64); ok {
				*n = 2 // all columns alike, the batch among them
			}
		}
		return nil
	})
}

// TestOvertakenBatchIsSentOnce: a later batch of the same replica was counted, and
// that stays so.
func TestOvertakenBatchIsSentOnce(t *testing.T) {
	t.Parallel()
	sends := 0
	s := &Store{queries: dbsqlc.New(overtaken{})}
	_, err := s.count(t.Context(), dbsqlc.CountedUsageParams{}, 1, 9, func(context.Context) (dbsqlc.CountedUsageRow, error) {
		sends++
		return dbsqlc.CountedUsageRow{}, pgx.ErrNoRows
	})
	if sends != 1 || !errors.Is(err, errOvertaken) {
		t.Errorf("sent %d times, %v", sends, err)
	}
}

func TestReadBackEndsWithAVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		errs []error // of one read after the other, the last one is what it returns
	}{
		{[]error{nil}},
		{[]error{ErrNotFound}},
		{[]error{errOvertaken}},
		{[]error{postgres("42P01")}},
		{[]error{postgres(serialization), io.EOF, nil}},
		{[]error{postgres("57P01"), postgres(notYet), pgconn.ErrConnClosed, &pgconn.ConnectError{Config: &pgconn.Config{}}, errOvertaken}},
		{[]error{sent(errors.New("invalid message length")), nil}},
	} {
		reads := 0
		_, err := readBack(t.Context(), func(context.Context) (int, error) {
			reads++
			return 0, c.errs[min(reads, len(c.errs))-1]
		})
		if last := c.errs[len(c.errs)-1]; reads != len(c.errs) || !errors.Is(err, last) {
			t.Errorf("%v: %d reads, %v", c.errs, reads, err)
		}
	}
}
