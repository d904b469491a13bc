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
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// notice is a notification. Its signature covers three of its members, and not
// transaction_status: whoever has one that says "cancel" could make it say "settlement".
// So the manifest does not call it signed, and the gateway asks for the status.
type notice struct {
	transaction

	StatusCode string `json:"status_code"`
	Gross      string `json:"gross_amount"`
	Signature  string `json:"signature_key"`
}

// notify verifies a notification and tells what it says.
func (a *adapter) notify(_ context.Context, n sdk.Notification) sdk.Acknowledgement {
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
	told.GrossAmount = upstream.Text(told.Gross)
	update := told.statusUpdate()
	if update.Status == sdk.StatusUnknown {
		update = sdk.Unread(told.OrderID, told.ID+"-"+told.Status, "transaction_status "+told.Status+": "+update.Detail)
	}
	return sdk.Acknowledgement{Updates: []sdk.StatusUpdate{update}, Status: http.StatusOK}
}

// signedWith compares without telling by its time how much was right.
func (n notice) signedWith(key string) bool {
	sum := sha512.Sum512([]byte(n.OrderID + n.StatusCode + n.Gross + key))
	want := hex.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(strings.ToLower(n.Signature)), []byte(want)) == 1
}
