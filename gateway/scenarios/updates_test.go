package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// updatesOf are what a provider may say of an order or a transfer, in whatever order and
// however often.
func updatesOf(of *kindCase, reference string, amount money.Amount) map[string]sdk.StatusUpdate {
	t := &thing{of: of, reference: reference, amount: amount}
	done, failed, open := t.says(sdk.StatusDone), t.says(sdk.StatusFailed), t.says(sdk.StatusPending)
	again, more, less, free, dollars, stray, expired, bare := done, done, done, done, done, done, open, failed
	again.EventID += "-again"
	more.Amount, less.Amount, free.Amount, bare.Amount, dollars.Currency = amount+1, amount-1, 0, 0, "USD"
	stray.Reference = ofAnotherRequest(reference)
	expired.Status = sdk.StatusExpired
	return map[string]sdk.StatusUpdate{
		"done": done, "failed": failed, "open": open, "done again": again, "more": more, "less": less, "free": free, "dollars": dollars,
		"stray": stray, "expired": expired, "failed without amount": bare,
		"no word": {Reference: reference}, "not found": {Reference: reference, Status: sdk.StatusNotFound},
	}
}

// ofAnotherRequest is the upstream reference of the same movement, were its request
// another.
func ofAnotherRequest(reference string) string {
	last := "0"
	if strings.HasSuffix(reference, last) {
		last = "1"
	}
	return reference[:len(reference)-1] + last
}

// TestStatusUpdates: notifications of money that goes out. The first end stays; a success
// that failed later is a return of all of it; what differs is an exception.
func TestStatusUpdates(t *testing.T) {
	t.Parallel()
	const success, failure, back = "ended Success", "ended Failed", "returned Failed"
	for says, c := range map[string]struct {
		word   string
		listed []string
		events []string
	}{
		"open; open":                   {"Pending", nil, nil},
		"done":                         {"Success", nil, []string{success}},
		"done; done; open; done":       {"Success", nil, []string{success}},
		"open; done; open":             {"Success", nil, []string{success}},
		"done; done again":             {"Success", []string{movement.ReasonContradiction}, []string{success}},
		"failed":                       {"Failed", nil, []string{failure}},
		"failed without amount":        {"Failed", nil, []string{failure}},
		"failed; failed; open":         {"Failed", nil, []string{failure}},
		"failed; done":                 {"Failed", []string{movement.ReasonContradiction}, []string{failure}},
		"failed; done; done":           {"Failed", []string{movement.ReasonContradiction}, []string{failure}},
		"failed; done; failed; failed": {"Failed", []string{movement.ReasonContradiction}, []string{failure}},
		"done; failed":                 {"Failed", []string{movement.ReasonReturned}, []string{success, back}},
		"done; failed without amount":  {"Failed", []string{movement.ReasonReturned}, []string{success, back}},
		"done; failed; failed":         {"Failed", []string{movement.ReasonReturned}, []string{success, back}},
		"done; failed; done":           {"Failed", []string{movement.ReasonReturned}, []string{success, back}},
		"more":                         {"Pending", []string{movement.ReasonAmount}, nil},
		"free":                         {"Pending", []string{movement.ReasonAmount}, nil},
		"more; more; done":             {"Success", []string{movement.ReasonAmount}, []string{success}},
		"done; less":                   {"Success", []string{movement.ReasonAmount}, []string{success}},
		"done; less; less; done":       {"Success", []string{movement.ReasonAmount}, []string{success}},
		"done; more":                   {"Success", []string{movement.ReasonAmount}, []string{success}},
		"dollars":                      {"Pending", []string{movement.ReasonCurrency}, nil},
		"stray":                        {"Pending", []string{movement.ReasonContradiction}, nil},
		"expired":                      {"Pending", []string{movement.ReasonContradiction}, nil},
		"not found; done":              {"Success", nil, []string{success}},
		"no word; not found; done":     {"Success", []string{movement.ReasonNotUnderstood}, []string{success}},
	} {
		for _, of := range []cell{{of: orders, path: orderPath, sku: prepaidSKU}, {of: orders, path: orderPath, sku: billSKU}, {of: transfers, path: walletPath}, {of: transfers, path: bankPath}} {
			t.Run(of.path+" "+of.sku+", "+says, func(t *testing.T) {
				t.Parallel()
				inMemory(t, of.of, func(w *world) {
					w.path, w.sku = of.path, of.sku
					w.up.way = way{after: time.Second, fails: strings.HasPrefix(says, "failed")}
					w.want(w.create("A"), "Pending")
					m := w.stored("A")
					w.pass(time.Second)
					for what := range strings.SplitSeq(says, "; ") {
						w.hear(updatesOf(of.of, m.UpstreamReference(), agreedOn(m))[what])
						w.pass(time.Second)
					}
					if w.stored("A").State == movement.Pending {
						w.up.find = blind
					}
					w.want(w.status("A"), c.word)
					w.wantListed(c.listed...)
					names := strings.NewReplacer("ended", orderEnds, "returned", orderTaken)
					if of.of == transfers {
						names = strings.NewReplacer("ended", transferEnds, "returned", transferTaken)
					}
					var events []string
					for _, e := range c.events {
						events = append(events, names.Replace(e))
					}
					w.wantTold(events...)
					w.addUp()
				})
			})
		}
	}
	// What differs for a product with a price of its own is in TestCheaperThanAgreed.
	inMemory(t, transfers, func(w *world) {
		w.up.way = way{after: time.Second}
		w.want(w.create("A"), "Pending")
		m := w.stored("A")
		w.pass(time.Second)
		for _, what := range []string{"less", "less", "done"} {
			w.hear(updatesOf(transfers, m.UpstreamReference(), m.Amount)[what])
		}
		w.want(w.status("A"), "Success")
		w.wantListed(movement.ReasonAmount)
	})
}
