package xendit

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

func basicAuth(request seen) (key, password string, ok bool) {
	return (&http.Request{Header: request.header}).BasicAuth()
}

const (
	byID   = "GET /v2/invoices/" + invoiceID
	byName = "GET /v2/invoices?external_id=" + reference
	qrByID = "GET /qr_codes/" + qrID
	qrOld  = "GET /qr_codes/" + reference
	qrPaid = "GET /qr_codes/" + qrID + "/payments"

	paidExtra = `,"paid_amount":100000,"paid_at":"2026-11-20T10:05:00.000Z","payment_method":"QR_CODE","payment_channel":"QRIS"`
	noneFound = `{"error_code":"INVOICE_NOT_FOUND_ERROR","message":"Could not find invoice by id"}`
	onePaid   = `[{"id":"qrpy_1","qr_id":"` + qrID + `","amount":100000,"currency":"IDR","status":"SUCCEEDED","created":"2026-11-20T10:05:00Z","payment_detail":{"receipt_id":"1","source":"DANA"}}]`
)

// want is the part of a status update that a case is about.
type want struct {
	status   sdk.Status
	blame    sdk.Blame
	amount   money.Amount
	event    string
	data     string
	provider string
	channel  string
}

func checkUpdate(t *testing.T, f sdk.StatusUpdate, w want) {
	t.Helper()
	got := want{f.Status, f.Blame, f.Amount, f.EventID, string(f.Data), f.ProviderReference, f.Channel}
	if got != w {
		t.Errorf("got  %+v (%s)\nwant %+v", got, f.Detail, w)
	}
	answered := f.Status != sdk.StatusUnknown && f.Status != sdk.StatusNotFound
	if answered && (f.Reference != reference || f.Currency != "IDR") {
		t.Errorf("reference %q, currency %q", f.Reference, f.Currency)
	}
}

const (
	pageData = `{"payment_url":"https://checkout-staging.xendit.co/web/` + invoiceID + `"}`
	qrData   = `{"qr_string":"` + mockQR + `"}`
)

func TestLookupInvoice(t *testing.T) {
	t.Parallel()
	silent := want{status: sdk.StatusDone, amount: 100000, event: invoiceID + "-PAID", provider: invoiceID}
	done := silent
	done.channel = "QRIS"
	for name, c := range map[string]struct {
		reply reply
		want  want
	}{
		"pending":           {reply{200, anInvoice("PENDING", "")}, want{status: sdk.StatusPending, amount: 100000, data: pageData, provider: invoiceID}},
		"paid":              {reply{200, anInvoice("PAID", paidExtra)}, done},
		"settled, the same": {reply{200, anInvoice("SETTLED", paidExtra)}, done},
		"paid with its id": {reply{200, anInvoice("PAID", paidExtra+`,"payment_id":"pay-1"`)},
			done},
		"paid another amount": {reply{200, anInvoice("PAID", `,"paid_amount":99000`)},
			want{status: sdk.StatusDone, amount: 99000, event: invoiceID + "-PAID", provider: invoiceID}},
		"paid, odd date": {reply{200, anInvoice("PAID", `,"paid_at":"yesterday"`)}, silent},
		"expired": {reply{200, anInvoice("EXPIRED", "")},
			want{status: sdk.StatusExpired, amount: 100000, event: invoiceID + "-EXPIRED", provider: invoiceID}},
		"unknown":           {reply{404, noneFound}, want{status: sdk.StatusNotFound}},
		"a proxy's 404":     {reply{404, "<html>404</html>"}, want{blame: sdk.BlameUpstream}},
		"a new status":      {reply{200, anInvoice("VOIDED", "")}, want{blame: sdk.BlameUpstream}},
		"another invoice":   {reply{200, anInvoice("PAID", `,"id":"6748105a77f16ebe0cc583a7"`)}, want{blame: sdk.BlameUpstream}},
		"wrong key":         {reply{401, failure("INVALID_API_KEY", "no")}, want{blame: sdk.BlameAccount}},
		"too fast":          {reply{429, failure("RATE_LIMIT_EXCEEDED", "no")}, want{blame: sdk.BlameLimit}},
		"server error":      {reply{500, failure("SERVER_ERROR", "no")}, want{blame: sdk.BlameUpstream}},
		"garbage":           {reply{200, "]["}, want{blame: sdk.BlameUpstream}},
		"fraction of money": {reply{200, anInvoice("PAID", `,"paid_amount":99.5`)}, want{blame: sdk.BlameUpstream}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, map[string]reply{byID: c.reply})
			checkUpdate(t, newAdapter().lookup(t.Context(), lookupOf(connect(t, up.url), linkBody, invoiceID)), c.want)
			want := []string{byID}
			if c.want.status == sdk.StatusDone { // its refunds
				want = append(want, "GET /refunds?limit=100&invoice_id="+invoiceID)
			}
			if asked := up.asked(); !slices.Equal(asked, want) {
				t.Errorf("asked %v, want %v", asked, want)
			}
		})
	}
}

