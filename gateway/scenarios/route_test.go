package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const other = "other"

// bothOffer is the catalog of two providers of payments, the second of which takes no
// more than 20,000, and lets no two payments of one name be paid.
var bothOffer = sync.OnceValue(func() *catalog.Catalog { return catalogOfBoth(provider, other) })

func catalogOfBoth(names ...string) *catalog.Catalog {
	document := signed(ownManifest(provider))
	var manifests []*manifest.Manifest
	for _, name := range names {
		text := strings.Replace(string(document), `"name": "payments"`, `"name": "`+name+`"`, 1)
		if name == other {
			text = strings.Replace(text, `"operations": [`,
				`"operations": [{"path": "/payments/create", "narrow": {"amount": {"maximum": 20000}}},`, 1)
			text = strings.Replace(text, `"references": {`, `"references": {"unique": true, `, 1)
		}
		m, err := manifest.Parse([]byte(text))
		if err != nil {
			panic(err)
		}
		manifests = append(manifests, m)
	}
	snapshot, err := catalog.Build(manifests)
	if err != nil {
		panic(err)
	}
	return catalog.New(snapshot)
}

// pair are two providers, each with an upstream of its own.
type pair map[string]*upstream

func (p pair) Quote(ctx context.Context, of host.Use, q sdk.Quote, d time.Duration) sdk.Quoted {
	return p[of.Provider].Quote(ctx, of, q, d)
}

func (p pair) Call(ctx context.Context, of host.Use, c sdk.Call, d time.Duration) sdk.Result {
	return p[of.Provider].Call(ctx, of, c, d)
}

func (p pair) Lookup(ctx context.Context, of host.Use, l sdk.Lookup, d time.Duration) sdk.StatusUpdate {
	return p[of.Provider].Lookup(ctx, of, l, d)
}

func (p pair) Notify(ctx context.Context, name string, n sdk.Notification, d time.Duration) (sdk.Acknowledgement, error) {
	return p[name].Notify(ctx, name, n, d)
}

func (p pair) Available(of host.Use, with sdk.Connection) error {
	return p[of.Provider].Available(of, with)
}

// routed is a world of two providers, both connected.
type routed struct {
	*world
	ups pair
}

func newRouted(w *world) *routed {
	r := &routed{world: w, ups: pair{provider: w.up, other: newUpstream(payments, w.now)}}
	r.catalog = bothOffer()
	r.reconnected(append(w.account.Connections(), newAccount(w.account.ID(), other, "{}", 1).Connections()...))
	r.restart()
	return r
}

// restart is a new process on the same database.
func (r *routed) restart() {
	r.world.restart()
	r.ups[other].set(func() { r.ups[other].way = way{} })
	r.made.Providers, r.made.Catalog = r.ups, r.catalog
	r.Engine = New(r.made)
}

func (r *routed) ask(path, reference string, pairs ...any) said {
	if path == createPath {
		return r.create(reference, pairs...)
	}
	return r.run(r.asks(path, append([]any{"external_id", reference}, pairs...)...))
}

// at checks where a movement is, and what each provider has of it.
func (r *routed) at(reference, want string, state movement.State, attempt int) movement.Movement {
	r.Helper()
	m := r.stored(reference)
	if m.Provider != want || m.State != state || m.Attempt != attempt {
		r.Errorf("%s is %s at %s in attempt %d, want %s at %s in attempt %d", reference, m.State, m.Provider, m.Attempt, state, want, attempt)
	}
	for name, up := range r.ups {
		if things, calls := up.made(); calls > 1 || name != want && things > 0 {
			r.Errorf("%s has %d, called up to %d times", name, things, calls)
		}
	}
	return m
}

func routedInMemory(t *testing.T, test func(*routed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newRouted(newWorld(t, payments, newMemory(), bubbleClock()))) })
}

var notSent = wayNamed("not sent")

