package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// paidFor makes a payment that its payer has paid, and of which the merchant has heard.
func paidFor(w *world) movement.Movement {
	w.Helper()
	w.want(w.create("A"), "PENDING")
	m := w.stored("A")
	w.hear(w.up.pay(m.UpstreamReference(), "p"))
	w.want(w.status("A"), "PAID")
	return w.stored("A")
}

// returning has an update tell of what went back.
func returning(m movement.Movement, status sdk.Status, returns ...sdk.Return) sdk.StatusUpdate {
	u := sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: status, Currency: "IDR", Returns: returns}
	if status != sdk.StatusUnknown {
		u.Amount, u.EventID, u.ProviderReference = m.Amount, "p", m.ProviderReference
	}
	return u
}

// wantMoney checks what a status says of a payment: the word, what arrived and what went
// back, and whether nothing is left.
func (w *world) wantMoney(reference, word string, paid, returned money.Amount, gone bool) {
	w.Helper()
	answer := w.status(reference)
	var told struct {
		Status         string
		PaidAmount     money.Amount `json:"paid_amount"`
		ReturnedAmount money.Amount `json:"returned_amount"`
		ReturnedAt     string       `json:"returned_at"`
	}
	if err := json.Unmarshal([]byte(answer.data), &told); err != nil {
		w.Fatalf("%s: %v, %v", answer.data, err, answer.err)
	}
	if told.Status != word || told.PaidAmount != paid || told.ReturnedAmount != returned || (told.ReturnedAt != "") != gone {
		w.Errorf("the status says %s, want %s of %v, %v back, gone %t", answer.data, word, paid, returned, gone)
	}
}

