package sandbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// TestFaults orders each fault of the kit at both transfers: money moves once
// or not at all, the status tells which, and the same request again changes
// nothing.
func TestFaults(t *testing.T) {
	t.Parallel()
	for fault, c := range map[string]struct {
		answer string // HTTP status, or what a cut connection or nonsense is to the caller
		moved  bool
	}{
		"error_500": {"500", false}, "error_500_after": {"500", true}, "drop_before": {"cut", false},
		"drop_after": {"cut", true}, "garbage": {"200 nonsense", true}, "latency": {"200", true},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			w.main.login()
			for _, at := range []struct {
				operation, path, status string
				body                    object
				cost                    money.Amount
			}{
				{"topup", "/v1.0/emoney/topup", "38", topupOf("topup", good, 10_000), 10_000},
				{"transfer-bank", "/v1.0/emoney/transfer-bank", "00", w.main.bankOf("transfer-bank", "014", accountNo, 10_000), 12_500},
			} {
				before := w.main.balance()
				w.order(200, "faults", object{"fault": fault, "operation": at.operation})
				if got := w.faulty(at.path, at.body); got != c.answer {
					t.Errorf("%s: answered %q, want %q", at.operation, got, c.answer)
				}
				want, witness, cost := "00", "Success", at.cost
				if !c.moved {
					want, witness, cost = "", "", 0
				}
				got := w.main.status(at.status, at.operation)
				if text(got, "latestTransactionStatus") != want || w.states(at.operation) != witness {
					t.Errorf("%s: %v, witness %q", at.operation, got, w.states(at.operation))
				}
				if spent := before - w.main.balance(); spent != cost {
					t.Errorf("%s: spent %s", at.operation, spent)
				}
				w.kill()
				w.main.post(at.path, at.body)
				if spent := before - w.main.balance(); spent != at.cost || w.states(at.operation) != "Success" {
					t.Errorf("%s again: spent %s, witness %q", at.operation, spent, w.states(at.operation))
				}
			}
		})
	}
}

// faulty calls and tells what the caller has of it; it moves the clock on when
// somebody waits.
func (w *world) faulty(path string, body object) string {
	w.t.Helper()
	request, answered := w.main.request(path, body), make(chan string, 1)
	drain(w.waiting)
	go func() {
		status, answer, err := w.do(request)
		switch {
		case status == 0:
			answered <- "cut"
		case err != nil:
			answered <- fmt.Sprint(status, " nonsense")
		case status == 500 && text(answer, "responseCode")[:3] != "500":
			answered <- fmt.Sprint(answer)
		default:
			answered <- fmt.Sprint(status)
		}
	}()
	for {
		select {
		case got := <-answered:
			return got
		case <-w.waiting:
			w.clock.Advance(3 * time.Second)
		}
	}
}

// TestTokenExpiresInBetween: the call that finds its token expired has moved
// nothing, and the same with a new one moves once.
func TestTokenExpiresInBetween(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	w.order(200, "plan", object{"plan": "token_expired", "count": 2})
	c.want("4013801", c.topup("T", good, 10_000))
	w.kill()
	c.want("4013801", c.topup("T", good, 10_000))
	c.login()
	w.order(200, "plan", object{"plan": "token_expired"})
	c.want("4014301", c.bank("B", accountNo, 10_000))
	c.login()
	c.want("2003800", c.topup("T", good, 10_000))
	c.want("2004300", c.bank("B", accountNo, 10_000))
	if c.spent() != 22_500 || w.states("T") != "Success" || w.states("B") != "Success" {
		t.Errorf("spent %s, witness %v", c.spent(), w.env.Movements.All())
	}
}
