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

// beyondLimit is how what is answered beyond each begins.
var beyondLimit = map[string]string{
	"amount":    "The policy allows no more money out today: the daily amount of transfers would be exceeded. The limit is ",
	"count":     "The policy allows no more money out today: the daily number of transfers would be exceeded. The limit is ",
	"amount to": "The policy allows no more money out today: the daily amount of transfers to this destination would be exceeded. The limit is ",
	"count to":  "The policy allows no more money out today: the daily number of transfers to this destination would be exceeded. The limit is ",
}

func (p *purse) wantBeyond(a said, what string) {
	p.Helper()
	if a.err == nil || a.err.Code != fault.PolicyDenied || a.err.Sent != fault.SentNo || a.err.Retry != fault.RetryAfterChange || !strings.HasPrefix(a.err.Message, beyondLimit[what]) {
		p.Errorf("got %s (%v), want %q", a.data, a.err, beyondLimit[what])
	}
}

// TestLimitsOfMoneyOut: each is kept to the rupiah, of a merchant's day or of one
// destination's, however that is written.
func TestLimitsOfMoneyOut(t *testing.T) {
	t.Parallel()
	written := []string{"081234567890", "+62 812-3456-7890", "6281234567890"}
	for what := range beyondLimit {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.path = walletPath
				most := int64(3)
				if what == "amount" || what == "amount to" {
					most = 3 * int64(sending)
				}
				p.limits = upTo(what, most)
				for i, phone := range written {
					p.want(p.transfer(fmt.Sprint(i), "phone", phone), "Success")
				}
				if what == "amount" || what == "amount to" {
					p.wantBeyond(p.transfer("small", "amount", number(1)), what)
				}
				p.wantBeyond(p.transfer("A"), what)
				if _, there := p.latest(p.transferring("A")); there {
					p.Error("what is denied is claimed")
				}
				p.want(p.transfer("1", "phone", written[1]), "Success") // a replay counts nothing
				elsewhere := p.transfer("B", "phone", "081234567891")
				if what == "amount" || what == "count" {
					p.wantBeyond(elsewhere, what)
				} else {
					p.want(elsewhere, "Success")
				}
				p.limits = policy.Limits{}
				p.want(p.transfer("A"), "Success") // its reference stayed free
				p.addUp()
			})
		})
	}
}

// TestLimitsExactly: 50 transfers at once on two replicas, and room for some.
func TestLimitsExactly(t *testing.T) {
	t.Parallel()
	const room = 7
	for what := range beyondLimit {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			acrossReplicas(t, func(p *purse, engines ...*Engine) {
				p.path = walletPath
				most := int64(room)
				if what == "amount" || what == "amount to" {
					most = room*int64(sending) + int64(sending) - 1
				}
				p.limits = upTo(what, most)
				got := p.fifty(engines, func(i int) Request {
					return p.transferring(fmt.Sprint(i), "phone", []string{"081234567890", "+6281234567890"}[i%2])
				})
				if got["Success"] != room || got["POLICY_DENIED no after_change"] != 50-room {
					p.Errorf("%v", got)
				}
				p.wantMoved(room)
			})
		})
	}
}

// fifty sends transfers at once on engines in turn, and counts what is answered.
func (p *purse) fifty(engines []*Engine, request func(int) Request) map[string]int {
	p.Helper()
	var running sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for i := range 50 {
		running.Go(func() {
			word := p.sends(engines[i%len(engines)], request(i)).word()
			mu.Lock()
			defer mu.Unlock()
			got[word]++
		})
	}
	running.Wait()
	return got
}

// TestLimitsWhileGivingBack: 50 transfers at once that are all refused, within
// limits that let some of them through at a time: each is refused by the provider
// or by a limit, and nothing stays counted.
func TestLimitsWhileGivingBack(t *testing.T) {
	t.Parallel()
	acrossReplicas(t, func(p *purse, engines ...*Engine) {
		p.up.way = wayNamed("refused")
		most, much := int64(3), 3*int64(sending)
		p.limits = policy.Limits{Transfers: policy.TransferLimits{
			Day: policy.Outflow{Count: &most, Amount: &much}, DestinationDay: policy.Outflow{Count: &most, Amount: &much},
		}}
		got := p.fifty(engines, func(i int) Request {
			return p.transferring(fmt.Sprint(i), "account_no", fmt.Sprint(2460888500+i%3))
		})
		if got[refusedNever] < 3 || got[refusedNever]+got["POLICY_DENIED no after_change"] != 50 {
			p.Errorf("%v", got)
		}
		p.wantMoved(0)
		p.up.way = way{}
		for i := range 3 {
			p.want(p.transfer(fmt.Sprint("after", i)), "Success")
		}
		p.wantBeyond(p.transfer("after3"), "amount")
	})
}