// TestReturnsInAnyOrder: returns that lookups and notifications tell, in whatever order and
// however often, are kept once and told once each, and the word follows the money.
func TestReturnsInAnyOrder(t *testing.T) {
	t.Parallel()
	asked := func(w *world) { // by the next of the lookups after a success
		for before, days := w.up.asked(), 0; w.up.asked() == before && days < 90; days++ {
			w.work("A", 24*time.Hour)
		}
	}
	type step struct {
		told   []string // of the returns, by name; "undone" behind one that is
		word   string
		back   money.Amount
		events int // in all
	}
	for name, steps := range map[string][]step{
		"a part":               {{[]string{"r1"}, "PAID", 4_000, 1}},
		"twice the same":       {{[]string{"r1"}, "PAID", 4_000, 1}, {[]string{"r1"}, "PAID", 4_000, 1}, {[]string{"r1", "r1"}, "PAID", 4_000, 1}},
		"two parts":            {{[]string{"r1"}, "PAID", 4_000, 1}, {[]string{"r1", "r2"}, "FAILED", 10_000, 2}},
		"the second first":     {{[]string{"r2"}, "PAID", 6_000, 1}, {[]string{"r1"}, "FAILED", 10_000, 2}, {[]string{"r2"}, "FAILED", 10_000, 2}},
		"both at once":         {{[]string{"r2", "r1"}, "FAILED", 10_000, 2}},
		"undone":               {{[]string{"all"}, "FAILED", 10_000, 1}, {[]string{"all undone"}, "PAID", 0, 2}, {[]string{"all undone"}, "PAID", 0, 2}},
		"one of two is undone": {{[]string{"r1", "r2"}, "FAILED", 10_000, 2}, {[]string{"r1", "r2 undone"}, "PAID", 4_000, 3}},
		"old news of one that was undone": {
			{[]string{"all"}, "FAILED", 10_000, 1}, {[]string{"all undone"}, "PAID", 0, 2}, {[]string{"all"}, "PAID", 0, 2},
		},
		"another after one that was undone": {{[]string{"all"}, "FAILED", 10_000, 1}, {[]string{"all undone", "r1"}, "PAID", 4_000, 3}},
		"undone before anybody heard":       {{[]string{"all undone"}, "PAID", 0, 0}},
	} {
		for way, tells := range map[string]func(w *world, m movement.Movement, returns []sdk.Return){
			"by lookups": func(w *world, m movement.Movement, returns []sdk.Return) {
				w.up.set(func() {
					w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return returning(m, sdk.StatusDone, returns...) }
				})
				asked(w)
			},
			"by notifications": func(w *world, m movement.Movement, returns []sdk.Return) {
				for _, r := range returns {
					w.hear(returning(m, sdk.StatusUnknown, r))
				}
				w.hear(returning(m, sdk.StatusUnknown, returns...))
			},
			"with the status": func(w *world, m movement.Movement, returns []sdk.Return) {
				w.hear(returning(m, sdk.StatusDone, returns...))
			},
			"by both": func(w *world, m movement.Movement, returns []sdk.Return) {
				w.hear(returning(m, sdk.StatusDone, returns...))
				w.up.set(func() {
					w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return returning(m, sdk.StatusDone, returns...) }
				})
				asked(w)
				w.hear(returning(m, sdk.StatusUnknown, returns...))
			},
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				inMemory(t, payments, func(w *world) {
					m := paidFor(w)
					at := w.now()
					for _, s := range steps {
						w.pass(time.Minute)
						var returns []sdk.Return
						for _, told := range s.told {
							id, _, undone := strings.Cut(told, " ")
							r := sdk.Return{ID: id, Sort: sdk.ReturnChargeback, Amount: map[string]money.Amount{"r1": 4_000, "r2": 6_000, "all": 10_000}[id], At: at}
							if undone {
								r.Undone, r.UndoneAt = true, at.Add(time.Second)
							}
							returns = append(returns, r)
						}
						tells(w, m, returns)
						w.wantMoney("A", s.word, 10_000, s.back, s.word == "FAILED")
						back := slices.DeleteFunc(w.toldIn(m), func(c movement.Callback) bool { return c.Event != taken })
						if len(back) != s.events {
							t.Errorf("after %q it was told %d times that money went back or came again, want %d", s.told, len(back), s.events)
						}
						if len(back) > 0 {
							w.wantLast(back, s.word, s.back)
						}
					}
					if m = w.stored("A"); m.State != movement.Succeeded {
						t.Errorf("stands at %s", m.State)
					}
				})
			})
		}
	}
}

// wantLast checks that the last event says what the status says.
func (w *world) wantLast(events []movement.Callback, word string, returned money.Amount) {
	w.Helper()
	var last struct {
		Data struct {
			Status         string
			ReturnedAmount money.Amount `json:"returned_amount"`
		}
	}
	body := events[len(events)-1].Body
	if err := json.Unmarshal(body, &last); err != nil || last.Data.Status != word || last.Data.ReturnedAmount != returned {
		w.Errorf("the last event says %s (%v), want %s with %v back", body, err, word, returned)
	}
}

// TestReturnEvent: the event of a return is what the status says, and the return.
func TestReturnEvent(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := paidFor(w)
		w.pass(time.Hour)
		at := w.now()
		r := sdk.Return{ID: "cb-1", Sort: sdk.ReturnChargeback, Amount: m.Amount, At: at.Add(-time.Minute)}
		w.hear(returning(m, sdk.StatusUnknown, r))
		status := strings.TrimSuffix(w.status("A").data, "}")
		if !strings.Contains(status, fmt.Sprintf(`"returned_amount":10000,"returned_at":%q`, r.At.UTC().Format(time.RFC3339))) {
			t.Errorf("the status is %s", status)
		}
		want := fmt.Sprintf(`{"event":"payments.returned","data":%s,"timestamp":%q,"return":{"id":"cb-1","sort":"chargeback","amount":10000,"at":%q`,
			status, at.UTC().Format(time.RFC3339), r.At.UTC().Format(time.RFC3339))
		if last := w.toldIn(m)[1]; string(last.Body) != want+"}}}" {
			t.Errorf("told\n%s\nwant\n%s", last.Body, want+"}}}")
		}
		w.pass(time.Hour)
		r.Undone, r.UndoneAt = true, w.now()
		w.hear(returning(m, sdk.StatusUnknown, r))
		undone := fmt.Sprintf(`"at":%q,"undone_at":%q}}}`, r.At.UTC().Format(time.RFC3339), r.UndoneAt.UTC().Format(time.RFC3339))
		if last := w.toldIn(m)[2]; !strings.HasSuffix(string(last.Body), undone) || strings.Contains(string(last.Body), "returned_a") || !strings.Contains(string(last.Body), `"PAID"`) {
			t.Errorf("told %s, want it to end in %s", last.Body, undone)
		}
		w.wantListed(movement.ReasonReturned, movement.ReasonReturned)
	})
}

