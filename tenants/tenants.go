// Package tenants owns merchants, their modes, their API keys (kept as hashes), their connections to providers and callback
// secrets (kept sealed), and a directory that finds the merchant of a key in memory. It must not know SQL or HTTP: the store
// implements Source, the edge turns its errors into answers. It keeps no plaintext of a key or secret. It is the only package
// that imports tink.
package tenants

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// The errors that callers tell apart. None of their texts contains anything a caller presented.
var (
	// ErrNotFound says that no such merchant, key or route exists. A Source returns it, wrapped or bare.
	ErrNotFound = errors.New("tenants: not found")
	// ErrAuthFailed is the one answer to a key that is malformed, unknown, wrong, expired or revoked.
	ErrAuthFailed = errors.New("tenants: authentication failed")
	// ErrAddress says that the key is right but may not be used from this address.
	ErrAddress = errors.New("tenants: key not allowed from this address")
	// ErrInvalid says that a record breaks a rule of this package.
	ErrInvalid = errors.New("tenants: invalid record")
)

// MerchantID names a merchant, as `merchant_id` does in the API.
type MerchantID string

// Platform is the account that the platform's own connections belong to. It is no merchant: it has no keys, no balance
// and no callbacks, and stands in no list of merchants.
const Platform MerchantID = "platform"

// NewMerchantID returns a new random id.
func NewMerchantID() MerchantID { return MerchantID("mer_" + uuid.NewString()) }

// Provider names a plugin, for example `payments`.
type Provider string

// Tier names the set of limits that a policy gives a merchant.
type Tier string

// Mode keeps real money apart from trials. Nothing ever crosses from one mode to the other.
type Mode string

// The two modes.
const (
	Live Mode = "live"
	Test Mode = "test"
)

// ParseMode refuses all but the two modes.
func ParseMode(s string) (Mode, error) { return parseClosed(s, modes, "mode") }

// Status says whether a merchant may work. The directory tells it and leaves the judgement to the edge.
type Status string

// The states of a merchant.
const (
	Active    Status = "active"
	Suspended Status = "suspended"
)

// Owner says whose account at the provider a connection is, and so whose money flows there.
type Owner string

// The owners of a connection.
const (
	OwnerMerchant Owner = "merchant"
	OwnerPlatform Owner = "platform"
)

// The closed sets.
var (
	modes    = []Mode{Live, Test}
	statuses = []Status{Active, Suspended}
	owners   = []Owner{OwnerMerchant, OwnerPlatform}
)

func parseClosed[T ~string](s string, set []T, what string) (T, error) {
	if err := checkClosed(T(s), set, what); err != nil {
		return "", err
	}
	return T(s), nil
}

// checkClosed refuses a value that is not in its closed set.
func checkClosed[T ~string](v T, set []T, what string) error {
	if !slices.Contains(set, v) {
		return fmt.Errorf("%w: %s must be one of %q", ErrInvalid, what, set)
	}
	return nil
}
