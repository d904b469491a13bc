package tenants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shelf is a source that a test fills.
type shelf struct {
	mu       sync.Mutex
	document []byte
	fault    error
	reads    int
}

func (s *shelf) put(t *testing.T, k *Keyset, fault error) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
	if k == nil {
		s.document = []byte("hush-hush")
		return
	}
	var err error
	if s.document, err = k.Document(); err != nil {
		t.Fatal(err)
	}
}

func (s *shelf) source(every, pause time.Duration) KeysetSource {
	return KeysetSource{name: "shelf", every: every, pause: pause, read: func(context.Context) ([]byte, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reads++
		return slices.Clone(s.document), s.fault
	}}
}

func (s *shelf) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

var home = AD{MerchantID: "mer_1", Mode: Live, Column: "col"}

func seal(t *testing.T, v *Vault) []byte {
	t.Helper()
	sealed, err := v.Seal([]byte("plain"), home)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func opens(t *testing.T, v *Vault, sealed []byte) {
	t.Helper()
	if plain, err := v.Open(sealed, home); err != nil || string(plain) != "plain" {
		t.Errorf("opened %q, %v", plain, err)
	}
}

func openShelf(t *testing.T, s *shelf, every, pause time.Duration, log *bytes.Buffer) (*Keyset, *Vault) {
	t.Helper()
	k, err := NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, k, nil)
	v, err := OpenVault(t.Context(), s.source(every, pause), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return k, v
}

// TestARunningVaultTakesTheNewKey: the old values open all the time, the new
// ones are the new key's.
func TestARunningVaultTakesTheNewKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shelf
		var log bytes.Buffer
		k, v := openShelf(t, &s, time.Minute, 30*time.Second, &log)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- v.Run(ctx) }()
		old := seal(t, v)
		next, err := k.Rotate()
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, k, nil)
		if got := v.Keys(); len(got) != 1 {
			t.Errorf("known before anybody looked: %+v", got)
		}
		time.Sleep(time.Minute + time.Second)
		if got := v.Keys(); len(got) != 2 || got[1] != (SealingKey{Number: next, Primary: true}) {
			t.Errorf("known after a look: %+v", got)
		}
		if by := SealedBy(seal(t, v)); by != next {
			t.Errorf("sealed by %d, want %d", by, next)
		}
		opens(t, v, old)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), fmt.Sprintf("primary=%d keys=2", next)) {
			t.Errorf("log %s", &log)
		}
	})
}

// TestAKeyThatIsMissedIsLookedFor: two replicas learn of a rotation at different
// times, and neither must fail to open what the other has sealed.
func TestAKeyThatIsMissedIsLookedFor(t *testing.T) {
	t.Parallel()
	var s shelf
	k, early := openShelf(t, &s, time.Minute, 0, new(bytes.Buffer))
	late, err := OpenVault(t.Context(), s.source(time.Minute, 0), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Rotate(); err != nil {
		t.Fatal(err)
	}
	s.put(t, k, nil)
	sealed := seal(t, early)
	opens(t, late, sealed)
	before := s.count()
	opens(t, late, sealed)
	sealed[len(sealed)-1] ^= 1
	if _, err := late.Open(sealed, home); !errors.Is(err, ErrSealed) || s.count() != before {
		t.Errorf("%v; a known key was looked for %d times", err, s.count()-before)
	}
}

// TestARemovedKeyOpensForAWhile: what was read before it was sealed anew may be
// used a moment longer than its key is there.
func TestARemovedKeyOpensForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shelf
		k, v := openShelf(t, &s, time.Second, 0, new(bytes.Buffer))
		first, old := v.Keys()[0].Number, seal(t, v)
		change := func(does func() error) {
			t.Helper()
			if err := does(); err != nil {
				t.Fatal(err)
			}
			s.put(t, k, nil)
			v.Keys() // looks
		}
		rotate := func() error { _, err := k.Rotate(); return err }
		change(rotate)
		second := v.Keys()[1].Number
		change(func() error { return k.Remove(first) })
		opens(t, v, old)
		time.Sleep(retiredFor / 2)
		newer := seal(t, v)
		change(rotate)
		change(func() error { return k.Remove(second) })
		opens(t, v, old)
		opens(t, v, newer)
		time.Sleep(retiredFor / 2)
		change(rotate) // keeps only what has not ended
		opens(t, v, newer)
		if plain, err := v.Open(old, home); !errors.Is(err, ErrSealed) {
			t.Errorf("opened %q, %v, a minute after its key was removed", plain, err)
		}
		time.Sleep(retiredFor)
		if plain, err := v.Open(newer, home); !errors.Is(err, ErrSealed) {
			t.Errorf("opened %q, %v, a minute after its key was removed", plain, err)
		}
	})
}