// The table of who gets a creation: by what the first provider does, what is answered,
// and where the movement is then.
func TestRouting(t *testing.T) {
	t.Parallel()
	type row struct {
		first, second way
		word          string
		at            string
		state         movement.State
		attempt       int
	}
	rows := map[string]row{
		"the first works":           {first: way{}, second: way{}, word: "PENDING", at: provider, state: movement.Pending, attempt: 1},
		"nothing sent to both":      {first: notSent, second: notSent, word: "PROVIDER_UNAVAILABLE no later", at: other, state: movement.NotSubmitted, attempt: 2},
		"refused by the second":     {first: notSent, second: wayNamed("refused"), word: "DESTINATION_INVALID refused never", at: other, state: movement.Failed, attempt: 2},
		"unknown of the second":     {first: notSent, second: wayNamed("unknown, made"), word: "PENDING", at: other, state: movement.Pending, attempt: 2},
		"nothing sent to the first": {first: notSent, second: way{}, word: "PENDING", at: other, state: movement.Pending, attempt: 2},
	}
	for _, o := range ways[:payersWays] {
		if !strings.HasPrefix(o.name, notSent.name) {
			rows["the first: "+o.name] = row{first: o, second: way{}, at: provider, attempt: 1}
		}
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routedInMemory(t, func(r *routed) {
				r.ups[provider].way, r.ups[other].way = row.first, row.second
				got := r.ask(createPath, "a")
				if row.word == "" { // whatever it is, it stays with the first
					m := r.stored("a")
					r.at("a", provider, m.State, 1)
					if _, calls := r.ups[other].made(); calls != 0 {
						t.Errorf("the second was called %d times", calls)
					}
					return
				}
				r.want(got, row.word)
				r.at("a", row.at, row.state, row.attempt)
			})
		})
	}
}

func TestProvidersArePassedOver(t *testing.T) {
	t.Parallel()
	down := func(r *routed, name string) { r.ups[name].available = errors.New("its breaker is open") }
	tests := map[string]struct {
		given  func(*routed)
		amount string
		word   string
		at     string
	}{
		"unavailable":                {func(r *routed) { down(r, provider) }, "10000", "PENDING", other},
		"unavailable, out of bounds": {func(r *routed) { down(r, provider) }, "20001", "PROVIDER_UNAVAILABLE no later", ""},
		"both":                       {func(r *routed) { down(r, provider); down(r, other) }, "10000", "PROVIDER_UNAVAILABLE no later", ""},
		"the second alone":           {func(r *routed) { down(r, other) }, "20001", "PENDING", provider},
		"not connected":              {func(r *routed) { r.only(other) }, "10000", "PENDING", other},
		"not connected, bounds":      {func(r *routed) { r.only(other) }, "20001", "INVALID_REQUEST no after_change", ""},
		"not connected, down":        {func(r *routed) { r.only(other); down(r, other) }, "10000", notSentLater, ""},
		"none connected":             {func(r *routed) { r.only() }, "10000", notConnected, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routedInMemory(t, func(r *routed) {
				test.given(r)
				r.want(r.ask(createPath, "a", "amount", json.Number(test.amount)), test.word)
				if test.at != "" {
					r.at("a", test.at, movement.Pending, 1)
				} else if _, err := r.keeper.MovementByKey(r.Context(), r.keyOf("a")); !errors.Is(err, movement.ErrNotFound) {
					t.Errorf("something was reserved: %v", err)
				}
			})
		})
	}
}

// A provider that an approval alone has brought takes nothing beside one that was there.
func TestNewProviderWaitsForItsRoute(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		r.catalog = catalogOfBoth(other, provider)
		wait := func(who tenants.Provider, want bool) {
			t.Helper()
			if got := r.catalog.Current().WaitsForRoute(string(who)); got != want {
				t.Errorf("%s waits for a route: %t", who, got)
			}
		}
		r.catalog.Current().MustBeNamed(other)
		wait(other, true)
		wait(provider, false)
		r.restart()
		r.want(r.ask(createPath, "a"), "PENDING")
		r.at("a", provider, movement.Pending, 1)
		r.ups[provider].available = errors.New("down")
		r.want(r.ask(createPath, "b"), "PROVIDER_UNAVAILABLE no later")
		r.catalog.Current().MustBeNamed(provider)
		wait(other, false) // the first of newcomers alone
		wait(provider, true)
		r.want(r.ask(createPath, "b"), "PENDING") // by then the policy has named the path
		if m := r.stored("b"); m.Provider != other {
			t.Errorf("it is at %s, which was not the first", m.Provider)
		}
		// The first is down, and the second takes nothing until the route names it.
		r.ups[provider].available, r.ups[other].available = nil, errors.New("down")
		r.want(r.ask(createPath, "c"), "PROVIDER_UNAVAILABLE no later")
		request := r.request("c")
		request.Route = []string{other, provider}
		r.want(r.run(request), "PENDING")
		if m := r.stored("c"); m.Provider != provider {
			t.Errorf("it is at %s", m.Provider)
		}
	})
}

