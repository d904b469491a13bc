package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	refundPath, refundStatusPath = "/payments/refund", "/payments/refund/status"
	refundEnds, refundTaken      = "refund.status_update", "refund.returned"
)

// refunds are those that a provider has, by our reference, and its script.
type refunds struct {
	mu     sync.Mutex
	there  map[string]*giving
	wrong  []string
	way    sdk.Outcome // of a call; the zero value is done, and Unknown one that is not answered
	unmade bool        // the call makes nothing
	slow   bool        // what is made is pending
	before func(sdk.Call)
	after  func(sdk.Call)
	silent bool                                    // lookups tell nothing
	named  func(sdk.StatusUpdate) sdk.StatusUpdate // of what a lookup tells, nil for all of it
}

// giving is a refund as it really is.
type giving struct {
	payment   string
	reference string
	amount    money.Amount
	status    sdk.Status
	times     int
}

func (r *refunds) call(call sdk.Call) sdk.Result {
	fire2(r.before, call)
	r.mu.Lock()
	if !strings.HasPrefix(call.Payment.ProviderReference, "up-"+call.Payment.Reference) {
		r.wrong = append(r.wrong, fmt.Sprintf("told of a payment %+v", call.Payment))
	}
	g := r.there[call.Reference]
	if g == nil && !r.unmade {
		if r.there == nil {
			r.there = map[string]*giving{}
		}
		g = &giving{payment: call.Payment.Reference, reference: call.Reference, amount: call.Amount, status: sdk.StatusDone}
		if r.slow {
			g.status = sdk.StatusPending
		}
		r.there[call.Reference] = g
		g.times++
	}
	way := r.way
	r.mu.Unlock()
	fire2(r.after, call)
	switch way {
	case sdk.Refused:
		return sdk.Refuse(sdk.RefuseOther, "This channel takes no refunds.")
	case sdk.NotSent:
		return sdk.DidNotSend(sdk.BlameUpstream, "no connection")
	case sdk.Pending:
		return sdk.Accepted("rf-"+call.Reference, time.Time{}, struct{}{})
	case sdk.Done:
		return sdk.Finished("rf-"+call.Reference, struct{}{})
	case sdk.Unknown:
	}
	return sdk.DontKnow(sdk.BlameUpstream, "cut")
}

func fire2(hook func(sdk.Call), call sdk.Call) {
	if hook != nil {
		hook(call)
	}
}

func (r *refunds) lookup(l sdk.Lookup) sdk.StatusUpdate {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.there[l.Reference]
	switch {
	case r.silent:
		return silent
	case l.Payment.ProviderReference == "":
		r.wrong = append(r.wrong, "asked about a refund of no payment")
		return silent
	case g == nil:
		return notFound
	}
	told := sdk.StatusUpdate{
		Reference: g.reference, ProviderReference: "rf-" + g.reference, Status: g.status, Amount: g.amount, Currency: "IDR", EventID: "rf-" + g.reference + "-" + g.status.String(),
	}
	if r.named != nil {
		told = r.named(told)
	}
	return told
}

// only is the one refund that the provider has.
func (r *refunds) only(w *world) *giving {
	w.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.there) != 1 {
		w.Fatalf("the provider has %d refunds", len(r.there))
	}
	for _, g := range r.there {
		return g
	}
	return nil
}

// gives asks for a refund of payment A; pairs are of its body.
func (w *world) gives(id string, pairs ...any) said {
	w.Helper()
	return w.givesOn(w.Engine, id, pairs...)
}

func (w *world) givesOn(e *Engine, id string, pairs ...any) said {
	w.Helper()
	r := w.asks(refundPath, append([]any{"external_id", "A", "refund_id", id}, pairs...)...)
	if wrong := r.Operation.Check(r.Body); len(wrong) > 0 {
		w.Errorf("the edge would refuse %v", wrong)
	}
	return w.runOn(e, r)
}

// refundStatus asks how a refund stands.
func (w *world) refundStatus(id string) said { return w.run(w.asks(refundStatusPath, "refund_id", id)) }

func (w *world) refund(id string) movement.Movement {
	w.Helper()
	m, err := w.keeper.MovementByKey(w.Context(), movement.Key{Owner: w.owner(), Kind: manifest.Refund, Reference: id})
	if err != nil {
		w.Fatalf("refund %s: %v", id, err)
	}
	return m
}

