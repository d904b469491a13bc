package providers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// providers are those that a fleet serves.
var providers = []string{"payments", "midtrans", "ppob", "wallet1", "wallet2"}

// byKind has the first provider of payments make links, and the second one codes.
const byKind = `route := ["payments"] if {
	input.operation.contract == "payments@1"
	input.fields.type == "payment_link"
}

route := ["midtrans"] if {
	input.operation.contract == "payments@1"
	input.fields.type == "qris"
}`

// fleet is two replicas that serve five providers, and merchants with an account at each.
type fleet struct {
	*testing.T
	databaseURL string
	plugins     string                         // plugins_dir of both
	of          map[string]*harness.Deployment // by provider
	shops       []harness.Shop
	next        atomic.Int64

	mu       sync.Mutex
	replicas []*harness.Program
	gone     map[*harness.Program]bool // killed, or about to be
	calls    []*call
	outages  []*outage
	tallies  map[string]*tally // by provider
}

// outage is a plugin that was killed, until it is there again with closed breakers.
type outage struct {
	of       *harness.Program
	provider string
	pid      int
	from, to time.Time
}

// tally is what came of all that a provider was asked for.
type tally struct {
	replaced, killed int
	calls            int
	failed           int // with the provider there
	met              int // cut by a kill of the very plugin, or turned away by it
	cut              int // by a kill of the replica
	made, doubled    int
}

// call is a merchant's request, which goes out again where it was cut.
type call struct {
	provider, path string
	body           harness.Fields
	shop           harness.Shop
	mark           string // of what it makes, which tells it apart at the simulator; "" for nothing
	answers        []harness.Answer
	cuts           int
	at             *harness.Program // that has answered
	began          time.Time
	took           time.Duration // until the first answer
	wrong          error
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	first := harness.NewDeployment(t)
	f := &fleet{
		T: t, databaseURL: harness.ServeDatabase(t), plugins: filepath.Join(first.Dir, "plugins"), gone: map[*harness.Program]bool{},
		tallies: map[string]*tally{},
		of: map[string]*harness.Deployment{
			"payments": first, "midtrans": first.Another(t, "midtrans"), "ppob": first.Another(t, "ppob", "--poll-every=0s", "--list-every=0s"),
			"wallet1": first.Another(t, "wallet1", "--careless", "--opening=1000000000000"), "wallet2": first.Another(t, "wallet2"),
		},
	}
	if err := os.Mkdir(f.plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, provider := range providers {
		f.tallies[provider] = &tally{}
	}
	f.replicas = []*harness.Program{f.launch(), f.launch()}
	first.Join(t, f.replicas...)
	ops := f.replicas[0]
	pushRoute(t, ops, byKind)
	f.of["ppob"].Connect(t, ops, "platform")
	for range 3 {
		s := first.NewShop(t, ops, "scale")
		f.of["midtrans"].Connect(t, ops, s.MerchantID)
		f.of["wallet1"].Connect(t, ops, s.MerchantID)
		f.of["wallet2"].Connect(t, ops, s.MerchantID)
		funds := adminapi.NewAdjustment{Mode: "live", Amount: 1_000_000_000, Reason: "for a test", Reference: uuid.NewString()}
		funds.Merchant = s.MerchantID
		if _, err := adminapi.Credit.Call(t.Context(), ops.Admin(), funds); err != nil {
			t.Fatal(err)
		}
		peer := adminapi.NewClient(ops.ConsoleURL, first.Peer) // so much needs two operators
		if _, err := adminapi.ApproveAdjustment.Call(t.Context(), peer, adminapi.AdjustmentKey{MerchantID: s.MerchantID, Reference: funds.Reference}); err != nil {
			t.Fatal(err)
		}
		f.shops = append(f.shops, s)
	}
	return f
}

func (f *fleet) launch() *harness.Program {
	f.Helper()
	var more []string
	for _, provider := range providers[1:] {
		more = append(more, f.of[provider].Approved.Beside())
	}
	return f.of["payments"].Launch(f, f.databaseURL, f.of["payments"].Approved, append(more, "plugins_dir: "+f.plugins)...)
}

// kill ends a replica as a crash does. No merchant chooses it from here on.
func (f *fleet) kill(p *harness.Program) {
	f.Helper()
	f.mu.Lock()
	f.gone[p] = true
	f.mu.Unlock()
	p.Kill(f)
}

// revive starts another in the place of one that was killed.
func (f *fleet) revive(dead *harness.Program) {
	f.Helper()
	p := f.launch()
	f.of["payments"].Join(f, p)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas[slices.Index(f.replicas, dead)] = p
}

func (f *fleet) alive() (all []*harness.Program) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.replicas {
		if !f.gone[p] {
			all = append(all, p)
		}
	}
	return all
}