// TestLimitsAreGivenBack when nothing has moved, and only then.
func TestLimitsAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.limits, p.up.way = upTo("count", 1), w.way
				p.want(p.transfer("A"), w.word)
				p.addUp()
				p.up.way = way{}
				if w.stands == movement.Failed || w.stands == movement.NotSubmitted {
					p.want(p.transfer("B"), "Success")
				} else {
					p.wantBeyond(p.transfer("B"), "count")
				}
				p.work("A", 2*time.Hour)
				p.addUp()
				if m := p.stored("A"); m.State == movement.Failed {
					p.limits = upTo("count", 2) // with B, where that was sent
					p.want(p.transfer("C"), "Success")
				}
				p.addUp()
			})
		})
	}
}

// TestALoweredLimit breaks no giving back, and holds from then on.
func TestALoweredLimit(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.limits = upTo("count", 5)
		p.up.way = wayNamed("pending, then failed")
		for i := range 4 {
			p.want(p.transfer(fmt.Sprint(i)), "Pending")
		}
		p.up.way = way{}
		p.limits = upTo("count", 1)
		p.wantBeyond(p.transfer("A"), "count")
		p.limits = upTo("count", 5)
		p.want(p.transfer("B"), "Success")
		p.limits = upTo("count", 2)
		for i := range 4 {
			p.work(fmt.Sprint(i), 15*time.Minute)
			if m := p.stored(fmt.Sprint(i)); m.State != movement.Failed {
				p.Errorf("stands at %s", m.State)
			}
			p.addUp()
		}
		p.want(p.transfer("A"), "Success")
		p.wantBeyond(p.transfer("C"), "count")
		p.limits = upTo("count", 0)
		p.wantBeyond(p.transfer("C"), "count")
		p.addUp()
	})
}

// TestTheDaysEdge: a day is one of the merchant's zone; what comes back goes to the
// day that it was taken from.
func TestTheDaysEdge(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		zone := time.FixedZone("WIB", 7*60*60)
		p.zone, p.limits = zone, upTo("count", 1)
		midnight := p.now().In(zone).Truncate(time.Second)
		midnight = time.Date(midnight.Year(), midnight.Month(), midnight.Day()+1, 0, 0, 0, 0, zone)
		p.pass(midnight.Add(-time.Millisecond).Sub(p.now()))
		p.up.way = wayNamed("pending, then failed")
		p.want(p.transfer("A"), "Pending")
		p.wantBeyond(p.transfer("B"), "count")
		p.up.way = way{}
		p.pass(time.Millisecond)
		p.want(p.transfer("B"), "Success")
		p.wantBeyond(p.transfer("C"), "count")
		p.work("A", time.Hour)
		if m := p.stored("A"); m.State != movement.Failed || m.Usage[0].Period != midnight.AddDate(0, 0, -1).Format(time.DateOnly) {
			p.Errorf("stands at %s, counted in %+v", m.State, m.Usage)
		}
		p.wantBeyond(p.transfer("C"), "count") // the room is yesterday's
		p.addUp()
		p.pass(midnight.AddDate(0, 0, 1).Add(-time.Millisecond).Sub(p.now()))
		p.wantBeyond(p.transfer("C"), "count")
		p.pass(time.Millisecond)
		p.want(p.transfer("C"), "Success")
		p.addUp()
	})
}

// TestLimitsAreAMerchantsAndAModes own.
func TestLimitsAreAMerchantsAndAModes(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.limits = upTo("count", 1)
		p.want(p.transfer("A"), "Success")
		test, other := p.transferring("A"), p.transferring("A")
		test.Identity.Mode = "test"
		other.Identity.Account = p.connected(p.merchant().ID(), 1)
		p.want(p.runOn(p.Engine, test), "Success")
		p.want(p.runOn(p.Engine, other), "Success")
		p.wantBeyond(p.transfer("B"), "count")
	})
}

// TestADestinationOfNoName is told apart by the request's own words.
func TestADestinationOfNoName(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.limits = upTo("amount to", int64(sending))
		p.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Destination = ""; return q }
		p.want(p.transfer("A"), "Success")
		p.wantBeyond(p.transfer("B"), "amount to")
		p.want(p.transfer("C", "account_no", "2460888510"), "Success")
		p.want(p.transfer("D", "bank_code", "008"), "Success")
		p.wantBeyond(p.transfer("E", "amount", number(money.Amount(1))), "amount to")
		p.addUp()
	})
}
