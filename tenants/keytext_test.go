package tenants

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
)

func mustKey(t testing.TB, mode Mode) (string, KeyID, Hash) {
	t.Helper()
	secret, id, hash, err := newKey(rand.Reader, mode)
	if err != nil {
		t.Fatal(err)
	}
	return secret.Reveal(), id, hash
}

func TestNewKeyHasTheDocumentedShape(t *testing.T) {
	t.Parallel()
	for mode, prefix := range map[Mode]string{Live: "sk_live_", Test: "sk_test_"} {
		text, id, hash := mustKey(t, mode)
		shape := regexp.MustCompile(`^` + prefix + `([0-9A-Za-z]{16})_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$`)
		m := shape.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("a %s key does not match %s", mode, shape)
		}
		if m[1] != string(id) {
			t.Errorf("id is %s, the key says %s", id, m[1])
		}
		if hash != sha256.Sum256([]byte(text)) {
			t.Error("the hash is not the SHA-256 of the whole key")
		}
		parsed, err := ParseKey(text)
		if err != nil || parsed != (ParsedKey{ID: id, Mode: mode}) {
			t.Errorf("ParseKey = %v, %v; want %s, %s", parsed, err, id, mode)
		}
	}
}

func TestNewKeyRefuses(t *testing.T) {
	t.Parallel()
	if _, _, _, err := newKey(rand.Reader, "sandbox"); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown mode: %v, want ErrInvalid", err)
	}
	if _, _, _, err := newKey(bytes.NewReader(make([]byte, 10)), Live); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("randomness that ends: %v, want io.ErrUnexpectedEOF", err)
	}
}

// TestChecksumIsFixed holds the format: keys in merchants' hands must stay valid.
func TestChecksumIsFixed(t *testing.T) {
	t.Parallel()
	// CRC-32 (IEEE) of "123456789" is CBF43926 = 3421780262, in base62 3jZRME.
	if got := checksum("123456789"); got != "3jZRME" {
		t.Errorf("checksum = %s, want 3jZRME", got)
	}
	text := "sk_live_" + strings.Repeat("0", keyIDLen) + "_" + strings.Repeat("z", secretLen)
	if _, err := ParseKey(text + checksum(text)); err != nil {
		t.Errorf("a key made by the rules is refused: %v", err)
	}
}

func TestParseKeyNoticesEveryTypo(t *testing.T) {
	t.Parallel()
	text, _, _ := mustKey(t, Live)
	for i := len(livePrefix); i < len(text); i++ {
		for _, c := range []byte("0Zz_ ") {
			if text[i] == c {
				continue
			}
			wrong := text[:i] + string(c) + text[i+1:]
			if _, err := ParseKey(wrong); err == nil {
				t.Fatalf("character %d replaced by %q is not noticed", i, c)
			}
		}
	}
	for i := idEnd + 1; i < len(text)-1; i++ {
		swapped := []byte(text)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		if _, err := ParseKey(string(swapped)); err == nil && string(swapped) != text {
			t.Fatalf("characters %d and %d swapped are not noticed", i, i+1)
		}
	}
}

func TestParseKeyTellsTypoFromNonsense(t *testing.T) {
	t.Parallel()
	live, _, _ := mustKey(t, Live)
	test, _, _ := mustKey(t, Test)
	last := string(base62[(strings.IndexByte(base62, live[keyLen-1])+1)%62])
	cases := map[string]struct {
		text string
		want error
	}{
		"empty":        {"", errKeyMalformed},
		"cut":          {live[:keyLen-1], errKeyMalformed},
		"longer":       {live + "0", errKeyMalformed},
		"spaces":       {" " + live, errKeyMalformed},
		"other prefix": {"pk_live_" + live[len(livePrefix):], errKeyMalformed},
		"no separator": {live[:idEnd] + "0" + live[idEnd+1:], errKeyMalformed},
		"not base62":   {live[:keyLen-1] + "-", errKeyMalformed},
		"multibyte":    {live[:keyLen-2] + "é", errKeyMalformed},
		"mistyped":     {live[:keyLen-1] + last, errKeyChecksum},
		"mode changed": {livePrefix + test[len(testPrefix):], errKeyChecksum},
	}
	for name, c := range cases {
		_, err := ParseKey(c.text)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestKeysAreSpreadOverTheAlphabet(t *testing.T) {
	t.Parallel()
	// 64 bytes that count up give each character once, and the two that have no character are skipped.
	counting := make([]byte, 64)
	for i := range counting {
		counting[i] = byte(i)
	}
	got, err := drawBase62(bytes.NewReader(counting), 62)
	if err != nil || got != base62 {
		t.Errorf("drawBase62 = %s, %v; want the alphabet", got, err)
	}
}

func FuzzParseKey(f *testing.F) {
	live, _, _ := mustKey(f, Live)
	test, _, _ := mustKey(f, Test)
	for _, seed := range []string{"", "sk_live_", live, test, live[:keyLen-1] + "!", strings.Repeat("_", keyLen)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseKey(text)
		if err != nil {
			if parsed != (ParsedKey{}) || !(errors.Is(err, errKeyMalformed) || errors.Is(err, errKeyChecksum)) {
				t.Fatalf("ParseKey = %v, %v", parsed, err)
			}
			return
		}
		body := "sk_" + string(parsed.Mode) + "_" + string(parsed.ID) + "_" + text[idEnd+1:keyLen-checksumLen]
		if body+checksum(body) != text {
			t.Fatalf("accepted %q, which is not how its parts are written", text)
		}
	})
}