// later is the poller at a refund, for as long as the time given.
func (w *world) later(id string, span time.Duration) {
	w.Helper()
	for end := w.now().Add(span); w.now().Before(end); {
		m := w.refund(id)
		if m.DueAt.IsZero() || m.DueAt.After(end) {
			w.pass(end.Sub(w.now()))
			return
		}
		w.pass(max(m.DueAt.Sub(w.now()), time.Second))
		if err := w.Resolve(w.Context(), m); err != nil {
			w.Errorf("what is due: %v", err)
		}
	}
}

// wantCounted checks that what counts against payment A is what its refunds have taken.
func (w *world) wantCounted(want money.Amount) {
	w.Helper()
	used, err := w.keeper.UsedOf(w.Context(), w.owner(), "refund."+w.stored("A").ID.Compact(), "lasting")
	if err != nil || money.Amount(used) != want {
		w.Errorf("%d counts against the payment (%v), want %d", used, err, want)
	}
	for _, wrong := range w.up.refunds.wrong {
		w.Error("the provider was " + wrong)
	}
}

func working(w *world) { w.up.refunds.way = sdk.Done }

// TestRefund: a refund without an amount is of all that is left. The payment follows it, its
// merchant reads of both, and nobody else has to.
func TestRefund(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		working(w)
		m := paidFor(w)
		a := w.gives("R1", "reason", "sold out")
		w.want(a, "SUCCEEDED")
		if want := fmt.Sprintf(`{"refund_id":"R1","status":"SUCCEEDED","amount":10000,"external_id":"A","reason":"sold out","created_at":%q}`, w.now().UTC().Format(time.RFC3339)); a.data != want {
			t.Errorf("answered %s, want %s", a.data, want)
		}
		w.wantMoney("A", "FAILED", 10_000, 10_000, true)
		w.wantTold(ends+" PAID", taken+" FAILED", refundEnds+" SUCCEEDED")
		back := w.toldIn(m)[1]
		if !strings.Contains(string(back.Body), `"sort":"refund","amount":10000,`) || !strings.Contains(string(back.Body), `"refund_id":"R1"`) {
			t.Errorf("told %s", back.Body)
		}
		var told struct{ Data json.RawMessage }
		if err := json.Unmarshal(w.toldIn(w.refund("R1"))[0].Body, &told); err != nil || !strings.HasPrefix(string(told.Data), strings.TrimSuffix(w.refundStatus("R1").data, "}")) {
			t.Errorf("told %s, the status says %s", told.Data, w.refundStatus("R1").data)
		}
		if again := w.gives("R1", "reason", "sold out"); again.data != a.data || !again.replayed {
			t.Errorf("the same again is answered %s (%v), replayed %t", again.data, again.err, again.replayed)
		}
		w.wantFault(w.gives("R1"), fault.DuplicateReference, "no", "reason")
		w.wantFault(w.gives("R2"), fault.InvalidRequest, "no", "external_id")
		w.wantListed()
		w.wantCounted(10_000)
	})
}

// TestRefundsOfParts: parts go back until nothing is left, and never more than has come.
func TestRefundsOfParts(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		working(w)
		m := paidFor(w)
		w.hear(returning(m, sdk.StatusUnknown, sdk.Return{ID: "cb-1", Sort: sdk.ReturnChargeback, Amount: 1_000}))
		w.want(w.gives("R1", "amount", number(4_000)), "SUCCEEDED")
		w.wantMoney("A", "PAID", 10_000, 5_000, false)
		w.wantFault(w.gives("R2", "amount", number(5_001)), fault.InvalidRequest, "no", "amount")
		w.want(w.gives("R2", "amount", number(2_000)), "SUCCEEDED") // its id is free
		w.want(w.gives("R3"), "SUCCEEDED")
		if m := w.refund("R3"); m.Amount != 3_000 {
			t.Errorf("the rest is %v", m.Amount)
		}
		w.wantMoney("A", "FAILED", 10_000, 10_000, true)
		w.wantFault(w.gives("R4", "amount", number(1)), fault.InvalidRequest, "no", "amount")
		w.wantCounted(9_000)
		w.wantListed(movement.ReasonReturned)
	})
}

