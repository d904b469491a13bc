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
	n := notice{OrderID: "1111", StatusCode: "200", GrossAmount: "100000.00", Signature: "6227e726ac4629b057f1247dfb5f4cc2546b2febb3a107e66ca7a749766507a8a714ab4f347a51a1dbbf404d63f10b874700b94cc3afeccace3a08e435f15f6f"}
	if !n.signedWith("server-key-1") {
		t.Error("the documented signature does not hold")
	}
	n.GrossAmount = "100000"
	if n.signedWith("server-key-1") {
		t.Error("the signature holds for another text of the amount")
	}
}

func TestNotifications(t *testing.T) {
	t.Parallel()
	settled := reply{200, aTransaction("200", "settlement", `,"settlement_time":"2026-11-20 17:05:00"`)}
	for name, c := range map[string]struct {
		body    []byte
		status  reply
		http    int
		updates []sdk.Status
		asked   int
	}{
		"a payment": {signed("200", "settlement"), settled, 200, []sdk.Status{sdk.StatusDone}, 1},
		// transaction_status is not signed: this one was a cancelled order's.
		"a payment that is none":          {signed("200", "settlement"), reply{200, aTransaction("200", "cancel", "")}, 200, []sdk.Status{sdk.StatusExpired}, 1},
		"an expiry that is none":          {signed("407", "expire"), reply{200, aTransaction("201", "pending", "")}, 200, nil, 1},
		"an old expiry of a payment":      {signed("407", "expire"), settled, 200, []sdk.Status{sdk.StatusDone}, 1},
		"a payment not shown yet":         {signed("200", "settlement"), reply{200, aTransaction("201", "pending", "")}, 503, nil, 1},
		"a payment of an unknown order":   {signed("200", "settlement"), reply{404, unknownTx}, 503, nil, 1},
		"the upstream is down":            {signed("200", "settlement"), reply{500, `<html>`}, 503, nil, 1},
		"a payment that went back":        {signed("200", "refund"), reply{200, aTransaction("200", "refund", "")}, 200, []sdk.Status{sdk.StatusFailed}, 1},
		"a try that failed":               {signed("202", "deny"), reply{200, aTransaction("202", "deny", "")}, 200, nil, 0},
		"a try that failed, told as paid": {signed("202", "settlement"), reply{200, aTransaction("202", "deny", "")}, 200, nil, 1},
		"a choice":                        {signed("201", "pending"), reply{200, aTransaction("201", "pending", "")}, 200, nil, 0},
		"no signature":                    {[]byte(`{"order_id":"` + reference + `","status_code":"200","gross_amount":"25000.00"}`), settled, 401, nil, 0},
		"an empty object":                 {[]byte(`{}`), settled, 401, nil, 0},
		"no JSON":                         {[]byte(`order_id=1`), settled, 400, nil, 0},
	} {
		up := newStub(t, map[string]reply{statusPath: c.status})
		got := newAdapter().notify(t.Context(), sdk.Notification{Connection: up.connection(t), Body: c.body})
		if got.Status != c.http || len(got.Updates) != len(c.updates) || len(up.requests()) != c.asked {
			t.Errorf("%s: %+v after %d requests", name, got, len(up.requests()))
			continue
		}
		for i, u := range got.Updates {
			if u.Status != c.updates[i] || u.Reference != reference || u.ProviderReference != reference || u.EventID == "" {
				t.Errorf("%s: %+v", name, u)
			}
		}
	}
}
