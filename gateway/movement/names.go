package movement

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// NameKey is the installation's key, by which references become ids. It is made once
// and never changes: under another key the same reference would be another movement at
// its provider, and could be paid twice.
type NameKey [32]byte

// NewNameKey draws a key.
func NewNameKey() (k NameKey) {
	_, _ = rand.Read(k[:]) // it never fails: the process would end
	return k
}

// ReadNameKey reads the bytes of a key.
func ReadNameKey(raw []byte) (k NameKey, err error) {
	if len(raw) != len(k) {
		return k, fmt.Errorf("movement: a name key has %d bytes, not %d", len(k), len(raw))
	}
	return NameKey(raw), nil
}

// ID is the id of the movement that a merchant names so: always the same, so that a
// database restored from a backup asks under the names that it asked under before.
// Nobody without the key can tell it.
func (k NameKey) ID(key Key) ID {
	mac := hmac.New(sha256.New, k[:])
	// Each part stands behind its length, so that no two keys have the same bytes.
	for _, part := range [...]string{"gerbang.movement", key.Owner.MerchantID, key.Owner.Mode, string(key.Kind), key.Reference} {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) //nolint:gosec // the edge bounds what is longest, a reference
		mac.Write([]byte(part))
	}
	return marked(mac.Sum(nil))
}

// ID names a movement. It is made before the reservation: of its merchant's reference
// by a [NameKey], or at random where there is none.
type ID uuid.UUID

// NewID makes a random id.
func NewID() ID {
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:]) // it never fails: the process would end
	return marked(random[:])
}

// ourVersion is the version of UUIDs whose bytes their maker chooses (RFC 9562). Ids of
// before had version 4.
const ourVersion = 8

// marked makes an id of the first bytes of a sum, in the form of a UUID.
func marked(sum []byte) (id ID) {
	copy(id[:], sum)
	id[6] = id[6]&0x0f | ourVersion<<4
	id[8] = id[8]&0x3f | 0x80
	return id
}

// carriesAttempt tells ids of before, whose names at providers have the attempt.
func (id ID) carriesAttempt() bool {
	u := uuid.UUID(id)
	return u.Version() != ourVersion || u.Variant() != uuid.RFC4122
}

// ParseID reads an id as String and Compact write it.
func ParseID(text string) (ID, error) {
	id, err := uuid.Parse(text)
	return ID(id), err
}

// String is the usual form with hyphens.
func (id ID) String() string { return uuid.UUID(id).String() }

// Compact is the id as merchants read it: hex without hyphens. ParseID reads it.
func (id ID) Compact() string { return hex.EncodeToString(id[:]) }

// Bucket is the work queue's bucket that the movement belongs to: the same for
// ever, and spread evenly because ids are.
func (id ID) Bucket() int { return int(id[15]) % Buckets }

// Buckets is how many buckets a work queue has. Each is leased to one replica
// at a time.
const Buckets = 16

// digestBytes is how much of its request's digest stands in an upstream reference.
const digestBytes = manifest.ReferenceLength/2 - len(ID{})

// UpstreamReference is the name under which the provider is asked, unique over all
// merchants, and never the merchant's own: the id, and the beginning of the request's
// digest. The same request keeps it over attempts and restores. Another request under
// a reference that is free again has another name, so that nothing that was asked for
// or bought for one is taken for the other's. The id is part of what is digested:
// nobody without the installation's key can look for two requests with one name.
//
// An id of before has the attempt behind it instead, as it was sent then.
func (m *Movement) UpstreamReference() string {
	if m.ID.carriesAttempt() {
		return m.ID.Compact() + "-" + strconv.Itoa(m.Attempt)
	}
	digest := sha256.New()
	digest.Write(m.ID[:])
	digest.Write(m.Request)
	return hex.EncodeToString(append(bytes.Clone(m.ID[:]), digest.Sum(nil)[:digestBytes]...))
}

// ParseUpstreamReference reads the id in what [Movement.UpstreamReference] wrote, and
// in nothing that only resembles it.
func ParseUpstreamReference(text string) (id ID, ok bool) {
	name, attempt, numbered := strings.Cut(text, "-")
	raw, err := hex.DecodeString(name)
	if err != nil || name != strings.ToLower(name) || len(raw) < len(id) {
		return ID{}, false
	}
	copy(id[:], raw)
	if numbered {
		number, err := strconv.Atoi(attempt)
		ok = err == nil && number > 0 && strconv.Itoa(number) == attempt && len(raw) == len(id) && id.carriesAttempt()
	} else {
		ok = len(text) == manifest.ReferenceLength && !id.carriesAttempt()
	}
	if !ok {
		return ID{}, false
	}
	return id, true
}