// TestRefundsAtOnce: of two that together are more than has come, one is made.
func TestRefundsAtOnce(t *testing.T) {
	t.Parallel()
	onReplicas(t, payments, false, func(w *world, engines ...*Engine) {
		working(w)
		paidFor(w)
		answers := make([]said, 4)
		var running sync.WaitGroup
		for i := range answers {
			running.Go(func() { answers[i] = w.givesOn(engines[i%len(engines)], fmt.Sprint("R", i), "amount", number(6_000)) })
		}
		running.Wait()
		made := 0
		for _, a := range answers {
			if a.err == nil {
				made++
			} else {
				w.wantFault(a, fault.InvalidRequest, "no", "amount")
			}
		}
		if made != 1 {
			t.Errorf("%d refunds were made", made)
		}
		w.up.refunds.only(w)
		w.wantMoney("A", "PAID", 10_000, 6_000, false)
		w.wantCounted(6_000)
	})
}

// TestWhatCantBeRefunded: each with its own words, and nothing is sent.
func TestWhatCantBeRefunded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make  func(w *world)
		code  fault.Code
		field []string
		words string
	}{
		"none":             {func(*world) {}, fault.NotFound, nil, "no such payment"},
		"one that is open": {func(w *world) { w.want(w.create("A"), "PENDING") }, fault.InvalidRequest, []string{"external_id"}, "is PENDING"},
		"one that expired": {func(w *world) {
			w.want(w.create("A"), "PENDING")
			w.want(w.cancel("A"), "EXPIRED")
		}, fault.InvalidRequest, []string{"external_id"}, "is EXPIRED"},
		"one of another account": {func(w *world) {
			paidFor(w)
			w.account = w.connects(w.account.ID(), `{}`, 2)
		}, fault.InvalidRequest, []string{"external_id"}, "the account that is connected now"},
		"one that was charged back": {func(w *world) {
			m := paidFor(w)
			w.hear(returning(m, sdk.StatusUnknown, sdk.Return{ID: "cb-1", Sort: sdk.ReturnChargeback, Amount: m.Amount}))
		}, fault.InvalidRequest, []string{"external_id"}, "nothing left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				working(w)
				c.make(w)
				a := w.gives("R1")
				w.wantCode(a, c.code, c.field...)
				if a.err != nil && !strings.Contains(fmt.Sprint(a.err.Message, a.err.Fields), c.words) {
					t.Errorf("%s: %v", a.err.Message, a.err.Fields)
				}
				if len(w.up.refunds.there) > 0 {
					t.Error("it was sent")
				}
				w.want(w.refundStatus("R1"), "NOT_FOUND no never")
			})
		})
	}
}

// TestRefundOfLateMoney: what came after the end can be given back.
func TestRefundOfLateMoney(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		working(w)
		w.want(w.create("A"), "PENDING")
		w.want(w.cancel("A"), "EXPIRED")
		m := w.stored("A")
		w.hear(w.up.pay(m.UpstreamReference(), "p"))
		w.want(w.gives("R1"), "SUCCEEDED")
		w.wantTold(ends+" EXPIRED", late+" EXPIRED", taken+" EXPIRED", refundEnds+" SUCCEEDED")
		w.wantListed(movement.ReasonPaidLate)
	})
}

