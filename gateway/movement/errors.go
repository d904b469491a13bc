package movement

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"
)

// ErrOverridden says that operators have proposed or made another override, which
// stands.
var ErrOverridden = errors.New("movement: another outcome is proposed or decided")

// NoAmountError says that every amount that a collection could ask for is taken
// on its account.
type NoAmountError struct {
	FreeAt time.Time // when the first of them becomes free
}

// Error tells that none is free.
func (e *NoAmountError) Error() string { return "movement: no amount is free on the account" }

// ErrForeignAccount says that an account is another merchant's.
var ErrForeignAccount = errors.New("movement: the account is another merchant's")

// LimitError says that a payout limit leaves no room for a movement.
type LimitError struct {
	Name string // of the movement's usage
	Used int64  // of the limit, by others
	Most int64
}

// DestinationDigest names where money goes, in the names of usages.
func DestinationDigest(provider, destination string) string {
	sum := sha256.Sum256([]byte(provider + "\x00" + destination))
	return hex.EncodeToString(sum[:16])
}

// DestinationOf is the digest of a destination in the name of a usage, "" where the usage
// is not one of a destination.
func DestinationOf(usage string) string {
	rest, ok := strings.CutPrefix(usage, "to.")
	digest, _, _ := strings.Cut(rest, ".")
	if !ok {
		return ""
	}
	return digest
}

// Error tells which.
func (e *LimitError) Error() string { return "movement: the limit " + e.Name + " is reached" }

// ErrInsufficient says that a merchant's balance is too small.
var ErrInsufficient = errors.New("movement: the balance is too small")

// ErrInvalid says that a record breaks a rule. Nothing was written.
var ErrInvalid = errors.New("movement: invalid record")

// ErrNotFound says that there is no such movement, statement line or event.
var ErrNotFound = errors.New("movement: not found")

// Verdict tells of an error that it is the domain's own: the same write gets the same answer a moment later. What this
// package does not know, such as a database that is away, is none.
func Verdict(err error) bool {
	for _, verdict := range []error{ErrOverridden, ErrForeignAccount, ErrInsufficient, ErrInvalid, ErrNotFound} {
		if errors.Is(err, verdict) {
			return true
		}
	}
	_, none := errors.AsType[*NoAmountError](err)
	_, limited := errors.AsType[*LimitError](err)
	return none || limited
}
