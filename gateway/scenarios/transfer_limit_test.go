package scenarios

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// upTo are limits of one sort: "amount" or "count", of a day or of a destination's.
func upTo(what string, most int64) policy.Limits {
	flow := policy.Outflow{Count: &most}
	if what == "amount" || what == "amount to" {
		flow = policy.Outflow{Amount: &most}
	}
	if what == "amount" || what == "count" {
		return policy.Limits{Transfers: policy.TransferLimits{Day: flow}}
	}
	return policy.Limits{Transfers: policy.TransferLimits{DestinationDay: flow}}
}

// limitErrors is how what is answered beyond each begins.
var limitErrors = map[string]string{
	"amount":    "The policy allows no more money out today: the daily amount of transfers would be exceeded. The limit is ",
	"count":     "The policy allows no more money out today: the daily number of transfers would be exceeded. The limit is ",
	"amount to": "The policy allows no more money out today: the daily amount of transfers to this destination would be exceeded. The limit is ",
	"count to":  "The policy allows no more money out today: the daily number of transfers to this destination would be exceeded. The limit is ",
}

func (w *world) wantLimit(a said, what string) {
	w.Helper()
	if a.err == nil || a.err.Code != fault.PolicyDenied || a.err.Sent != fault.SentNo || a.err.Retry != fault.RetryAfterChange || !strings.HasPrefix(a.err.Message, limitErrors[what]) {
		w.Errorf("got %s (%v), want %q", a.data, a.err, limitErrors[what])
	}
}

// TestPayoutLimits: each is kept to the rupiah, of a merchant's day or of one
// destination's, however that is written.
func TestPayoutLimits(t *testing.T) {
	t.Parallel()
	written := []string{"081234567890", "+62 812-3456-7890", "6281234567890"}
	for what := range limitErrors {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.path = walletPath
				most := int64(3)
				if what == "amount" || what == "amount to" {
					most = 3 * int64(sending)
				}
				w.limits = upTo(what, most)
				for i, phone := range written {
					w.want(w.create(fmt.Sprint(i), "phone", phone), "Success")
				}
				if what == "amount" || what == "amount to" {
					w.wantLimit(w.create("small", "amount", number(1)), what)
				}
				w.wantLimit(w.create("A"), what)
				if _, there := w.latest(w.request("A")); there {
					w.Error("what is denied is claimed")
				}
				w.want(w.create("1", "phone", written[1]), "Success") // a replay counts nothing
				elsewhere := w.create("B", "phone", "081234567891")
				if what == "amount" || what == "count" {
					w.wantLimit(elsewhere, what)
				} else {
					w.want(elsewhere, "Success")
				}
				w.limits = policy.Limits{}
				w.want(w.create("A"), "Success") // its reference stayed free
				w.addUp()
			})
		})
	}
}

// TestPayoutLimitsUnderConcurrency: 50 transfers at once on two replicas, and room for some.
func TestPayoutLimitsUnderConcurrency(t *testing.T) {
	t.Parallel()
	const room = 7
	for what := range limitErrors {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onReplicas(t, transfers, true, func(w *world, engines ...*Engine) {
				w.path = walletPath
				most := int64(room)
				if what == "amount" || what == "amount to" {
					most = room*int64(sending) + int64(sending) - 1
				}
				w.limits = upTo(what, most)
				got := w.fifty(engines, func(i int) Request {
					return w.request(fmt.Sprint(i), "phone", []string{"081234567890", "+6281234567890"}[i%2])
				})
				if got["Success"] != room || got["POLICY_DENIED no after_change"] != 50-room {
					w.Errorf("%v", got)
				}
				w.wantMoved(room)
			})
		})
	}
}

// fifty sends transfers at once on engines in turn, and counts what is answered.
func (w *world) fifty(engines []*Engine, request func(int) Request) map[string]int {
	w.Helper()
	var running sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for i := range 50 {
		running.Go(func() {
			word := w.sends(engines[i%len(engines)], request(i)).word()
			mu.Lock()
			defer mu.Unlock()
			got[word]++
		})
	}
	running.Wait()
	return got
}

// TestPayoutLimitsWhileRefused: 50 transfers at once that are all refused, within
// limits that let some of them through at a time: each is refused by the provider
// or by a limit, and nothing stays counted.
func TestPayoutLimitsWhileRefused(t *testing.T) {
	t.Parallel()
	onReplicas(t, transfers, false, func(w *world, engines ...*Engine) {
		w.up.way = wayNamed("refused")
		most, much := int64(3), 3*int64(sending)
		w.limits = policy.Limits{Transfers: policy.TransferLimits{
			Day: policy.Outflow{Count: &most, Amount: &much}, DestinationDay: policy.Outflow{Count: &most, Amount: &much},
		}}
		got := w.fifty(engines, func(i int) Request {
			return w.request(fmt.Sprint(i), "account_no", fmt.Sprint(2460888500+i%3))
		})
		if got[refusedNever] < 3 || got[refusedNever]+got["POLICY_DENIED no after_change"] != 50 {
			w.Errorf("%v", got)
		}
		w.wantMoved(0)
		w.up.way = way{}
		for i := range 3 {
			w.want(w.create(fmt.Sprint("after", i)), "Success")
		}
		w.wantLimit(w.create("after3"), "amount")
	})
}

