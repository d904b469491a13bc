package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

var (
	// ErrNotFound says that there is no such row. It is the domain's error, because
	// packages that only declare what they need of a store compare with that one.
	ErrNotFound = movement.ErrNotFound
	// ErrInvalid says that a record breaks a rule. The database was not used.
	ErrInvalid = movement.ErrInvalid

	errClosed = errors.New("store: it is closed")
)

const (
	serialization  = "40001"
	deadlock       = "40P01"
	notNull        = "23502"
	foreignKey     = "23503" // a row points to one that is not there
	duplicateKey   = "23505"
	checkViolation = "23514" // a row would break a constraint of its table
	readOnly       = "25006" // a standby, or a server that was told so
	diskFull       = "53100"
	tooMany        = "53300" // connections
	notYet         = "57P03" // it starts, or stops
	ioError        = "58030"
	timedOut       = "57014" // a statement that its own bound, or a cancel, has ended
	lockTimedOut   = "55P03" // another holds a row for too long
)

// unclear are the codes after which a statement may have been committed all the
// same: connection gone, completion unknown, shutdown or crash, and what the engine
// could not name. After every other code it was not.
var unclear = []string{"08", "40003", "57P", "58", "XX"}

// unclearCommit is the error of a statement that was handed to the driver and may have
// been committed.
type unclearCommit struct{ cause error }

func (e *unclearCommit) Error() string { return e.cause.Error() }

func (e *unclearCommit) Unwrap() error { return e.cause }

// ambiguous tells whether a write that failed may have been committed all the same.
// Only errors of statements that were sent are: see [sent]. An error of our own never is.
func ambiguous(err error) bool {
	_, is := errors.AsType[*unclearCommit](err)
	return is
}

// sent marks the driver's error of a statement that commits by itself, or of a COMMIT,
// where the statement may have been committed. The driver has no list of what it
// returns when a connection breaks or an answer can't be read, so of its errors those
// are named after which nothing was committed.
func sent(err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	}
	if _, unconnected := errors.AsType[*pgconn.ConnectError](err); unconnected {
		return err
	}
	// Of a connection that is cut during COMMIT pgx says "conn closed", and that it
	// was closed before anything was sent.
	if pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed) {
		return err
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && !hasClass(pgErr, unclear) {
		return err
	}
	return &unclearCommit{err}
}

func hasClass(err *pgconn.PgError, classes []string) bool {
	return slices.ContainsFunc(classes, func(class string) bool { return strings.HasPrefix(err.Code, class) })
}

// passing are the codes that a read may meet once and not again: those of a connection
// that is gone, a conflict, a server that has no room, stops or starts.
var passing = []string{"08", "40", "53", "55P03", "57", "58", "XX"}

// passes tells whether the same read may succeed a moment later.
func passes(err error) bool {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return hasClass(pgErr, passing)
	}
	_, unconnected := errors.AsType[*pgconn.ConnectError](err)
	_, broken := errors.AsType[net.Error](err)
	return unconnected || broken || ambiguous(err) || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Unreachable tells whether Open met no database that takes connections at the moment:
// not one that refused it, as for a wrong password.
func Unreachable(err error) bool {
	if _, unconnected := errors.AsType[*pgconn.ConnectError](err); !unconnected {
		return false
	}
	verdict, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || verdict.Code == tooMany || verdict.Code == notYet
}

const (
	// readBackFor is how long an ambiguous commit is read back.
	readBackFor = 2 * time.Second
	// readBackPause lies between two tries; the first connections of the pool may
	// be as dead as the one that was cut.
	readBackPause = 20 * time.Millisecond
)

// readBack finds out what became of an ambiguous commit, with a context of its own,
// because the one at hand may be what ended. It reads again only after an error that
// may pass.
func readBack[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readBackFor)
	defer cancel()
	return backoff.Retry(ctx, func() (T, error) {
		found, err := read(ctx)
		if err != nil && !passes(err) {
			return found, backoff.Permanent(err)
		}
		return found, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(readBackPause)))
}

// recorded tells whether a guarded write found its row.
func recorded(what string, err error) (bool, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store: %s: %w", what, err)
	}
	return true, nil
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("store: %s: %w", what, err)
	}
	return nil
}

func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) || hasCode(err, foreignKey) {
		return ErrNotFound
	}
	return err
}

// unclearOf is an error where it leaves open what was committed.
func unclearOf(err error) error {
	if ambiguous(err) {
		return err
	}
	return nil
}

// notBegun is the error of a write that never reached the database.
type notBegun struct{ cause error }

func (e notBegun) Error() string { return "store: not begun: " + e.cause.Error() }

func (e notBegun) Unwrap() error { return e.cause }

// SafeToRetry tells, as errors of pgx do, that nothing was sent.
func (e notBegun) SafeToRetry() bool { return true }

// conflicting tells whether a statement was undone for another's sake, and may
// succeed the next time.
func conflicting(err error) bool { return hasCode(err, serialization, deadlock) }

// reservedAtOnce tells whether another has reserved the same reference at this moment:
// it has the same id, whose index PostgreSQL may look at before it finds out that the
// key is taken, too.
func reservedAtOnce(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == duplicateKey && pgErr.ConstraintName == "movements_id"
}

// unable tells whether the engine has no room to write, or its disk has failed. What it
// lacks for a moment, such as a connection or memory, is not meant: that must not take a
// replica out.
func unable(err error) bool { return hasCode(err, diskFull, ioError) }

// lockedOut tells whether a statement was undone because another did not let go of a
// row in time.
func lockedOut(err error) bool { return hasCode(err, lockTimedOut) }

// violates tells whether a constraint has undone a statement, because another took
// the last room between this statement's check and its write.
func violates(err error, constraint string) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == checkViolation && pgErr.ConstraintName == constraint
}

// ownerless tells whether a statement would have left an account without an owner: so
// it does where another merchant was the first to reserve on it at the same moment.
func ownerless(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == notNull && pgErr.ColumnName == "merchant_id"
}

// duplicate tells whether a row has a key that another row has.
func duplicate(err error) bool { return hasCode(err, duplicateKey) }

func hasCode(err error, codes ...string) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, pgErr.Code)
}
