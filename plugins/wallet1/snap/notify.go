package snap

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// notify reads the notification of a bank transfer's end. Its age is not
// judged: an old one that comes again states the same fact again.
func (a *adapter) notify(ctx context.Context, n sdk.Notification) sdk.Acknowledgement {
	acc, err := a.account(n.Connection)
	if err != nil {
		return answered(http.StatusServiceUnavailable, err.Error())
	}
	if !acc.genuineNotification(n) {
		return answered(http.StatusUnauthorized, "the notification is not signed by the provider for this account")
	}
	var f fact
	if err := json.Unmarshal(n.Body, &f); err != nil {
		return answered(http.StatusBadRequest, upstream.Printable("notification: "+err.Error(), acc.client.secret))
	}
	found := f.statusUpdate()
	switch {
	case f.PartnerReferenceNo == "", found.Status != sdk.StatusDone && found.Status != sdk.StatusFailed:
		// Taken, or it would come again and again.
		return answered(http.StatusOK, "a notification that tells of no transfer's end")
	case found.Status == sdk.StatusDone && !f.Amount.is:
		return acc.confirm(ctx, f)
	}
	return answered(http.StatusOK, "", found)
}

// confirm asks for the transfer that a notification calls done without naming
// how much it moved. Where the upstream does not say so yet, the notification
// is to come again.
func (acc *account) confirm(ctx context.Context, f fact) sdk.Acknowledgement {
	found := acc.status(ctx, asked{service: acc.bankStatus, reference: string(f.PartnerReferenceNo), providerReference: string(f.ReferenceNo)})
	switch found.Status {
	case sdk.StatusDone:
		if found.Amount == 0 {
			return answered(http.StatusOK, "neither the notification nor the status tells an amount") // a lookup knows it
		}
		return answered(http.StatusOK, "", found)
	case sdk.StatusFailed:
		return answered(http.StatusOK, "", found)
	case sdk.StatusNotFound:
		return answered(http.StatusNotFound, "the upstream itself does not know the transfer of its notification")
	case sdk.StatusUnknown, sdk.StatusPending, sdk.StatusExpired:
	}
	return answered(http.StatusServiceUnavailable, "the status does not confirm the notification: "+found.Detail)
}

// genuineNotification reports whether the provider signed a notification for this
// account. One key may sign for all accounts, so the partner must be this one.
func (acc *account) genuineNotification(n sdk.Notification) bool {
	c := acc.client
	if n.Header.Get("X-PARTNER-ID") != c.headers.partner {
		return false
	}
	what := signed{method: n.Method, body: n.Body, timestamp: n.Header.Get("X-TIMESTAMP")}
	what.token, _ = strings.CutPrefix(n.Header.Get("Authorization"), "Bearer ")
	for _, path := range acc.notifyPaths {
		what.path = path
		if n.Query != "" {
			what.path += "?" + n.Query
		}
		if c.genuine(n.Header.Get("X-SIGNATURE"), what) {
			return true
		}
	}
	return false
}

// answered is the answer that the upstream expects, in its own form.
func answered(status int, detail string, updates ...sdk.StatusUpdate) sdk.Acknowledgement {
	type answer struct {
		ResponseCode    string `json:"responseCode"`
		ResponseMessage string `json:"responseMessage"`
	}
	codes := map[int]answer{
		http.StatusOK:                 {"2004300", "Successful"},
		http.StatusBadRequest:         {"4004300", "Bad Request"},
		http.StatusUnauthorized:       {"4014300", "Unauthorized. Signature"},
		http.StatusNotFound:           {"4044301", "Transaction Not Found"},
		http.StatusServiceUnavailable: {"5034300", "Service Unavailable"},
	}
	body, err := json.Marshal(codes[status])
	if err != nil {
		body = nil // cannot be: two strings
	}
	return sdk.Acknowledgement{Status: status, ContentType: "application/json", Body: body, Updates: updates, Detail: detail}
}
