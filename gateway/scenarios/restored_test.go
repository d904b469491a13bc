package scenarios

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// lose goes back to a database that knows of nothing, and opens the gateway after a while.
func (r *routed) lose(openAfter time.Duration) {
	r.keeper = newMemory()
	r.restart()
	begun := r.now()
	r.Restored = func() time.Time { return begun }
	r.pass(openAfter)
}

// openedAfter is how long after a restore operators open the gateway.
const openedAfter = 10 * time.Minute

// A payment that a restore has lost is at one provider at most, wherever the order sends
// its repetition.
func TestARestoreLosesWhichProviderHasAPayment(t *testing.T) {
	t.Parallel()
	stands := func(s sdk.Status) func(*routed) {
		return func(r *routed) {
			for _, thing := range r.ups[other].things {
				thing.ends = s
			}
		}
	}
	silent := func(names ...string) func(*routed) {
		return func(r *routed) {
			for _, name := range names {
				r.ups[name].find = blind
			}
		}
	}
	tests := map[string]struct {
		then   func(*routed)
		route  []string
		after  time.Duration // since the recovery began; ten minutes unless given
		word   string
		at     string // "" for nothing
		anew   bool   // it is made at the first provider
		passed bool   // nobody is asked
	}{
		"it waits for its payer":              {then: stands(sdk.StatusPending), word: "PENDING", at: other},
		"it is paid":                          {then: stands(sdk.StatusDone), word: "PENDING", at: other},
		"it is over":                          {then: stands(sdk.StatusExpired), word: "PENDING", at: provider, anew: true},
		"it has failed":                       {then: stands(sdk.StatusFailed), word: "PENDING", at: provider, anew: true},
		"the policy has changed":              {then: stands(sdk.StatusPending), route: []string{provider}, word: "PENDING", at: other},
		"it can't tell":                       {then: silent(other), word: "PENDING", at: other},
		"it can't tell, nor does it serve":    {then: func(r *routed) { silent(other)(r); r.ups[other].available = errors.New("down") }, word: "PROVIDER_UNAVAILABLE no later"},
		"it can't tell, and is not to have":   {then: silent(other), route: []string{provider}, word: "PROVIDER_UNAVAILABLE no later"},
		"nobody can tell":                     {then: silent(provider, other), word: "PROVIDER_UNAVAILABLE no later"},
		"it has it, and the first can't tell": {then: silent(provider), word: "PENDING", at: other},
		"it is over, and the first can't tell": {
			then: func(r *routed) { stands(sdk.StatusExpired)(r); silent(provider)(r) }, word: "PROVIDER_UNAVAILABLE no later", // it would make a second one
		},
		"it is paid, and the first has another": {then: func(r *routed) {
			stands(sdk.StatusDone)(r)
			r.ups[provider].find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.StatusUpdate{Status: sdk.StatusPending} }
		}, word: "PENDING", at: other},
		"it has gone": {then: func(r *routed) { r.only(provider) }, word: "PENDING", at: provider, anew: true},
		"nobody has opened the gateway": {
			then: func(r *routed) { r.Recovering = func() error { return errors.New("restored") } }, word: "PROVIDER_UNAVAILABLE no later", passed: true,
		},
		"before it could be seen": {then: func(r *routed) { r.ups[other].things = nil }, after: 20 * time.Second, word: "PROVIDER_UNAVAILABLE no later"},
		"a week later":            {then: silent(other), after: 8 * 24 * time.Hour, word: "PENDING", at: provider, anew: true, passed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routedInMemory(t, func(r *routed) {
				r.ups[provider].available = errors.New("down")
				first := r.ask(createPath, "a")
				r.want(first, "PENDING")
				lost := r.at("a", other, movement.Pending, 1)
				name := lost.UpstreamReference()
				r.ups[provider].available = nil
				r.lose(cmp.Or(test.after, openedAfter))
				test.then(r)

				request := r.request("a")
				request.Route = test.route
				again := r.run(request)
				r.want(again, test.word)
				_, called := r.ups[provider].made()
				if (called > 0) != test.anew || r.ups[other].called(name) > 2 {
					t.Errorf("it was made %d times at the first provider, and %d at the other", called, r.ups[other].called(name))
				}
				if asked := r.ups[other].asked() + r.ups[provider].asked(); (asked == 0) != test.passed {
					t.Errorf("providers were asked %d times", asked)
				}
				if test.at == "" {
					if _, err := r.keeper.MovementByKey(r.Context(), r.keyOf("a")); !errors.Is(err, movement.ErrNotFound) {
						t.Errorf("something was reserved: %v", err)
					}
					return
				}
				if m := r.stored("a"); m.Provider != test.at || m.UpstreamReference() != name {
					t.Errorf("it is %s at %s under %s", m.State, m.Provider, m.UpstreamReference())
				}
			})
		})
	}
}

