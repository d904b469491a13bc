package harness

import (
	"context"
	"log/slog"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// ServeDatabase is a database with this version's tables, so that a replica that starts has nothing to migrate. Stories
// about migrations begin with an empty one.
func ServeDatabase(t testing.TB) string {
	t.Helper()
	return dbtest.New(t, store.MigrationsDigest(), migrate)
}

// DevDatabase is ServeDatabase for gerbang dev, which opens only databases that it made.
func DevDatabase(t testing.TB) string {
	t.Helper()
	return dbtest.New(t, "dev"+store.MigrationsDigest(), func(ctx context.Context, url string) error {
		if err := store.MarkDevelopment(ctx, url, nil); err != nil {
			return err
		}
		return migrate(ctx, url)
	})
}

func migrate(ctx context.Context, url string) error {
	return store.Migrate(ctx, url, slog.New(slog.DiscardHandler))
}
