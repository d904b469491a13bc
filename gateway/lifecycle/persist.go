package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Persist runs a commit of what has happened already: it does not end with its
// caller, and a database that is away for a moment is waited for.
func Persist[T any](ctx context.Context, patience time.Duration, commit func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 50*time.Millisecond, time.Second
	var last error
	done, err := backoff.Retry(ctx, func() (T, error) {
		trying, cancel := context.WithTimeout(ctx, TryTimeout)
		defer cancel()
		done, err := commit(trying)
		if last = err; err != nil && !passing(err) {
			err = backoff.Permanent(err)
		}
		return done, err
	}, backoff.WithBackOff(pause))
	if err != nil && !errors.Is(err, last) {
		err = errors.Join(err, last) // patience ended; the reason is the last try's
	}
	return done, err
}

// lasting are the classes of SQLSTATE that no waiting mends: wrong data, broken
// constraints, wrong statements.
var lasting = []string{"22", "23", "42"}

// passing tells whether what failed may succeed a moment later.
func passing(err error) bool {
	type coded interface {
		error
		SQLState() string
	}
	if errors.Is(err, movement.ErrNotFound) {
		return false
	}
	named, ok := errors.AsType[coded](err)
	return !ok || len(named.SQLState()) < 2 || !slices.Contains(lasting, named.SQLState()[:2])
}
