package providers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// tableVariable names the file that gets the table of what the first provider's faults
// come to; make providers sets it.
const tableVariable = "GERBANG_PROVIDERS_TABLE"

// The two providers of payments, in the policy's order.
const first, second = "payments", "midtrans"

// pair is a gateway with two providers of payments.
type pair struct {
	t        *testing.T
	p        *harness.Program
	of       map[string]*harness.Deployment
	accounts map[string]string // of merchants at the first provider
	amount   int64             // the last that was used
}

// trouble is a fault of the first provider, and what must come of a link and a QR code
// that are created then.
type trouble struct {
	what    string
	connect func(x *pair, s harness.Shop) // before the creations
	inside  func(x *pair)                 // while both are inside the plugin
	mend    func(x *pair)                 // after the answers
	amount  int64                         // one that the simulator knows; else each has its own
	kinds   []string                      // nil for both
	by      string                        // who serves them
	answers fault.Code                    // at first; "" is a success
	refused bool                          // the same request is answered the same for ever
	proven  bool                          // a lookup proves later that nothing was sent: the long tier waits for it
	noted   bool                          // the history tells that another was tried before
}

// creation is a payment under a fault, and what came of it.
type creation struct {
	kind, reference string
	shop            harness.Shop
	order           harness.Fields
	answer, last    harness.Answer
	served          string
	noted           bool
	made, paid      map[string]int
}

