package sandbox

import (
	"crypto/rand"
	"encoding/hex"
)

// RandomHex returns so many random bytes in hexadecimal: an id that was never used.
func RandomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}