// TestOddReturns: what can't be a return of the movement's money is an exception, takes
// nothing, and holds up no other.
func TestOddReturns(t *testing.T) {
	t.Parallel()
	part := sdk.Return{ID: "r1", Sort: sdk.ReturnRefund, Amount: 4_000}
	change := func(change func(*sdk.Return)) sdk.Return {
		r := sdk.Return{ID: "odd", Sort: sdk.ReturnRefund, Amount: 5_000}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		odd    sdk.Return
		update func(*sdk.StatusUpdate)
		back   money.Amount
		listed []string
	}{
		"nobody knows why":  {change(func(r *sdk.Return) { r.Sort = sdk.ReturnUnknown }), nil, 4_000, []string{movement.ReasonNotUnderstood, movement.ReasonReturned}},
		"more than arrived": {change(func(r *sdk.Return) { r.Amount = 10_001 }), nil, 4_000, []string{movement.ReasonAmount, movement.ReasonReturned}},
		"nothing":           {change(func(r *sdk.Return) { r.Amount = 0 }), nil, 4_000, []string{movement.ReasonAmount, movement.ReasonReturned}},
		"less than nothing": {change(func(r *sdk.Return) { r.Amount = -1 }), nil, 4_000, []string{movement.ReasonAmount, movement.ReasonReturned}},
		"in dollars":        {change(func(*sdk.Return) {}), func(u *sdk.StatusUpdate) { u.Currency = "USD" }, 0, []string{movement.ReasonCurrency}},
		"of another request": {
			change(func(*sdk.Return) {}), func(u *sdk.StatusUpdate) { u.Reference = ofAnotherRequest(u.Reference) }, 0, []string{movement.ReasonContradiction},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				m := paidFor(w)
				u := returning(m, sdk.StatusUnknown, c.odd, part)
				if c.update != nil {
					c.update(&u)
				}
				w.hear(u)
				w.hear(u)
				w.wantMoney("A", "PAID", 10_000, c.back, false)
				w.wantListed(c.listed...)
			})
		})
	}
}

// TestReturnOfWhatIsNotPaidYet: that money of an open payment went back is a reason to
// look, and what is found is applied, the payment first.
func TestReturnOfWhatIsNotPaidYet(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.want(w.create("A"), "PENDING")
		m := w.stored("A")
		r := sdk.Return{ID: "r1", Sort: sdk.ReturnRefund, Amount: 4_000}
		w.pass(time.Minute)
		w.hear(returning(m, sdk.StatusUnknown, r)) // the provider says that it is pending
		if asked := w.up.asked(); asked != 1 {
			t.Errorf("the provider was asked %d times", asked)
		}
		w.wantMoney("A", "PENDING", 0, 0, false)
		w.wantTold()
		w.pass(time.Minute)
		w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return returning(m, sdk.StatusDone, r) }
		w.hear(returning(m, sdk.StatusUnknown, r))
		w.wantMoney("A", "PAID", 10_000, 4_000, false)
		w.wantTold(ends+" PAID", taken+" PAID")
		w.wantListed(movement.ReasonReturned)
	})
}

