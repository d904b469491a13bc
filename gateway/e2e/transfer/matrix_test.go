package transfer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// upstreamFault is something that becomes of a transfer's call: on its way, or by
// a plan of the simulator, which goes by the receiver.
type upstreamFault struct{ name, act, plan string }

// quick are the faults whose end is soon known, or that move nothing.
var quick = []upstreamFault{
	{name: "nothing"}, {act: actCut}, {act: act500}, {act: actGarbage}, {act: actNeverCut}, {act: actToken},
	{"202, then success", "", "33"}, {"202, then failed", "", "34"}, {"504, moved later", "", "50"},
	{act: actSilent}, {"202, notified twice", "", "41"}, {"wrong amount at first", "", "45"}, {act: actTwice},
}

// others complete them.
var others = []upstreamFault{
	{act: actOther}, {act: actNever500}, {act: actNeverSilent}, {act: actNeverOther},
	{"202, then cancelled", "", "35"}, {"202, notified in the wrong order", "", "42"}, {"done, then taken back", "", "44"},
	{"202, notified in nonsense", "", "46"}, {"202, never notified", "", "47"},
	{"202 for ever", "", forEver}, {"202, a forged notification", "", "49"}, {"504 later than anybody waits", "", "51"}, {"202, always a wrong amount", "", alwaysWrong},
}

const (
	forEver     = "48"
	alwaysWrong = "52"
)

func (m upstreamFault) String() string { return m.name + m.act }

func (m upstreamFault) silent() bool {
	return m.act == actSilent || m.act == actNeverSilent || m.plan == "51"
}

// point is a moment at which somebody dies.
type point struct {
	name   string
	at     pause
	apply  bool // once all answers are here: before the first is applied, or after the others are
	unsent bool
	plugin bool // and not the gateway
	nobody bool
	late   bool // for calls that are given up: nothing is answered
}

// points are the moments of many transfers at once. Before a reservation is
// answered there is only one at a time; see [matrix.dieReserving].
var points = []point{
	{name: "nobody dies", nobody: true},
	{name: "gateway killed, the call at the upstream", at: before},
	{name: "gateway killed, the upstream has acted", at: after},
	{name: "gateway killed, answered and not applied", at: after, apply: true, unsent: true},
	{name: "gateway killed, applied and not heard of", at: after, apply: true},
	{name: "plugin killed, the call at the upstream", at: before, plugin: true},
	{name: "plugin killed, the upstream has acted", at: after, plugin: true},
	{name: "plugin killed, answered and not applied", at: after, apply: true, unsent: true, plugin: true},
}

// transferCase is one case of the matrix: a transfer, its fault, and who dies when.
type transferCase struct {
	transfer
	upstreamFault
	point     string
	reference string
	mark      string // in its request alone
	script    *script
	shop      harness.Shop

	mu      sync.Mutex
	answers []harness.Answer
	unheard int       // requests that were cut
	asked   time.Time // for its status
}

func (c *transferCase) String() string {
	return fmt.Sprintf("%s, %s, %s (%s)", c.route, c.upstreamFault, c.point, c.reference)
}

func (c *transferCase) request() harness.Fields {
	return c.body(c.reference).With(harness.Fields{"message": c.mark})
}

// post sends it to a replica.
func (c *transferCase) post(ctx context.Context, p *harness.Program) harness.Answer {
	a, err := c.shop.At(p).Post(ctx, c.path, c.request())
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.unheard++
		return harness.Answer{}
	}
	c.answers = append(c.answers, a)
	return a
}

// insist posts it again as long as a busy machine lets nothing arrive at the provider.
func (c *transferCase) insist(ctx context.Context, p *harness.Program) {
	_ = harness.Until(heardWithin, func() bool {
		a := c.post(ctx, p)
		return a.Sent != fault.SentNo || a.Retry != fault.RetryLater || c.script.called() > 0
	})
}

// heard tells whether its merchant knows more than to come back.
func (c *transferCase) heard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.answers, func(a harness.Answer) bool { return a.Success || a.Code == fault.ProviderRejected })
}

// matrix is a replica that dies again and again, one that stays, and the provider
// behind a proxy. The simulator is careless: it moves money for each call, so that
// a second one shows.
type matrix struct {
	*harness.Deployment
	proxy       *upstreamProxy
	tap         *databaseTap // before the database of the one that dies
	databaseURL string
	stays, dies *harness.Program
	shop        harness.Shop
	expiring    harness.Shop // whose tokens expire
	account     string
	credentials harness.Fields // of the last that was connected
	senders     []harness.Shop // for shared loads
	cases       []*transferCase
	fresh       bool // starts a gateway for each round, else only after a kill
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	x := &matrix{databaseURL: harness.ServeDatabase(t), Deployment: harness.NewDeploymentOf(t, "wallet1", "--careless")}
	x.proxy = newUpstreamProxy(t)                                    // and so it ends before the simulator, which waits for its connections
	x.Approved.Ports = append(x.Approved.Ports, x.proxy.port(), "1") // at which nobody listens
	x.stays = x.Start(t, x.databaseURL)[0]
	x.tap = newDatabaseTap(t, x.databaseURL)
	x.shop, _ = x.newSender(t)
	x.expiring, x.account = x.newSender(t)
	return x
}

