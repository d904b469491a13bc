package xendit

import (
	"encoding/json"
	"errors"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const defaultBaseURL = "https://api.xendit.co"

// account is one merchant's account at the upstream in one mode.
type account struct {
	client        *client
	callbackToken string
	mode          string // that the key is for, "" where it does not tell
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
	base, err := upstream.BaseURL(settings.BaseURL, defaultBaseURL)
	if err != nil {
		return nil, err
	}
	return &account{
		client:        newClient(base, settings.SecretKey, settings.CallbackToken),
		callbackToken: settings.CallbackToken,
		mode:          modeOf(settings.SecretKey),
		linksAreQR:    settings.Link == "qr",
	}, nil
}