// TestReturnBehindAnUncertainEnd: whose commit went through and was not heard of, and what is
// told of the same payment behind it, are two events.
func TestReturnBehindAnUncertainEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		w.want(w.create("A"), "PENDING")
		m := w.stored("A")
		w.up.find = func(sdk.Lookup) sdk.StatusUpdate {
			return returning(m, sdk.StatusDone, sdk.Return{ID: "r1", Sort: sdk.ReturnRefund, Amount: 4_000})
		}
		w.faults.move = func(do func() (bool, error)) (bool, error) {
			w.faults.move = nil
			if done, err := do(); !done || err != nil {
				t.Errorf("it ended nothing: %v", err)
			}
			return false, errAway
		}
		w.pass(time.Minute)
		w.hear(returning(m, sdk.StatusUnknown, sdk.Return{ID: "r1", Sort: sdk.ReturnRefund, Amount: 4_000}))
		w.wantMoney("A", "PAID", 10_000, 4_000, false)
		w.wantTold(ends+" PAID", taken+" PAID")
		w.wantListed(movement.ReasonReturned)
	})
}

// TestReturnOfLateMoney: late money that goes back is told, and the payment stays expired.
func TestReturnOfLateMoney(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]*kindCase{"signed": payments, "hinted": hinted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, of, func(w *world) {
				w.want(w.create("A"), "PENDING")
				w.want(w.cancel("A"), "EXPIRED")
				m := w.stored("A")
				w.pass(time.Minute)
				w.hear(w.up.pay(m.UpstreamReference(), "p"))
				w.wantMoney("A", "EXPIRED", 10_000, 0, false)
				w.pass(time.Minute)
				r := sdk.Return{ID: "r1", Sort: sdk.ReturnVoid, Amount: 10_000, At: w.now()}
				w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return returning(m, sdk.StatusDone, r) }
				w.hear(returning(m, sdk.StatusUnknown, r))
				w.hear(returning(m, sdk.StatusUnknown, r))
				w.wantMoney("A", "EXPIRED", 10_000, 10_000, true)
				w.wantTold(ends+" EXPIRED", late+" EXPIRED", taken+" EXPIRED")
				w.wantListed(movement.ReasonPaidLate, movement.ReasonReturned)
			})
		})
	}
}

// TestReturnOfLateMoneyThatNobodyTells: late money is asked about as a success is, also a
// day after the last lookup of what had expired.
func TestReturnOfLateMoneyThatNobodyTells(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		w.want(w.create("A"), "PENDING")
		w.want(w.cancel("A"), "EXPIRED")
		m := w.stored("A")
		w.work("A", 50*time.Hour)
		if now := w.stored("A"); !now.DueAt.IsZero() {
			t.Fatalf("what has expired is due at %v still", now.DueAt)
		}
		w.hear(w.up.pay(m.UpstreamReference(), "p"))
		w.up.set(func() {
			r := sdk.Return{ID: "r1", Sort: sdk.ReturnRefund, Amount: 10_000, At: w.now()}
			w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return returning(m, sdk.StatusDone, r) }
		})
		w.work("A", 200*24*time.Hour)
		w.wantMoney("A", "EXPIRED", 10_000, 10_000, true)
		w.wantTold(ends+" EXPIRED", late+" EXPIRED", taken+" EXPIRED")
		w.wantListed(movement.ReasonPaidLate, movement.ReasonReturned)
		if now := w.stored("A"); !now.DueAt.IsZero() {
			t.Errorf("it is due at %v for ever", now.DueAt)
		}
	})
}

