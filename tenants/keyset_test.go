package tenants

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestAKeysetRotates(t *testing.T) {
	t.Parallel()
	k, err := NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	first := k.Keys()[0].Number
	second, err := k.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := k.Keys(), []SealingKey{{Number: first}, {Number: second, Primary: true}}; !slices.Equal(got, want) {
		t.Errorf("rotated: %+v, want %+v", got, want)
	}
	third, err := k.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := k.Prepare(); err != nil || again != third {
		t.Errorf("prepared twice: %d and %d, %v", third, again, err)
	}
	prepared := []SealingKey{{Number: first}, {Number: second, Primary: true}, {Number: third, Prepared: true}}
	if got := reread(t, k).Keys(); !slices.Equal(got, prepared) {
		t.Errorf("prepared: %+v, want %+v", got, prepared)
	}
	if now, err := k.Rotate(); err != nil || now != third {
		t.Errorf("the prepared key was not taken: %d, %v", now, err)
	}
	if err := k.Remove(third); err == nil {
		t.Error("the primary was removed")
	}
	if err := k.Remove(first); err != nil {
		t.Error(err)
	}
	if got, want := reread(t, k).Keys(), []SealingKey{{Number: second}, {Number: third, Primary: true}}; !slices.Equal(got, want) {
		t.Errorf("removed: %+v, want %+v", got, want)
	}
}

func reread(t *testing.T, k *Keyset) *Keyset {
	t.Helper()
	document, err := k.Document()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseKeyset(document)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestOtherTextsAreNoKeysets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", "hush-hush", `{"primaryKeyId":1,"key":[]}`} {
		if _, err := ParseKeyset([]byte(text)); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func rotate(k *Keyset) error {
	_, err := k.Rotate()
	return err
}

// TestEditsLoseNoKey: many rotations at once, each of whose keys may have sealed
// something.
func TestEditsLoseNoKey(t *testing.T) {
	t.Parallel()
	path := newKeysetFile(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := EditKeysetFile(path, rotate); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKeyset(document)
	if err != nil || len(k.Keys()) != 9 || !k.Keys()[8].Primary {
		t.Errorf("%+v, %v, want nine keys, the last primary", k.Keys(), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

func TestAnEditIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	path := newKeysetFile(t)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string) {
		t.Helper()
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s wrote the file anew, %v", what, err)
		}
	}
	refused := errors.New("refused")
	if err := EditKeysetFile(path, func(k *Keyset) error { return errors.Join(rotate(k), refused) }); !errors.Is(err, refused) {
		t.Error(err)
	}
	same("an edit that failed")
	if err := EditKeysetFile(path, func(*Keyset) error { return nil }); err != nil {
		t.Error(err)
	}
	same("an edit of nothing")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := EditKeysetFile(link, rotate); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o400 || os.SameFile(before, info) {
		t.Errorf("%v, %v, want another file of mode 0400", info, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := EditKeysetFile(path, rotate); !errors.Is(err, errKeysetMode) {
		t.Errorf("a file that all can read: %v", err)
	}
	if err := EditKeysetFile(filepath.Join(t.TempDir(), "none"), rotate); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func newKeysetFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := CreateKeysetFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPrivate(t *testing.T) {
	t.Parallel()
	const me, root = 7, 0
	for _, c := range []struct {
		mode  fs.FileMode
		owner int
		want  bool
	}{
		{0o600, me, true}, {0o400, me, true}, {0o440, me, false}, {0o604, me, false},
		{0o440, root, true}, {0o640, root, true}, {0o660, root, false}, {0o444, root, false}, {0o450, root, false},
	} {
		if got := private(c.mode, c.owner, me); got != c.want {
			t.Errorf("%v of user %d is private: %v", c.mode, c.owner, got)
		}
	}
}
