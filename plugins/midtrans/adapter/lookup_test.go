package adapter

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestALinkIsNeverNotFound: the upstream knows a link only once its payer has chosen
// how to pay, so that it finds none is no proof that none was made.
func TestALinkIsNeverNotFound(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{statusPath: {404, unknownTx}})
	for name, c := range map[string]struct {
		body, known string
		sent        time.Time
		want        sdk.Status
	}{
		"a link that was accepted waits":             {aLink, reference, today.Add(-time.Minute), sdk.StatusPending},
		"of one whose answer was lost nobody knows":  {aLink, "", today.Add(-time.Minute), sdk.StatusUnknown},
		"nor long after it could have been settled":  {aLink, "", today.Add(-time.Hour), sdk.StatusUnknown},
		"nor while its payer may be on the way":      {aLink, "", today.Add(-time.Hour - overMargin), sdk.StatusUnknown},
		"after its life nobody can pay it":           {aLink, "", today.Add(-time.Hour - overMargin - time.Second), sdk.StatusExpired},
		"nor one that was accepted":                  {aLink, reference, today.Add(-2 * time.Hour), sdk.StatusExpired},
		"a type that is not given is a link":         {`{"amount":25000}`, "", today.Add(-time.Minute), sdk.StatusUnknown},
		"when it was sent is not known":              {aLink, "", time.Time{}, sdk.StatusUnknown},
		"a QR code that is not there was never made": {aQRIS, "", today.Add(-time.Minute), sdk.StatusNotFound},
	} {
		got := newAdapter().lookup(t.Context(), up.lookup(t, c.body, c.known, c.sent))
		if got.Status != c.want {
			t.Errorf("%s: %+v, want %v", name, got, c.want)
		}
		if ends := got.Status == sdk.StatusExpired; ends != (got.EventID != "") || ends && (got.Reference != reference || got.Amount != 25000) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestALinkLivesAsLongAsItWasTold: what the gateway was told may be later than what
// was asked for.
func TestALinkLivesAsLongAsItWasTold(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{statusPath: {404, unknownTx}})
	l := up.lookup(t, aLink, reference, today.Add(-2*time.Hour))
	l.ExpiresAt = today
	if got := newAdapter().lookup(t.Context(), l); got.Status != sdk.StatusPending {
		t.Errorf("%+v", got)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer      reply
		link, qris  sdk.Status
		blame       sdk.Blame
		afterwards  bool // the link's life is over
		wantEventID string
	}{
		"pending":            {answer: reply{200, aTransaction("201", "pending", "")}, link: sdk.StatusPending, qris: sdk.StatusPending},
		"paid":               {answer: reply{200, aTransaction("200", "settlement", `,"settlement_time":"2026-11-20 17:05:00","issuer":"dana"`)}, link: sdk.StatusDone, qris: sdk.StatusDone, wantEventID: txID + "-paid"},
		"captured":           {answer: reply{200, aTransaction("200", "capture", `,"fraud_status":"accept"`)}, link: sdk.StatusDone, qris: sdk.StatusDone, wantEventID: txID + "-paid"},
		"to be accepted":     {answer: reply{200, aTransaction("201", "capture", `,"fraud_status":"challenge"`)}, link: sdk.StatusPending, qris: sdk.StatusPending},
		"refused as fraud":   {answer: reply{200, aTransaction("202", "capture", `,"fraud_status":"deny"`)}, link: sdk.StatusPending, qris: sdk.StatusFailed},
		"denied":             {answer: reply{200, aTransaction("202", "deny", "")}, link: sdk.StatusPending, qris: sdk.StatusFailed},
		"denied, and over":   {answer: reply{200, aTransaction("202", "deny", "")}, link: sdk.StatusExpired, qris: sdk.StatusFailed, afterwards: true, wantEventID: txID + "-deny"},
		"expired":            {answer: reply{200, aTransaction("407", "expire", "")}, link: sdk.StatusExpired, qris: sdk.StatusExpired, afterwards: true, wantEventID: txID + "-expire"},
		"expired, as HTTP":   {answer: reply{407, aTransaction("407", "expire", "")}, link: sdk.StatusExpired, qris: sdk.StatusExpired, afterwards: true, wantEventID: txID + "-expire"},
		"a try that expired": {answer: reply{200, aTransaction("407", "expire", "")}, link: sdk.StatusPending, qris: sdk.StatusExpired, wantEventID: txID + "-expire"},
		"cancelled":          {answer: reply{200, aTransaction("200", "cancel", "")}, link: sdk.StatusExpired, qris: sdk.StatusExpired, wantEventID: txID + "-cancel"},
		"given back":         {answer: reply{200, aTransaction("200", "refund", "")}, link: sdk.StatusDone, qris: sdk.StatusDone, wantEventID: txID + "-paid"},
		"given back in part": {answer: reply{200, aTransaction("200", "partial_refund", "")}, link: sdk.StatusDone, qris: sdk.StatusDone, wantEventID: txID + "-paid"},
		"a new word":         {answer: reply{200, aTransaction("200", "teleported", "")}, blame: sdk.BlameUpstream},
		"another order":      {answer: reply{200, `{"status_code":"200","order_id":"another","gross_amount":"25000.00","transaction_status":"settlement"}`}, blame: sdk.BlameUpstream},
		"a fraction":         {answer: reply{200, `{"status_code":"200","transaction_id":"x","order_id":"` + reference + `","gross_amount":"25000.50","transaction_status":"settlement"}`}, blame: sdk.BlameUpstream},
		"no amount":          {answer: reply{200, `{"status_code":"200","transaction_id":"x","order_id":"` + reference + `","transaction_status":"settlement"}`}, blame: sdk.BlameUpstream},
		"back, no amount":    {answer: reply{200, `{"status_code":"200","transaction_id":"x","order_id":"` + reference + `","transaction_status":"refund"}`}, blame: sdk.BlameUpstream},
		"another HTTP word":  {answer: reply{500, aTransaction("200", "settlement", "")}, blame: sdk.BlameUpstream},
		"404 of a proxy":     {answer: reply{404, `{"message":"no Route matched"}`}, blame: sdk.BlameUpstream},
		"wrong key":          {answer: reply{401, `{"status_code":"401","status_message":"wrong ` + testKey + `"}`}, blame: sdk.BlameAccount},
		"wrong key, as 200":  {answer: reply{200, `{"status_code":"401","status_message":"wrong"}`}, blame: sdk.BlameAccount},
		"down":               {answer: reply{503, `{"status_code":"503","status_message":"maintenance"}`}, blame: sdk.BlameUpstream},
	} {
		up := newStub(t, map[string]reply{statusPath: c.answer})
		sent := today.Add(-time.Minute)
		if c.afterwards {
			sent = today.Add(-2 * time.Hour)
		}
		for body, want := range map[string]sdk.Status{aLink: c.link, aQRIS: c.qris} {
			got := newAdapter().lookup(t.Context(), up.lookup(t, body, reference, sent))
			if got.Status != want || got.Blame != c.blame {
				t.Errorf("%s, %s: %+v, want %v", name, body, got, want)
			}
			if want == sdk.StatusDone && (got.EventID != c.wantEventID || got.Amount != 25000 || got.At.IsZero()) {
				t.Errorf("%s: %+v, want event %s", name, got, c.wantEventID)
			}
			if (want == sdk.StatusExpired) && got.EventID != c.wantEventID {
				t.Errorf("%s: %+v, want event %s", name, got, c.wantEventID)
			}
		}
	}
}

