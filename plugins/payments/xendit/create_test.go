package xendit

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	linkBody = `{"type":"payment_link","amount":100000,"payer_email":"pembeli@example.com","description":"Kopi & roti","success_url":"https://toko.example/ok","expires_in":3600,"metadata":{"a":"b"}}`
	bareBody = `{"amount":100000,"payer_email":"pembeli@example.com"}`
	qrisBody = `{"type":"qris","amount":100000,"payer_email":"pembeli@example.com"}`
)

// equalJSON compares documents, not their spelling.
func equalJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("got no JSON: %v: %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want no JSON: %v", err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCreateInvoiceSendsWhatTheUpstreamReads(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{"POST /v2/invoices": {200, anInvoice("PENDING", "")}})
	result := newAdapter().create(t.Context(), createCall(connect(t, up.url), linkBody))

	if result.Outcome != sdk.Pending || result.ProviderReference != invoiceID {
		t.Fatalf("got %+v", result)
	}
	if want := time.Date(2026, 11, 21, 10, 0, 0, 622e6, time.UTC); !result.ExpiresAt.Equal(want) {
		t.Errorf("expires %v, want the upstream's %v", result.ExpiresAt, want)
	}
	equalJSON(t, string(result.Data), `{"payment_url":"https://checkout-staging.xendit.co/web/`+invoiceID+`"}`)
	request := up.only(t)
	equalJSON(t, request.body, `{"external_id":"gb-0001","amount":100000,"payer_email":"pembeli@example.com","description":"Kopi & roti",
"invoice_duration":3600,"success_redirect_url":"https://toko.example/ok","currency":"IDR"}`)
	// The vector of the facts: the key, a colon, no password.
	if got := request.header.Get("Authorization"); got != "Basic eG5kX2RldmVsb3BtZW50X2V4YW1wbGU6" {
		t.Errorf("Authorization is %q", got)
	}
	if got := request.header.Get("Api-Version"); got != "" {
		t.Errorf("an invoice was asked for with api-version %q", got)
	}
}

func TestCreateInvoiceDefaults(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{"POST /v2/invoices": {200, anInvoice("PENDING", `,"expiry_date":null`)}})
	result := newAdapter().create(t.Context(), createCall(connect(t, up.url), bareBody))
	equalJSON(t, up.only(t).body, `{"external_id":"gb-0001","amount":100000,"payer_email":"pembeli@example.com","invoice_duration":86400,"currency":"IDR"}`)
	if want := today.Add(24 * time.Hour); !result.ExpiresAt.Equal(want) {
		t.Errorf("without an expiry of the upstream: %v, want what was asked for, %v", result.ExpiresAt, want)
	}
}

func TestCreateQR(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body, link, expires string
	}{
		"qris":               {qrisBody, "invoice", "2026-11-20T10:30:00Z"},
		"qris with a life":   {`{"type":"qris","expires_in":60.0}`, "invoice", "2026-11-20T10:01:00Z"},
		"qris, longest life": {`{"type":"qris","expires_in":172800}`, "invoice", "2026-11-22T10:00:00Z"},
		"a link as a QR":     {bareBody, "qr", "2026-11-21T10:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, map[string]reply{"POST /qr_codes": {201, aQR("ACTIVE", "")}})
			result := newAdapter().create(t.Context(), createCall(connect(t, up.url, "link", c.link), c.body))
			if result.Outcome != sdk.Pending || result.ProviderReference != qrID {
				t.Fatalf("got %+v", result)
			}
			equalJSON(t, string(result.Data), `{"qr_string":"`+mockQR+`"}`)
			if want := today.Add(30 * time.Minute); !result.ExpiresAt.Equal(want) {
				t.Errorf("expires %v, want the upstream's %v", result.ExpiresAt, want)
			}
			request := up.only(t)
			equalJSON(t, request.body, `{"reference_id":"gb-0001","type":"DYNAMIC","currency":"IDR","amount":100000,"expires_at":"`+c.expires+`"}`)
			if got := request.header.Get("Api-Version"); got != "2022-07-31" {
				t.Errorf("api-version is %q", got)
			}
		})
	}
}