// load has clients use every provider until it is stopped, which waits for what is under
// way.
func (f *fleet) load(clients int) (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	var group sync.WaitGroup
	for _, provider := range providers {
		for client := range clients {
			group.Go(func() {
				for n := client; ctx.Err() == nil; n++ {
					f.trade(provider, f.shops[n%len(f.shops)], n)
					if !tier.IsLong() {
						<-time.After(200 * time.Millisecond) // what is proven needs a load, and no heavy one
					}
				}
			})
		}
	}
	return func() { cancel(); group.Wait() }
}

// trade makes something at a provider and asks for it.
func (f *fleet) trade(provider string, s harness.Shop, n int) {
	id, number := uuid.NewString(), f.next.Add(1)
	amount := 100_000 + number
	mark, phone := fmt.Sprint(amount), fmt.Sprintf("0878%08d", 30_000_000+number) // of which the simulators know nothing
	switch provider {
	case "payments", "midtrans":
		kind := map[string]string{"payments": "payment_link", "midtrans": "qris"}[provider]
		made := f.send(provider, s, mark, "/payments/create", s.PaymentBody(harness.Fields{"type": kind, "amount": amount, "external_id": id}))
		if made.good() { // what was not sent has no status
			f.send(provider, s, "", "/payments/status", harness.Fields{"external_id": id})
		}
	case "ppob":
		f.send(provider, s, phone, "/ppob/order", harness.Fields{"sku": "xld10", "target": phone, "ref_id": id})
		f.send(provider, s, "", "/ppob/inquiry", harness.Fields{"sku": "pln", "target": "530000000001"})
	case "wallet1":
		f.send(provider, s, mark, "/wallet1/transfer/wallet", harness.Fields{"phone": phone, "amount": amount, "external_id": id})
		f.send(provider, s, "", "/wallet1/transactions", harness.Fields{})
	case "wallet2":
		made := f.send(provider, s, "", "/wallet2/create", harness.Fields{"amount": 10_000 + number%1000*1000, "payer_email": "payer@example.com", "external_id": id})
		if !made.good() {
			return
		}
		if n%4 == 0 {
			var sale struct {
				QR string `json:"qr_string"`
			}
			if err := json.Unmarshal(made.answers[0].Data, &sale); err != nil {
				f.Error(err)
			}
			f.of[provider].Simulator().TrySandbox(f.Context(), "/pay", harness.Fields{"qr_string": sale.QR})
		}
		f.send(provider, s, "", "/wallet2/status", harness.Fields{"external_id": id})
	}
}

// good tells whether a call was answered well at once.
func (c *call) good() bool { return c.wrong == nil && c.answers[0].Success }

// send has a merchant ask any replica, and again where the one that was asked has been
// killed.
func (f *fleet) send(provider string, s harness.Shop, mark, path string, body harness.Fields) *call {
	c := &call{provider: provider, path: path, body: body, shop: s, mark: mark, began: time.Now()}
	for {
		all := f.alive()
		p := all[int(f.next.Add(1))%len(all)]
		a, err := s.At(p).Post(context.WithoutCancel(f.Context()), path, body)
		f.mu.Lock()
		cut := err != nil && f.gone[p]
		if !cut {
			if c.at, c.took, c.wrong = p, time.Since(c.began), err; err == nil {
				c.answers = append(c.answers, a)
			}
			f.calls = append(f.calls, c)
			f.mu.Unlock()
			return c
		}
		c.cuts++
		f.mu.Unlock()
	}
}

// done are the calls that have ended by now.
func (f *fleet) done() []*call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// wantNoFailure wants each call answered well at once. Only one that a killed replica has
// cut may wait for what became of it, and one of a plugin that was just killed may fail.
func (f *fleet) wantNoFailure() {
	f.Helper()
	counts, longest, well := map[string]int{}, map[string]time.Duration{}, map[string]int{}
	for _, c := range f.done() {
		of, met := f.tallies[c.provider], f.meets(c)
		counts[c.path]++
		of.calls++
		if c.cuts > 0 {
			of.cut++
		}
		allowed := []fault.Code{}
		switch {
		case met:
			allowed = []fault.Code{fault.ProviderUnavailable, fault.ProviderTimeout}
		case c.cuts > 0:
			allowed = []fault.Code{fault.InProgress, fault.ProviderTimeout}
		default:
			longest[c.provider] = max(longest[c.provider], c.took)
		}
		switch {
		case c.good():
			if !met {
				well[c.provider]++
			}
		case c.wrong == nil && slices.Contains(allowed, c.answers[0].Code):
			if met {
				of.met++
			}
		default:
			of.failed++
			f.Errorf("%s, cut %d times, while its plugin was killed: %t: %v %v", c.path, c.cuts, met, c.wrong, c.answers)
		}
	}
	f.Logf("%s; the longest %v", harness.Counted(counts), longest)
	for _, provider := range providers {
		if well[provider] == 0 {
			f.Errorf("nobody was answered by %s while it was there", provider)
		}
	}
}