// TestPaidShort: what arrived is told once, as often as it is another amount; an override
// to success books that, and what goes back then is of that. The rest that arrives ends it.
func TestPaidShort(t *testing.T) {
	t.Parallel()
	short := func(w *world, amount money.Amount, event string) movement.Movement {
		m := w.stored("A")
		w.hear(sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: sdk.StatusDone, Amount: amount, Currency: "IDR", EventID: event})
		return m
	}
	t.Run("decided", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, payments, keeperFor(t), handClock())
		w.up.find = blind
		w.want(w.create("A"), "PENDING")
		short(w, 9_000, "p")
		m := short(w, 9_000, "p")
		w.wantMoney("A", "PENDING", 9_000, 0, false)
		w.wantTold(differs + " PENDING")
		w.wantListed(movement.ReasonAmount)
		for _, operator := range []string{ayu, budi} {
			if _, err := w.says(operator, movement.OverrideSucceeded); err != nil {
				t.Fatal(err)
			}
		}
		w.wantMoney("A", "PAID", 9_000, 0, false)
		w.wantTold(differs+" PENDING", ends+" PAID")
		w.pass(time.Hour)
		w.hear(returning(m, sdk.StatusUnknown, sdk.Return{ID: "r1", Sort: sdk.ReturnRefund, Amount: 9_000, At: w.now()}))
		w.wantMoney("A", "FAILED", 9_000, 9_000, true)
		for _, c := range w.told() {
			if !strings.Contains(string(c.Body), `"paid_amount":9000`) {
				t.Errorf("told without what arrived: %s", c.Body)
			}
		}
	})
	t.Run("the rest arrives", func(t *testing.T) {
		t.Parallel()
		inMemory(t, payments, func(w *world) {
			w.want(w.create("A"), "PENDING")
			short(w, 9_000, "p")
			short(w, 9_500, "q")
			w.wantMoney("A", "PENDING", 9_500, 0, false)
			short(w, 10_000, "r")
			w.wantMoney("A", "PAID", 10_000, 0, false)
			w.wantTold(differs+" PENDING", differs+" PENDING", ends+" PAID")
		})
	})
	for _, status := range []sdk.Status{sdk.StatusFailed, sdk.StatusExpired} {
		t.Run("the provider says "+status.String(), func(t *testing.T) { // which is not for it to decide any more
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.want(w.create("A"), "PENDING")
				m := short(w, 9_000, "p")
				u := sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: status, Currency: "IDR", EventID: "f"}
				w.hear(u)
				u.Amount = 9_000
				w.hear(u)
				w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return u }
				w.work("A", 48*time.Hour)
				w.wantMoney("A", "PENDING", 9_000, 0, false)
				w.wantTold(differs + " PENDING")
				w.wantListed(movement.ReasonAmount, movement.ReasonAmount, movement.ReasonUnresolved)
				for _, operator := range []string{ayu, budi} {
					if _, err := w.says(operator, movement.OverrideSucceeded); err != nil {
						t.Fatal(err)
					}
				}
				w.wantMoney("A", "PAID", 9_000, 0, false)
			})
		})
	}
	t.Run("its merchant cancels", func(t *testing.T) {
		t.Parallel()
		inMemory(t, payments, func(w *world) {
			w.want(w.create("A"), "PENDING")
			short(w, 9_000, "p")
			w.want(w.cancel("A"), "PENDING")
			if w.up.cancels != 0 {
				t.Error("the provider was asked to end it")
			}
			w.wantMoney("A", "PENDING", 9_000, 0, false)
		})
	})
	t.Run("it had expired at that moment", func(t *testing.T) {
		t.Parallel()
		inMemory(t, payments, func(w *world) {
			w.want(w.create("A"), "PENDING")
			m := w.stored("A")
			seen := m
			short(w, 9_000, "p")
			c := movement.Change{Transition: movement.Apply(operationIn(w.catalog, createPath).Rules, seen, movement.Fact{
				Source: movement.FromLookup, Says: movement.SaysExpired, Reference: m.UpstreamReference(), EventID: "e", Now: w.now(),
			}), Movement: seen, At: w.now()}
			if done, err := w.keeper.Apply(t.Context(), c); err != nil || !done { // of another replica, which had not seen it
				t.Fatal(done, err)
			}
			short(w, 9_000, "p")
			w.wantMoney("A", "EXPIRED", 9_000, 0, false)
			w.wantTold(differs+" PENDING", late+" EXPIRED")
		})
	})
	t.Run("the rest arrives after a decision", func(t *testing.T) {
		t.Parallel()
		inMemory(t, payments, func(w *world) {
			w.want(w.create("A"), "PENDING")
			m := short(w, 9_000, "p")
			for _, operator := range []string{ayu, budi} {
				if _, err := w.says(operator, movement.OverrideSucceeded); err != nil {
					t.Fatal(err)
				}
			}
			short(w, 10_000, "q")
			short(w, 10_000, "q")
			w.wantMoney("A", "PAID", 10_000, 0, false)
			w.wantTold(differs+" PENDING", ends+" PAID", differs+" PAID")
			w.hear(returning(m, sdk.StatusUnknown, sdk.Return{ID: "r1", Sort: sdk.ReturnRefund, Amount: 10_000, At: w.now()}))
			w.wantMoney("A", "FAILED", 10_000, 10_000, true)
		})
	})
}