// TestLooksArePaced: a value that nothing opens must not make a command run for
// every request.
func TestLooksArePaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shelf
		_, v := openShelf(t, &s, time.Minute, 10*time.Second, new(bytes.Buffer))
		stranger := seal(t, testVault(t))
		time.Sleep(10 * time.Second)
		before := s.count()
		for range 5 {
			if _, err := v.Open(stranger, home); !errors.Is(err, ErrSealed) {
				t.Fatal(err)
			}
		}
		if n := s.count() - before; n != 1 {
			t.Errorf("looked %d times, want once", n)
		}
		time.Sleep(10 * time.Second)
		_ = seal(t, v)
		if n := s.count() - before; n != 2 {
			t.Errorf("looked %d times, want twice", n)
		}
	})
}

func TestWhatCanNotBeUsedChangesNothing(t *testing.T) {
	t.Parallel()
	var s shelf
	var log bytes.Buffer
	k, v := openShelf(t, &s, time.Minute, 0, &log)
	sealed := seal(t, v)
	stranger, err := NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		keyset *Keyset
		fault  error
		says   string
	}{
		"broken":       {nil, nil, "not a keyset"},
		"unreadable":   {k, errors.New("permission denied"), "permission denied"},
		"another one":  {stranger, nil, "none of the keys in force"},
		"it once more": {nil, nil, "not a keyset"},
	} {
		log.Reset()
		s.put(t, c.keyset, c.fault)
		for range 3 {
			if made, err := v.Seal([]byte("plain"), home); !errors.Is(err, ErrKeysetUnread) || !strings.Contains(err.Error(), c.says) || made != nil {
				t.Errorf("%s: sealed %x, %v", name, made, err)
			}
			opens(t, v, sealed)
		}
		if strings.Count(log.String(), "keyset can't be read") != 1 || !strings.Contains(log.String(), c.says) || strings.Contains(log.String(), "hush") {
			t.Errorf("%s: log %s", name, &log)
		}
		s.put(t, k, nil)
		opens(t, v, seal(t, v))
	}
}