// A link that is a QR code may be asked to live longer than the channel keeps
// one; for a raw code the manifest refuses that.
func TestALinkAsQRLivesAsLongAsTheChannelKeepsIt(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{"POST /qr_codes": {201, aQR("ACTIVE", "")}})
	newAdapter().create(t.Context(), createCall(connect(t, up.url, "link", "qr"), `{"type":"payment_link","expires_in":172801}`))
	if body := up.only(t).body; !strings.Contains(body, `"expires_at":"2026-11-22T10:00:00Z"`) {
		t.Errorf("asked with %s, want a life of 48 hours", body)
	}
}

func TestConflictIsReadBack(t *testing.T) {
	t.Parallel()
	duplicate := reply{409, `{"error_code":"DUPLICATE_ERROR","message":"reference_id exists"}`}
	for name, c := range map[string]struct {
		replies map[string]reply
		want    sdk.Outcome
	}{
		"ours": {map[string]reply{
			"POST /qr_codes": duplicate, "GET /qr_codes/" + reference: {200, anOldQR()}, "GET /qr_codes/" + qrID: {200, aQR("ACTIVE", "")},
		}, sdk.Pending},
		"of another amount": {map[string]reply{
			"POST /qr_codes": duplicate, "GET /qr_codes/" + reference: {200, anOldQR()}, "GET /qr_codes/" + qrID: {200, aQR("ACTIVE", `,"amount":99999`)},
		}, sdk.Unknown},
		"not to be read": {map[string]reply{"POST /qr_codes": duplicate}, sdk.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, c.replies)
			result := newAdapter().create(t.Context(), createCall(connect(t, up.url), qrisBody))
			if result.Outcome != c.want {
				t.Errorf("got %+v, want %v", result, c.want)
			}
			if posts := slices.DeleteFunc(up.asked(), func(r string) bool { return !strings.HasPrefix(r, "POST") }); len(posts) != 1 {
				t.Errorf("sent %v", posts)
			}
		})
	}
	t.Run("an invoice's is unknown, never a refusal", func(t *testing.T) {
		t.Parallel()
		up := newStub(t, map[string]reply{"POST /v2/invoices": duplicate})
		if result := newAdapter().create(t.Context(), createCall(connect(t, up.url), linkBody)); result.Outcome != sdk.Unknown {
			t.Errorf("got %+v", result)
		}
	})
}

func failure(code, message string) string {
	return `{"error_code":"` + code + `","message":"` + message + `"}`
}

// recordedFault is the validation error of the recorded traffic.
const recordedFault = `{"message":"Invalid input data. Please check your request","error_code":"API_VALIDATION_ERROR",
"errors":[{"field":["external_id"],"location":"body","messages":["\"external_id\" must be a string"],"types":["string.base"]}]}`

func TestCreateOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply   reply
		outcome sdk.Outcome
		blame   sdk.Blame
	}{
		"validation error":        {reply{400, recordedFault}, sdk.Refused, sdk.BlameNone},
		"errors of another form":  {reply{400, `{"error_code":"API_VALIDATION_ERROR","message":"m","errors":{"a":1}}`}, sdk.Refused, sdk.BlameNone},
		"below the minimum":       {reply{400, failure("MINIMAL_TRANSFER_AMOUNT_ERROR", "at least 10000")}, sdk.Refused, sdk.BlameNone},
		"unknown code":            {reply{404, failure("CALLBACK_VIRTUAL_ACCOUNT_NOT_FOUND_ERROR", "no")}, sdk.Refused, sdk.BlameNone},
		"wrong key":               {reply{401, failure("INVALID_API_KEY", "API key is not authorized")}, sdk.NotSent, sdk.BlameAccount},
		"no key":                  {reply{400, `{"error_code":"API_VALIDATION_ERROR","message":"m","errors":[{"field":["api_key"],"messages":["required"]}]}`}, sdk.NotSent, sdk.BlameAccount},
		"key may not":             {reply{403, failure("REQUEST_FORBIDDEN_ERROR", "no")}, sdk.NotSent, sdk.BlameAccount},
		"channel not active":      {reply{403, failure("CHANNEL_NOT_ACTIVATED", "no")}, sdk.NotSent, sdk.BlameAccount},
		"no channel":              {reply{400, failure("NO_COLLECTION_METHODS_ERROR", "no")}, sdk.NotSent, sdk.BlameAccount},
		"too fast":                {reply{429, failure("RATE_LIMIT_EXCEEDED", "slow down")}, sdk.NotSent, sdk.BlameLimit},
		"channel down":            {reply{503, failure("CHANNEL_UNAVAILABLE", "later")}, sdk.NotSent, sdk.BlameUpstream},
		"a proxy's 503":           {reply{503, "<html>503</html>"}, sdk.Unknown, sdk.BlameUpstream},
		"another 503":             {reply{503, failure("SERVER_ERROR", "?")}, sdk.Unknown, sdk.BlameUpstream},
		"a name that is taken":    {reply{409, failure("DUPLICATE_ERROR", "exists")}, sdk.Unknown, sdk.BlameNone},
		"the same, as a 400":      {reply{400, failure("DUPLICATE_TRANSACTION_ERROR", "exists")}, sdk.Unknown, sdk.BlameNone},
		"server error":            {reply{500, failure("SERVER_ERROR", "?")}, sdk.Unknown, sdk.BlameUpstream},
		"account code in a 500":   {reply{500, failure("CHANNEL_NOT_ACTIVATED", "?")}, sdk.Unknown, sdk.BlameUpstream},
		"bad gateway":             {reply{502, ""}, sdk.Unknown, sdk.BlameUpstream},
		"a firewall's 403":        {reply{403, "<html>no</html>"}, sdk.Unknown, sdk.BlameUpstream},
		"redirect":                {reply{302, ""}, sdk.Unknown, sdk.BlameUpstream},
		"garbage":                 {reply{200, "\x00\x01 certainly"}, sdk.Unknown, sdk.BlameUpstream},
		"empty":                   {reply{200, ""}, sdk.Unknown, sdk.BlameUpstream},
		"null":                    {reply{200, "null"}, sdk.Unknown, sdk.BlameUpstream},
		"too long":                {reply{200, anInvoice("PENDING", `,"x":"`+strings.Repeat("x", maxAnswer)+`"`)}, sdk.Unknown, sdk.BlameUpstream},
		"another reference":       {reply{200, anInvoice("PENDING", `,"external_id":"gb-0002"`)}, sdk.Unknown, sdk.BlameUpstream},
		"another amount":          {reply{200, anInvoice("PENDING", `,"amount":100001`)}, sdk.Unknown, sdk.BlameUpstream},
		"amount with a fraction":  {reply{200, anInvoice("PENDING", `,"amount":100000.5`)}, sdk.Unknown, sdk.BlameUpstream},
		"amount in a string":      {reply{200, anInvoice("PENDING", `,"amount":"100000"`)}, sdk.Unknown, sdk.BlameUpstream},
		"amount as a decimal":     {reply{200, anInvoice("PENDING", `,"amount":100000.00`)}, sdk.Pending, sdk.BlameNone},
		"another currency":        {reply{200, anInvoice("PENDING", `,"currency":"PHP"`)}, sdk.Unknown, sdk.BlameUpstream},
		"no id":                   {reply{200, anInvoice("PENDING", `,"id":""`)}, sdk.Unknown, sdk.BlameUpstream},
		"a script for a page":     {reply{200, anInvoice("PENDING", `,"invoice_url":"javascript:alert(1)"`)}, sdk.Unknown, sdk.BlameUpstream},
		"created, unusual status": {reply{201, anInvoice("PENDING", "")}, sdk.Pending, sdk.BlameNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, map[string]reply{"POST /v2/invoices": c.reply})
			result := newAdapter().create(t.Context(), createCall(connect(t, up.url), linkBody))
			if result.Outcome != c.outcome || result.Blame != c.blame {
				t.Errorf("got %+v, want outcome %v and blame %v", result, c.outcome, c.blame)
			}
			up.only(t)
		})
	}
}