// TestTokenProvesNothing: a notification that a token alone proves changes nothing by
// itself. The provider is asked, and soon once more where it says otherwise.
func TestTokenProvesNothing(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"paid", "paid again", "failed", "ended", "less", "dollars"} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			inMemory(t, hinted, func(w *world) {
				w.want(w.create("A"), "PENDING")
				m := w.stored("A")
				w.pass(time.Minute)
				for range 3 {
					w.hear(news(m)[says])
				}
				w.want(w.status("A"), "PENDING")
				w.wantTold()
				w.wantListed()
				if asked := w.up.asked(); asked != 1 {
					t.Errorf("the provider was asked %d times, and may be once in %v", asked, lookEvery)
				}
				if due := w.stored("A").DueAt; due.After(w.now().Add(lookEvery)) {
					t.Errorf("it is asked about again in %v", due.Sub(w.now()))
				}
				w.up.pay(m.UpstreamReference(), "p") // its books are later than its notification
				w.work("A", 2*lookEvery)
				w.want(w.status("A"), "PAID")
				w.wantTold(ends + " PAID")
				w.wantListed()
			})
		})
	}
}

// TestHintsPutNothingOff: who knows where a provider notifies keeps nothing from being
// found out by hinting all the time, nor has two proofs that nothing was sent come closer.
func TestHintsPutNothingOff(t *testing.T) {
	t.Parallel()
	inMemory(t, hinted, func(w *world) {
		m := w.unanswered("A")
		w.up.find = missing
		for w.stored("A").State.Unknown() && w.now().Sub(m.CreatedAt) < time.Hour {
			w.pass(time.Second)
			w.hear(news(m)["paid"])
			if now := w.stored("A"); now.State.Unknown() && !now.DueAt.After(w.now()) {
				if err := w.Resolve(w.Context(), now); err != nil {
					t.Fatal(err)
				}
			}
		}
		if now := w.stored("A"); now.State != movement.NotSubmitted {
			t.Fatalf("stands at %s after %v", now.State, w.now().Sub(m.CreatedAt))
		}
		asks := w.up.asks[m.UpstreamReference()]
		proven := m.ProvenAfter(operationIn(w.catalog, createPath).Rules)
		var proofs []time.Time
		for _, at := range asks {
			if !at.Before(proven) {
				proofs = append(proofs, at)
			}
		}
		if n := len(proofs); n < 2 || proofs[n-1].Sub(proofs[0]) < missGap {
			t.Errorf("proven by lookups at %v, from %v on", proofs, proven)
		}
	})
}

