package order_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// market is many merchants that order at once while things are killed, and all
// that they know of it.
type market struct {
	opening   int64 // what each merchant began with
	buyers    []harness.Shop
	callbacks *callbackLog
	pace      time.Duration // of each client
	untold    bool          // also goods whose end only a look finds out, which may come twice: two minutes
	cut       atomic.Int64  // requests without an answer

	mu       sync.Mutex
	at       *harness.Program // where the gateway is now
	sales    []*sale
	adjusted map[string]int64 // by merchant: credits without debits, but for the opening
	credits  int
}

// sale is one reference, and what was answered to it. The market's lock guards
// the answers.
type sale struct {
	goods
	shop      harness.Shop
	reference string
	answers   []harness.Answer
	unheard   bool // a request for it was cut
}

func newMarket(t *testing.T, p *harness.Program, merchants int, opening int64) *market {
	t.Helper()
	m := &market{opening: opening, callbacks: newCallbackLog(t), pace: 20 * time.Millisecond, at: p, adjusted: map[string]int64{}}
	for range merchants {
		m.buyers = append(m.buyers, newBuyer(t, p, opening))
	}
	return m
}

// move tells the market that the gateway is another process now.
func (m *market) move(p *harness.Program) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.KeepSecret(m.at.Known()...)
	m.at = p
}

func (m *market) now() *harness.Program {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// anyGoods draws what somebody orders: mostly goods that come at once or later,
// and some of each other plan that a number can stand for.
func anyGoods(random *rand.Rand, untold bool) goods {
	bills := []goods{
		bill, bill.costs(22_000, 20_000).to("530000000002"), bill.to("530000000006"), bill.to("630000000001"), bill.to("630000000006"),
		bill.as("pdam", "1013226").costs(65_000, 64_450), bill.as("pdam", "2013226").costs(65_000, 64_450),
		bill.as("pgas", "0110014601").costs(56_500, 55_800), bill.as("tv", "127246500101").costs(152_500, 151_600),
	}
	switch n := random.IntN(100); {
	case n < 25:
		return airtime.to(harness.UnknownPhone())
	case n < 35:
		return kwh.to(fmt.Sprintf("%012d", random.Int64N(1_000_000_000_000)))
	case n < 60:
		return bills[random.IntN(len(bills))]
	}
	// At once, failed, later, later failed, forwarded, told twice, out of order,
	// taken back; then late, with a wrong price, in nonsense, never told, forged.
	// And codes of the provider.
	targets := []string{"30", "32", "33", "33", "34", "40", "41", "42", "44", "44"}
	if untold {
		targets = append(targets, "43", "45", "46", "47", "49")
	}
	codes := []string{"02", "52", "53", "55", "58", "66", "69", "70", "99"}
	target := "0878000012" + targets[random.IntN(len(targets))]
	if random.IntN(8) == 0 {
		target = "0878000020" + codes[random.IntN(len(codes))]
	}
	return []goods{airtime, kwh}[random.IntN(2)].to(target)
}

// run orders from a number of clients until the context ends, and waits for
// what is under way then.
func (m *market) run(ctx context.Context, clients int, seed uint64) {
	var group sync.WaitGroup
	for client := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(client)+1))
		group.Go(func() {
			for ctx.Err() == nil {
				pause := m.pace
				if !m.buy(context.WithoutCancel(ctx), m.draw(random), 1+random.IntN(12)/10+random.IntN(12)/11) {
					pause *= 20 // nobody is there
				}
				<-time.After(pause)
			}
		})
	}
	group.Wait()
}

// awaitMore waits until so many more sales were answered.
func (m *market) awaitMore(t *testing.T, more int) {
	t.Helper()
	answered := func() (n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, one := range m.sales {
			n += min(len(one.answers), 1)
		}
		return n
	}
	before := answered()
	harness.Await(t, harness.ReadyWithin, "more sales", func() bool { return answered() >= before+more })
}

// draw is a new sale, or one of before, which is then ordered again.
func (m *market) draw(random *rand.Rand) *sale {
	fresh := &sale{goods: anyGoods(random, m.untold), shop: m.buyers[random.IntN(len(m.buyers))], reference: harness.NewReference()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if again := random.IntN(8) == 0; again && len(m.sales) > 0 {
		return m.sales[max(0, len(m.sales)-1-random.IntN(50))]
	}
	m.sales = append(m.sales, fresh)
	return fresh
}

// buy sends the same order so many times at once, and tells whether the gateway
// works.
func (m *market) buy(ctx context.Context, one *sale, times int) (works bool) {
	works = true
	var group sync.WaitGroup
	for range times {
		group.Go(func() {
			a, err := one.shop.At(m.now()).Post(ctx, "/ppob/order", one.order(one.reference), "X-Callback-URL", m.callbacks.url)
			m.mu.Lock()
			defer m.mu.Unlock()
			if works = works && err == nil && a.Code != fault.Internal; err != nil {
				one.unheard = true
				m.cut.Add(1)
				return
			}
			one.answers = append(one.answers, a)
		})
	}
	group.Wait()
	return works
}

// adjust credits and debits merchants until the context ends. Each is asked for
// until it is known what became of it.
func (m *market) adjust(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for ctx.Err() == nil {
		buyer := m.buyers[random.IntN(len(m.buyers))].MerchantID
		order := adminapi.NewAdjustment{Merchant: buyer, Mode: "live", Amount: money.Amount(1 + random.Int64N(50_000)), Reason: "beside the load", Reference: uuid.NewString()}
		debit := random.IntN(2) == 0
		for {
			does := adminapi.Credit
			if debit {
				does = adminapi.Debit
			}
			_, err := does.Call(context.WithoutCancel(ctx), m.now().Admin(), order)
			failure, told := errors.AsType[*adminapi.Failure](err)
			if err == nil {
				m.posted(buyer, int64(order.Amount), debit)
			}
			if err == nil || told && failure.Code == fault.InsufficientBalance {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (m *market) posted(merchant string, amount int64, debit bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if debit {
		amount = -amount
	}
	m.adjusted[merchant] += amount
	m.credits++
}

// callbackLog hear callbacks as many merchants do, and remember only what matters.
type callbackLog struct {
	url string

	mu    sync.Mutex
	heard map[string]*hearing // by reference
	count int
}

// hearing is what was told of one order: by event, the ids under which it came
// and the status that it told.
type hearing struct {
	ids      map[string]map[string]int
	statuses map[string]string
}

func newCallbackLog(t *testing.T) *callbackLog {
	t.Helper()
	e := &callbackLog{heard: map[string]*hearing{}}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func (e *callbackLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var one harness.Callback
	if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
		return // the gateway was killed while it sent
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	h := e.heard[one.Field("ref_id")]
	if h == nil {
		h = &hearing{map[string]map[string]int{}, map[string]string{}}
		e.heard[one.Field("ref_id")] = h
	}
	if h.ids[one.Event] == nil {
		h.ids[one.Event] = map[string]int{}
	}
	h.ids[one.Event][r.Header.Get("webhook-id")]++
	h.statuses[one.Event] = one.Field("status")
	w.WriteHeader(http.StatusNoContent)
}

// told is how often an event of an order was told, under how many ids, and with
// which status.
func (e *callbackLog) told(reference, event string) (times, ids int, status string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.heard[reference]
	if h == nil {
		return 0, 0, ""
	}
	for _, n := range h.ids[event] {
		times += n
	}
	return times, len(h.ids[event]), h.statuses[event]
}
