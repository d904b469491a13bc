package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// upstream counts what is bought of it, by reference. What is bought while it is closed
// waits.
type upstream struct {
	url    string
	port   uint16
	mu     sync.Mutex
	bought map[string]int
	held   atomic.Pointer[chan struct{}]
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{bought: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.bought[strings.TrimPrefix(r.URL.Path, "/")]++
		u.mu.Unlock()
		if held := u.held.Load(); held != nil {
			<-*held
		}
	}))
	t.Cleanup(server.Close)
	u.url = server.URL
	parsed, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(parsed.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	u.port = uint16(port)
	return u
}

func (u *upstream) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.bought)
}

// version is a spec that differs from others of the provider by its number.
func (u *upstream) version(number int) Spec {
	spec := testSpec("one", envNumber+"="+strconv.Itoa(number))
	spec.Ports = []uint16{u.port}
	return spec
}

func (u *upstream) buy(reference string) sdk.Call {
	call := callTo("")
	call.Reference = reference
	call.Body, _ = json.Marshal(order{Do: "buy", Text: u.url}) //nolint:errchkjson // two texts
	return call
}

func gonePID(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestReplaceUnderLoad: ten versions in a row take each other's place while calls,
// lookups, notifications and verifications go on. None of them fails, nothing is bought
// twice, and what a version adds is called as soon as it is offered.
func TestReplaceUnderLoad(t *testing.T) {
	t.Parallel()
	const versions = 10
	u := newUpstream(t)
	h := startHost(t, calm, Config{Specs: []Spec{u.version(0)}})
	var newest atomic.Int64
	if err := h.Offer(func(all []*manifest.Manifest) (func(), error) {
		added := slices.DeleteFunc(slices.Clone(all[0].Operations), func(op manifest.Operation) bool { return !strings.HasPrefix(op.Path, "/test/added") })
		return func() { newest.Store(int64(len(added))) }, nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	var bought, others atomic.Int64
	var load sync.WaitGroup
	repeat := func(do func(n int) error) {
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := do(n); err != nil {
					t.Error(err)
					return
				}
				others.Add(1)
			}
		})
	}
	for worker := range 4 {
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				reference := fmt.Sprintf("%d-%d", worker, n)
				if r := h.Call(t.Context(), ofOne, u.buy(reference), patience); r.Outcome != sdk.Pending || r.ProviderReference != "p-"+reference {
					t.Errorf("call %s: %+v", reference, r)
					return
				}
				bought.Add(1)
			}
		})
	}
	with := callTo("accept").Connection
	repeat(func(int) error {
		call := callTo("accept")
		call.Operation = addedPath(int(max(1, newest.Load())))
		if newest.Load() == 0 {
			call.Operation = "/test/pay"
		}
		if r := h.Call(t.Context(), ofOne, call, patience); r.Outcome != sdk.Pending {
			return fmt.Errorf("call of %s: %+v", call.Operation, r)
		}
		return nil
	})
	repeat(func(n int) error {
		l := sdk.Lookup{Operation: "/test/pay", Reference: strconv.Itoa(n), Connection: with}
		if f := h.Lookup(t.Context(), ofOne, l, patience); f.Status != sdk.StatusPending || f.Reference != l.Reference {
			return fmt.Errorf("lookup: %+v", f)
		}
		return nil
	})
	repeat(func(int) error {
		_, err := h.Notify(t.Context(), "one", sdk.Notification{Connection: with, Body: []byte("hello")}, patience)
		return err
	})
	repeat(func(int) error {
		if r := h.Verify(t.Context(), "one", with, patience); r.Outcome != sdk.Done {
			return fmt.Errorf("verify: %+v", r)
		}
		return nil
	})
	pids := []int{h.Status()[0].PID}
	for n := range versions {
		before := u.count()
		if err := h.Put(t.Context(), u.version(n+1), nil); err != nil {
			t.Fatal(err)
		}
		s := h.Status()[0]
		if !s.Running || s.Version != fmt.Sprintf("1.2.%d", 4+n) || s.PID == pids[len(pids)-1] {
			t.Errorf("after replacement %d: %+v", n+1, s)
		}
		pids = append(pids, s.PID)
		until(t, "the new version is called", func() bool { return u.count() > before+20 || t.Failed() })
	}
	enough()
	load.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	for reference, times := range u.bought {
		if times != 1 {
			t.Errorf("%s was bought %d times", reference, times)
		}
	}
	if int64(len(u.bought)) != bought.Load() {
		t.Errorf("%d were bought by %d calls", len(u.bought), bought.Load())
	}
	for _, pid := range pids[:versions] {
		until(t, "the old process has ended", func() bool { return gonePID(pid) })
	}
	t.Logf("%d purchases and %d other uses over %d replacements", bought.Load(), others.Load(), versions)
}

