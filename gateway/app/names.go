package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// readNameKey reads the installation's key of names, or makes it where this is the
// first start of all. Without it, or with another one, what a merchant asks for again
// would be another movement at its provider, and could be paid twice: then nothing
// starts.
func readNameKey(ctx context.Context, s *store.Store, vault *tenants.Vault, now time.Time) (movement.NameKey, error) {
	sealed, err := s.NameKey(ctx)
	if err == nil && sealed == nil {
		sealed, err = makeNameKey(ctx, s, vault, now)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return movement.NameKey{}, errors.New("the installation's key of names is gone from the database: restore the table installation from a backup of this database. " +
			"Under another key what merchants ask for again could be paid twice; deploy/README.md tells what is left where there is no backup")
	case err != nil:
		return movement.NameKey{}, err
	}
	return openNameKey(vault, sealed)
}

// checkNameKey refuses a keyset that is not this database's. It writes nothing, and what
// is not there yet is no fault.
func checkNameKey(ctx context.Context, s *store.Store, vault *tenants.Vault) error {
	sealed, err := s.NameKey(ctx)
	switch {
	case errors.Is(err, store.ErrUnmigrated), errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil || sealed == nil:
		return err
	}
	_, err = openNameKey(vault, sealed)
	return err
}

func openNameKey(vault *tenants.Vault, sealed []byte) (movement.NameKey, error) {
	raw, err := vault.OpenNameKey(sealed)
	if err != nil {
		return movement.NameKey{}, fmt.Errorf("this keyset does not open the installation's key of names, which key %d has sealed: start with the keyset that this database was used with before, or a copy of it",
			tenants.SealedBy(sealed))
	}
	return movement.ReadNameKey(raw)
}

func makeNameKey(ctx context.Context, s *store.Store, vault *tenants.Vault, now time.Time) ([]byte, error) {
	key := movement.NewNameKey()
	sealed, err := vault.SealNameKey(key[:])
	if err != nil {
		return nil, err
	}
	return s.MakeNameKey(ctx, now, sealed)
}
