package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func quietBreakers() *breakers {
	return newBreakers(standard, func(string, string, gobreaker.State, gobreaker.State) {})
}

// of is a merchant's own account.
func of(merchant string) sdk.Connection { return sdk.Connection{MerchantID: merchant, Version: 1} }

// ask makes a number of calls on an account, and counts those that were let through.
func ask(b *breakers, with sdk.Connection, shared bool, n int, v health) (passed int) {
	for range n {
		b.run(with, shared, func() (sdk.Result, health) {
			passed++
			return sdk.Result{Detail: "as fed"}, v
		})
	}
	return passed
}

// TestOneAccountFailsAlone: whatever one account's calls come to, and however often it
// is called, every other account is served.
func TestOneAccountFailsAlone(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]health{"dead": fault, "limited": accountFault} {
		synctest.Test(t, func(t *testing.T) {
			b := quietBreakers()
			served := 0
			for range 60 * 5 { // a minute at 5/s
				ask(b, of("bad"), false, 1, v)
				served += ask(b, of("good"), false, 1, nil)
				time.Sleep(200 * time.Millisecond) // synctest's clock
			}
			if served != 300 {
				t.Errorf("%s: another account was served %d times of 300", name, served)
			}
			if wait, whose := b.retryAfter(of("bad"), false); wait == 0 || whose != "of this account" {
				t.Errorf("%s: the account is turned away for %v by the breaker %s", name, wait, whose)
			}
			if s := b.status("live"); s.Calls != "closed" || s.AccountsOpen > 1 || s.AccountsOpened != 1 {
				t.Errorf("%s: status %+v", name, s)
			}
		})
	}
}

func TestProviderOpensWhenAccountsFailTogether(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		accounts, good int // of five failures each, and good calls of others
		v              health
		open           bool
	}{
		"five":                     {accounts: breakerAccounts, v: fault, open: true},
		"four":                     {accounts: breakerAccounts - 1, v: fault},
		"five, and most calls go":  {accounts: breakerAccounts, good: 26, v: fault},
		"five at their own limits": {accounts: breakerAccounts, v: accountFault},
	}
	for name, c := range cases {
		b := quietBreakers()
		ask(b, of("good"), false, c.good, nil)
		for i := range c.accounts {
			ask(b, of("bad "+strconv.Itoa(i)), false, 5, c.v)
		}
		if wait, _ := b.retryAfter(of("good"), false); wait > 0 != c.open {
			t.Errorf("%s: open is %v, want %v", name, wait > 0, c.open)
		}
	}
}

// TestKnownBadAccountsDoNotKeepTheProviderOpen: five dead accounts open it once, and
// not again for as long as they are called.
func TestKnownBadAccountsDoNotKeepTheProviderOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quietBreakers()
		for range 120 * 5 { // two minutes at 5/s each
			for i := range breakerAccounts {
				ask(b, of("bad "+strconv.Itoa(i)), false, 1, fault)
			}
			ask(b, of("good"), false, 1, nil)
			time.Sleep(200 * time.Millisecond) // synctest's clock
		}
		if s := b.status("live"); s.Calls != "closed" || s.Opened != 1 || s.AccountsOpened != breakerAccounts {
			t.Errorf("status %+v, want the provider's own opened once, and closed since", s)
		}
	})
}

func TestSharedAccountHasItsOwn(t *testing.T) {
	t.Parallel()
	b := quietBreakers()
	ask(b, of("platform"), true, breakerMinimum, accountFault)
	if wait, _ := b.retryAfter(of("platform"), true); wait != 0 {
		t.Error("what one merchant's request met turns all merchants away")
	}
	ask(b, of("platform"), true, breakerMinimum, fault)
	if wait, _ := b.retryAfter(of("platform"), true); wait == 0 {
		t.Error("the shared account is not turned away")
	}
	if wait, _ := b.retryAfter(of("own"), false); wait != 0 {
		t.Error("a merchant's own account is turned away for it")
	}
	if s := b.status("live"); s.Calls != "open" {
		t.Errorf("status %+v, want the provider's calls open", s)
	}
}

