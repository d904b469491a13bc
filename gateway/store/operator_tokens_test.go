package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func operatorToken(name string) store.OperatorToken {
	id := uuid.New()
	return store.OperatorToken{
		Hash: sha256.Sum256(id[:]), Name: name, Role: "finance", Inputs: true, CreatedBy: "ayu", CreatedAt: epoch, MAC: []byte("first"),
	}
}

func byAyu(action string) store.Audit {
	return store.Audit{Operator: "ayu", Action: action, Detail: "name budi", At: epoch.Add(time.Minute)}
}

func TestOperatorTokensLife(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	ctx, first := t.Context(), operatorToken("budi")
	if err := s.CreateOperatorToken(ctx, byAyu("create"), first); err != nil {
		t.Fatal(err)
	}
	if found, err := s.OperatorTokenByHash(ctx, first.Hash); err != nil || !reflect.DeepEqual(found, first) {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := s.OperatorTokenByHash(ctx, sha256.Sum256(nil)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nobody's hash: %v", err)
	}
	if err := s.CreateOperatorToken(ctx, byAyu("create"), operatorToken("budi")); !errors.Is(err, store.ErrOperatorNamed) {
		t.Errorf("a second one of the name: %v", err)
	}

	next, retiring := operatorToken("budi"), first
	next.CreatedAt = epoch.Add(time.Minute)
	retiring.ExpiresAt, retiring.MAC = new(epoch.Add(time.Hour)), []byte("second")
	if err := s.RotateOperatorToken(ctx, byAyu("rotate"), next, retiring, first.MAC); err != nil {
		t.Fatal(err)
	}
	late := operatorToken("budi")
	if err := s.RotateOperatorToken(ctx, byAyu("rotate"), late, retiring, first.MAC); !errors.Is(err, store.ErrOperatorMoved) {
		t.Errorf("a rotation of what was rotated meanwhile: %v", err)
	}
	if _, err := s.OperatorTokenByHash(ctx, late.Hash); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("its token is there: %v", err)
	}

	var ended []store.EndedToken
	for _, one := range []store.OperatorToken{next, retiring} {
		gone := one
		gone.RevokedAt, gone.MAC = new(epoch.Add(2*time.Minute)), []byte("third")
		ended = append(ended, store.EndedToken{OperatorToken: gone, Was: one.MAC})
	}
	if err := s.EndOperatorTokens(ctx, byAyu("revoke"), ended); err != nil {
		t.Fatal(err)
	}
	if err := s.EndOperatorTokens(ctx, byAyu("revoke"), ended); !errors.Is(err, store.ErrOperatorMoved) {
		t.Errorf("again: %v", err)
	}
	all, err := s.OperatorTokens(ctx)
	if err != nil || len(all) != 2 || !reflect.DeepEqual(all[0], ended[0].OperatorToken) || !reflect.DeepEqual(all[1], ended[1].OperatorToken) {
		t.Errorf("listed %+v, %v", all, err)
	}
	if err := s.CreateOperatorToken(ctx, byAyu("create"), operatorToken("budi")); err != nil {
		t.Errorf("after the end of all: %v", err)
	}
	var actions []string
	for _, a := range audits(t, s, tenants.Platform) {
		if a.Operator == "ayu" {
			actions = append(actions, a.Action)
		}
	}
	if len(actions) != 4 { // each change once, and nothing of what was refused
		t.Errorf("audit %q", actions)
	}
}

// TestOfTwoOperatorsOfOneNameOneIsThere races creations: the second operator of a name
// would confirm what the first one asks for.
func TestOfTwoOperatorsOfOneNameOneIsThere(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	results := make([]error, 4)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = s.CreateOperatorToken(t.Context(), byAyu("create"), operatorToken("budi")) })
	}
	all.Wait()
	made := 0
	for _, err := range results {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, store.ErrOperatorNamed):
			t.Error(err)
		}
	}
	if tokens, err := s.OperatorTokens(t.Context()); err != nil || made != 1 || len(tokens) != 1 {
		t.Errorf("%d were made, %d are there, %v", made, len(tokens), err)
	}
}

// TestATokensDigestIsOfAllOfIt changes each field: a field that is left out could be
// changed by who writes the database.
func TestATokensDigestIsOfAllOfIt(t *testing.T) {
	t.Parallel()
	kind := reflect.TypeFor[store.OperatorToken]()
	for i := range kind.NumField() {
		if kind.Field(i).Name == "MAC" {
			continue
		}
		changed := operatorToken("budi")
		before := changed.Digest()
		field := reflect.ValueOf(&changed).Elem().Field(i)
		switch value := field.Addr().Interface().(type) {
		case *[32]byte:
			value[0]++
		case *string:
			*value += "x"
		case *bool:
			*value = !*value
		case *time.Time:
			*value = value.Add(time.Microsecond)
		case **time.Time:
			*value = &epoch
		default:
			t.Fatalf("%s: this test does not know its type", kind.Field(i).Name)
		}
		if bytes.Equal(before, changed.Digest()) {
			t.Errorf("%s is not in the digest", kind.Field(i).Name)
		}
	}
}
