package list

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/mask"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Kind is what a list holds: the last word of its name.
type Kind string

// The kinds.
const (
	Destinations Kind = "destinations"
	Payers       Kind = "payers"
	Products     Kind = "products"
	Merchants    Kind = "merchants"
	Addresses    Kind = "addresses"
)

// ErrName says what a list is called.
var ErrName = errors.New("must be small letters and digits with _ between, and end in what the list holds: _destinations, _payers, _products, _merchants or _addresses, such as blocked_destinations")

const mostName = 64

// KindOf is what a list of this name holds.
func KindOf(name string) (Kind, error) {
	kind := policy.ListKind(name)
	if kind == "" || len(name) > mostName {
		return "", ErrName
	}
	return Kind(kind), nil
}

// Plain is a value in the one form in which it is compared, or why it is none of this kind.
func (k Kind) Plain(value string) (string, error) {
	switch k {
	case Destinations:
		if plain := movement.Destination(value); plain != "" {
			return plain, nil
		}
		return "", errors.New("must be a destination, such as 014/2460888509 or 081234567890")
	case Payers:
		if plain := movement.Payer(value); strings.Contains(plain, "@") {
			return plain, nil
		}
		return "", errors.New("must be the mail of a payer")
	case Merchants:
		plain := strings.ToLower(strings.TrimSpace(value))
		if id, ok := strings.CutPrefix(plain, "mer_"); !ok || uuid.Validate(id) != nil {
			return "", errors.New("must be the id of a merchant: mer_ and a UUID")
		}
		return plain, nil
	case Addresses:
		address, err := netip.ParseAddr(strings.TrimSpace(value))
		if err != nil {
			return "", errors.New("must be an IP address")
		}
		return plainAddress(address), nil
	case Products:
	}
	if plain := strings.TrimSpace(value); plain != "" {
		return plain, nil
	}
	return "", errors.New("must not be empty")
}

func plainAddress(a netip.Addr) string { return a.Unmap().WithZone("").String() }

// Masked is what people are shown of a value: whether they have the right one, and not what it is.
func (k Kind) Masked(plain string) string {
	switch k {
	case Destinations:
		bank, account, ok := strings.Cut(plain, "/")
		if !ok {
			return lastFour(plain)
		}
		return bank + "/" + lastFour(account)
	case Payers:
		return mask.Text(plain)
	case Products, Merchants, Addresses:
	}
	return plain
}

func lastFour(text string) string {
	const left = 4
	if r := []rune(text); len(r) >= 2*left {
		return "***" + string(r[len(r)-left:])
	}
	return "***"
}

// Key makes digests.
type Key [sha256.Size]byte

// NewKey derives it from the installation's key of names, which never changes.
func NewKey(names movement.NameKey) Key {
	return sha256.Sum256(append([]byte("gerbang lists\x00"), names[:]...))
}

// Digest hashes a value in its one form. What is cut off can't be gone on with.
func (k Key) Digest(kind Kind, plain string) store.ListDigest {
	var buffer [256]byte
	text := append(append(append(append(buffer[:0], k[:]...), kind...), 0), plain...)
	sum := sha256.Sum256(text)
	return store.ListDigest(sum[:])
}

// ID is how people name an entry that they don't have the value of.
func ID(d store.ListDigest) string { return hex.EncodeToString(d[:]) }

// ParseID reads what ID writes.
func ParseID(text string) (d store.ListDigest, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(d) {
		return d, errors.New("must be the id of an entry, 32 digits and letters")
	}
	return store.ListDigest(raw), nil
}