// Only the API's own error says that the call is over: no proxy's word does, nor that
// something of the name exists.
func TestOnlyItsOwnErrorEndsACall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply reply
		ends  bool
	}{
		"server error":         {reply{500, failure("SERVER_ERROR", "?")}, true},
		"another 503":          {reply{503, failure("SERVER_ERROR", "?")}, true},
		"bad gateway":          {reply{502, failure("SERVER_ERROR", "?")}, false},
		"timed out":            {reply{504, failure("SERVER_ERROR", "?")}, false},
		"a proxy's 500":        {reply{500, "<html>500</html>"}, false},
		"JSON of somebody":     {reply{500, `{"message":"Internal server error"}`}, false},
		"a name that is taken": {reply{409, failure("DUPLICATE_ERROR", "exists")}, false},
		"garbage":              {reply{200, "certainly"}, false},
	} {
		up := newStub(t, map[string]reply{"POST /v2/invoices": c.reply, "POST /qr_codes": c.reply})
		for _, body := range []string{linkBody, qrisBody} {
			if r := newAdapter().create(t.Context(), createCall(connect(t, up.url), body)); r.Outcome != sdk.Unknown || r.Errored != c.ends {
				t.Errorf("%s: got %+v, want that it ends the call %v", name, r, c.ends)
			}
		}
	}
}

// What the upstream has ended with an error is looked up when it is called again, and
// made a moment later where there is nothing.
func TestAnAttemptThatEndedInAnErrorLastsNoLonger(t *testing.T) {
	t.Parallel()
	replies := map[string]reply{
		"POST /v2/invoices": {500, failure("SERVER_ERROR", "?")}, "GET /v2/invoices?external_id=" + reference: {200, "[]"},
	}
	for after, want := range map[time.Duration]int{errorLasts - 1: 1, errorLasts: 2} {
		up := newStub(t, replies)
		a, now := newAdapter(), today
		a.now = func() time.Time { return now }
		call := createCall(connect(t, up.url), linkBody)
		a.create(t.Context(), call)
		now = now.Add(after)
		a.create(t.Context(), call)
		posts := 0
		for _, request := range up.seen {
			if request.method == http.MethodPost {
				posts++
			}
		}
		if posts != want || len(up.seen) != want+1 {
			t.Errorf("after %v: %d requests, %d of them posts, want %d", after, len(up.seen), posts, want)
		}
	}
}

func TestAQRCodeThatIsNotTheOneAskedFor(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]string{
		"no id":             `,"id":""`,
		"an invoice's id":   `,"id":"` + invoiceID + `"`,
		"another reference": `,"reference_id":"gb-0002"`,
		"another amount":    `,"amount":99999`,
		"another currency":  `,"currency":"THB"`,
		"no code":           `,"qr_string":""`,
	} {
		up := newStub(t, map[string]reply{"POST /qr_codes": {201, aQR("ACTIVE", extra)}})
		result := newAdapter().create(t.Context(), createCall(connect(t, up.url), qrisBody))
		if result.Outcome != sdk.Unknown || result.Blame != sdk.BlameUpstream {
			t.Errorf("%s: got %+v", name, result)
		}
	}
}

func TestRefusalsNameOurFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body, message string
		fields        []sdk.FieldFault
	}{
		"minimum": {
			failure("MINIMAL_TRANSFER_AMOUNT_ERROR", "The minimum is 10000"),
			"amount is below the provider's minimum: The minimum is 10000",
			[]sdk.FieldFault{{Field: "amount", Message: "is below the provider's minimum: The minimum is 10000"}},
		},
		"maximum": {
			failure("MAXIMUM_TRANSFER_AMOUNT_ERROR", ""),
			"amount is above the provider's maximum",
			[]sdk.FieldFault{{Field: "amount", Message: "is above the provider's maximum"}},
		},
		"a field that the merchant gave": {
			`{"error_code":"API_VALIDATION_ERROR","message":"Invalid input data","errors":[{"field":["invoice_duration"],"messages":["\"invoice_duration\" is too long","really"]}]}`,
			"The provider refused: Invalid input data",
			[]sdk.FieldFault{{Field: "expires_in", Message: `"expires_in" is too long; really`}},
		},
		"a field that is ours": {recordedFault, "The provider refused: Invalid input data. Please check your request", nil},
		"without a message":    {failure("INVALID_REMINDER_TIME", ""), "The provider refused: INVALID_REMINDER_TIME", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, map[string]reply{"POST /v2/invoices": {http.StatusBadRequest, c.body}})
			refusal := newAdapter().create(t.Context(), createCall(connect(t, up.url), linkBody)).Refusal
			want := sdk.Refusal{Code: sdk.RefuseOther, Message: c.message, Fields: c.fields}
			if !reflect.DeepEqual(refusal, want) {
				t.Errorf("got  %+v\nwant %+v", refusal, want)
			}
		})
	}
}
