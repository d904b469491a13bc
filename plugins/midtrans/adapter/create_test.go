package adapter

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	snapPath   = "POST /snap/v1/transactions"
	chargePath = "POST /v2/charge"
	madeLink   = `{"token":"t-1","redirect_url":"https://app.sandbox.midtrans.com/snap/v4/redirection/t-1"}`
)

func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{
		snapPath:   {201, madeLink},
		chargePath: {200, aTransaction("201", "pending", `,"qr_string":"000201","expiry_time":"2026-11-20 17:30:00"`)},
	})
	long := strings.Repeat("ü", 60)
	link := newAdapter().create(t.Context(), up.call(t, `{"amount":25000,"payer_email":"a@example.com","expires_in":301,"success_url":"https://toko.example/ok","description":"`+long+`"}`))
	if link.Outcome != sdk.Pending || link.ProviderReference != reference || !link.ExpiresAt.Equal(today.Add(6*time.Minute)) ||
		string(link.Data) != `{"payment_url":"https://app.sandbox.midtrans.com/snap/v4/redirection/t-1"}` {
		t.Errorf("link: %+v %s", link, link.Data)
	}
	code := newAdapter().create(t.Context(), up.call(t, aQRIS))
	if code.Outcome != sdk.Pending || code.ProviderReference != reference || !code.ExpiresAt.Equal(today.Add(30*time.Minute)) ||
		string(code.Data) != `{"qr_string":"000201"}` {
		t.Errorf("QR code: %+v %s", code, code.Data)
	}
	want := []string{
		snapPath + ` {"transaction_details":{"order_id":"` + reference + `","gross_amount":25000},"customer_details":{"email":"a@example.com"},` +
			`"item_details":[{"id":"1","price":25000,"quantity":1,"name":"` + long[:100] + `"}],` +
			`"expiry":{"start_time":"2026-11-20 17:00:00 +0700","duration":6,"unit":"minutes"},"page_expiry":{"duration":6,"unit":"minutes"},` +
			`"callbacks":{"finish":"https://toko.example/ok"}}`,
		chargePath + ` {"payment_type":"qris","transaction_details":{"order_id":"` + reference + `","gross_amount":25000},` +
			`"customer_details":{"email":"pembeli@example.com"},"qris":{"acquirer":"gopay"},` +
			`"custom_expiry":{"order_time":"2026-11-20 17:00:00 +0700","expiry_duration":30,"unit":"minute"}}`,
	}
	if got := up.requests(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestWhatACreationProves: each answer is asked for once, and says no more than it
// proves.
func TestWhatACreationProves(t *testing.T) {
	t.Parallel()
	ended := []string{"the Core API fails", "the Core API's partner fails"} // by its own error
	for name, c := range map[string]struct {
		path, body string
		answer     reply
		outcome    sdk.Outcome
		blame      sdk.Blame
	}{
		"a link of that name exists":     {snapPath, aLink, reply{400, `{"error_messages":["transaction_details.order_id has already been taken"]}`}, sdk.Unknown, 0},
		"a charge of that name exists":   {chargePath, aQRIS, reply{200, `{"status_code":"406","status_message":"conflict"}`}, sdk.Unknown, 0},
		"a link is refused":              {snapPath, aLink, reply{400, `{"error_messages":["transaction_details.gross_amount is too large"]}`}, sdk.Refused, 0},
		"a charge is refused":            {chargePath, aQRIS, reply{400, `{"status_code":"400","status_message":"no","validation_messages":["gross_amount is too large"]}`}, sdk.Refused, 0},
		"a link with a wrong key":        {snapPath, aLink, reply{401, `{"error_messages":["wrong ` + testKey + `"]}`}, sdk.NotSent, sdk.BlameAccount},
		"a charge with a wrong key":      {chargePath, aQRIS, reply{401, `{"status_code":"401","status_message":"wrong ` + testKey + `"}`}, sdk.NotSent, sdk.BlameAccount},
		"a channel that is not active":   {chargePath, aQRIS, reply{402, `{"status_code":"402","status_message":"Payment channel is not activated."}`}, sdk.NotSent, sdk.BlameAccount},
		"too often":                      {snapPath, aLink, reply{429, `{"error_messages":["slow down"]}`}, sdk.NotSent, sdk.BlameLimit},
		"the Snap API fails":             {snapPath, aLink, reply{500, `{"error_messages":["internal server error"]}`}, sdk.Unknown, sdk.BlameUpstream},
		"the Core API fails":             {chargePath, aQRIS, reply{500, `{"status_code":"500","status_message":"internal server error"}`}, sdk.Unknown, sdk.BlameUpstream},
		"the Core API's partner fails":   {chargePath, aQRIS, reply{200, `{"status_code":"503","status_message":"partner"}`}, sdk.Unknown, sdk.BlameUpstream},
		"the Core API's gateway fails":   {chargePath, aQRIS, reply{502, `{"status_code":"502","status_message":"bad gateway"}`}, sdk.Unknown, sdk.BlameUpstream},
		"a proxy's 500":                  {chargePath, aQRIS, reply{500, `<html>`}, sdk.Unknown, sdk.BlameUpstream},
		"a proxy's 400":                  {snapPath, aLink, reply{400, `<html>`}, sdk.Unknown, sdk.BlameUpstream},
		"a proxy's 400 in JSON":          {chargePath, aQRIS, reply{400, `{"message":"bad request"}`}, sdk.Unknown, sdk.BlameUpstream},
		"another address":                {snapPath, aLink, reply{404, `{"error_messages":["not here"]}`}, sdk.Unknown, sdk.BlameUpstream},
		"a link without a URL":           {snapPath, aLink, reply{201, `{"token":"t-1"}`}, sdk.Unknown, sdk.BlameUpstream},
		"a script in place of a URL":     {snapPath, aLink, reply{201, `{"token":"t-1","redirect_url":"javascript:1"}`}, sdk.Unknown, sdk.BlameUpstream},
		"a charge of another amount":     {chargePath, aQRIS, reply{200, strings.Replace(aTransaction("201", "pending", `,"qr_string":"0"`), "25000.00", "250.00", 1)}, sdk.Unknown, sdk.BlameUpstream},
		"a charge without a code":        {chargePath, aQRIS, reply{200, aTransaction("201", "pending", "")}, sdk.Unknown, sdk.BlameUpstream},
		"a charge that is not pending":   {chargePath, aQRIS, reply{200, aTransaction("202", "deny", `,"qr_string":"0"`)}, sdk.Unknown, sdk.BlameUpstream},
		"a charge under another's name":  {chargePath, aQRIS, reply{200, strings.Replace(aTransaction("201", "pending", `,"qr_string":"0"`), reference, "another", 1)}, sdk.Unknown, sdk.BlameUpstream},
		"a charge in another's currency": {chargePath, aQRIS, reply{200, strings.Replace(aTransaction("201", "pending", `,"qr_string":"0"`), "IDR", "USD", 1)}, sdk.Unknown, sdk.BlameUpstream},
	} {
		up := newStub(t, map[string]reply{c.path: c.answer})
		got := newAdapter().create(t.Context(), up.call(t, c.body))
		if got.Outcome != c.outcome || got.Blame != c.blame || got.Errored != slices.Contains(ended, name) {
			t.Errorf("%s: %+v, want %v", name, got, c.outcome)
		}
		if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), testKey) {
			t.Errorf("%s: the key is in %s (%v)", name, text, err)
		}
		if n := len(up.requests()); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

func TestWhatComesTooLateIsNotSent(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	for _, body := range []string{aLink, aQRIS} {
		call := up.call(t, body)
		call.SendBy = time.Now().Add(-time.Second)
		if got := newAdapter().create(t.Context(), call); got.Outcome != sdk.NotSent {
			t.Errorf("%+v", got)
		}
		if got := newAdapter().cancel(t.Context(), call); got.Outcome != sdk.NotSent {
			t.Errorf("cancel: %+v", got)
		}
	}
	if got := up.requests(); len(got) != 0 {
		t.Errorf("sent %q", got)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	const expirePath = "POST /v2/" + reference + "/expire"
	ended := reply{412, `{"status_code":"412","status_message":"Transaction status cannot be updated."}`}
	for name, c := range map[string]struct {
		expire, status reply
		known          string
		want           sdk.Outcome
	}{
		"a pending transaction":           {expire: reply{200, aTransaction("407", "expire", "")}, known: reference, want: sdk.Done},
		"a link that nobody has touched":  {expire: reply{404, unknownTx}, known: reference, want: sdk.Done},
		"a link that may not exist":       {expire: reply{404, unknownTx}, want: sdk.Unknown},
		"one that is paid":                {expire: ended, status: reply{200, aTransaction("200", "settlement", "")}, known: reference, want: sdk.Refused},
		"one that has expired":            {expire: ended, status: reply{200, aTransaction("407", "expire", "")}, known: reference, want: sdk.Done},
		"one whose money went back":       {expire: ended, status: reply{200, aTransaction("200", "refund", "")}, known: reference, want: sdk.Refused},
		"a success that tells of no end":  {expire: reply{200, aTransaction("201", "pending", "")}, status: reply{200, aTransaction("201", "pending", "")}, known: reference, want: sdk.Unknown},
		"an error, and it is pending":     {expire: reply{500, `<html>`}, status: reply{200, aTransaction("201", "pending", "")}, known: reference, want: sdk.Unknown},
		"an error, and nothing to be had": {expire: reply{500, `<html>`}, status: reply{500, `<html>`}, known: reference, want: sdk.Unknown},
		"a wrong key":                     {expire: reply{401, `{"status_code":"401"}`}, known: reference, want: sdk.NotSent},
	} {
		up := newStub(t, map[string]reply{expirePath: c.expire, statusPath: c.status})
		call := up.call(t, `{"external_id":"INV/1"}`)
		call.ProviderReference = c.known
		if got := newAdapter().cancel(t.Context(), call); got.Outcome != c.want {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
	}
}
