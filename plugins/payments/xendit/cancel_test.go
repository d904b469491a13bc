package xendit

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func cancelCall(c sdk.Connection, providerReference string) sdk.Call {
	return sdk.Call{
		Operation: "/payments/cancel", Connection: c, Reference: reference, ProviderReference: providerReference,
		Amount: 100000, Body: json.RawMessage(`{"external_id":"INV/2026/#001"}`), SendBy: time.Now().Add(time.Minute),
	}
}

const expireURI = "POST /invoices/" + invoiceID + "/expire!"

func TestCancel(t *testing.T) {
	t.Parallel()
	over := reply{400, failure("INVOICE_STATUS_ERROR", "the invoice has ended")}
	inList := func(status string) reply { return reply{200, "[" + anInvoice(status, "") + "]"} }
	for name, c := range map[string]struct {
		id      string
		replies map[string]reply
		outcome sdk.Outcome
		blame   sdk.Blame
		asked   []string
	}{
		"an open link":        {invoiceID, map[string]reply{expireURI: {200, anInvoice("EXPIRED", "")}}, sdk.Done, 0, []string{expireURI}},
		"an expired link":     {invoiceID, map[string]reply{expireURI: over, byID: {200, anInvoice("EXPIRED", "")}}, sdk.Done, 0, []string{expireURI, byID}},
		"a paid link":         {invoiceID, map[string]reply{expireURI: over, byID: {200, anInvoice("PAID", "")}}, sdk.Refused, 0, []string{expireURI, byID}},
		"answered as paid":    {invoiceID, map[string]reply{expireURI: {200, anInvoice("PAID", "")}, byID: {200, anInvoice("PAID", "")}}, sdk.Refused, 0, []string{expireURI, byID}},
		"refused, still open": {invoiceID, map[string]reply{expireURI: over, byID: {200, anInvoice("PENDING", "")}}, sdk.Refused, 0, []string{expireURI, byID}},
		"done, then an error": {invoiceID, map[string]reply{expireURI: {500, ""}, byID: {200, anInvoice("EXPIRED", "")}}, sdk.Done, 0, []string{expireURI, byID}},
		"an error, not done":  {invoiceID, map[string]reply{expireURI: {500, ""}, byID: {200, anInvoice("PENDING", "")}}, sdk.Unknown, sdk.BlameUpstream, []string{expireURI, byID}},
		"nobody answers":      {invoiceID, map[string]reply{expireURI: {500, ""}, byID: {500, ""}}, sdk.Unknown, sdk.BlameUpstream, []string{expireURI, byID}},
		"garbage":             {invoiceID, map[string]reply{expireURI: {200, "{"}, byID: {200, "{"}}, sdk.Unknown, sdk.BlameUpstream, []string{expireURI, byID}},
		"wrong key":           {invoiceID, map[string]reply{expireURI: {401, failure("INVALID_API_KEY", "")}}, sdk.NotSent, sdk.BlameAccount, []string{expireURI}},
		"a QR code": {qrID, map[string]reply{qrByID: {200, aQR("ACTIVE", "")}, qrPaid: {200, "[]"}},
			sdk.Done, 0, []string{qrByID, qrPaid}},
		"a paid QR code": {qrID, map[string]reply{qrByID: {200, aQR("ACTIVE", "")}, qrPaid: {200, onePaid}},
			sdk.Refused, 0, []string{qrByID, qrPaid}},
		"a QR, nobody to ask": {qrID, map[string]reply{qrByID: {500, ""}}, sdk.Unknown, sdk.BlameUpstream, []string{qrByID}},
		"a link by reference": {"", map[string]reply{byName: inList("PENDING"), expireURI: {200, anInvoice("EXPIRED", "")}}, sdk.Done, 0, []string{byName, expireURI}},
		"a QR by reference": {"", map[string]reply{byName: {200, "[]"}, qrOld: {200, anOldQR()}, qrByID: {200, aQR("ACTIVE", "")}, qrPaid: {200, "[]"}},
			sdk.Done, 0, []string{byName, qrOld, qrByID, qrPaid}},
		"a paid QR by reference": {"", map[string]reply{byName: {200, "[]"}, qrOld: {200, anOldQR()}, qrByID: {200, aQR("ACTIVE", "")}, qrPaid: {200, onePaid}},
			sdk.Refused, 0, []string{byName, qrOld, qrByID, qrPaid}},
		"nothing upstream":     {"", map[string]reply{byName: {200, "[]"}}, sdk.NotSent, 0, []string{byName, qrOld}},
		"nobody to ask it was": {"", map[string]reply{byName: {500, ""}}, sdk.Unknown, sdk.BlameUpstream, []string{byName}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, c.replies)
			result := newAdapter().cancel(t.Context(), cancelCall(connect(t, up.url), c.id))
			if result.Outcome != c.outcome || result.Blame != c.blame {
				t.Errorf("got %+v, want outcome %v and blame %v", result, c.outcome, c.blame)
			}
			if asked := up.asked(); !slices.Equal(asked, c.asked) {
				t.Errorf("asked %v, want %v", asked, c.asked)
			}
		})
	}
}