// TestUsageIsGivenBack when nothing has moved, and only then.
func TestUsageIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.limits, w.up.way = upTo("count", 1), c
				want := afterWay(transfers, "", c)
				w.want(w.create("A"), want.word)
				w.addUp()
				w.up.way = way{}
				if want.state == movement.Failed || want.state == movement.NotSubmitted {
					w.want(w.create("B"), "Success")
				} else {
					w.wantLimit(w.create("B"), "count")
				}
				w.work("A", 2*time.Hour)
				w.addUp()
				if m := w.stored("A"); m.State == movement.Failed {
					w.limits = upTo("count", 2) // with B, where that was sent
					w.want(w.create("C"), "Success")
				}
				w.addUp()
			})
		})
	}
}

// TestLoweredPayoutLimit breaks no giving back, and holds from then on.
func TestLoweredPayoutLimit(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.limits = upTo("count", 5)
		w.up.way = wayNamed("pending, then failed")
		for i := range 4 {
			w.want(w.create(fmt.Sprint(i)), "Pending")
		}
		w.up.way = way{}
		w.limits = upTo("count", 1)
		w.wantLimit(w.create("A"), "count")
		w.limits = upTo("count", 5)
		w.want(w.create("B"), "Success")
		w.limits = upTo("count", 2)
		for i := range 4 {
			w.work(fmt.Sprint(i), 15*time.Minute)
			if m := w.stored(fmt.Sprint(i)); m.State != movement.Failed {
				w.Errorf("stands at %s", m.State)
			}
			w.addUp()
		}
		w.want(w.create("A"), "Success")
		w.wantLimit(w.create("C"), "count")
		w.limits = upTo("count", 0)
		w.wantLimit(w.create("C"), "count")
		w.addUp()
	})
}

// TestPayoutLimitDayInTheMerchantsZone: a day is one of the merchant's zone; what comes back goes to the
// day that it was taken from.
func TestPayoutLimitDayInTheMerchantsZone(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		zone := time.FixedZone("WIB", 7*60*60)
		w.zone, w.limits = zone, upTo("count", 1)
		midnight := w.now().In(zone).Truncate(time.Second)
		midnight = time.Date(midnight.Year(), midnight.Month(), midnight.Day()+1, 0, 0, 0, 0, zone)
		w.pass(midnight.Add(-time.Millisecond).Sub(w.now()))
		w.up.way = wayNamed("pending, then failed")
		w.want(w.create("A"), "Pending")
		w.wantLimit(w.create("B"), "count")
		w.up.way = way{}
		w.pass(time.Millisecond)
		w.want(w.create("B"), "Success")
		w.wantLimit(w.create("C"), "count")
		w.work("A", time.Hour)
		if m := w.stored("A"); m.State != movement.Failed || m.Usage[0].Period != midnight.AddDate(0, 0, -1).Format(time.DateOnly) {
			w.Errorf("stands at %s, counted in %+v", m.State, m.Usage)
		}
		w.wantLimit(w.create("C"), "count") // the room is yesterday's
		w.addUp()
		w.pass(midnight.AddDate(0, 0, 1).Add(-time.Millisecond).Sub(w.now()))
		w.wantLimit(w.create("C"), "count")
		w.pass(time.Millisecond)
		w.want(w.create("C"), "Success")
		w.addUp()
	})
}

// TestPayoutLimitsArePerMerchantAndMode own.
func TestPayoutLimitsArePerMerchantAndMode(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.limits = upTo("count", 1)
		w.want(w.create("A"), "Success")
		test, other := w.request("A"), w.request("A")
		test.Identity.Mode = "test"
		other.Identity.Account = w.connected(w.merchant().ID(), "", 1)
		w.want(w.runOn(w.Engine, test), "Success")
		w.want(w.runOn(w.Engine, other), "Success")
		w.wantLimit(w.create("B"), "count")
	})
}

// TestDestinationWithoutAProviderName is told apart by the request's own words.
func TestDestinationWithoutAProviderName(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.limits = upTo("amount to", int64(sending))
		w.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Destination = ""; return q }
		w.want(w.create("A"), "Success")
		w.wantLimit(w.create("B"), "amount to")
		w.want(w.create("C", "account_no", "2460888510"), "Success")
		w.want(w.create("D", "bank_code", "008"), "Success")
		w.wantLimit(w.create("E", "amount", number(money.Amount(1))), "amount to")
		w.addUp()
	})
}