// A merchant who is connected to a newcomer alone has nobody until the route names it, and
// operators are told so.
func TestMerchantWithOnlyANewProviderWaits(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		r.catalog = catalogOfBoth(other, provider)
		r.catalog.Current().MustBeNamed(other)
		r.restart()
		r.only(other)
		for range 2 {
			if a := r.ask(createPath, "a"); a.err == nil || !strings.Contains(a.err.Error(), "takes nothing yet") {
				t.Errorf("it is answered %+v", a)
			}
		}
		r.wantListed(movement.ReasonAccount) // once
		request := r.request("a")
		request.Route = []string{other}
		r.want(r.run(request), "PENDING")
		r.at("a", other, movement.Pending, 1)
	})
}

// The policy's order goes before the gateway's, and leaves out whom it does not name.
func TestThePolicyOrdersProviders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		route []string
		word  string
		at    string
	}{
		"turned round":     {[]string{other, provider}, "PENDING", other},
		"one alone":        {[]string{other}, "PENDING", other},
		"one who has gone": {[]string{"third", other, provider}, "PENDING", other},
		"nothing said":     {nil, "PENDING", provider},
		"nobody":           {[]string{}, "PROVIDER_UNAVAILABLE no later", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routedInMemory(t, func(r *routed) {
				request := r.request("a")
				request.Route = test.route
				r.want(r.run(request), test.word)
				if test.at != "" {
					r.at("a", test.at, movement.Pending, 1)
				}
			})
		})
	}
}

// only leaves the connections of some providers.
func (r *routed) only(providers ...tenants.Provider) {
	r.reconnected(slices.DeleteFunc(r.account.Connections(), func(c tenants.Connection) bool { return !slices.Contains(providers, c.Provider) }))
}

func TestAMovementStaysWithItsProvider(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		r.ups[provider].available = errors.New("down")
		r.want(r.ask(createPath, "a"), "PENDING")
		m := r.at("a", other, movement.Pending, 1)
		r.ups[provider].available = nil
		// The order says the first now.
		if again := r.ask(createPath, "a"); again.word() != "PENDING" || !again.replayed {
			t.Errorf("a repetition is answered %s, replayed %t", again.word(), again.replayed)
		}
		if differs := r.ask(createPath, "a", "amount", json.Number("30000")); differs.word() != "DUPLICATE_REFERENCE no never" {
			t.Errorf("another request is answered %s", differs.word())
		}
		r.pass(time.Minute)
		r.want(r.ask(statusPath, "a"), "PENDING")
		if r.ups[provider].asked() != 0 || r.ups[other].asked() != 1 {
			t.Errorf("asked were %d and %d", r.ups[provider].asked(), r.ups[other].asked())
		}
		r.pass(time.Minute)
		if err := r.Resolve(r.Context(), r.stored("a")); err != nil || r.ups[other].asked() != 2 {
			t.Errorf("polled %d times: %v", r.ups[other].asked(), err)
		}
		r.want(r.ask(cancelPath, "a"), "EXPIRED")
		if r.ups[provider].cancels != 0 || r.ups[other].cancels != 1 {
			t.Errorf("cancelled %d and %d times", r.ups[provider].cancels, r.ups[other].cancels)
		}
		r.at("a", other, movement.Expired, m.Attempt)
	})
}

func TestRemovedProviderIsReplacedByNoOther(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		r.ups[provider].available = errors.New("down")
		r.want(r.ask(createPath, "a"), "PENDING")
		r.catalog = catalogOfBoth(provider, "third")
		r.restart()
		r.pass(time.Minute)
		r.want(r.ask(statusPath, "a"), "PENDING")
		r.want(r.ask(cancelPath, "a"), "PROVIDER_UNAVAILABLE no later")
		r.want(r.ask(createPath, "a"), "PENDING")
		if err := r.Resolve(r.Context(), r.stored("a")); err == nil {
			t.Error("nobody misses the provider")
		}
		if things, _ := r.ups[provider].made(); things != 0 || r.ups[provider].asked() != 0 || r.ups[provider].cancels != 0 {
			t.Error("another provider was asked")
		}
		// Nobody can be asked, so operators decide once it is overdue.
		r.pass(26 * time.Hour)
		if err := r.Resolve(r.Context(), r.stored("a")); err == nil {
			t.Error("nobody misses the provider")
		}
		for _, operator := range []string{"ayu", "budi"} {
			decision := Decision{Movement: r.stored("a").ID, Operator: operator, Outcome: movement.OverrideFailed, Reason: "the contract has ended"}
			if _, err := r.Decide(r.Context(), decision); err != nil {
				t.Error(err)
			}
		}
		r.at("a", other, movement.Failed, 1)
		r.want(r.ask(statusPath, "a"), "FAILED")
	})
}

