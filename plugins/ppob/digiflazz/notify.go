package digiflazz

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// notify reads a webhook. Its signature proves that it comes from the upstream
// for this account, not what it says: the gateway checks the reference against
// its own record.
func (a *adapter) notify(_ context.Context, n sdk.Notification) sdk.Acknowledgement {
	acc, err := a.account(n.Connection)
	if err != nil {
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: err.Error()}
	}
	if !acc.client.signed(n.Header.Get("X-Hub-Signature"), n.Body) {
		return sdk.Acknowledgement{Status: http.StatusUnauthorized, Detail: "wrong X-Hub-Signature"}
	}
	var event struct {
		Data   json.RawMessage `json:"data"`
		HookID json.RawMessage `json:"hook_id"` // of a ping
	}
	var m message
	if err := json.Unmarshal(n.Body, &event); err != nil {
		return unreadable(acc.client.clean(m, err.Error()))
	}
	if n.Header.Get("X-Digiflazz-Event") == "ping" || event.Data == nil && event.HookID != nil {
		return sdk.Acknowledgement{Status: http.StatusOK}
	}
	var got answer
	if err := json.Unmarshal(event.Data, &got); err != nil {
		return unreadable(acc.client.clean(m, err.Error()))
	}
	if got.RefID == "" {
		return unreadable("it has no ref_id")
	}
	r, reference := acc.client.judge(m, got, ""), string(got.RefID)
	f := r.statusUpdate(reference)
	if got.ofBill() && r.onlyAsked() || f.Status == sdk.StatusUnknown {
		// It proves nothing of the order; a lookup will.
		return sdk.Acknowledgement{Status: http.StatusOK, Detail: r.detail}
	}
	return sdk.Acknowledgement{Updates: []sdk.StatusUpdate{f}, Status: http.StatusOK}
}

func unreadable(why string) sdk.Acknowledgement {
	return sdk.Acknowledgement{Status: http.StatusBadRequest, Detail: "webhook: " + why}
}