// TestRefundEnds: whatever the call says, the end is the provider's, it is told once, and
// what failed counts no more.
func TestRefundEnds(t *testing.T) {
	t.Parallel()
	const never, again = "PROVIDER_REJECTED refused never", "PROVIDER_UNAVAILABLE no later"
	for name, c := range map[string]struct {
		script func(*refunds)
		first  string
		ends   func(w *world, g *giving) // what becomes of it then
		last   string
	}{
		"refused":             {func(r *refunds) { r.way, r.unmade = sdk.Refused, true }, never, nil, "FAILED"},
		"not sent":            {func(r *refunds) { r.way, r.unmade = sdk.NotSent, true }, again, nil, ""},
		"pending, then done":  {func(r *refunds) { r.way, r.slow = sdk.Pending, true }, "PENDING", func(_ *world, g *giving) { g.status = sdk.StatusDone }, "SUCCEEDED"},
		"pending, then fails": {func(r *refunds) { r.way, r.slow = sdk.Pending, true }, "PENDING", func(_ *world, g *giving) { g.status = sdk.StatusFailed }, "FAILED"},
		"unknown, made":       {func(r *refunds) { r.way = sdk.Unknown }, "PENDING", func(*world, *giving) {}, "SUCCEEDED"},
		"unknown, not made":   {func(r *refunds) { r.way, r.unmade = sdk.Unknown, true }, "PENDING", nil, "FAILED"},
		"told by its payment": {func(r *refunds) { r.way, r.silent = sdk.Unknown, true }, "PENDING", func(w *world, g *giving) {
			w.hear(returning(w.stored("A"), sdk.StatusUnknown, sdk.Return{ID: "rf-" + g.reference, Sort: sdk.ReturnRefund, Amount: g.amount, Reference: g.reference}))
		}, "SUCCEEDED"},
		"told by a lookup of its payment": {func(r *refunds) { r.way, r.silent = sdk.Unknown, true }, "PENDING", func(w *world, g *giving) {
			w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
				return returning(w.stored("A"), sdk.StatusDone, sdk.Return{ID: "rf-" + g.reference, Sort: sdk.ReturnRefund, Amount: g.amount, Reference: g.reference})
			}
			w.work("A", 48*time.Hour)
		}, "SUCCEEDED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, payments, func(w *world) {
				paidFor(w)
				c.script(&w.up.refunds)
				w.want(w.gives("R1", "amount", number(4_000)), c.first)
				if c.ends != nil {
					c.ends(w, w.up.refunds.only(w))
				}
				if c.last == "" {
					w.want(w.refundStatus("R1"), "NOT_FOUND no never")
					w.wantCounted(0)
					return
				}
				w.later("R1", 2*time.Hour)
				w.want(w.refundStatus("R1"), c.last)
				told, back := []string{ends + " PAID", refundEnds + " " + c.last}, money.Amount(0)
				if c.last == "SUCCEEDED" {
					told, back = append(told, taken+" PAID"), 4_000
				}
				w.wantTold(told...)
				w.wantCounted(back)
				w.wantMoney("A", "PAID", 10_000, back, false)
				w.wantListed()
			})
		})
	}
}

// TestRefundToldFirst: the payment's own news of the return come while the call is under
// way, with our name of it or without. It is kept once, and counts once.
func TestRefundToldFirst(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"by our name": true, "by the provider's": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				working(w)
				m := paidFor(w)
				w.up.refunds.after = func(call sdk.Call) {
					r := sdk.Return{ID: "rf-" + call.Reference, Sort: sdk.ReturnRefund, Amount: call.Amount}
					if named {
						r.Reference = call.Reference
					}
					w.hear(returning(m, sdk.StatusUnknown, r))
				}
				w.want(w.gives("R1", "amount", number(4_000)), "SUCCEEDED")
				w.up.refunds.after = nil
				w.wantMoney("A", "PAID", 10_000, 4_000, false)
				w.wantTold(ends+" PAID", taken+" PAID", refundEnds+" SUCCEEDED")
				if m = w.stored("A"); len(m.Returns) != 1 || m.Returns[0].Refund != "R1" {
					t.Errorf("its returns are %+v", m.Returns)
				}
				w.want(w.gives("R2", "amount", number(6_000)), "SUCCEEDED")
				if named {
					w.wantListed()
				} else {
					w.wantListed(movement.ReasonReturned)
				}
			})
		})
	}
}

// TestRefundForgottenByARestore: its payment's news come first and name nobody's order; then its
// merchant orders it again, and the provider, which has made it, does not say what it calls
// it. It counts twice until the payment's news name it, and its merchant reads then what is so.
func TestRefundForgottenByARestore(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]struct {
		at string
		of int // the record at which it is killed, 1 that its news name it, 2 that its second record is undone
	}{"": {}, "before it is named": {"before return", 1}, "named": {"after return", 1}, "before it is undone": {"before return", 2}, "undone": {"after return", 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, payments, func(w *world) {
				m := paidFor(w)
				back := sdk.Return{ID: "up-1", Sort: sdk.ReturnRefund, Amount: 4_000}
				w.hear(returning(m, sdk.StatusUnknown, back))
				w.up.refunds.way = sdk.Unknown
				w.up.refunds.named = func(u sdk.StatusUpdate) sdk.StatusUpdate {
					u.ProviderReference = ""
					return u
				}
				w.want(w.gives("R1", "amount", number(4_000)), "PENDING")
				w.later("R1", time.Hour)
				w.want(w.refundStatus("R1"), "SUCCEEDED")
				w.wantMoney("A", "PAID", 10_000, 8_000, false)
				order := w.refund("R1")
				back.Reference = order.UpstreamReference()
				if kill.of > 0 {
					w.killedAt(kill.at, kill.of, func() { _, _ = w.notify(tenants.Live, returning(m, sdk.StatusUnknown, back)) })
				}
				for range 2 {
					w.hear(returning(m, sdk.StatusUnknown, back))
					w.wantMoney("A", "PAID", 10_000, 4_000, false)
				}
				w.want(w.refundStatus("R1"), "SUCCEEDED")
				w.wantTold(ends+" PAID", taken+" PAID", taken+" PAID", refundEnds+" SUCCEEDED", taken+" PAID")
				w.wantListed(movement.ReasonReturned, movement.ReasonReturned)
			})
		})
	}
}

