package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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

// Connector is an [Upstream] that opens accounts for a gateway in development.
// Key and token are the account's own secrets, the same at each call for the
// same merchant and mode; base is the simulator's URL without a slash at the
// end.
type Connector interface {
	Connect(key, token, base string) Connection
}

// connect opens, or finds again, the account of a merchant in a mode. Its
// secrets come from the control token, so that nothing needs to be kept.
func (e *Env) connect(up Connector, w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Merchant string `json:"merchant"`
		Mode     string `json:"mode"`
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
		return hex.EncodeToString(mac.Sum(nil))[:40]
	}
	writeJSON(w, http.StatusOK, up.Connect(derive("key"), derive("token"), "http://"+r.Host))
}
