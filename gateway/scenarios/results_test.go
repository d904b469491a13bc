package scenarios

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// virtualAccounts implements the payments' contract, with a result field of its own.
const virtualAccounts = `{
	"manifest": 1, "name": "payments", "version": "1.0.0", "title": "Virtual accounts", "implements": "payments@1",
	"lookup": "read", "settles_within": "30s", "references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object"},
	"operations": [{"path": "/payments/create", "adds": {"va_number": {"type": "string", "maxLength": 32}}}]
}`

// What a provider's result has of its own reaches its merchants wherever they read of
// the payment: in the creation and its replay, the status, the callback and the list.
func TestOwnResultsAreTold(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.catalog = catalogOf([]byte(virtualAccounts))
		w.restart()
		w.up.set(func() {
			w.up.way = way{says: func(sdk.Call) sdk.Result {
				return sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage(`{"payment_url":"https://pay.example/1","va_number":"8808123400001"}`)}
			}}
		})
		first := w.create("A")
		w.want(first, "PENDING")
		pending := w.status("A")
		made := w.stored("A")
		if _, err := w.notify(tenants.Live, w.up.pay(made.UpstreamReference(), "pay-1")); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		replayed, paid := w.create("A"), w.status("A")
		w.want(paid, "PAID")
		if !replayed.replayed {
			t.Error("the same request again was no replay")
		}
		told := w.told()
		if len(told) != 1 {
			t.Fatalf("%d callbacks, want 1", len(told))
		}
		for place, text := range map[string]string{
			"creation": first.data, "replay": replayed.data, "status before": pending.data, "status after": paid.data, "callback": string(told[0].Body),
		} {
			if !strings.Contains(text, `"va_number":"8808123400001"`) {
				t.Errorf("%s: %s has no va_number", place, text)
			}
		}
		for _, text := range []string{first.data, paid.data, string(told[0].Body)} {
			if strings.Contains(text, "payment_url") {
				t.Errorf("%s tells what no response declares", text)
			}
		}
	})
}