// TestKillUnderLoad: a plugin is killed again and again with many calls under way. Each
// gets one answer, nothing is bought twice, and nothing that was bought is "not sent".
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	tune := calm
	tune.restartWait = standard.restartWait
	h := startHost(t, tune, Config{Specs: []Spec{u.version(0)}})
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	answers := make([]map[string]sdk.Outcome, 24)
	var load sync.WaitGroup
	for worker := range answers {
		answers[worker] = map[string]sdk.Outcome{}
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				reference := fmt.Sprintf("%d-%d", worker, n)
				answers[worker][reference] = h.Call(t.Context(), ofOne, u.buy(reference), patience).Outcome
			}
		})
	}
	for range 3 {
		before := u.count()
		until(t, "calls go on", func() bool { return u.count() > before+100 })
		s := h.Status()[0]
		if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		until(t, "another process", func() bool { now := h.Status()[0]; return now.Running && now.PID != s.PID })
	}
	enough()
	load.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	all, unknown := 0, 0
	for _, of := range answers {
		for reference, outcome := range of {
			all++
			switch times := u.bought[reference]; {
			case outcome == sdk.Unknown && times <= 1:
				unknown++
			case outcome == sdk.Pending && times == 1, outcome == sdk.NotSent && times == 0:
			default:
				t.Errorf("%s was bought %d times, and its outcome is %v", reference, times, outcome)
			}
		}
	}
	t.Logf("%d calls, of which %d are unknown", all, unknown)
}

// TestReplaceWaitsForCalls: what is under way ends on the process that it began on, which
// goes only then.
func TestReplaceWaitsForCalls(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	h := startHost(t, calm, Config{Specs: []Spec{u.version(0)}})
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	u.held.Store(&held)
	old := h.Status()[0].PID
	result := make(chan sdk.Result, 1)
	go func() { result <- h.Call(t.Context(), ofOne, u.buy("slow"), patience) }()
	until(t, "the call has reached the upstream", func() bool { return u.count() == 1 })
	if err := h.Put(t.Context(), u.version(1), nil); err != nil {
		t.Fatal(err)
	}
	if w := worldOf(t, h); w.PID == old || gonePID(old) {
		t.Errorf("called is process %d, the old %d is gone: %v", w.PID, old, gonePID(old))
	}
	release()
	if r := <-result; r.Outcome != sdk.Pending {
		t.Errorf("the call that was under way: %+v", r)
	}
	until(t, "the old process has ended", func() bool { return gonePID(old) })
}

// TestReplaceCutsWhatHangs: a call that takes longer than any may is cut, and its outcome
// is unknown.
func TestReplaceCutsWhatHangs(t *testing.T) {
	t.Parallel()
	tune := calm
	tune.drain = 50 * time.Millisecond
	u := newUpstream(t)
	h := startHost(t, tune, Config{Specs: []Spec{u.version(0)}})
	result := background(t, h, "deaf")
	inFlight(t, h, 1)
	if err := h.Put(t.Context(), u.version(1), nil); err != nil {
		t.Fatal(err)
	}
	if r := <-result; r.Outcome != sdk.Unknown {
		t.Errorf("got %+v", r)
	}
	if s := h.Status()[0]; !s.Running || !s.Down.IsZero() || s.LastFault != "" {
		t.Errorf("the end of the old one is the new one's: %+v", s)
	}
}