// killedAt does something that is killed where it comes to a step for the nth time, and
// starts again.
func (w *world) killedAt(step string, nth int, do func()) {
	w.Helper()
	came := 0
	w.faults.at = func(at string) {
		if at != step {
			return
		}
		if came++; came == nth {
			w.faults.at = nil
			panic(crash{})
		}
	}
	func() {
		defer func() {
			if thrown := recover(); thrown != (crash{}) {
				w.Errorf("it was not killed %s: %v", step, thrown)
			}
		}()
		do()
	}()
	w.restart()
}

// TestRefundUndone: a refund that does not arrive after all is the payment's money again,
// both are told so, and it can go back once more.
func TestRefundUndone(t *testing.T) {
	t.Parallel()
	undone := func(m movement.Movement, amount money.Amount) sdk.Return {
		return sdk.Return{ID: m.ProviderReference, Sort: sdk.ReturnRefund, Amount: amount, Undone: true, Reference: m.UpstreamReference()}
	}
	for name, tells := range map[string]func(w *world, refund movement.Movement){
		"told of the payment": func(w *world, refund movement.Movement) {
			w.hear(returning(w.stored("A"), sdk.StatusUnknown, undone(refund, 4_000)))
		},
		"told of the refund": func(w *world, refund movement.Movement) {
			w.hear(sdk.StatusUpdate{Reference: refund.UpstreamReference(), ProviderReference: refund.ProviderReference, Status: sdk.StatusFailed, Amount: 4_000, EventID: "no"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				working(w)
				paidFor(w)
				w.want(w.gives("R1", "amount", number(4_000)), "SUCCEEDED")
				w.pass(time.Hour)
				returns := 0
				w.faults.at = func(at string) { // between the payment's and the refund's own
					if at == "before return" {
						returns++
					}
					if returns == 2 {
						w.faults.at = nil
						panic(crash{})
					}
				}
				if !w.dies(func() { tells(w, w.refund("R1")) }) {
					t.Fatal("nothing died")
				}
				w.restart()
				for range 2 {
					tells(w, w.refund("R1"))
				}
				w.want(w.refundStatus("R1"), "FAILED")
				w.wantMoney("A", "PAID", 10_000, 0, false)
				w.wantTold(ends+" PAID", taken+" PAID", taken+" PAID", refundEnds+" SUCCEEDED", refundTaken+" FAILED")
				w.want(w.gives("R2"), "SUCCEEDED")
				w.wantMoney("A", "FAILED", 10_000, 10_000, true)
				w.wantFault(w.gives("R3", "amount", number(1)), fault.InvalidRequest, "no", "amount")
			})
		})
	}
}

// TestRefundCrashes: wherever the process ends, the refund is made once at most, its payment
// takes it in once, and both are told once.
func TestRefundCrashes(t *testing.T) {
	t.Parallel()
	steps := []string{
		"before reserve", "after reserve", "call", "called",
		"before return", "after return", "before move to succeeded", "after move to succeeded",
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			onBoth(t, payments, func(w *world) {
				working(w)
				paidFor(w)
				die := func(at string) {
					if at == step {
						w.faults.at, w.up.refunds.before, w.up.refunds.after = nil, nil, nil
						panic(crash{})
					}
				}
				w.faults.at = die
				w.up.refunds.before = func(sdk.Call) { die("call") }
				w.up.refunds.after = func(sdk.Call) { die("called") }
				w.want(w.gives("R1", "amount", number(4_000)), "crashed")
				w.restart()
				made := !slices.Contains(steps[:3], step)
				w.pass(time.Minute)
				if step == "before reserve" {
					w.want(w.gives("R1", "amount", number(4_000)), "SUCCEEDED")
				} else {
					w.later("R1", 2*time.Hour)
				}
				if !made && step != "before reserve" { // proven never sent, and free again
					w.want(w.gives("R1", "amount", number(4_000)), "SUCCEEDED")
				}
				if g := w.up.refunds.only(w); g.times != 1 {
					t.Errorf("made %d times", g.times)
				}
				w.want(w.refundStatus("R1"), "SUCCEEDED")
				w.wantMoney("A", "PAID", 10_000, 4_000, false)
				w.wantTold(ends+" PAID", taken+" PAID", refundEnds+" SUCCEEDED")
				if m := w.stored("A"); len(m.Returns) != 1 {
					t.Errorf("its returns are %+v", m.Returns)
				}
				w.wantCounted(4_000)
				w.wantListed()
			})
		})
	}
}