func TestValuesAreSealedAnew(t *testing.T) {
	t.Parallel()
	var s shelf
	k, v := openShelf(t, &s, time.Minute, 0, new(bytes.Buffer))
	c := Connection{MerchantID: "mer_1", Mode: Live, Provider: "payments", Version: 3}
	var err error
	if c.Sealed, err = v.SealCredentials(c.MerchantID, c.Mode, c.Provider, []byte(`{"k":1}`)); err != nil {
		t.Fatal(err)
	}
	secret, err := NewCallbackSecret(bytes.NewReader(bytes.Repeat([]byte{7}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	callback, err := v.SealCallbackSecret("mer_1", Test, secret)
	if err != nil {
		t.Fatal(err)
	}
	callback.URL = "https://shop.example.com"
	if _, changed, err := v.ResealConnection(c); changed || err != nil {
		t.Errorf("nothing to do: %v, %v", changed, err)
	}
	old := SealedBy(c.Sealed)
	next, err := k.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, k, nil)
	if got := v.Keys(); len(got) != 2 {
		t.Errorf("keys %+v", got)
	}
	again, changed, err := v.ResealConnection(c)
	if plain, openErr := v.OpenCredentials(again); !changed || err != nil || openErr != nil || string(plain) != `{"k":1}` || SealedBy(again.Sealed) != next || again.Version != 3 {
		t.Errorf("the connection: %+v, %v, %v, %v", again, changed, err, openErr)
	}
	callback.Next = bytes.Clone(callback.Sealed)
	sealed, changed, err := v.ResealCallbackSecret(callback)
	if got, openErr := v.OpenNextCallbackSecret(sealed); !changed || err != nil || openErr != nil || got.Reveal() != secret.Reveal() ||
		SealedBy(sealed.Sealed) != next || SealedBy(sealed.Next) != next || sealed.URL != callback.URL {
		t.Errorf("the secret: %+v, %v, %v, %v", sealed, changed, err, openErr)
	}
	if sealed, changed, err = v.ResealCallbackSecret(sealed); changed || err != nil {
		t.Errorf("nothing to do: %+v, %v, %v", sealed, changed, err)
	}
	if err := k.Remove(old); err != nil {
		t.Fatal(err)
	}
	s.put(t, k, nil)
	_ = v.look(0)
	if _, err := v.OpenCredentials(again); err != nil {
		t.Error(err)
	}
	later, err := OpenVault(t.Context(), s.source(time.Minute, 0), v.log)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := later.ResealConnection(c); !errors.Is(err, ErrSealed) {
		t.Errorf("a removed key still opens: %v", err)
	}
}

func TestWhereAKeysetComesFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "keyset.json")
	if err := CreateKeysetFile(file); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	uri := func(text string) KeysetSource {
		s, err := KeysetURI(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	log := slog.New(slog.DiscardHandler)
	var sealed []byte
	for name, source := range map[string]KeysetSource{
		"file": KeysetFile(file), "text": KeysetText("KEYSET", NewSecret(string(document))), "file:": uri("file://" + file),
		"exec:": uri("exec:" + script("right", "cat '"+file+"'")),
	} {
		v, err := OpenVault(t.Context(), source, log)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if sealed == nil {
			sealed = seal(t, v)
		}
		opens(t, v, sealed)
	}
	for name, source := range map[string]KeysetSource{
		"a failing command": keysetCommand(script("failing", "cat '"+file+"'; exit 3")),
		"a mute command":    keysetCommand(script("mute", "true")),
		"no command":        keysetCommand(filepath.Join(dir, "none")),
		"an empty variable": KeysetText("KEYSET", NewSecret("")),
		"no file":           KeysetFile(filepath.Join(dir, "none")),
	} {
		if _, err := OpenVault(t.Context(), source, log); err == nil || strings.Contains(err.Error(), string(document)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "file:", "exec://", "gcp-kms://projects/p/locations/l", file} {
		if _, err := KeysetURI(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTwoReplicasThroughARotation seals and opens on two vaults of one file
// while it is rotated again and again: no value ever fails to open.
func TestTwoReplicasThroughARotation(t *testing.T) {
	t.Parallel()
	path := newKeysetFile(t)
	vaults := make([]*Vault, 2)
	for i := range vaults {
		var err error
		if vaults[i], err = OpenKeysetFile(path); err != nil {
			t.Fatal(err)
		}
	}
	const rotations = 20
	done := make(chan struct{})
	var group sync.WaitGroup
	for i := range vaults {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				sealed, err := vaults[i].Seal([]byte("plain"), home)
				if err != nil {
					t.Error(err)
					return
				}
				for _, v := range vaults {
					if _, err := v.Open(sealed, home); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range rotations {
		if err := EditKeysetFile(path, rotate); err != nil {
			t.Error(err)
		}
	}
	close(done)
	group.Wait()
	for _, v := range vaults {
		if _ = seal(t, v); len(v.Keys()) != rotations+1 {
			t.Errorf("%d keys, want %d", len(v.Keys()), rotations+1)
		}
	}
}
