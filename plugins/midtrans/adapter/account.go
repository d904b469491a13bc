package adapter

import (
	"encoding/json"
	"errors"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const (
	liveAPI  = "https://api.midtrans.com"
	liveSnap = "https://app.midtrans.com"
	testAPI  = "https://api.sandbox.midtrans.com"
	testSnap = "https://app.sandbox.midtrans.com"

	modeLive = "live"
)

// account returns the client of a connection's account. The error holds no credential.
func (a *adapter) account(c sdk.Connection) (*client, error) {
	return a.accounts.Get(c, openAccount)
}

func openAccount(c sdk.Connection) (*client, error) {
	var settings struct {
		ServerKey string `json:"server_key"`
		APIURL    string `json:"api_url"`
		SnapURL   string `json:"snap_url"`
	}
	// The decoder's own error could quote the document, which is secret.
	if json.Unmarshal(c.Credentials, &settings) != nil {
		return nil, errors.New("connection: not the JSON that the manifest describes")
	}
	if settings.ServerKey == "" {
		return nil, errors.New("connection: server_key must be given")
	}
	usualAPI, usualSnap := testAPI, testSnap
	if c.Mode == modeLive {
		usualAPI, usualSnap = liveAPI, liveSnap
	}
	api, err := upstream.BaseURL(settings.APIURL, usualAPI)
	if err != nil {
		return nil, err
	}
	snap, err := upstream.BaseURL(settings.SnapURL, usualSnap)
	if err != nil {
		return nil, err
	}
	return newClient(api, snap, settings.ServerKey), nil
}