// TestReplaceRefused: whatever is wrong with the new one, the old one stays in use and
// what it declares stays offered.
func TestReplaceRefused(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	h := startHost(t, calm, Config{Specs: []Spec{u.version(0)}})
	var offered atomic.Int64
	if err := h.Offer(func(all []*manifest.Manifest) (func(), error) {
		if all[0].Version == "1.2.5" {
			return nil, errors.New("another one has these paths")
		}
		return func() { offered.Add(1) }, nil
	}); err != nil {
		t.Fatal(err)
	}
	old := h.Status()[0].PID
	role := func(role string) Spec {
		spec := u.version(1)
		spec.Env[0] = envRole + "=" + role
		return spec
	}
	pinned, absent := u.version(1), u.version(1)
	pinned.ManifestDigest, absent.Path = strings.Repeat("0", 64), "/nowhere/at/all"
	changed := u.version(1)
	changed.SHA256 = strings.Repeat("0", 64)
	disproved := func(context.Context, Candidate) error { return errors.New("its upstream does not know it") }
	for _, c := range []struct {
		spec  Spec
		proof Proof
		want  string
	}{
		{role("dead"), nil, "nothing to do"},
		{role("mute"), nil, "it did not start within"},
		{pinned, nil, "approved is 000"},
		{absent, nil, "/nowhere/at/all"},
		{changed, nil, "approved is 000"},
		{u.version(1), disproved, "its upstream does not know it"},
		{u.version(2), nil, "another one has these paths"},
	} {
		for what, try := range map[string]func(context.Context, Spec, Proof) error{"put": h.Put, "try": h.Try} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if c.spec.Env[0] == envRole+"=mute" {
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond) // it would take as long as it is given
			}
			err := try(ctx, c.spec, c.proof)
			if cancel(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", what, err, c.want)
			}
		}
	}
	if s := h.Status()[0]; s.PID != old || !s.Running || s.Version != "1.2.3" || offered.Load() != 1 {
		t.Errorf("status %+v; offered %d times", s, offered.Load())
	}
	if r := h.Call(t.Context(), ofOne, u.buy("after"), patience); r.Outcome != sdk.Pending {
		t.Errorf("got %+v", r)
	}
	if err := h.Try(t.Context(), u.version(1), nil); err != nil || h.Status()[0].PID != old {
		t.Errorf("one that is well: %v, %+v", err, h.Status()[0])
	}
}