// newPair starts a gateway with the first provider, and approves the second one.
func newPair(t *testing.T) *pair {
	t.Helper()
	d := harness.NewDeploymentOf(t, first, "--latency=15s") // longer than a creation may take
	x := &pair{
		t: t, of: map[string]*harness.Deployment{first: d, second: d.Another(t, second)}, accounts: map[string]string{}, amount: 500_000,
	}
	whole := d.Approved.Path
	d.Approved.Path = filepath.Join(d.Dir, first) // which a test takes away
	if err := os.Symlink(whole, d.Approved.Path); err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(d.Dir, "plugins")
	if err := os.Mkdir(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	x.p = d.Launch(t, harness.ServeDatabase(t), d.Approved, "plugins_dir: "+plugins)
	d.Join(t, x.p)
	x.newcomer()
	return x
}

// order pushes a policy that has the providers tried in an order.
func (x *pair) order(names ...string) {
	x.t.Helper()
	pushRoute(x.t, x.p, fmt.Sprintf("route := %s if input.operation.contract == \"payments@1\"", "[\""+strings.Join(names, "\", \"")+"\"]"))
}

// pushRoute puts the default policy in force with a rule about who gets a payment.
func pushRoute(t *testing.T, p *harness.Program, rule string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(harness.Root, "policy", "rego"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "route.rego"), []byte("package gerbang\n\n"+rule+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.MustRun(t, "", nil, "policy", "push", dir, "--message", "two providers of payments", "--activate", "--wait")
}

// newShop makes a merchant with an account at both.
func (x *pair) newShop() harness.Shop {
	x.t.Helper()
	made := x.p.NewMerchant(x.t)
	x.accounts[made.MerchantID] = x.of[first].Connect(x.t, x.p, made.MerchantID)
	x.of[second].Connect(x.t, x.p, made.MerchantID)
	return harness.Shop{Program: x.p, MerchantID: made.MerchantID, Key: made.LiveKey}
}

// troubles are the ways in which the first provider fails.
var troubles = []trouble{
	{what: "works", by: first},
	{what: "refuses the amount (400)", amount: 60_000_000_000, kinds: []string{"payment_link"}, by: first, answers: fault.ProviderRejected, refused: true},
	{what: "has not activated the channel for the account (403)", amount: 10100, kinds: []string{"payment_link"}, by: second, noted: true},
	{what: "says that the channel is unavailable (503)", amount: 10101, kinds: []string{"payment_link"}, by: second, noted: true},
	{what: "answers 500 before it acts", connect: injected("error_500"), by: first, answers: fault.ProviderTimeout, proven: true},
	{what: "acts, then answers 500", connect: injected("error_500_after"), by: first},
	{what: "cuts the connection before it acts", connect: injected("drop_before"), by: first, answers: fault.ProviderTimeout, proven: true},
	{what: "acts, then cuts the connection", connect: injected("drop_after"), by: first},
	{what: "acts, then answers nonsense", connect: injected("garbage"), by: first},
	{what: "hangs for longer than a creation may take, then acts", connect: injected("latency"), by: first, answers: fault.ProviderTimeout, proven: true},
	{what: "its plugin is killed with the call inside", connect: injected("latency"), inside: (*pair).killPlugin, by: first, answers: fault.ProviderTimeout, proven: true},
	{what: "its plugin is dead, and the file is gone", connect: (*pair).takeAway, mend: (*pair).bringBack, by: second},
	{what: "the account's key is revoked (401)", connect: (*pair).revoke, by: second, noted: true},
	{what: "the operator has paused the connection", connect: (*pair).pause, by: second},
	{what: "nobody listens at the account's address", connect: (*pair).mislead, by: second, noted: true},
	{what: "the account's breaker is open", connect: (*pair).open, by: second},
}

func injected(name string) func(*pair, harness.Shop) {
	return func(x *pair, _ harness.Shop) {
		for _, operation := range harness.FaultOperations {
			x.of[first].Simulator().Inject(x.t, name, operation, 1)
		}
	}
}

func (x *pair) killPlugin() {
	plugin, err := x.p.Plugin(x.t, first)
	if err == nil {
		err = syscall.Kill(plugin.PID, syscall.SIGKILL)
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *pair) takeAway(harness.Shop) {
	path := x.of[first].Approved.Path
	if err := os.Rename(path, path+".gone"); err != nil {
		x.t.Fatal(err)
	}
	x.killPlugin()
	harness.Await(x.t, time.Minute, "a plugin that can't be started", func() bool {
		plugin, err := x.p.Plugin(x.t, first)
		return err == nil && !plugin.Running && strings.Contains(plugin.LastFault, "no such file")
	})
}

func (x *pair) bringBack() {
	path := x.of[first].Approved.Path
	if err := os.Rename(path+".gone", path); err != nil {
		x.t.Fatal(err)
	}
}

func (x *pair) revoke(s harness.Shop) {
	var told json.RawMessage
	body := harness.Fields{"account": x.accounts[s.MerchantID]}
	if status := x.of[first].Simulator().Sandbox(x.t, "/revoke", body, &told); status != http.StatusOK {
		x.t.Fatalf("revoke: %d %s", status, told)
	}
}

func (x *pair) pause(s harness.Shop) {
	_, err := adminapi.SetPause.Call(x.t.Context(), x.p.Admin(), tenants.Pause{
		What: tenants.PauseConnection, MerchantID: tenants.MerchantID(s.MerchantID), Provider: first, Mode: tenants.Live, Reason: "their key leaked",
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *pair) mislead(s harness.Shop) {
	x.of[first].ConnectUnverified(x.t, x.p, s.MerchantID, func(credentials json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(credentials), "127.0.0.1", "127.0.0.2"))
	})
}

// open has payments fail at an account until its breaker opens.
func (x *pair) open(s harness.Shop) {
	x.mislead(s)
	harness.Await(x.t, time.Minute, "an open breaker of the account", func() bool {
		x.amount++
		if a := s.Ask(x.t, "/payments/create", s.PaymentBody(harness.Fields{"amount": x.amount})); !a.Success {
			x.t.Errorf("while the breaker opens: %s", a)
		}
		plugin, err := x.p.Plugin(x.t, first)
		return err == nil && slices.ContainsFunc(plugin.Breakers, func(b host.BreakerStatus) bool { return b.AccountsOpen > 0 })
	})
}

// TestFirstOfTwoFails makes the first of two providers of payments fail in every way. The
// second gets a payment only where nothing was sent to the first, each payment is made
// once in all, and who serves it is kept. The table of it is a file of the handbook. In the
// change tier those troubles are left out after which the first must be proven to have nothing, for
// which a payment waits a minute; the simulator's histories prove the same on a clock of their own.
func TestFirstOfTwoFails(t *testing.T) {
	t.Parallel()
	x := newPair(t)
	some := troubles
	if !tier.IsLong() {
		some = slices.DeleteFunc(slices.Clone(troubles), func(under trouble) bool { return under.proven })
	}
	met := make([][]*creation, len(some))
	for i, under := range some {
		met[i] = x.meets(under)
	}
	x.repeat(some, met)
	x.pay(met)
	text, rows := tableTitle, []string{}
	for i, under := range some {
		rows = append(rows, x.row(under, met[i]))
		text += rows[i]
	}
	if file := os.Getenv(tableVariable); file != "" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile(filepath.Join(harness.Root, "deploy", "bench", "PROVIDERS.md"))
	if err != nil || tier.IsLong() && string(kept) != text || !strings.HasPrefix(string(kept), tableTitle) || strings.Count(string(kept), "\n") != strings.Count(tableTitle, "\n")+len(troubles) {
		t.Errorf("deploy/bench/PROVIDERS.md is another (%v); make providers writes it:\n%s", err, text)
	}
	for _, row := range rows {
		if !strings.Contains(string(kept), "\n"+row) {
			t.Errorf("deploy/bench/PROVIDERS.md does not have\n%s", row)
		}
	}
}

const tableTitle = `# Two providers of payments, the first of which fails

` + "`make providers`" + ` writes this file, and a test holds it. The policy orders Xendit before Midtrans (` + "`route := [\"payments\", \"midtrans\"]`" + `), and a merchant
with an account at each creates a payment link and a QR code under each fault. Afterwards each request is sent again until it is answered
for good, payers pay what they were shown, and what both simulators have is counted.

The second provider gets a payment only where nothing was sent to the first. What may have been sent stays with the first until a lookup tells:
then the same request gets its payment, or, where nothing was made, makes it. ` + "`gerbang find`" + ` shows who serves a payment, and in its
history (` + "`routed`" + `) that a call to another one was tried before.

| the first provider | answered at first | the same request later | who serves | made at the first | made at the second | paid twice |
| --- | --- | --- | --- | --- | --- | --- |
`

// meets has a merchant create a link and a QR code under a fault.
func (x *pair) meets(under trouble) []*creation {
	x.t.Helper()
	x.p.AwaitClosedBreaker(x.t, first)
	s := x.newShop()
	if under.connect != nil {
		under.connect(x, s)
	}
	var all []*creation
	var group sync.WaitGroup
	kinds := under.kinds
	if kinds == nil {
		kinds = []string{"payment_link", "qris"}
	}
	for _, kind := range kinds {
		amount := under.amount
		if x.amount++; amount == 0 {
			amount = x.amount
		}
		c := &creation{kind: kind, shop: s, order: s.PaymentBody(harness.Fields{"type": kind, "amount": amount})}
		c.reference = c.order["external_id"].(string)
		all = append(all, c)
		group.Go(func() {
			var err error
			if c.answer, err = s.Post(x.t.Context(), "/payments/create", c.order); err != nil {
				x.t.Errorf("%s: %v", under.what, err)
			}
		})
	}
	if under.inside != nil {
		harness.Await(x.t, harness.ReadyWithin, "calls inside the plugin", func() bool {
			plugin, err := x.p.Plugin(x.t, first)
			return err == nil && plugin.InFlight == len(all)
		})
		under.inside(x)
	}
	group.Wait()
	if under.mend != nil {
		under.mend(x)
	}
	return all
}

// repeat sends each request again until it is answered for good, and reads who serves it.
func (x *pair) repeat(some []trouble, met [][]*creation) {
	x.t.Helper()
	var group sync.WaitGroup
	for i, all := range met {
		for _, c := range all {
			group.Go(func() {
				if err := harness.Until(harness.ResolvesWithin, func() bool {
					var err error
					if c.last, err = c.shop.Post(x.t.Context(), "/payments/create", c.order); err != nil {
						x.t.Errorf("%s: %v", some[i].what, err)
						return true
					}
					if done := !slices.Contains(harness.Unfinished, c.last.Code); done {
						return true
					}
					<-time.After(time.Second)
					return false
				}); err != nil {
					x.t.Errorf("%s: %s is answered %s at last", some[i].what, c.kind, c.last)
				}
			})
		}
	}
	group.Wait()
	for i, all := range met {
		for _, c := range all {
			found, err := adminapi.Find.Call(x.t.Context(), x.p.Admin(), adminapi.Search{ID: c.reference})
			if err != nil || len(found.Movements) != 1 {
				x.t.Errorf("%s: %s is found as %+v, %v", some[i].what, c.reference, found, err)
				continue
			}
			m := found.Movements[0]
			c.served = m.Provider
			c.noted = slices.ContainsFunc(m.History, func(e movement.HistoryEntry) bool { return e.Event == "routed" })
		}
	}
}

// pay has the payers pay what they were shown, and counts what each provider has.
func (x *pair) pay(met [][]*creation) {
	x.t.Helper()
	for _, all := range met {
		for _, c := range all {
			made := c.last.Payment()
			switch simulator := x.of[c.served]; {
			case !c.last.Success || simulator == nil:
			case c.kind == "qris":
				simulator.Simulator().Pay(x.t, harness.Fields{"qr_string": made.QRString})
			default:
				simulator.Simulator().Pay(x.t, harness.Fields{"url": x.p.ProviderPage(x.t, made.CheckoutURL)})
			}
			if c.last.Success {
				c.shop.AwaitStatus(x.t, c.reference, "PAID", 3*harness.PaidWithin)
			}
		}
	}
	for _, all := range met {
		for _, c := range all {
			c.made, c.paid = map[string]int{}, map[string]int{}
		}
	}
	for name, d := range x.of {
		for _, m := range d.Simulator().UpstreamMovements(x.t) {
			for _, c := range slices.Concat(met...) {
				if fmt.Sprint(m.Amount) != fmt.Sprint(c.order["amount"]) {
					continue
				}
				if c.made[name]++; slices.Contains([]string{"PAID", "INACTIVE", "settlement"}, m.State) {
					c.paid[name]++
				}
			}
		}
	}
}

// row is a trouble's row of the table, and wants what it should be.
func (x *pair) row(under trouble, all []*creation) string {
	x.t.Helper()
	answers, repeated, served := map[string]int{}, map[string]int{}, map[string]int{}
	made, twice := map[string]int{}, 0
	for _, c := range all {
		answers[word(c.answer)]++
		repeated[word(c.last)]++
		served[c.served]++
		made[first] += c.made[first]
		made[second] += c.made[second]
		if c.paid[first]+c.paid[second] > 1 {
			twice++
		}
		want := map[string]int{c.served: 1}
		if under.refused {
			want = map[string]int{}
		}
		if c.served != under.by || c.answer.Code != under.answers || c.last.Success == under.refused || c.noted != under.noted ||
			c.made[first] != want[first] || c.made[second] != want[second] || c.paid[c.served] != want[c.served] {
			x.t.Errorf("%s, %s: served by %s, noted %t, answered %s, then %s, made %v, paid %v", under.what, c.kind, c.served, c.noted, c.answer, c.last, c.made, c.paid)
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d | %d | %d |\n",
		under.what, listed(answers), listed(repeated), listed(served), made[first], made[second], twice)
}

// word is what an answer says in the table.
func word(a harness.Answer) string {
	if a.Success {
		return "good"
	}
	return fmt.Sprintf("`%s`, sent: %s", a.Code, a.Sent)
}

// listed are counts in one cell.
func listed(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, "; ")
}