// The last look for late money, too, has an end where its provider has gone.
func TestLateMoneyPollEndsWithoutItsProvider(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		r.ups[provider].available = errors.New("down")
		r.want(r.ask(createPath, "a"), "PENDING")
		lost := r.stored("a")
		r.ups[other].set(func() { r.ups[other].things[" "+lost.UpstreamReference()].ends = sdk.StatusExpired })
		r.pass(time.Hour)
		r.want(r.ask(statusPath, "a"), "EXPIRED")
		r.catalog = catalogOfBoth(provider, "third")
		r.restart()
		for range 60 {
			m := r.stored("a")
			if m.DueAt.IsZero() {
				return
			}
			r.pass(max(m.DueAt.Sub(r.now()), time.Second))
			if err := r.Resolve(r.Context(), m); err == nil {
				t.Error("nobody misses the provider")
			}
		}
		t.Errorf("it is still due, at %v", r.stored("a").DueAt)
	})
}

// A provider that is left alone with a path refuses by its own bounds what is new, and
// answers what another has made.
func TestARepetitionOfWhatTheOnlyProviderRefuses(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		more := json.Number("20001")
		first := r.ask(createPath, "a", "amount", more)
		r.want(first, "PENDING")
		r.catalog = catalogOfBoth(other)
		r.restart()
		op := operationIn(r.catalog, createPath)
		if wrong := op.Check(r.request("a", "amount", more).Body); wrong != nil {
			t.Errorf("it is refused before its reference is looked up: %v", wrong)
		}
		if again := r.ask(createPath, "a", "amount", more); again.data != first.data || !again.replayed {
			t.Errorf("a repetition is answered %s, replayed %t", again.word(), again.replayed)
		}
		r.want(r.ask(createPath, "b", "amount", more), "INVALID_REQUEST no after_change")
		r.want(r.ask(createPath, "b"), "PENDING")
		if m := r.stored("b"); m.Provider != other {
			t.Errorf("it is at %s", m.Provider)
		}
	})
}

// A process may end wherever it is: what is there then is at one provider at most.
func TestAProcessEndsWhileItRoutes(t *testing.T) {
	t.Parallel()
	moments := map[string]func(*routed){
		"before the first call": func(r *routed) { r.ups[provider].before = func(sdk.Call) { panic(crash{}) } },
		"after the first call":  func(r *routed) { r.ups[provider].after = func(sdk.Call) { panic(crash{}) } },
		"before the second":     func(r *routed) { r.ups[other].before = func(sdk.Call) { panic(crash{}) } },
		"after the second":      func(r *routed) { r.ups[other].after = func(sdk.Call) { panic(crash{}) } },
	}
	for name, crashes := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routedInMemory(t, func(r *routed) {
				r.ups[provider].way = notSent
				crashes(r)
				if got := r.ask(createPath, "a"); !got.crashed {
					t.Fatalf("it is answered %s", got.word())
				}
				r.ups[other].set(func() { r.ups[other].before, r.ups[other].after = nil, nil })
				r.restart()
				r.ups[provider].available = errors.New("down") // the order is another now
				for range 20 {
					r.pass(20 * time.Second)
					if m := r.stored("a"); m.State.Open() {
						_ = r.Resolve(r.Context(), m)
					}
				}
				r.ask(createPath, "a")
				m := r.stored("a")
				r.at("a", m.Provider, m.State, m.Attempt)
				if things, _ := r.ups[other].made(); m.State == movement.Pending && things != 1 {
					t.Errorf("%d are there", things)
				}
			})
		})
	}
}

