package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
)

// Connection is an account that a simulator has opened for a merchant of a
// gateway in development, and what the gateway needs to use it.
type Connection struct {
	// Account names the account to the hooks order.
	Account string `json:"account"`
	// CallbackToken is what the upstream's notifications will carry.
	CallbackToken string `json:"callback_token"`
	// Credentials are as the manifest's connection schema has them.
	Credentials any `json:"credentials"`
}

// Connector is an [Upstream] that opens accounts for a gateway in development, of either
// mode. Key and token are the account's own secrets, the same at each call for the
// same merchant and mode; base is the simulator's URL without a slash at the
// end.
type Connector interface {
	Connect(mode, key, token, base string) Connection
}

// connect opens, or finds again, the account of a merchant in a mode; with a version
// above 1 one with other credentials. Its secrets come from the control token, so that nothing needs to be kept.
func (e *Env) connect(up Connector, w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Merchant string `json:"merchant"`
		Mode     string `json:"mode"`
		Version  int    `json:"version"`
	}
	if !readOrder(w, r, &wanted) {
		return
	}
	if wanted.Merchant == "" || wanted.Mode == "" {
		writeError(w, http.StatusBadRequest, "merchant and mode are required")
		return
	}
	derive := func(purpose string) string {
		mac := hmac.New(sha256.New, []byte(e.token))
		for _, part := range []string{purpose, wanted.Merchant, wanted.Mode} {
			mac.Write([]byte(part + "\x00"))
		}
		if wanted.Version > 1 {
			fmt.Fprintf(mac, "%d", wanted.Version)
		}
		return hex.EncodeToString(mac.Sum(nil))[:40]
	}
	writeJSON(w, http.StatusOK, up.Connect(wanted.Mode, derive("key"), derive("token"), "http://"+r.Host))
}

// Revoker is a [Connector] that can refuse an account's credentials from now on.
type Revoker interface {
	// Revoke takes the account's name as Connect answered it. [Accounts.Revoke] notes
	// it, and whoever authenticates asks [Accounts.Revoked].
	Revoke(account string) error
}

func (e *Env) revoke(up Revoker, w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Account string `json:"account"`
	}
	if !readOrder(w, r, &wanted) {
		return
	}
	if wanted.Account == "" {
		writeError(w, http.StatusBadRequest, "account is required: the one that connect answered")
		return
	}
	if err := up.Revoke(wanted.Account); err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]AccountID{"account_id": AccountOf(wanted.Account)})
}
