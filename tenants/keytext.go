package tenants

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// A key reads `sk_live_<id>_<secret><checksum>`: the mode, a public id of 16 base62 characters, 43 base62 characters
// of secret (256 bits), and the CRC-32 of all before it as 6 base62 characters, so that a typo and a leaked key are
// recognised without asking anybody.
const (
	livePrefix  = "sk_live_"
	testPrefix  = "sk_test_"
	keyIDLen    = 16
	secretLen   = 43
	checksumLen = 6
	idEnd       = len(livePrefix) + keyIDLen
	keyLen      = idEnd + 1 + secretLen + checksumLen
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// What ParseKey finds wrong with a text. Over the API both are ErrAuthFailed.
var (
	// errKeyMalformed says that the text does not have the shape of a key.
	errKeyMalformed = errors.New("tenants: not an API key")
	// errKeyChecksum says that the text has the shape of a key but was mistyped or cut.
	errKeyChecksum = errors.New("tenants: API key is mistyped: its checksum does not match")
)

// KeyID is the public part of a key, by which it is found, listed and revoked.
type KeyID string

// Hash is the SHA-256 of a whole key. 256 random bits need no slow hash.
type Hash [sha256.Size]byte

// HashKey returns the hash under which a presented key would be stored.
func HashKey(key string) Hash { return sha256.Sum256([]byte(key)) }

// Equal compares in constant time.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// ParsedKey is what a key says about itself.
type ParsedKey struct {
	ID   KeyID
	Mode Mode
}

// newKey draws a key for the mode from random. The plaintext is to be shown once; id and hash are what is kept.
func newKey(random io.Reader, mode Mode) (plaintext Secret, id KeyID, hash Hash, err error) {
	prefix := livePrefix
	switch mode {
	case Live:
	case Test:
		prefix = testPrefix
	default:
		return Secret{}, "", Hash{}, fmt.Errorf("%w: mode must be one of %q", ErrInvalid, modes)
	}
	drawn, err := drawBase62(random, keyIDLen+secretLen)
	if err != nil {
		return Secret{}, "", Hash{}, fmt.Errorf("tenants: draw key: %w", err)
	}
	text := prefix + drawn[:keyIDLen] + "_" + drawn[keyIDLen:]
	text += checksum(text)
	return NewSecret(text), KeyID(drawn[:keyIDLen]), HashKey(text), nil
}

// ParseKey checks the shape and the checksum of a key without asking anybody. It says nothing about whether the key
// exists.
func ParseKey(key string) (ParsedKey, error) {
	if len(key) != keyLen || key[idEnd] != '_' || !isBase62(key[len(livePrefix):idEnd]) || !isBase62(key[idEnd+1:]) {
		return ParsedKey{}, errKeyMalformed
	}
	mode := Live
	switch key[:len(livePrefix)] {
	case livePrefix:
	case testPrefix:
		mode = Test
	default:
		return ParsedKey{}, errKeyMalformed
	}
	if checksum(key[:keyLen-checksumLen]) != key[keyLen-checksumLen:] {
		return ParsedKey{}, errKeyChecksum
	}
	return ParsedKey{ID: KeyID(key[len(livePrefix):idEnd]), Mode: mode}, nil
}

// checksum is the CRC-32 of s in base62, most significant digit first.
func checksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var digits [checksumLen]byte
	for i := checksumLen - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	return string(digits[:])
}

// drawBase62 draws n characters, each equally likely: 6 bits are taken of every byte and the two values that have no
// character are thrown away.
func drawBase62(random io.Reader, n int) (string, error) {
	var out strings.Builder
	var buf [64]byte
	for out.Len() < n {
		if _, err := io.ReadFull(random, buf[:]); err != nil {
			return "", err
		}
		for _, b := range buf {
			if digit := b & 63; digit < 62 && out.Len() < n {
				out.WriteByte(base62[digit])
			}
		}
	}
	return out.String(), nil
}

func isBase62(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
