package tenants

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestVaultOpensOnlyInItsPlace(t *testing.T) {
	t.Parallel()
	v := testVault(t)
	home := AD{MerchantID: "mer_1", Mode: Live, Column: "col", Provider: "payments"}
	sealed, err := v.Seal([]byte("credentials"), home)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := v.Open(sealed, home); err != nil || string(plain) != "credentials" {
		t.Fatalf("Open = %q, %v", plain, err)
	}
	if bytes.Contains(sealed, []byte("credentials")) {
		t.Error("the plaintext is in the sealed value")
	}
	elsewhere := map[string]AD{
		"merchant": {MerchantID: "mer_2", Mode: Live, Column: "col", Provider: "payments"},
		"mode":     {MerchantID: "mer_1", Mode: Test, Column: "col", Provider: "payments"},
		"column":   {MerchantID: "mer_1", Mode: Live, Column: "other", Provider: "payments"},
		"provider": {MerchantID: "mer_1", Mode: Live, Column: "col", Provider: "wallet1"},
		"shifted":  {MerchantID: "mer_1", Mode: Live, Column: "colp", Provider: "ayments"},
		"nothing":  {},
	}
	for name, ad := range elsewhere {
		if plain, err := v.Open(sealed, ad); !errors.Is(err, ErrSealed) || plain != nil {
			t.Errorf("another %s: %q, %v; want ErrSealed", name, plain, err)
		}
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := v.Open(changed, home); !errors.Is(err, ErrSealed) {
			t.Fatalf("byte %d changed: %v, want ErrSealed", i, err)
		}
	}
	if _, err := testVault(t).Open(sealed, home); !errors.Is(err, ErrSealed) {
		t.Errorf("another keyset: %v, want ErrSealed", err)
	}
	if _, err := v.Seal(nil, AD{MerchantID: "mer_1", Mode: Live}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no column: %v, want ErrInvalid", err)
	}
}

// TestAssociatedDataIsFixed holds the bytes that every sealed value in a database was bound to.
func TestAssociatedDataIsFixed(t *testing.T) {
	t.Parallel()
	got := AD{MerchantID: "m", Mode: Test, Column: columnCredentials, Provider: "ppob"}.bytes()
	want := "gerbang.v1\x00\x00\x00\x01m\x00\x00\x00\x04test\x00\x00\x00\x16connection.credentials\x00\x00\x00\x04ppob"
	if string(got) != want {
		t.Errorf("associated data = %q, want %q", got, want)
	}
}