// TestNotNamed: an authentic notification that has no more than the upstream's own name is
// an exception of its connection, once for each. Notifications that are accepted do not end it.
func TestNotNamed(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		m := w.stored("A")
		for _, event := range []string{"e-1", "e-1", "e-2"} {
			w.hear(sdk.StatusUpdate{ProviderReference: "up-77", EventID: event, Detail: "a refund"})
			w.hear(sdk.StatusUpdate{ProviderReference: "up-" + event, Detail: "a refund"}) // without a name of its own
			w.hear(sdk.StatusUpdate{EventID: event, Detail: "a payout"})
			w.hear(sdk.StatusUpdate{ProviderReference: "up-78", Status: sdk.StatusDone, Amount: 1, Currency: "IDR", EventID: event}) // of another program's
		}
		w.wantListed(movement.ReasonNotUnderstood, movement.ReasonNotUnderstood, movement.ReasonNotUnderstood, movement.ReasonNotUnderstood)
		if x := w.exception(movement.ReasonNotUnderstood); x.Subject != "notifications of "+provider || !strings.Contains(x.Detail, "up-77") {
			t.Errorf("operators read %+v", x)
		}
		if now := w.stored("A"); now.State != m.State || now.Sequence != m.Sequence {
			t.Errorf("it stands at %s", now.State)
		}
	})
}

// TestNotUnderstood: an authentic notification that nobody understands is an exception of
// its movement, once for each, whatever proves it.
func TestNotUnderstood(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]*kindCase{"signed": payments, "hinted": hinted, "an order": orders, "a transfer": transfers} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, of, func(w *world) {
				w.create("A")
				m := w.stored("A")
				for _, event := range []string{"e-1", "e-1", "e-2"} {
					w.hear(sdk.Unread(m.UpstreamReference(), event, "refund.paused"))
				}
				w.wantListed(movement.ReasonNotUnderstood, movement.ReasonNotUnderstood)
				if x := w.exception(movement.ReasonNotUnderstood); x.Subject != m.ID.String() || !strings.Contains(x.Detail, "refund.paused") {
					t.Errorf("operators read %+v", x)
				}
				if now := w.stored("A"); now.State != m.State || now.Sequence != m.Sequence {
					t.Errorf("it stands at %s", now.State)
				}
			})
		})
	}
}

// TestAnotherAccountEndsNothing: what an account says, by notification or lookup, of a
// movement that was made on another one is an exception.
func TestAnotherAccountEndsNothing(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]*kindCase{"signed": payments, "hinted": hinted, "a transfer": transfers} {
		for _, status := range []sdk.Status{sdk.StatusDone, sdk.StatusFailed} {
			t.Run(name+" "+status.String(), func(t *testing.T) {
				t.Parallel()
				inMemory(t, of, func(w *world) {
					named := func(account string, version int64) {
						w.rekeyed(fmt.Sprintf(`{"account":%q,"client_id":%q,"customer_number":"62811"}`, account, account), version)
					}
					named("first", 1)
					w.up.way = way{after: 100 * time.Hour}
					if answer := w.create("A"); !strings.EqualFold(answer.word(), "pending") {
						t.Fatalf("%s %v", answer.data, answer.err)
					}
					m := w.stored("A")
					if m.ConnectionAccount == "" {
						t.Fatal("nobody knows on which account it was made")
					}
					named("second", 2)
					u := sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: status, Amount: m.Amount, Currency: "IDR", EventID: "e"}
					w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return u }
					w.hear(u)
					w.wantListed(movement.ReasonContradiction)
					w.pass(time.Minute)
					w.work("A", 12*time.Hour)
					if answer := w.status("A"); !strings.EqualFold(answer.word(), "pending") {
						t.Errorf("it is %s", answer.data)
					}
					w.wantTold()
					w.wantListed(movement.ReasonContradiction)
					named("first", 3)
					w.pass(time.Minute)
					w.hear(u)
					rules := operationIn(w.catalog, of.path).Rules
					word := rules.Word(map[sdk.Status]movement.State{sdk.StatusDone: movement.Succeeded, sdk.StatusFailed: movement.Failed}[status])
					w.wantTold(rules.Events.Ended + " " + word)
				})
			})
		}
	}
}