func TestOtherCredentialsBeginAnew(t *testing.T) {
	t.Parallel()
	b := quietBreakers()
	ask(b, of("m"), false, breakerMinimumOwn, fault)
	mended := of("m")
	mended.Version++
	if n := ask(b, mended, false, 1, nil); n != 1 {
		t.Error("the mended connection is turned away")
	}
	if n := ask(b, mended, false, breakerMinimum, fault); n != breakerMinimumOwn {
		t.Errorf("%d calls passed before it opened again, want %d", n, breakerMinimumOwn)
	}
	if n := ask(b, mended, false, 1, nil); n != 0 {
		t.Error("it did not open again")
	}
}

func TestAccountBreakersAreMadeLateAndDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quietBreakers()
		ask(b, of("good"), false, 100, nil)
		if n := len(b.known()); n != 0 {
			t.Errorf("%d breakers without a failure", n)
		}
		ask(b, of("bad"), false, 1, fault)
		time.Sleep(breakerIdle) // synctest's clock
		if n := len(b.known()); n != 1 {
			t.Errorf("%d breakers after a failure", n)
		}
		time.Sleep(breakerIdle + time.Second)
		if n := len(b.known()); n != 0 {
			t.Errorf("%d breakers after they were idle", n)
		}
		for i := range breakersMost + 10 {
			ask(b, of(strconv.Itoa(i)), false, 1, accountFault)
			time.Sleep(time.Millisecond)
		}
		if n := len(b.known()); n != breakersMost || b.known()["0"] != nil || b.known()[strconv.Itoa(breakersMost+9)] == nil {
			t.Errorf("%d breakers, want the latest %d", n, breakersMost)
		}
	})
}

func TestOutagesNameTheAccount(t *testing.T) {
	t.Parallel()
	p := &provider{name: "one", breakers: map[string]*breakers{"live": quietBreakers()}}
	h := &Host{}
	h.roster.Store(&roster{order: []*provider{p}})
	ask(p.breakers["live"], of("m1"), false, breakerMinimum, fault)
	if got := h.Outages(); len(got) != 1 || got[0].Provider != "one" || got[0].Mode != "live" || got[0].Account != "m1" ||
		got[0].Why != "as fed" || got[0].Since.IsZero() {
		t.Errorf("outages %+v", got)
	}
	for i := range breakerAccounts {
		ask(p.breakers["live"], of("other "+strconv.Itoa(i)), false, 5, fault)
	}
	if got := h.Outages(); !slices.ContainsFunc(got, func(o Outage) bool { return o.Account == "" }) {
		t.Errorf("outages %+v, want the provider's own among them", got)
	}
}

// TestAccountsThatAreKnownToFailProveNothing: five dead accounts, which are tried again
// and again, are no sign that the provider fails, when the calls under way of one more
// all do.
func TestAccountsThatAreKnownToFailProveNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quietBreakers()
		dead := []string{"1", "2", "3", "4", "5"}
		for _, one := range dead {
			ask(b, of(one), false, breakerMinimumOwn, fault)
			ask(b, of("good"), false, 100, nil)
		}
		for range 60 { // probes, and lookups, which nothing stops
			for _, one := range dead {
				ask(b, of(one), false, 1, fault)
				b.looked(of(one), false, fault, "dead")
			}
			time.Sleep(time.Second) // synctest's clock
		}
		ask(b, of("good"), false, 20, nil)
		var under []func(health, string)
		for range 128 {
			settle, err := b.admit(of("hangs"), false)
			if err != nil {
				t.Fatal(err)
			}
			under = append(under, settle)
		}
		for _, settle := range under {
			settle(fault, "hung")
		}
		if n := ask(b, of("good"), false, 10, nil); n != 10 {
			t.Errorf("another account was served %d times of 10; %+v", n, b.status("live"))
		}
	})
}

// TestOutageEndsWithItsCalls: a breaker that nobody's calls go by for long is no outage,
// however often the account is polled. Once it is called again it is.
func TestOutageEndsWithItsCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quietBreakers()
		h := &Host{}
		h.roster.Store(&roster{order: []*provider{{name: "one", breakers: map[string]*breakers{"live": b}}}})
		fail := func() {
			for i := range breakerAccounts {
				ask(b, of(strconv.Itoa(i)), false, breakerMinimumOwn, fault)
			}
		}
		fail()
		if n := len(h.Outages()); n != breakerAccounts+1 {
			t.Errorf("%d outages, want the provider's own and all accounts'", n)
		}
		for range 11 {
			b.looked(of("0"), false, fault, "dead")
			time.Sleep(time.Minute) // synctest's clock
		}
		if got := h.Outages(); len(got) != 0 {
			t.Errorf("outages that nobody has called for eleven minutes: %+v", got)
		}
		fail()
		if got := h.Outages(); !slices.ContainsFunc(got, func(o Outage) bool { return o.Account == "0" }) {
			t.Errorf("outages after more calls: %+v", got)
		}
	})
}

