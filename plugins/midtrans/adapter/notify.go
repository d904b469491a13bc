package adapter

import (
	"context"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// notice is a notification. Its signature covers the three members before it, and not
// transaction_status: whoever has one that says "cancel" could make it say
// "settlement". So it is believed about which order it is, and no further.
type notice struct {
	OrderID     string `json:"order_id"`
	StatusCode  string `json:"status_code"`
	GrossAmount string `json:"gross_amount"`
	Signature   string `json:"signature_key"`
	Status      string `json:"transaction_status"`
}

// notify verifies a notification and asks the upstream how the order stands.
func (a *adapter) notify(ctx context.Context, n sdk.Notification) sdk.Acknowledgement {
	acc, err := a.account(n.Connection)
	if err != nil {
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: err.Error()}
	}
	var told notice
	if json.Unmarshal(n.Body, &told) != nil {
		return sdk.Acknowledgement{Status: http.StatusBadRequest, Detail: "the notification is not the JSON that the upstream sends"}
	}
	if told.OrderID == "" || !told.signedWith(acc.key) {
		return sdk.Acknowledgement{Status: http.StatusUnauthorized, Detail: "wrong signature_key"}
	}
	switch told.Status {
	case "pending", "authorize", "deny", "failure": // no end: of a link's tries, another may follow
		return sdk.Acknowledgement{Status: http.StatusOK}
	}
	t, p := acc.status(ctx, told.OrderID)
	if p != nil {
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: p.detail} // it comes again
	}
	found := t.statusUpdate()
	switch {
	case found.Status == sdk.StatusUnknown:
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: found.Detail}
	case found.Status == sdk.StatusPending && told.Status == "settlement":
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: "a payment that the upstream's status does not show yet"}
	case found.Status == sdk.StatusPending || t.failedTry():
		return sdk.Acknowledgement{Status: http.StatusOK, Detail: "an end that the upstream itself denies"}
	}
	return sdk.Acknowledgement{Updates: []sdk.StatusUpdate{found}, Status: http.StatusOK}
}

// signedWith compares without telling by its time how much was right.
func (n notice) signedWith(key string) bool {
	sum := sha512.Sum512([]byte(n.OrderID + n.StatusCode + n.GrossAmount + key))
	want := hex.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(strings.ToLower(n.Signature)), []byte(want)) == 1
}