// What a provider has is not made again, and its payer pays the link that there is.
func TestWhatARestoreHasLostIsFound(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		r.ups[provider].available = errors.New("down")
		first := r.ask(createPath, "a")
		lost := r.stored("a")
		name := lost.UpstreamReference()
		r.ups[provider].available = nil
		r.lose(openedAfter)
		if again := r.ask(createPath, "a"); again.data != first.data {
			t.Errorf("answered %s, and %s before the restore", again.data, first.data)
		}
		if r.ups[other].again != 0 {
			t.Error("it was made again")
		}
		r.at("a", other, movement.Pending, 1)
		r.tell(other, r.ups[other].pay(name, "pay-1"))
		r.at("a", other, movement.Succeeded, 1)
		asked := r.ups[provider].asked() + r.ups[other].asked()
		if again := r.ask(createPath, "a"); !again.replayed || r.ups[provider].asked()+r.ups[other].asked() != asked {
			t.Errorf("a repetition is answered %s, replayed %t", again.word(), again.replayed)
		}
		// What does not fit a provider's bounds can't be there.
		r.ups[other].find = blind
		r.want(r.ask(createPath, "b", "amount", json.Number("20001")), "PENDING")
		if m := r.stored("b"); m.Provider != provider {
			t.Errorf("it is at %s", m.Provider)
		}
	})
}

// A link of a path's only provider is the same link after a restore.
func TestARestoreLosesALink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, payments, newMemory(), bubbleClock())
		first := w.create("a")
		w.want(first, "PENDING")
		w.keeper = newMemory()
		w.restart()
		begun := w.now()
		w.Restored = func() time.Time { return begun }
		w.pass(openedAfter)
		if again := w.create("a"); again.data != first.data || w.up.again != 0 {
			t.Errorf("answered %s after %s, made again %d times", again.data, first.data, w.up.again)
		}
		w.up.find = blind // and it might make a second one of the name
		w.want(w.create("b"), "PROVIDER_UNAVAILABLE no later")
	})
}

// The word of a provider about what was made at another since a restore names both.
func TestANotificationOfWhatARestoreHasLost(t *testing.T) {
	t.Parallel()
	routedInMemory(t, func(r *routed) {
		r.ups[provider].available = errors.New("down")
		r.want(r.ask(createPath, "a"), "PENDING")
		lost := r.stored("a")
		name := lost.UpstreamReference()
		r.ups[provider].available = nil
		paid := r.ups[other].pay(name, "pay-1")
		r.lose(openedAfter)
		r.Restored = nil // nobody has begun a recovery
		r.want(r.ask(createPath, "a"), "PENDING")
		r.tell(other, paid)
		m := r.stored("a")
		open, err := r.keeper.OpenExceptions(r.Context(), 10)
		if err != nil || m.Provider != provider || m.State != movement.Pending || len(open) != 1 || open[0].Provider != other ||
			!strings.Contains(open[0].Detail, "with provider "+provider+" now") {
			t.Errorf("it is %s at %s, and operators read %+v (%v)", m.State, m.Provider, open, err)
		}
	})
}