// TestRefundGoesWhereItsPaymentWent: of several providers, that of the payment gets it,
// whatever the policy's route says; and one that takes none is named.
func TestRefundGoesWhereItsPaymentWent(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		working(w)
		first, err := manifest.Parse(bytes.Replace(signed(ownManifestWithout(refundPath)), []byte(`"name": "payments"`), []byte(`"name": "other"`), 1))
		if err != nil {
			t.Fatal(err)
		}
		second, err := manifest.Parse(signed(ownManifest(provider)))
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := catalog.Build([]*manifest.Manifest{first, second})
		if err != nil {
			t.Fatal(err)
		}
		paidFor(w)
		w.catalog = catalog.New(snapshot)
		w.restart()
		working(w)
		r := w.asks(refundPath, "external_id", "A", "refund_id", "R1")
		r.Route = []string{"other"}
		w.want(w.run(r), "SUCCEEDED")
		if m := w.refund("R1"); m.Provider != provider {
			t.Errorf("it went to %s", m.Provider)
		}
		elsewhere := w.stored("A")
		elsewhere.Key.Reference, elsewhere.ID, elsewhere.Provider, elsewhere.State = "B", movement.NewID(), "other", movement.Submitting
		if _, ours, err := w.keeper.Reserve(t.Context(), elsewhere); err != nil || !ours {
			t.Fatal(ours, err)
		}
		w.wantFault(w.run(w.asks(refundPath, "external_id", "B", "refund_id", "R2")), fault.InvalidRequest, "no", "external_id")
		if _, serves := snapshot.ByPath(refundPath); !serves {
			t.Error("nobody takes refunds")
		}
	})
}

// ownManifestWithout is the manifest of payments without an operation.
func ownManifestWithout(path string) []byte {
	var document map[string]any
	if err := json.Unmarshal(ownManifest(provider), &document); err != nil {
		panic(err)
	}
	if operations, given := document["operations"].([]any); given {
		document["operations"] = slices.DeleteFunc(operations, func(op any) bool {
			named, _ := op.(map[string]any)
			return named["path"] == path
		})
	}
	text, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return bytes.ReplaceAll(text, []byte(`":"`), []byte(`": "`))
}

