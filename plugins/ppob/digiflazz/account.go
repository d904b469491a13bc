package digiflazz

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const defaultBaseURL = "https://api.digiflazz.com/v1"

// account is one buyer's account at the upstream.
type account struct {
	client  *client
	place   place
	testing bool

	mu    sync.Mutex
	lists map[productType]keptList
}

// account returns the account of a connection. The error holds no credential.
func (a *adapter) account(c sdk.Connection) (*account, error) {
	return a.accounts.Get(c, openAccount)
}

func openAccount(c sdk.Connection) (*account, error) {
	var settings struct {
		Username      string `json:"username"`
		APIKey        string `json:"api_key"`
		WebhookSecret string `json:"webhook_secret"`
		BaseURL       string `json:"base_url"`
		Testing       bool   `json:"testing"`
	}
	// The decoder's own error could quote the document, which is secret.
	if json.Unmarshal(c.Credentials, &settings) != nil {
		return nil, errors.New("connection: not the JSON that the manifest describes")
	}
	// Without a secret the upstream does not sign, and anybody could say that an
	// order has failed.
	if settings.Username == "" || settings.APIKey == "" || settings.WebhookSecret == "" {
		return nil, errors.New("connection: username, api_key and webhook_secret must be given")
	}
	base, err := upstream.BaseURL(settings.BaseURL, defaultBaseURL)
	if err != nil {
		return nil, err
	}
	return &account{
		place:   placeOf(base, settings.APIKey),
		client:  newClient(base, credentials{settings.Username, settings.APIKey, settings.WebhookSecret}),
		testing: settings.Testing,
		lists:   map[productType]keptList{},
	}, nil
}

// place tells apart what knows nothing of each other's orders although the
// username is the same: the API at each address, and there the development
// environment and the real one. It is a sum, because an address may tell more
// than a quote should keep.
type place string

// developmentKey begins the keys of the development environment. Another key of
// the same kind leads to the same orders.
const developmentKey = "dev-"

func placeOf(base, key string) place {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %t", base, strings.HasPrefix(key, developmentKey)))
	return place(hex.EncodeToString(sum[:8]))
}

// elsewhere is why a purchase is none of this place, "" where it is. One of before
// the place was kept is taken for this one's.
func (acc *account) elsewhere(p purchase) string {
	if p.Place == "" || p.Place == acc.place {
		return ""
	}
	return "the order was made at another base_url, or with a key of the other kind (development or production), than the connection has now: " +
		"give the connection back what it had until the orders that were made with it have ended"
}