func TestLookupTellsWhen(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{byID: {200, anInvoice("PAID", paidExtra)}})
	found := newAdapter().lookup(t.Context(), lookupOf(connect(t, up.url), linkBody, invoiceID))
	if want := today.Add(5 * time.Minute); !found.At.Equal(want) {
		t.Errorf("paid at %v, want %v", found.At, want)
	}
	if want := today.Add(24*time.Hour + 622*time.Millisecond); !found.ExpiresAt.Equal(want) {
		t.Errorf("expires at %v, want %v", found.ExpiresAt, want)
	}
}

// The answer to the create was lost: all there is is our own reference.
func TestLookupByReference(t *testing.T) {
	t.Parallel()
	pending := want{status: sdk.StatusPending, amount: 100000, data: pageData, provider: invoiceID}
	pendingQR := want{status: sdk.StatusPending, amount: 100000, data: qrData, provider: qrID}
	qrThere := map[string]reply{qrOld: {200, anOldQR()}, qrByID: {200, aQR("ACTIVE", "")}, qrPaid: {200, "[]"}, byName: {200, "[]"}}
	for name, c := range map[string]struct {
		body, link string
		replies    map[string]reply
		want       want
	}{
		"a link":        {linkBody, "", map[string]reply{byName: {200, "[" + anInvoice("PENDING", "") + "]"}}, pending},
		"no link":       {linkBody, "", map[string]reply{byName: {200, "[]"}}, want{status: sdk.StatusNotFound}},
		"another's":     {linkBody, "", map[string]reply{byName: {200, "[" + anInvoice("PENDING", `,"external_id":"gb-00011"`) + "]"}}, want{status: sdk.StatusNotFound}},
		"null":          {linkBody, "", map[string]reply{byName: {200, "null"}}, want{blame: sdk.BlameUpstream}},
		"no list":       {linkBody, "", map[string]reply{byName: {200, anInvoice("PENDING", "")}}, want{blame: sdk.BlameUpstream}},
		"server error":  {linkBody, "", map[string]reply{byName: {500, failure("SERVER_ERROR", "")}}, want{blame: sdk.BlameUpstream}},
		"several links": {linkBody, "", map[string]reply{byName: {200, "[" + anInvoice("EXPIRED", `,"id":"0"`) + "," + anInvoice("PENDING", "") + "]"}}, pending},
		"several, paid": {linkBody, "", map[string]reply{byName: {200, "[" + anInvoice("PENDING", `,"id":"0"`) + "," + anInvoice("SETTLED", "") + "]"}},
			want{status: sdk.StatusDone, amount: 100000, event: invoiceID + "-PAID", provider: invoiceID}},
		"a QR code":            {qrisBody, "", qrThere, pendingQR},
		"no QR code":           {qrisBody, "", nil, want{status: sdk.StatusNotFound}},
		"another's QR code":    {qrisBody, "", map[string]reply{qrOld: {200, `{"id":"qr_1","external_id":"other"}`}}, want{blame: sdk.BlameUpstream}},
		"a link as a QR code":  {linkBody, "qr", qrThere, pendingQR},
		"a link made before":   {linkBody, "qr", map[string]reply{byName: {200, "[" + anInvoice("PENDING", "") + "]"}}, pending},
		"neither":              {linkBody, "qr", map[string]reply{byName: {200, "[]"}}, want{status: sdk.StatusNotFound}},
		"QR codes not to read": {linkBody, "qr", map[string]reply{qrOld: {500, ""}, byName: {200, "[]"}}, want{blame: sdk.BlameUpstream}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, c.replies)
			checkUpdate(t, newAdapter().lookup(t.Context(), lookupOf(connect(t, up.url, "link", c.link), c.body, "")), c.want)
		})
	}
}