// TestHintThatCantBeAskedAbout is not acknowledged, so that it comes again.
func TestHintThatCantBeAskedAbout(t *testing.T) {
	t.Parallel()
	inMemory(t, hinted, func(w *world) {
		w.want(w.create("A"), "PENDING")
		w.want(w.cancel("A"), "EXPIRED")
		m := w.stored("A")
		w.work("A", 3*time.Hour) // the last lookup for late money
		paid := w.up.pay(m.UpstreamReference(), "p")
		w.up.find = blind
		if _, err := w.notify(tenants.Live, paid); fault.From(err) == nil || fault.From(err).Code != fault.ProviderUnavailable {
			t.Errorf("acknowledged: %v", err)
		}
		w.up.find = nil
		w.hear(paid)
		w.wantMoney("A", "EXPIRED", 10_000, 0, false)
		w.wantTold(ends+" EXPIRED", late+" EXPIRED")
	})
}

// TestReturnThatGrew: one that is told again with another amount is an exception each time,
// since nobody knows which of them is true.
func TestReturnThatGrew(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := paidFor(w)
		for _, amount := range []money.Amount{4_000, 4_000, 6_000, 10_000, 10_000} {
			w.hear(returning(m, sdk.StatusUnknown, sdk.Return{ID: "cb", Sort: sdk.ReturnChargeback, Amount: amount}))
		}
		w.wantMoney("A", "PAID", 10_000, 4_000, false)
		w.wantListed(movement.ReasonAmount, movement.ReasonAmount, movement.ReasonReturned)
	})
	inMemory(t, orders, func(w *world) { // which goes back at its price, whatever it cost
		w.create("A")
		m := w.stored("A")
		for range 2 {
			u := returning(m, sdk.StatusDone, sdk.Return{ID: "b", Sort: sdk.ReturnReversal, Amount: m.Cost})
			u.Amount = m.Cost
			w.hear(u)
		}
		w.wantListed(movement.ReasonReturned)
	})
}

// TestWinOfWhatHadNoName: a status alone said that all is gone; a dispute that was won names
// it, and the money is there again. A part of it that comes again is for a person.
func TestWinOfWhatHadNoName(t *testing.T) {
	t.Parallel()
	for amount, listed := range map[money.Amount]string{10_000: movement.ReasonReturned, 4_000: movement.ReasonContradiction} {
		inMemory(t, payments, func(w *world) {
			m := paidFor(w)
			w.pass(time.Hour)
			w.hear(sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: sdk.StatusFailed, Currency: "IDR", EventID: "gone"})
			w.wantMoney("A", "FAILED", 10_000, 10_000, true)
			w.pass(time.Hour)
			for range 2 {
				w.hear(returning(m, sdk.StatusUnknown, sdk.Return{ID: "cb-1", Sort: sdk.ReturnChargeback, Amount: amount, Undone: true, UndoneAt: w.now()}))
			}
			if amount == m.Amount {
				w.wantMoney("A", "PAID", 10_000, 0, false)
			} else {
				w.wantMoney("A", "FAILED", 10_000, 10_000, true)
			}
			if got := w.listed(); len(got) != 2 || !slices.Contains(got, listed) {
				t.Errorf("%v came again: the operators' list has %q", amount, got)
			}
		})
	}
}

// TestManyReturns: more than are kept of one movement are for a person.
func TestManyReturns(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := paidFor(w)
		var returns []sdk.Return
		for i := range 103 {
			returns = append(returns, sdk.Return{ID: fmt.Sprint("r", i), Sort: sdk.ReturnRefund, Amount: 1})
		}
		for range 2 {
			w.hear(returning(m, sdk.StatusUnknown, returns...))
		}
		w.wantMoney("A", "PAID", 10_000, 100, false)
		if x := w.exception(movement.ReasonNotUnderstood); x.FactID != "3 returns more than 100" {
			t.Errorf("operators read %+v", x)
		}
	})
}
