package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Manifest returns the manifest of a digest, nil where none was kept. What is kept is
// believed for its digest alone, which an operator has approved.
func (s *Store) Manifest(ctx context.Context, digest string) (*manifest.Manifest, error) {
	document, err := s.queries.Manifest(ctx, digest)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("store: manifest: %w", err)
	}
	m, err := manifest.Parse(document)
	if err != nil {
		return nil, fmt.Errorf("store: manifest of digest %s: %w", digest, err)
	}
	if m.Digest() != digest {
		return nil, fmt.Errorf("store: manifest of digest %s: another one, of digest %s, is kept there", digest, m.Digest())
	}
	return m, nil
}

// KeepManifest keeps a manifest under its digest.
func (s *Store) KeepManifest(ctx context.Context, now time.Time, m *manifest.Manifest) error {
	return wrap("keep manifest", s.queries.KeepManifest(ctx, dbsqlc.KeepManifestParams{
		Digest: m.Digest(), Provider: m.Name, Manifest: m.Document(), KeptAt: micro(now),
	}))
}