// meets tells whether the plugin that a call was for was killed, and not there again, at a
// moment of the call.
func (f *fleet) meets(c *call) bool {
	return slices.ContainsFunc(f.outages, func(o *outage) bool {
		return o.of == c.at && o.provider == c.provider && o.from.Before(c.began.Add(c.took)) && c.began.Before(o.to)
	})
}

// resolve sends what was not answered well again until it is. What was never sent, and
// told as pending meanwhile, is refused for ever.
func (f *fleet) resolve(within time.Duration) {
	f.Helper()
	var group sync.WaitGroup
	turns, p := make(chan struct{}, 8), f.alive()[0]
	unresolved := 0
	for _, c := range f.done() {
		if c.wrong != nil || c.good() || c.mark == "" {
			continue
		}
		unresolved++
		group.Go(func() {
			var last harness.Answer
			defer func() { c.answers = append(c.answers, last) }() // nobody else has it any more
			if err := harness.Until(within, func() bool {
				turns <- struct{}{}
				a, err := c.shop.At(p).Post(context.WithoutCancel(f.Context()), c.path, c.body)
				<-turns
				if last = a; err != nil || a.Success || !slices.Contains(harness.Unfinished, a.Code) || f.lacksItsCode(c, a) {
					return true
				}
				<-time.After(time.Second)
				return false
			}); err != nil || !last.Success && !f.lacksItsCode(c, last) && (last.Code != fault.ProviderRejected || last.Sent != fault.SentNo) {
				f.Errorf("%s, answered %s, is %s after all: %v", c.path, c.answers[0], last, err)
			}
		})
	}
	group.Wait()
	f.Logf("%d calls were resolved afterwards", unresolved)
}

// lacksItsCode tells of an answer that has no QR code of a charge which was made: the answer
// with the code was lost, and Midtrans tells it once. Its status is known.
func (f *fleet) lacksItsCode(c *call, a harness.Answer) bool {
	if c.provider != "midtrans" || a.Code != fault.ProviderTimeout {
		return false
	}
	stands := c.shop.At(f.alive()[0]).Ask(f, "/payments/status", harness.Fields{"external_id": c.body["external_id"]})
	return stands.Success
}

// check wants nothing made twice, all that was answered well made once, and clean books.
func (f *fleet) check() {
	f.Helper()
	for _, provider := range providers {
		if provider == "wallet2" {
			continue // whose simulator knows what was paid, and not what was asked for
		}
		simulator := f.of[provider].Simulator()
		var marks map[string]int
		missing := func() (lost []string) {
			marks = map[string]int{}
			for _, m := range simulator.UpstreamMovements(f) {
				marks[markOf(provider, m)]++
			}
			for _, c := range f.done() {
				if c.provider == provider && c.mark != "" && c.wrong == nil && marks[c.mark] == 0 && !f.mayLack(c) {
					lost = append(lost, fmt.Sprintf("%s %v, cut %d times, answered %v", c.path, c.body, c.cuts, c.answers))
				}
			}
			return lost
		}
		if err := harness.Until(harness.ResolvesWithin, func() bool { return len(missing()) == 0 }); err != nil {
			f.Errorf("%s has not made:\n%s", provider, strings.Join(missing(), "\n"))
		}
		for mark, times := range marks {
			if times > 1 {
				f.tallies[provider].doubled++
				f.Errorf("%s has made %s %d times", provider, mark, times)
			}
		}
		f.tallies[provider].made = len(marks)
	}
	f.alive()[0].WantCleanLedger(f)
}

// mayLack tells of a call that was promised, and may never have been sent because of a
// kill: then it must not be told as a success.
func (f *fleet) mayLack(c *call) bool {
	path, name := "/wallet1/transfer/status", "external_id"
	switch {
	case c.cuts == 0 && !f.meets(c):
		return false
	case c.provider == "payments", c.provider == "midtrans":
		return !c.answers[len(c.answers)-1].Success
	case c.provider == "ppob":
		path, name = "/ppob/status", "ref_id"
	}
	var told struct{ Status string }
	a := c.shop.At(f.alive()[0]).Ask(f, path, harness.Fields{name: c.body[name]})
	return a.Success && json.Unmarshal(a.Data, &told) == nil && told.Status != "Success"
}

// markOf is what tells a movement apart at its simulator.
func markOf(provider string, m harness.UpstreamMovement) string {
	if provider == "ppob" {
		return m.Destination
	}
	return fmt.Sprint(m.Amount)
}
