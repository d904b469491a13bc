package sdktest_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

func (a *adapter) lookup(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	if a.bug == "asks its memory" {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.made[l.Reference] {
			return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusNotFound}
		}
	}
	if l.Operation == "/example/refund" {
		return a.lookUpRefund(ctx, l)
	}
	found, err := a.byReference(ctx, l.Connection, l.Reference)
	switch {
	case errors.Is(err, errNothing) && a.bug == "never says not found":
		return sdk.NoStatus(sdk.BlameUpstream, err.Error())
	case errors.Is(err, errNothing) && a.bug == "takes not found for expired":
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusExpired, Currency: "IDR"}
	case errors.Is(err, errNothing), a.bug == "finds nothing", err != nil && a.bug == "takes a failed lookup for not found",
		errors.Is(err, errKey) && a.bug == "takes a bad key for not found":
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusNotFound}
	case err != nil && a.bug == "takes a failed lookup for a failed payment":
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusFailed}
	case err != nil && a.bug == "takes a failed lookup for a payment":
		return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusDone, Amount: l.Amount, Currency: "IDR", ProviderReference: l.ProviderReference}
	case errors.Is(err, errKey):
		return sdk.NoStatus(sdk.BlameAccount, err.Error())
	case errors.Is(err, errLimit):
		return sdk.NoStatus(sdk.BlameLimit, err.Error())
	case err != nil:
		return sdk.NoStatus(sdk.BlameUpstream, err.Error())
	}
	return a.statusUpdate(found)
}

func (a *adapter) statusUpdate(c charge) sdk.StatusUpdate {
	f := sdk.StatusUpdate{
		Reference: c.Ref, ProviderReference: c.ID, Amount: c.Amount, Currency: "IDR", EventID: c.Event,
		Status: map[string]sdk.Status{"open": sdk.StatusPending, "paid": sdk.StatusDone, "ended": sdk.StatusExpired}[c.State],
	}
	if c.State == "paid" && a.bug != "tells what was asked for" {
		f.Amount = c.Paid
	}
	f.Returns = a.returns(c)
	switch a.bug {
	case "takes an open payment for a paid one":
		f.Status = sdk.StatusDone
	case "forgets the upstream's name in a lookup":
		f.ProviderReference = ""
	case "names no currency":
		f.Currency = ""
	case "names each fact anew":
		f.EventID = time.Now().String()
	case "halves amounts":
		f.Amount = money.Amount(int64(f.Amount) / 2)
	}
	return f
}

// signs reports whether a notification is signed with the account's token.
func (a *adapter) signs(who *account, n sdk.Notification) bool {
	given := n.Header.Get("X-Signature")
	mac := hmac.New(sha1.New, []byte(who.Token))
	mac.Write(n.Body)
	want := "sha1=" + hex.EncodeToString(mac.Sum(nil))
	switch a.bug {
	case "trusts anybody":
		return true
	case "does not ask for a signature":
		return given == "" && n.Header.Get("Content-Type") != "" || given == want
	case "looks at half of the signature":
		return len(given) > 20 && strings.HasPrefix(want, given[:len(given)/2])
	case "does not sign the amount":
		return given != ""
	}
	return hmac.Equal([]byte(given), []byte(want))
}

func (a *adapter) notify(ctx context.Context, n sdk.Notification) sdk.Acknowledgement {
	who, err := a.account(n.Connection)
	if err != nil {
		return sdk.Acknowledgement{Status: http.StatusUnauthorized}
	}
	var c charge
	unread := json.Unmarshal(n.Body, &c)
	switch {
	case a.bug == "asks the upstream before it verifies":
		_, _ = a.byReference(ctx, n.Connection, c.Ref)
	case a.bug == "panics at a broken body" && unread != nil:
		panic(unread)
	}
	if !a.signs(who, n) {
		refused := sdk.Acknowledgement{Status: http.StatusUnauthorized}
		if a.bug == "tells what it did not verify" {
			refused.Updates = []sdk.StatusUpdate{a.statusUpdate(c)}
		}
		if a.bug == "welcomes what it did not verify" {
			refused.Status = http.StatusOK
		}
		return refused
	}
	if unread != nil {
		return sdk.Acknowledgement{Status: http.StatusBadRequest}
	}
	update := a.statusUpdate(c)
	if a.bug == "tells another channel" {
		update.Channel = "CASH"
	}
	return sdk.Acknowledgement{Status: http.StatusNoContent, Updates: []sdk.StatusUpdate{update}}
}