func TestLookupQR(t *testing.T) {
	t.Parallel()
	const late = 31 * time.Minute // after the code's expires_at
	pending := want{status: sdk.StatusPending, amount: 100000, data: qrData, provider: qrID}
	paid := want{status: sdk.StatusDone, amount: 100000, event: "qrpy_1", provider: qrID, channel: "DANA"}
	expired := want{status: sdk.StatusExpired, amount: 100000, event: qrID + "-EXPIRED", provider: qrID}
	for name, c := range map[string]struct {
		code, payments reply
		after          time.Duration
		want           want
	}{
		"open":                     {reply{200, aQR("ACTIVE", "")}, reply{200, "[]"}, 0, pending},
		"open, enveloped list":     {reply{200, aQR("ACTIVE", "")}, reply{200, `{"data":[],"has_more":false}`}, 0, pending},
		"paid":                     {reply{200, aQR("INACTIVE", "")}, reply{200, onePaid}, 0, paid},
		"paid, enveloped list":     {reply{200, aQR("ACTIVE", "")}, reply{200, `{"data":` + onePaid + `}`}, 0, paid},
		"paid, looked at late":     {reply{200, aQR("INACTIVE", "")}, reply{200, onePaid}, late, paid},
		"a payment that failed":    {reply{200, aQR("ACTIVE", "")}, reply{200, `[{"id":"qrpy_0","amount":100000,"status":"FAILED"}]`}, 0, pending},
		"out of time":              {reply{200, aQR("ACTIVE", "")}, reply{200, "[]"}, late, expired},
		"off before its time":      {reply{200, aQR("INACTIVE", "")}, reply{200, "[]"}, 0, pending},
		"off, and no time":         {reply{200, aQR("INACTIVE", `,"expires_at":null`)}, reply{200, "[]"}, late, expired},
		"open, and no time":        {reply{200, aQR("ACTIVE", `,"expires_at":null`)}, reply{200, "[]"}, late, pending},
		"payments not to be read":  {reply{200, aQR("ACTIVE", "")}, reply{500, ""}, late, want{blame: sdk.BlameUpstream}},
		"payments nowhere":         {reply{200, aQR("ACTIVE", "")}, reply{404, failure("DATA_NOT_FOUND", "")}, late, want{}},
		"payments without a list":  {reply{200, aQR("ACTIVE", "")}, reply{200, `{}`}, late, want{blame: sdk.BlameUpstream}},
		"unknown":                  {reply{404, failure("DATA_NOT_FOUND", "")}, reply{}, 0, want{status: sdk.StatusNotFound}},
		"another code":             {reply{200, aQR("ACTIVE", `,"id":"qr_other"`)}, reply{200, "[]"}, 0, want{blame: sdk.BlameUpstream}},
		"nothing to pay with":      {reply{200, aQR("ACTIVE", `,"qr_string":""`)}, reply{200, "[]"}, 0, want{blame: sdk.BlameUpstream}},
		"wrong key":                {reply{401, failure("INVALID_API_KEY", "")}, reply{}, 0, want{blame: sdk.BlameAccount}},
		"two payments, first told": {reply{200, aQR("ACTIVE", "")}, reply{200, `[{"id":"qrpy_2","amount":1,"status":"COMPLETED","created":"2026-11-20T10:06:00Z"},` + onePaid[1:]}, 0, paid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, map[string]reply{qrByID: c.code, qrPaid: c.payments})
			a := newAdapter()
			a.now = func() time.Time { return today.Add(c.after) }
			checkUpdate(t, a.lookup(t.Context(), lookupOf(connect(t, up.url), qrisBody, qrID)), c.want)
			for _, request := range up.seen {
				if got := request.header.Get("Api-Version"); got != "2022-07-31" {
					t.Errorf("%s with api-version %q", request.uri, got)
				}
			}
		})
	}
}

func TestAQRCodeWithoutATimeEndsWithTheMovement(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{qrByID: {200, aQR("ACTIVE", `,"expires_at":null`)}, qrPaid: {200, "[]"}})
	l := lookupOf(connect(t, up.url), qrisBody, qrID)
	l.ExpiresAt = today.Add(-time.Second)
	if found := newAdapter().lookup(t.Context(), l); found.Status != sdk.StatusExpired {
		t.Errorf("got %+v", found)
	}
}