// What the first provider says of a movement that went on to the second changes nothing
// of it, and operators read it.
func TestANotificationOfTheFirstProvider(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		r.ups[provider].way = notSent
		r.want(r.ask(createPath, "a"), "PENDING")
		m := r.at("a", other, movement.Pending, 2)
		paid := sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: sdk.StatusDone, Amount: m.Amount, Currency: "IDR", EventID: "pay-1"}
		r.tell(provider, paid)
		r.at("a", other, movement.Pending, 2)
		open, err := r.keeper.OpenExceptions(r.Context(), 10)
		if err != nil || len(open) != 1 || open[0].Provider != provider || !strings.Contains(open[0].Detail, "with provider other now") {
			t.Errorf("operators read %+v (%v)", open, err)
		}
		// The same told twice is one exception, and another status of the same event its own.
		pending := paid
		pending.Status = sdk.StatusPending
		r.tell(provider, pending)
		r.tell(provider, paid)
		if open, err = r.keeper.OpenExceptions(r.Context(), 10); err != nil || len(open) != 2 {
			t.Errorf("operators read %+v (%v)", open, err)
		}
		r.tell(other, paid)
		r.at("a", other, movement.Succeeded, 2)
	})
}

// tell is a notification on a provider's connection.
func (r *routed) tell(name tenants.Provider, u sdk.StatusUpdate) {
	r.Helper()
	r.ups[string(name)].set(func() { r.ups[string(name)].ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{u}} })
	if err := r.notified(name); err != nil {
		r.Error(err)
	}
}

func (r *routed) notified(name tenants.Provider) error {
	c, _ := r.account.Connection(tenants.Live, name)
	_, err := r.notifyAt(r.Context(), name, c.NotifyToken)
	return err
}

// A notification is under way while the movement that it is about goes on to the other
// provider: it is told again, and then it is another provider's.
func TestANotificationMeetsAnotherProvider(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		parked, goOn, told := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		first := r.ups[provider]
		first.way = notSent
		first.before = func(call sdk.Call) {
			var once sync.Once
			r.faults.move = func(do func() (bool, error)) (bool, error) {
				mine := false
				once.Do(func() { mine = true })
				if mine {
					close(parked)
					<-goOn
				}
				return do()
			}
			first.set(func() {
				first.ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{{
					Reference: call.Reference, Status: sdk.StatusDone, Amount: call.Amount, Currency: "IDR", EventID: "pay-1",
				}}}
			})
			go func() { told <- r.notified(provider) }()
			<-parked
		}
		r.want(r.ask(createPath, "a"), "PENDING")
		close(goOn)
		if err := <-told; err == nil {
			t.Error("the first provider's word was taken")
		}
		r.at("a", other, movement.Pending, 2)
		if err := r.notified(provider); err != nil {
			t.Error(err)
		}
		m := r.at("a", other, movement.Pending, 2)
		if open, err := r.keeper.OpenExceptions(r.Context(), 10); err != nil || len(open) != 1 || open[0].Subject != m.UpstreamReference() {
			t.Errorf("operators read %+v (%v)", open, err)
		}
	})
}

func TestRoutingInTheDatabase(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	r := newRouted(newWorld(t, payments, s, handClock()))
	r.ups[provider].way = notSent
	r.want(r.ask(createPath, "a"), "PENDING")
	m := r.at("a", other, movement.Pending, 2)
	notes, err := s.NotesOf(t.Context(), m.ID)
	if err != nil || len(notes) != 2 || notes[1].Event != movement.NoteRouted || !strings.Contains(notes[1].Detail, "nothing was sent to "+provider) {
		t.Errorf("kept are %+v (%v)", notes, err)
	}
	if again := r.ask(createPath, "a"); !again.replayed {
		t.Errorf("a repetition is answered %s", again.word())
	}
	r.pass(time.Minute)
	r.want(r.ask(cancelPath, "a"), "EXPIRED")
	r.at("a", other, movement.Expired, 2)
}

// A replica that knows one provider alone still keeps to whom the policy allows.
func TestThePolicyLeavesOutTheOnlyProvider(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		for i, route := range [][]string{{"another"}, {}} {
			request := w.request("a" + strconv.Itoa(i))
			request.Route = route
			w.want(w.run(request), "PROVIDER_UNAVAILABLE no later")
		}
		request := w.request("b")
		request.Route = []string{"another", provider}
		w.want(w.run(request), "PENDING")
	})
}
