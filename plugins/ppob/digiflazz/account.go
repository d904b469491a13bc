package digiflazz

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const defaultBaseURL = "https://api.digiflazz.com/v1"

// account is one buyer's account at the upstream.
type account struct {
	client  *client
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
	if settings.BaseURL == "" {
		settings.BaseURL = defaultBaseURL
	}
	base, err := checkBaseURL(settings.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("connection: base_url: %w", err)
	}
	return &account{
		client:  newClient(base, credentials{settings.Username, settings.APIKey, settings.WebhookSecret}),
		testing: settings.Testing,
		lists:   map[productType]keptList{},
	}, nil
}

// checkBaseURL lets credentials leave the machine only encrypted: http is for
// a simulator on the loopback interface.
func checkBaseURL(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return "", errors.New("not a URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("must be scheme, host and path alone")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return strings.TrimRight(text, "/"), nil
	}
	return "", errors.New("must be https, or http to a loopback address")
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
