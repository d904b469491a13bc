package adapter

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// signed is a notification with a signature that holds.
func signed(code, status string) []byte {
	sum := sha512.Sum512([]byte(reference + code + "25000.00" + testKey))
	return fmt.Appendf(nil, `{"order_id":%q,"status_code":%q,"gross_amount":"25000.00","transaction_status":%q,"signature_key":%q}`,
		reference, code, status, hex.EncodeToString(sum[:]))
}

// TestSignatureOfTheDocumentation: Midtrans shows this one in public.
func TestSignatureOfTheDocumentation(t *testing.T) {
	t.Parallel()
	n := notice{transaction: transaction{OrderID: "1111"}, StatusCode: "200", Gross: "100000.00", Signature: "6227e726ac4629b057f1247dfb5f4cc2546b2febb3a107e66ca7a749766507a8a714ab4f347a51a1dbbf404d63f10b874700b94cc3afeccace3a08e435f15f6f"}
	if !n.signedWith("server-key-1") {
		t.Error("the documented signature does not hold")
	}
	n.Gross = "100000"
	if n.signedWith("server-key-1") {
		t.Error("the signature holds for another text of the amount")
	}
}

// told is a notification of a transaction, with a signature that holds.
func told(code, status, extra string) []byte {
	sum := sha512.Sum512([]byte(reference + code + "25000.00" + testKey))
	return []byte(aTransaction(code, status, extra+`,"signature_key":"`+hex.EncodeToString(sum[:])+`"`))
}

// TestNotifications: a notification tells what it says, and asks nobody: the gateway looks
// up what is not signed.
func TestNotifications(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body    []byte
		http    int
		updates []sdk.Status
	}{
		"a payment":                {told("200", "settlement", `,"settlement_time":"2026-11-20 17:05:00"`), 200, []sdk.Status{sdk.StatusDone}},
		"an expiry":                {told("407", "expire", ""), 200, []sdk.Status{sdk.StatusExpired}},
		"a refund":                 {told("200", "refund", ""), 200, []sdk.Status{sdk.StatusDone}},
		"a try that failed":        {told("202", "deny", ""), 200, []sdk.Status{sdk.StatusFailed}},
		"a choice":                 {told("201", "pending", ""), 200, []sdk.Status{sdk.StatusPending}},
		"a word that is new":       {told("200", "teleported", ""), 200, []sdk.Status{sdk.StatusUnknown}},
		"one without a name of it": {signed("200", "settlement"), 200, []sdk.Status{sdk.StatusUnknown}},
		"no signature":             {[]byte(`{"order_id":"` + reference + `","status_code":"200","gross_amount":"25000.00"}`), 401, nil},
		"an empty object":          {[]byte(`{}`), 401, nil},
		"no JSON":                  {[]byte(`order_id=1`), 400, nil},
	} {
		up := newStub(t, nil)
		got := newAdapter().notify(t.Context(), sdk.Notification{Connection: up.connection(t), Body: c.body})
		if got.Status != c.http || len(got.Updates) != len(c.updates) || len(up.requests()) != 0 {
			t.Errorf("%s: %+v after %d requests", name, got, len(up.requests()))
			continue
		}
		for i, u := range got.Updates {
			if u.Status != c.updates[i] || u.Reference != reference || u.Status == sdk.StatusUnknown && u.Detail == "" {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}