func TestSealedRecords(t *testing.T) {
	t.Parallel()
	v := testVault(t)
	c := Connection{MerchantID: "mer_1", Mode: Live, Provider: "payments"}
	var err error
	if c.Sealed, err = v.SealCredentials(c.MerchantID, c.Mode, c.Provider, []byte(`{"secret_key":"x"}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := v.OpenCredentials(c); err != nil || string(got) != `{"secret_key":"x"}` {
		t.Errorf("credentials = %s, %v", got, err)
	}
	c.Mode = Test
	if _, err := v.OpenCredentials(c); !errors.Is(err, ErrSealed) {
		t.Errorf("live credentials in test mode: %v, want ErrSealed", err)
	}
	if _, err := v.SealCredentials("mer_1", Live, "", nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("no provider: %v, want ErrInvalid", err)
	}

	secret, err := NewCallbackSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	record, err := v.SealCallbackSecret("mer_1", Test, secret)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.OpenCallbackSecret(record); err != nil || got.Reveal() != secret.Reveal() {
		t.Errorf("the callback secret came back as %q, %v", got.Reveal(), err)
	}
	record.MerchantID = "mer_2"
	if _, err := v.OpenCallbackSecret(record); !errors.Is(err, ErrSealed) {
		t.Errorf("another merchant's: %v, want ErrSealed", err)
	}
	for _, wrong := range []string{"", "whsec_", "whsec_c2hvcnQ=", secret.Reveal()[1:], secret.Reveal() + "!"} {
		if _, err := v.SealCallbackSecret("mer_1", Live, NewSecret(wrong)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", wrong, err)
		}
	}
}

func TestMACOfPolicies(t *testing.T) {
	t.Parallel()
	v := testVault(t)
	mac, err := v.SealPolicy([]byte("digest"))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.VerifyPolicy(mac, []byte("digest")); err != nil {
		t.Error(err)
	}
	nameKey, err := v.SealNameKey([]byte("digest")) // of another column
	if err != nil {
		t.Fatal(err)
	}
	other, err := testVault(t).SealPolicy([]byte("digest"))
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(mac)
	changed[len(changed)-1] ^= 1
	for what, forged := range map[string][]byte{"none": nil, "text": []byte("by hand"), "another column": nameKey, "another keyset": other, "a bit": changed} {
		if err := v.VerifyPolicy(forged, []byte("digest")); !errors.Is(err, ErrSealed) {
			t.Errorf("%s: %v, want ErrSealed", what, err)
		}
	}
	if err := v.VerifyPolicy(mac, []byte("digesT")); !errors.Is(err, ErrSealed) {
		t.Errorf("of another digest: %v, want ErrSealed", err)
	}
	if again, changed, err := v.ResealPolicy(mac); changed || err != nil || !bytes.Equal(again, mac) {
		t.Errorf("resealed under the same key: %v, %v", changed, err)
	}
}

func TestKeysetFileIsKeptPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if err := CreateKeysetFile(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o601} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeysetFile(path); !errors.Is(err, errKeysetMode) {
			t.Errorf("mode %v: %v, want errKeysetMode", mode, err)
		}
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeysetFile(path); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

func TestCreateKeysetFileNeverReplaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "keyset.json")
	if err := CreateKeysetFile(path); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := CreateKeysetFile(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second time: %v, want fs.ErrExist", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Error("the keyset was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files in the directory, want the keyset alone", len(entries))
	}
	if err := CreateKeysetFile(filepath.Join(dir, "missing", "k")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v, want fs.ErrNotExist", err)
	}
}

func TestOpenKeysetFileRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keyset.json")
	if _, err := OpenKeysetFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want fs.ErrNotExist", err)
	}
	for _, content := range []string{"", "{}", `{"primaryKeyId":1,"key":[]}`, `{"value":"hush-hush`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeysetFile(path); err == nil {
			t.Errorf("%q is taken for a keyset", content)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("the error quotes the file: %v", err)
		}
	}
}

// TestNothingIsSealedWithAKeyThatIsGone: a rotation was brought to its end on
// another replica, a moment after this one has read the keyset.
func TestNothingIsSealedWithAKeyThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shelf
		k, v := openShelf(t, &s, time.Minute, 10*time.Second, new(bytes.Buffer))
		second, err := k.Prepare()
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, k, nil)
		first := SealedBy(seal(t, v))
		if _, err = k.Rotate(); err == nil {
			err = k.Remove(first)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, k, errors.New("the KMS is away"))
		if sealed, err := v.SealCredentials("mer_1", Live, "wallet1", []byte(`{}`)); !errors.Is(err, ErrKeysetUnread) || sealed != nil {
			t.Errorf("sealed by %d, %v", SealedBy(sealed), err)
		}
		secret, err := NewCallbackSecret(bytes.NewReader(bytes.Repeat([]byte{7}, 32)))
		if err != nil {
			t.Fatal(err)
		}
		if sealed, err := v.SealCallbackSecret("mer_1", Live, secret); !errors.Is(err, ErrKeysetUnread) || sealed.Sealed != nil {
			t.Errorf("sealed by %d, %v", SealedBy(sealed.Sealed), err)
		}
		s.put(t, k, nil)
		if by := SealedBy(seal(t, v)); by != second {
			t.Errorf("sealed by %d, want %d", by, second)
		}
	})
}

// TestManySealTogether: who waited for a look that began after it came needs none
// of its own.
func TestManySealTogether(t *testing.T) {
	t.Parallel()
	var s shelf
	_, v := openShelf(t, &s, time.Minute, 10*time.Second, new(bytes.Buffer))
	_ = seal(t, v)
	before := s.count()
	v.began = time.Now().Add(time.Hour)
	_ = seal(t, v)
	v.fault = errors.New("away")
	if _, err := v.Seal(nil, home); !errors.Is(err, ErrKeysetUnread) || s.count() != before {
		t.Errorf("%v, after %d looks of its own", err, s.count()-before)
	}
}

// TestResealingLooksNowAndThen: for each of many values a command would run long.
func TestResealingLooksNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shelf
		k, v := openShelf(t, &s, time.Minute, 10*time.Second, new(bytes.Buffer))
		c := Connection{MerchantID: "mer_1", Mode: Live, Provider: "payments"}
		var err error
		if c.Sealed, err = v.SealCredentials(c.MerchantID, c.Mode, c.Provider, []byte(`{}`)); err == nil {
			_, err = k.Rotate()
		}
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, k, nil)
		time.Sleep(10 * time.Second)
		v.Keys() // as who reseals does
		time.Sleep(resealPause)
		before := s.count()
		for range 5 {
			if _, changed, err := v.ResealConnection(c); !changed || err != nil {
				t.Errorf("changed %t, %v", changed, err)
			}
		}
		if n := s.count() - before; n != 1 {
			t.Errorf("looked %d times, want once", n)
		}
		s.put(t, k, errors.New("the KMS is away"))
		time.Sleep(resealPause)
		if _, changed, err := v.ResealConnection(c); changed || !errors.Is(err, ErrKeysetUnread) || errors.Is(err, ErrSealed) {
			t.Errorf("changed %t, %v", changed, err)
		}
	})
}