// TestReplaceWhatIsDown: a plugin that can't be started is replaced by one that can, and
// the replaced version is never tried again. A proof may ask the new one alone.
func TestReplaceWhatIsDown(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	broken := u.version(0)
	broken.Env[0] = envRole + "=dead"
	h := startHost(t, calm, Config{Specs: []Spec{broken}})
	verified := sdk.Result{}
	if err := h.Put(t.Context(), u.version(1), func(ctx context.Context, c Candidate) error {
		verified = c.Verify(ctx, callTo("accept").Connection, patience)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if r := h.Call(t.Context(), ofOne, u.buy("r"), patience); r.Outcome != sdk.Pending || verified.Outcome != sdk.Done {
		t.Errorf("got %+v; verified %+v", r, verified)
	}
	first := h.Status()[0]
	if err := h.Restart(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if s := h.Status()[0]; s.PID == first.PID || !s.Running || s.Version != first.Version || s.Restarts != 0 {
		t.Errorf("restarted: %+v, before %+v", s, first)
	}
	if err := syscall.Kill(h.Status()[0].PID, syscall.SIGKILL); err != nil { // who took over is supervised, too
		t.Fatal(err)
	}
	if r := h.Call(t.Context(), ofOne, u.buy("s"), patience); r.Outcome == sdk.NotSent || r.Outcome == sdk.Refused {
		t.Errorf("got %+v", r)
	}
	until(t, "it runs again", func() bool { s := h.Status()[0]; return s.Running && s.Restarts == 1 })
}

// TestARestartTakesNothingBack: what goes on in a new process is what is in use once it is its turn, not what was when it was asked for.
func TestARestartTakesNothingBack(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	h := startHost(t, calm, Config{Specs: []Spec{u.version(0)}})
	proving, proven, put := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		put <- h.Put(t.Context(), u.version(1), func(context.Context, Candidate) error {
			close(proving)
			<-proven
			return nil
		})
	}()
	<-proving
	restarted := make(chan error, 1)
	go func() { restarted <- h.Restart(t.Context(), "one") }()
	if r := h.Call(t.Context(), ofOne, u.buy("meanwhile"), patience); r.Outcome != sdk.Pending {
		t.Errorf("meanwhile: %+v", r)
	}
	close(proven)
	if err := cmp.Or(<-put, <-restarted); err != nil {
		t.Fatal(err)
	}
	if s := h.Status()[0]; !s.Running || s.Version != "1.2.4" {
		t.Errorf("after both: %+v", s)
	}
	if err := h.Remove(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if err := h.Restart(t.Context(), "one"); err == nil || len(h.Status()) != 0 {
		t.Errorf("removed and restarted: %v, %+v", err, h.Status())
	}
}

// TestAddAndRemove: a plugin comes and goes while another is called.
func TestAddAndRemove(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	offered := make(chan int, 10)
	if err := h.Offer(func(all []*manifest.Manifest) (func(), error) {
		return func() { offered <- len(all) }, nil
	}); err != nil {
		t.Fatal(err)
	}
	two := Use{Provider: "two", MerchantID: "m", Money: true}
	if err := h.Put(t.Context(), testSpec("two"), nil); err != nil {
		t.Fatal(err)
	}
	if r := h.Call(t.Context(), two, callTo("accept"), patience); r.Outcome != sdk.Pending {
		t.Errorf("added: %+v", r)
	}
	pid := h.Status()[1].PID
	if err := h.Remove(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	until(t, "its process has ended", func() bool { return gonePID(pid) })
	if r := h.Call(t.Context(), two, callTo("accept"), patience); r.Outcome != sdk.NotSent || len(h.Status()) != 1 {
		t.Errorf("removed: %+v, %+v", r, h.Status())
	}
	// One that can't be started is there all the same where it is known, and told.
	m, err := manifest.Parse(manifestOf("three"))
	if err != nil {
		t.Fatal(err)
	}
	absent := testSpec("three")
	absent.Path, absent.Manifest, absent.ManifestDigest = "/nowhere/at/all", m, m.Digest()
	if err := h.Put(t.Context(), absent, nil); err == nil || !strings.Contains(err.Error(), "/nowhere/at/all") {
		t.Errorf("absent: %v", err)
	}
	if s := h.Status(); len(s) != 2 || s[1].Running || !strings.Contains(s[1].LastFault, "/nowhere/at/all") || len(h.Manifests()) != 2 {
		t.Errorf("absent: %+v", s)
	}
	if err := h.Remove(t.Context(), "three"); err != nil {
		t.Fatal(err)
	}
	var seen []int
	for range 5 {
		seen = append(seen, <-offered)
	}
	if fmt.Sprint(seen) != "[1 2 1 2 1]" {
		t.Errorf("offered were %v", seen)
	}
	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.Pending || h.Remove(t.Context(), "nobody") != nil {
		t.Errorf("the other one: %+v", r)
	}
}

// TestAChangeThatHangs: while a plugin's new version is proven without an end, others are
// added, tried and removed. Another change of the same plugin waits, as long as it may.
func TestAChangeThatHangs(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	hangs, goOn, put := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		put <- h.Put(t.Context(), testSpec("one"), func(context.Context, Candidate) error {
			close(hangs)
			<-goOn
			return nil
		})
	}()
	<-hangs
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := errors.Join(h.Put(ctx, testSpec("two"), nil), h.Try(ctx, testSpec("two"), nil), h.Remove(ctx, "two")); err != nil {
		t.Error(err)
	}
	soon, stop := context.WithCancel(t.Context())
	stop()
	for name, err := range map[string]error{
		"put": h.Put(soon, testSpec("one"), nil), "try": h.Try(soon, testSpec("one"), nil), "remove": h.Remove(soon, "one"),
	} {
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "another change of it is under way") {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(goOn)
	if err := <-put; err != nil {
		t.Error(err)
	}
}

// TestWhatWasCheckedByAnother: a request is called on no process that declares its
// operation otherwise than the one by which it was checked, and on every other.
func TestWhatWasCheckedByAnother(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	h := startHost(t, calm, Config{Specs: []Spec{u.version(0)}})
	before := h.Manifests()[0]
	call := func(of *manifest.Manifest, reference string) sdk.Result {
		use := ofOne
		use.Declared = of.Declared("/test/pay")
		return h.Call(t.Context(), use, u.buy(reference), patience)
	}
	if r := call(before, "a"); r.Outcome != sdk.Pending {
		t.Fatalf("as declared: %+v", r)
	}
	if err := h.Put(t.Context(), u.version(1), nil); err != nil {
		t.Fatal(err)
	}
	if r := call(before, "b"); r.Outcome != sdk.Pending {
		t.Errorf("a version that declares the same: %+v", r)
	}
	another := ofOne
	another.Declared = "another"
	if r := h.Call(t.Context(), another, u.buy("c"), patience); r.Outcome != sdk.NotSent {
		t.Errorf("another declaration: %+v", r)
	}
	if q := h.Quote(t.Context(), another, sdk.Quote{Operation: "/test/pay", Connection: callTo("").Connection}, patience); q.Outcome != sdk.NotSent {
		t.Errorf("a quote of another declaration: %+v", q)
	}
	if u.count() != 2 || before.Declared("/test/pay") == "" {
		t.Errorf("%d bought", u.count())
	}
}