// newSender makes a merchant whose account at the simulator is reached through
// the proxy.
func (x *matrix) newSender(t *testing.T) (s harness.Shop, account string) {
	t.Helper()
	made := x.stays.NewMerchant(t)
	account = x.ConnectThrough(t, x.stays, made.MerchantID, func(given json.RawMessage) json.RawMessage {
		changed := x.proxy.before(t, given)
		if err := json.Unmarshal(changed, &x.credentials); err != nil {
			t.Fatal(err)
		}
		return changed
	})
	return harness.Shop{Program: x.stays, MerchantID: made.MerchantID, Key: made.LiveKey}, account
}

func (g *upstreamProxy) port() string { return g.url[strings.LastIndex(g.url, ":")+1:] }

// before leads credentials to the proxy, and the proxy to where they led.
func (g *upstreamProxy) before(t testing.TB, credentials json.RawMessage) json.RawMessage {
	t.Helper()
	var given harness.Fields
	if err := json.Unmarshal(credentials, &given); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	g.target, _ = given["base_url"].(string)
	g.mu.Unlock()
	changed, err := json.Marshal(given.With(harness.Fields{"base_url": g.url}))
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// revive starts the one that dies, unless it lives.
func (x *matrix) revive(t *testing.T) {
	t.Helper()
	if x.dies != nil && x.dies.Running() && !x.fresh {
		x.tap.disarm(false)
		x.dies.AwaitClosedBreaker(t, "wallet1")
		return
	}
	x.tap.disarm(true)
	x.dies = x.Launch(t, x.tap.url, x.Approved)
	x.dies.KeepSecret(x.stays.Known()...)
	x.dies.AwaitServing(t)
}

// add makes a case with its script.
func (x *matrix) add(r route, m upstreamFault, at point) *transferCase {
	c := &transferCase{transfer: r.newTransfer(), upstreamFault: m, point: at.name, reference: harness.NewReference(), mark: uuid.NewString(), shop: x.shop}
	if m.plan != "" {
		c.transfer = r.withPlan(m.plan)
	}
	c.script = x.proxy.give(c.amount, m.act, at.at)
	if m.act == actToken {
		c.shop = x.expiring
		c.script.expire = func() { x.stays.TrySandbox(context.Background(), "/tokens", harness.Fields{"client_id": x.account}) }
	}
	x.cases = append(x.cases, c)
	return c
}

// reachesWithin is how long a test waits at most until all calls of a round have come as far
// as they go.
const reachesWithin = 2 * time.Minute

// round lets every fault happen at once to both kinds of transfers, and somebody
// die at a point.
func (x *matrix) round(t *testing.T, at point, faults []upstreamFault) {
	t.Helper()
	x.revive(t)
	var all []*transferCase
	var posts sync.WaitGroup
	for _, m := range faults {
		for _, r := range routes {
			if at.apply && m.silent() != at.late {
				continue
			}
			c := x.add(r, m, at)
			all = append(all, c)
			posts.Go(func() { c.insist(t.Context(), x.dies) })
		}
	}
	if at.nobody {
		posts.Wait()
	} else {
		x.reach(t, at, all)
		x.strike(t, at.plugin)
	}
	for _, c := range all {
		c.script.letGo()
	}
	x.tap.disarm(!at.plugin)
	posts.Wait()
	x.end(t)
}

// end kills what is left of a round that has a gateway of its own.
func (x *matrix) end(t *testing.T) {
	t.Helper()
	if x.fresh && x.dies.Running() {
		x.dies.Kill(t)
	}
}

// reach waits until all are at a point.
func (x *matrix) reach(t *testing.T, at point, all []*transferCase) {
	t.Helper()
	deadline, cancel := context.WithTimeout(t.Context(), reachesWithin)
	defer cancel()
	for _, c := range all {
		been := c.script.arrived
		if at.at == after {
			been = c.script.acted
		}
		if c.upstreamFault.silent() && c.plan != "" {
			been = c.script.arrived // the upstream itself is silent
		}
		select {
		case <-been:
		case <-deadline.Done():
			t.Fatalf("%s has not come so far; answered %q", c, c.history())
		}
	}
	if !at.apply {
		return
	}
	var words []string
	for _, c := range all {
		words = append(words, c.script.names()...)
	}
	seen := x.tap.arm(at.unsent, words...)
	for _, c := range all {
		c.script.letGo()
	}
	wantWithin(t, reachesWithin, seen, "an answer that is applied")
	// Everything else is answered and waits behind this one.
	harness.Await(t, reachesWithin, "all answers", func() bool {
		found, err := x.dies.Plugin(t, "wallet1")
		return err == nil && found.InFlight == 0
	})
	if !at.unsent {
		x.commit(t, all)
	}
}

// commit lets one answer after the other be applied, until all are committed.
// What is stopped last has not been heard of.
func (x *matrix) commit(t *testing.T, all []*transferCase) {
	t.Helper()
	committed := func() bool {
		records := x.recorded(t)
		return !slices.ContainsFunc(all, func(c *transferCase) bool { return !records[c.reference].applied() })
	}
	for harness.Until(time.Second, committed) != nil {
		next := x.tap.again()
		harness.Await(t, reachesWithin, "the others, applied", func() bool {
			select {
			case <-next:
				return true
			default:
				return committed()
			}
		})
	}
}

func wantSoon(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	wantWithin(t, reachesWithin, done, what)
}

func wantWithin(t *testing.T, within time.Duration, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(within):
		t.Fatalf("%v for %s", harness.ErrTimeout, what)
	}
}

