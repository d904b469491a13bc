package xendit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const defaultBaseURL = "https://api.xendit.co"

// account is one merchant's account at the upstream in one mode.
type account struct {
	client        *client
	callbackToken string
	linksAreQR    bool
}

// account returns the account of a connection. The error holds no credential.
func (a *adapter) account(c sdk.Connection) (*account, error) {
	return a.accounts.Get(c, openAccount)
}

func openAccount(c sdk.Connection) (*account, error) {
	var settings struct {
		SecretKey     string `json:"secret_key"`
		CallbackToken string `json:"callback_token"`
		BaseURL       string `json:"base_url"`
		Link          string `json:"link"`
	}
	// The decoder's own error could quote the document, which is secret.
	if json.Unmarshal(c.Credentials, &settings) != nil {
		return nil, errors.New("connection: not the JSON that the manifest describes")
	}
	if settings.SecretKey == "" || settings.CallbackToken == "" {
		return nil, errors.New("connection: secret_key and callback_token must be given")
	}
	if settings.BaseURL == "" {
		settings.BaseURL = defaultBaseURL
	}
	base, err := checkBaseURL(settings.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("connection: base_url: %w", err)
	}
	return &account{
		client:        newClient(base, settings.SecretKey),
		callbackToken: settings.CallbackToken,
		linksAreQR:    settings.Link == "qr",
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