// TestOldCredentialsAreNotTheNewOnes: what comes late of calls with replaced credentials
// is not held against those that replaced them.
func TestOldCredentialsAreNotTheNewOnes(t *testing.T) {
	t.Parallel()
	b := quietBreakers()
	mended := of("m")
	mended.Version++
	ask(b, mended, false, 1, fault)
	ask(b, of("m"), false, 2*breakerMinimumOwn, accountFault)
	b.looked(of("m"), false, accountFault, "late")
	if n := ask(b, mended, false, 1, nil); n != 1 {
		t.Error("the mended connection is turned away")
	}
}

func TestHealthOf(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	broken := errors.New("transport is closing")
	cases := map[string]struct {
		caller context.Context
		result sdk.Result
		err    error
		took   time.Duration
		want   health
	}{
		"done":                      {result: sdk.Result{Outcome: sdk.Done}},
		"pending":                   {result: sdk.Result{Outcome: sdk.Pending}},
		"declined":                  {result: sdk.Refuse(sdk.RefuseOther, "no")},
		"declined by the upstream":  {result: sdk.Result{Outcome: sdk.Refused, Blame: sdk.BlameUpstream}},
		"blamed":                    {result: sdk.DontKnow(sdk.BlameUpstream, ""), want: fault},
		"not sent, blamed":          {result: sdk.DidNotSend(sdk.BlameUpstream, ""), want: fault},
		"not sent":                  {result: sdk.DidNotSend(sdk.BlameNone, ""), want: neutral},
		"our account":               {result: sdk.DidNotSend(sdk.BlameAccount, ""), want: accountFault},
		"our account's limit":       {result: sdk.DidNotSend(sdk.BlameLimit, ""), want: accountFault},
		"a panic":                   {result: sdk.DontKnow(sdk.BlameNone, ""), want: neutral},
		"transport":                 {err: broken, want: fault},
		"the plugin ended":          {err: fmt.Errorf("%w: connection reset", errEnded), took: limit, want: neutral},
		"the plugin says no":        {err: status.Error(codes.Unavailable, "the upstream is down"), want: fault},
		"done, slowly":              {result: sdk.Result{Outcome: sdk.Done}, took: limit/2 + 1, want: fault},
		"done, nearly slowly":       {result: sdk.Result{Outcome: sdk.Done}, took: limit / 2},
		"hung up":                   {caller: cancelled, err: broken, took: limit, want: neutral},
		"hung up, blamed":           {caller: cancelled, result: sdk.DontKnow(sdk.BlameUpstream, ""), want: neutral},
		"caller's own short limit":  {caller: expired, err: broken, want: neutral},
		"caller's limit after long": {caller: expired, err: broken, took: limit, want: fault},
	}
	for name, c := range cases {
		if c.caller == nil {
			c.caller = t.Context()
		}
		if got := healthOf(c.caller, c.result, c.err, c.took, limit); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestHealthOfLookup(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		update sdk.StatusUpdate
		err    error
		took   time.Duration
		want   health
	}{
		"found":               {update: sdk.StatusUpdate{Status: sdk.StatusDone}},
		"not found":           {update: sdk.StatusUpdate{Status: sdk.StatusNotFound}},
		"blamed":              {update: sdk.NoStatus(sdk.BlameUpstream, ""), want: fault},
		"no status":           {update: sdk.NoStatus(sdk.BlameNone, ""), want: neutral},
		"our account":         {update: sdk.NoStatus(sdk.BlameAccount, ""), want: accountFault},
		"our account's limit": {update: sdk.NoStatus(sdk.BlameLimit, ""), want: accountFault},
		"transport":           {err: errors.New("x"), want: fault},
		"slow":                {update: sdk.StatusUpdate{Status: sdk.StatusDone}, took: 6 * time.Second, want: fault},
	}
	for name, c := range cases {
		if got := healthOfLookup(t.Context(), c.update, c.err, c.took, 10*time.Second); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// feed gives a breaker a number of calls of one health, and counts those
// that it let through.
func feed(b *breaker, n int, v health) (passed int) {
	for range n {
		if done, err := b.calls.Allow(); err == nil {
			passed++
			done(v)
		}
	}
	return passed
}

func quietBreaker() *breaker {
	return newBreaker(standard, breakerMinimum, nil, func(string, gobreaker.State, gobreaker.State) {})
}

func TestBreakerThreshold(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		good, neutral, bad int
		open               bool
	}{
		"few":                             {bad: breakerMinimum - 1},
		"enough":                          {bad: breakerMinimum, open: true},
		"half":                            {good: 10, bad: 10, open: true},
		"less than half":                  {good: 11, bad: 10},
		"declines":                        {good: 1000},
		"hang-ups":                        {neutral: 1000},
		"faults among them":               {neutral: 1000, bad: breakerMinimum, open: true},
		"neutral is not half of anything": {neutral: 10, good: 5, bad: 14},
	}
	for name, c := range cases {
		b := quietBreaker()
		feed(b, c.neutral, neutral)
		feed(b, c.good, nil)
		feed(b, c.bad, fault)
		if open := b.retryAfter() > 0; open != c.open {
			t.Errorf("%s: open is %v, want %v", name, open, c.open)
		}
	}
}

func TestBreakerForgetsAndRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var story []string
		b := newBreaker(standard, breakerMinimum, nil, func(circuit string, from, to gobreaker.State) {
			story = append(story, circuit+" "+from.String()+" "+to.String())
		})
		feed(b, breakerMinimum-1, fault)
		time.Sleep(standard.window * 11 / 10) // synctest's clock
		feed(b, 1, fault)
		if b.retryAfter() != 0 {
			t.Fatal("open through faults that are older than the window")
		}
		feed(b, breakerMinimum, fault)
		if got := b.retryAfter(); got != standard.open {
			t.Fatalf("retry after %v, want %v", got, standard.open)
		}
		if n := feed(b, 5, nil); n != 0 {
			t.Errorf("%d calls passed an open breaker", n)
		}
		time.Sleep(standard.open + time.Millisecond)
		if b.retryAfter() != 0 {
			t.Error("not half-open")
		}
		feed(b, 1, fault)
		if b.retryAfter() == 0 {
			t.Error("a probe that failed did not open it again")
		}
		time.Sleep(standard.open + time.Millisecond)
		if n := feed(b, 10, nil); n != 10 {
			t.Errorf("%d of 10 calls passed after good probes", n)
		}
		want := []string{"calls closed open", "calls open half-open", "calls half-open open", "calls open half-open", "calls half-open closed"}
		if len(story) != len(want) {
			t.Fatalf("story %v, want %v", story, want)
		}
		for i := range want {
			if story[i] != want[i] {
				t.Errorf("story %v, want %v", story, want)
			}
		}
	})
}

func TestHalfOpenLetsOnlyProbesThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quietBreaker()
		feed(b, breakerMinimum, fault)
		time.Sleep(standard.open + time.Millisecond)
		var probes []func(error)
		for range breakerProbes {
			done, err := b.calls.Allow()
			if err != nil {
				t.Fatal(err)
			}
			probes = append(probes, done)
		}
		if n := feed(b, 1, nil); n != 0 {
			t.Error("a call passed beside the probes")
		}
		if got := b.retryAfter(); got != breakerProbeGap {
			t.Errorf("retry after %v, want %v", got, breakerProbeGap)
		}
		for _, done := range probes {
			done(nil)
		}
		if n := feed(b, 1, nil); n != 1 {
			t.Error("still not closed")
		}
	})
}

func TestLookupsAreOnlyWatched(t *testing.T) {
	t.Parallel()
	b := quietBreaker()
	for range breakerMinimum {
		record(b.lookups, fault)
	}
	if b.lookups.State() != gobreaker.StateOpen || b.calls.State() != gobreaker.StateClosed {
		t.Errorf("lookups %v, calls %v", b.lookups.State(), b.calls.State())
	}
	record(b.lookups, nil) // must not panic or block while it is open
}