// TestRefundByPeople: one of the merchant's people gives back as a key would. An operator
// does so alone up to a sum, over all that was claimed in a day, and above it another one
// says the same. The policy is asked each time.
func TestRefundByPeople(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		working(w)
		m := paidFor(w)
		var asked []string
		w.refunds.Admit = func(_ context.Context, id tenants.Identity, op *catalog.Operation, body catalog.Document) (policy.Ticket, error) {
			asked = append(asked, fmt.Sprint(body[op.ReferenceField()], " ", body[op.AmountField()]))
			if body["reason"] == "not allowed" {
				return policy.Ticket{}, fault.New(fault.PolicyDenied, "No refunds at night.")
			}
			return policy.Ticket{Limits: w.limits, Zone: w.zone}, nil
		}
		orders := func(operator, id string, amount money.Amount, reason string) (kind.RefundOrdered, error) {
			return w.refunds.Order(t.Context(), kind.RefundOrder{Payment: m.ID, RefundID: id, Amount: amount, Reason: reason, Operator: operator, AloneUpTo: 3_000})
		}
		gone := func(back money.Amount) {
			t.Helper()
			w.wantMoney("A", "PAID", 10_000, back, false)
			w.wantCounted(back)
		}
		if done, err := orders("", "R1", 4_000, "sold out"); err != nil || done.Waiting || !strings.Contains(string(done.Data), `"SUCCEEDED"`) {
			t.Errorf("a person of the merchant's: %+v, %v", done, err)
		}
		gone(4_000)
		if done, err := orders("ayu", "R2", 2_000, "phoned"); err != nil || done.Waiting {
			t.Errorf("an operator alone: %+v, %v", done, err)
		}
		gone(6_000)
		for range 2 {
			if done, err := orders("ayu", "R3", 1_500, "phoned"); err != nil || !done.Waiting {
				t.Errorf("an operator beyond a sum: %+v, %v", done, err)
			}
		}
		gone(6_000)
		if _, err := orders("", "R4", 0, "not allowed"); fault.From(err).Code != fault.PolicyDenied {
			t.Errorf("the policy refuses: %v", err)
		}
		if done, err := orders("budi", "R3", 1_500, "seen"); err != nil || done.Waiting || !strings.Contains(string(done.Data), `"SUCCEEDED"`) {
			t.Errorf("another operator: %+v, %v", done, err)
		}
		if done, err := orders("ayu", "R3", 1_500, "again"); fault.From(err).Code != fault.DuplicateReference || done.Waiting {
			t.Errorf("for another reason: %+v, %v", done, err)
		}
		if _, err := orders("ayu", "R6", 900, "not allowed"); fault.From(err).Code != fault.PolicyDenied {
			t.Errorf("the policy refuses what was claimed: %v", err)
		}
		if done, err := orders("ayu", "R6", 2_500, "phoned"); fault.From(err).Code != fault.DuplicateReference || done.Waiting {
			t.Errorf("more than was claimed: %+v, %v", done, err)
		}
		if done, err := orders("", "R1", 0, "sold out"); err != nil || !strings.Contains(string(done.Data), `"SUCCEEDED"`) {
			t.Errorf("all that is left, again: %+v, %v", done, err)
		}
		gone(7_500)
		if left, err := w.refunds.Refundable(t.Context(), w.stored("A")); err != nil || left != 2_500 {
			t.Errorf("%v is left: %v", left, err)
		}
		if _, err := w.refunds.Order(t.Context(), kind.RefundOrder{Payment: movement.NewID(), RefundID: "R5", Reason: "why"}); fault.From(err).Code != fault.NotFound {
			t.Errorf("no such payment: %v", err)
		}
		if want := []string{"R1 4000", "R2 2000", "R4 4000", "R3 1500", "R3 1500", "R6 900", "R1 4000"}; !slices.Equal(asked, want) {
			t.Errorf("the policy was asked of %q, want %q", asked, want)
		}
	})
}

// TestRefundThatFailedAndWent: what a refund brought that had been proven never sent is
// money that went back, which operators read of, and which counts.
func TestRefundThatFailedAndWent(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := paidFor(w)
		w.up.refunds.unmade = true
		w.want(w.gives("R1", "amount", number(4_000)), "PENDING")
		w.later("R1", 2*time.Hour)
		w.want(w.refundStatus("R1"), "FAILED")
		w.wantCounted(0)
		went := w.refund("R1")
		for range 2 {
			w.hear(returning(m, sdk.StatusUnknown, sdk.Return{ID: "rf-1", Sort: sdk.ReturnRefund, Amount: 4_000, Reference: went.UpstreamReference()}))
		}
		w.wantMoney("A", "PAID", 10_000, 4_000, false)
		w.want(w.refundStatus("R1"), "FAILED")
		w.wantListed(movement.ReasonContradiction, movement.ReasonReturned)
		w.up.refunds.unmade = false
		working(w)
		w.wantFault(w.gives("R2", "amount", number(6_001)), fault.InvalidRequest, "no", "amount")
		w.want(w.gives("R2"), "SUCCEEDED")
		w.wantMoney("A", "FAILED", 10_000, 10_000, true)
	})
}

