package store_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestNameKeyIsMadeOnce by whoever comes first, and is what all others read.
func TestNameKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	if sealed, err := s.NameKey(t.Context()); sealed != nil || err != nil {
		t.Fatalf("before it is made: %q, %v", sealed, err)
	}
	if found := sealedOf(t, s, tenants.Platform); found.NameKey != nil {
		t.Errorf("before it is made %q is sealed", found.NameKey)
	}
	made := make([][]byte, 8)
	var replicas sync.WaitGroup
	for i := range made {
		replicas.Go(func() {
			var err error
			if made[i], err = s.MakeNameKey(t.Context(), epoch, []byte{byte(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	for i := range made {
		if len(made[i]) != 1 || !bytes.Equal(made[i], made[0]) {
			t.Errorf("replica %d has %x, the first %x", i, made[i], made[0])
		}
	}
	was := sealedOf(t, s, tenants.Platform)
	if !bytes.Equal(was.NameKey, made[0]) {
		t.Errorf("%x is sealed, %x was made", was.NameKey, made[0])
	}
	becomes := was
	becomes.NameKey = []byte("anew")
	audit := store.Audit{Operator: "ayu", Action: "keyset.reseal", At: epoch}
	for _, want := range []int64{1, 0} { // the second time it is no more what was read
		if changed, err := s.Reseal(t.Context(), audit, was, becomes); changed != want || err != nil {
			t.Errorf("%d sealed anew, %v; want %d", changed, err, want)
		}
	}
	if sealed, err := s.MakeNameKey(t.Context(), epoch, []byte("another")); string(sealed) != "anew" || err != nil {
		t.Errorf("it is made again: %q, %v", sealed, err)
	}
	execute(t, url, "DELETE FROM installation")
	if _, err := s.NameKey(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("lost, and %v", err)
	}
	if _, err := s.MakeNameKey(t.Context(), epoch, []byte("another")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("lost, and made again: %v", err)
	}
}