// TestReturns: what went back of a payment is told with its amount, and by a name that
// stays the same.
func TestReturns(t *testing.T) {
	t.Parallel()
	const listed = `,"settlement_time":"2026-11-20 17:05:00","refund_amount":"6000.00","refunds":[` +
		`{"refund_chargeback_id":1,"refund_amount":"5000.00","refund_key":"r-1","created_at":"2026-11-20 18:00:00"},` +
		`{"refund_chargeback_id":2,"refund_amount":"1000.00","created_at":"2026-11-20 19:00:00"}]`
	first := sdk.Return{ID: "r-1", Sort: sdk.ReturnRefund, Amount: 5000, At: today.Add(time.Hour)}
	second := sdk.Return{ID: "2", Sort: sdk.ReturnRefund, Amount: 1000, At: today.Add(2 * time.Hour)}
	for name, c := range map[string]struct {
		status, extra string
		want          sdk.Status
		returns       []sdk.Return
	}{
		"refunds that are listed":        {"partial_refund", listed, sdk.StatusDone, []sdk.Return{first, second}},
		"the one that it is about":       {"partial_refund", `,"refund_amount":"5000.00","refund_key":"r-1"`, sdk.StatusDone, []sdk.Return{{ID: "r-1", Sort: sdk.ReturnRefund, Amount: 5000}}},
		"all of it":                      {"refund", "", sdk.StatusDone, []sdk.Return{{Sort: sdk.ReturnRefund, Amount: 25000}}},
		"a part, and nobody knows which": {"partial_refund", "", sdk.StatusDone, []sdk.Return{{ID: "partial_refund"}}},
		"a chargeback":                   {"chargeback", "", sdk.StatusDone, []sdk.Return{{Sort: sdk.ReturnChargeback, Amount: 25000}}},
		"a chargeback of a part":         {"partial_chargeback", `,"refund_amount":"24000.00","refund_chargeback_id":7`, sdk.StatusDone, []sdk.Return{{ID: "7", Sort: sdk.ReturnChargeback, Amount: 24000}}},
		"one of all that tells less":     {"chargeback", `,"refund_amount":"24000.00","refund_chargeback_id":7`, sdk.StatusDone, []sdk.Return{{ID: "chargeback"}, {ID: "7", Sort: sdk.ReturnChargeback, Amount: 24000}}},
		"one of a part without amount":   {"partial_chargeback", "", sdk.StatusDone, []sdk.Return{{ID: "partial_chargeback"}}},
		"a chargeback after refunds":     {"chargeback", listed, sdk.StatusDone, []sdk.Return{first, second, {Sort: sdk.ReturnChargeback, Amount: 19000}}},
		"a settled one that is denied":   {"deny", `,"settlement_time":"2026-11-20 17:05:00"`, sdk.StatusDone, []sdk.Return{{Sort: sdk.ReturnReversal, Amount: 25000}}},
		"a card that is voided":          {"cancel", `,"payment_type":"credit_card"`, sdk.StatusExpired, []sdk.Return{{Sort: sdk.ReturnVoid, Amount: 25000}}},
		"nothing went back":              {"settlement", `,"settlement_time":"2026-11-20 17:05:00"`, sdk.StatusDone, nil},
		"what was never paid":            {"cancel", "", sdk.StatusExpired, nil},
	} {
		up := newStub(t, map[string]reply{statusPath: {200, aTransaction("200", c.status, c.extra)}})
		for _, body := range []string{aLink, aQRIS} {
			got := newAdapter().lookup(t.Context(), up.lookup(t, body, reference, today.Add(-time.Minute)))
			if got.Status != c.want || !slices.Equal(got.Returns, c.returns) {
				t.Errorf("%s, %s: %+v", name, body, got)
			}
		}
	}
}