// TestRefundFailsAfterItsReturn: the payment takes the return in, the process dies before the
// refund ends, and the provider then fails the refund. In whatever order that is told, no more
// goes back than has come, and all of it does once it is there again.
func TestRefundFailsAfterItsReturn(t *testing.T) {
	t.Parallel()
	for name, paymentFirst := range map[string]bool{"the payment is told first": true, "the refund is told first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, payments, func(w *world) {
				m := paidFor(w)
				w.up.refunds.way, w.up.refunds.slow = sdk.Pending, true
				w.want(w.gives("R1"), "PENDING")
				g := w.up.refunds.only(w)
				back := sdk.Return{ID: "rf-" + g.reference, Sort: sdk.ReturnRefund, Amount: g.amount, Reference: g.reference, At: w.now()}
				w.faults.at = func(at string) {
					if at == "before move to succeeded" {
						panic(crash{})
					}
				}
				if !w.dies(func() { w.hear(returning(m, sdk.StatusUnknown, back)) }) {
					t.Fatal("nothing died")
				}
				w.restart()
				w.wantMoney("A", "FAILED", 10_000, 10_000, true)
				w.pass(time.Minute)
				g.status = sdk.StatusFailed
				back.Undone, back.UndoneAt = true, w.now()
				if paymentFirst {
					w.hear(returning(m, sdk.StatusUnknown, back))
				}
				w.later("R1", 2*time.Hour)
				w.want(w.refundStatus("R1"), "FAILED")
				w.up.refunds.slow = false
				working(w)
				if !paymentFirst {
					w.wantFault(w.gives("R2"), fault.InvalidRequest, "no", "external_id") // it is not told to be there yet
					w.hear(returning(m, sdk.StatusUnknown, back))
				}
				w.wantMoney("A", "PAID", 10_000, 0, false)
				w.want(w.gives("R3"), "SUCCEEDED")
				if r := w.refund("R3"); r.Amount != 10_000 {
					t.Errorf("%v went back", r.Amount)
				}
				w.wantFault(w.gives("R4", "amount", number(1)), fault.InvalidRequest, "no", "amount")
			})
		})
	}
}

// TestRefundPartlyBack: of a refund a part comes back, which is for a person; once all of it
// is back, the payment has it again.
func TestRefundPartlyBack(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		working(w)
		paidFor(w)
		w.want(w.gives("R1"), "SUCCEEDED")
		r := w.refund("R1")
		tells := func(parts ...sdk.Return) {
			w.pass(time.Minute)
			w.hear(sdk.StatusUpdate{
				Reference: r.UpstreamReference(), ProviderReference: r.ProviderReference, Status: sdk.StatusDone, Amount: r.Amount, Currency: "IDR", EventID: r.FactID, Returns: parts,
			})
		}
		one := sdk.Return{ID: "b1", Sort: sdk.ReturnReversal, Amount: 4_000}
		tells(one)
		w.wantMoney("A", "FAILED", 10_000, 10_000, true)
		w.wantCounted(10_000)
		w.wantFault(w.gives("R2", "amount", number(1)), fault.InvalidRequest, "no", "amount")
		tells(one, sdk.Return{ID: "b2", Sort: sdk.ReturnReversal, Amount: 6_000})
		w.wantMoney("A", "PAID", 10_000, 0, false)
		w.wantCounted(0)
		undone := one
		undone.Undone, undone.UndoneAt = true, w.now()
		tells(undone) // that part has gone after all: it counts again
		w.wantCounted(10_000)
		w.wantFault(w.gives("R2", "amount", number(1)), fault.InvalidRequest, "no", "amount")
	})
}

// TestReturnThatIsNoneOfItsRefund: a return with a refund's name and another amount is
// nobody's order; one that the payment does not take in ends no refund.
func TestReturnThatIsNoneOfItsRefund(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		amount   money.Amount
		currency string
		returned money.Amount
		listed   []string
	}{
		"another amount":   {5_000, "IDR", 5_000, []string{movement.ReasonAmount, movement.ReasonReturned}},
		"another currency": {4_000, "USD", 0, []string{movement.ReasonCurrency}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				m := paidFor(w)
				w.up.refunds.silent = true
				w.want(w.gives("R1", "amount", number(4_000)), "PENDING")
				u := returning(m, sdk.StatusUnknown, sdk.Return{
					ID: "rf", Sort: sdk.ReturnRefund, Amount: c.amount, Reference: w.up.refunds.only(w).reference,
				})
				u.Currency = c.currency
				w.hear(u)
				w.want(w.refundStatus("R1"), "PENDING")
				w.wantMoney("A", "PAID", 10_000, c.returned, false)
				w.wantListed(c.listed...)
				w.wantFault(w.gives("R2", "amount", number(6_001-c.returned)), fault.InvalidRequest, "no", "amount")
			})
		})
	}
}
