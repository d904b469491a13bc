package signin

import (
	"strings"
	"testing"
)

// TestHashesTakeLong: what is kept of a password, and what an address that nobody has is compared with, cost the same, and
// what they must outside of tests.
func TestHashesTakeLong(t *testing.T) {
	t.Parallel()
	s := New(Dependencies{})
	kept, err := s.hashed(t.Context(), "a sentence of words")
	if err != nil {
		t.Fatal(err)
	}
	compared, err := s.nobody()
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range []string{kept, compared} {
		if !strings.HasPrefix(hash, "$argon2id$v=19$m=65536,t=2,p=1$") {
			t.Errorf("a hash is %s", hash)
		}
	}
}