// strike kills the gateway or its plugin.
func (x *matrix) strike(t *testing.T, plugin bool) {
	t.Helper()
	if plugin {
		x.dies.KillProvider(t, "wallet1", false)
		return
	}
	x.dies.Kill(t)
}

// TestTransfersSurviveKills kills the gateway or its plugin at each moment of a transfer's
// way, with a few faults of the provider: no transfer is doubled or lost. At the end two
// replicas share transfers, and one of them is killed midway.
func TestTransfersSurviveKills(t *testing.T) {
	t.Parallel()
	x := newMatrix(t)
	faults := slices.DeleteFunc(slices.Clone(quick), upstreamFault.silent)
	x.dieReserving(t, reservePoints[1], toBank)
	for i, at := range slices.SortedStableFunc(slices.Values(points), func(a, b point) int { return a.kills() - b.kills() }) {
		x.round(t, at, tier.Sample(t, slices.Concat(faults[i:], faults[:i]), 4)) // others at each moment
	}
	x.dieReserving(t, reservePoints[0], toWallet)
	x.revive(t)
	x.open(t, 1)
	random, seed := seeded()
	all := x.draw(random, 60, faults)
	x.share(t, all[:20])
	x.killSharing(t, all[20:], false)
	t.Logf("seed %d", seed)
	x.awaitEnds(t, heardWithin, false)
	x.check(t)
}

// kills is 1 where the gateway is started again afterwards.
func (at point) kills() int {
	if at.nobody || at.plugin {
		return 0
	}
	return 1
}

// TestTransferFaultMatrix combines the quick faults with every kill, and waits
// for all ends but those that need the proof that nothing was sent, which takes a
// minute longer.
func TestTransferFaultMatrix(t *testing.T) {
	t.Parallel()
	tier.Long(t, "all quick faults with every kill, a gateway that sleeps and calls that arrive late")
	x := newMatrix(t)
	x.cross(t, quick)
	x.awaitEnds(t, heardWithin, false)
	x.check(t)
}

// cross runs all rounds.
func (x *matrix) cross(t *testing.T, faults []upstreamFault) {
	t.Helper()
	began := time.Now()
	x.fresh = true
	arrive := x.lateCalls(t)
	for _, at := range points {
		x.round(t, at, faults)
	}
	for _, r := range routes {
		for _, at := range reservePoints {
			x.dieReserving(t, at, r)
		}
		x.sleepReserving(t, r)
	}
	x.lateTokens(t)
	arrive()
	var names []string
	for _, m := range faults {
		names = append(names, m.String())
	}
	t.Logf("%d cases in %v: %s", len(x.cases), time.Since(began).Round(time.Second), strings.Join(names, "; "))
}

// complete adds what a short cut leaves out: the deaths after calls were given up,
// for which nobody waits quickly. Then each fault has met each death with both
// kinds of transfers.
func (x *matrix) complete(t *testing.T, faults []upstreamFault) {
	t.Helper()
	for _, at := range points {
		if at.late = true; at.apply {
			x.round(t, at, faults)
		}
	}
	met := map[string]int{}
	for _, c := range x.cases {
		met[c.upstreamFault.String()+" / "+c.point+" / "+c.route.String()]++
	}
	for _, m := range faults {
		for _, at := range points {
			for _, r := range routes {
				if what := m.String() + " / " + at.name + " / " + r.String(); met[what] != 1 {
					t.Errorf("%s was there %d times", what, met[what])
				}
			}
		}
	}
	t.Logf("%d cases: %d faults x %d moments x %d kinds of transfers, and those at a reservation", len(x.cases), len(faults), len(points), len(routes))
}
