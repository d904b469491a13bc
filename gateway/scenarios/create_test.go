package scenarios

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestFirstAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs []any
		want  string // ID and REF stand for the movement's id and upstream reference
	}{
		"link":     {nil, `{"external_id":"A","checkout_url":"https://gate.example/checkout/ID","status":"PENDING","amount":10000}`},
		"qris":     {[]any{"type", "qris"}, `{"external_id":"A","qr_string":"QR-REF","status":"PENDING","amount":10000}`},
		"metadata": {[]any{"type", "qris", "metadata", map[string]any{"b": "2", "a": "<1>"}}, `{"external_id":"A","qr_string":"QR-REF","status":"PENDING","amount":10000,"metadata":{"a":"<1>","b":"2"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				first := w.create("A", c.pairs...)
				m := w.stored("A")
				if got := first.data; got != strings.NewReplacer("ID", m.ID.String(), "REF", m.UpstreamReference()).Replace(c.want) || first.replayed {
					t.Errorf("got %s, replayed %t", got, first.replayed)
				}
				w.pass(time.Minute)
				if _, err := w.notify(tenants.Live, w.up.pay(m.UpstreamReference(), "pay-1")); err != nil {
					t.Fatal(err)
				}
				again := w.create("A", c.pairs...)
				if again.data != first.data || !again.replayed {
					t.Errorf("after the end: %s, replayed %t", again.data, again.replayed)
				}
				if m = w.stored("A"); m.State != movement.Succeeded || m.ProviderReference != "up-"+m.UpstreamReference() || m.FactID != "pay-1" {
					t.Errorf("stored %+v", m)
				}
			})
		})
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		byHeader := w.request("")
		byHeader.IdempotencyKey = "K"
		first := w.run(byHeader)
		w.want(first, "PENDING")
		for _, pairs := range [][]any{nil, {"type", "payment_link"}, {"amount", json.Number("10000.00")}} {
			if again := w.create("K", pairs...); again.data != first.data || !again.replayed {
				t.Errorf("%v: %s, replayed %t, %v", pairs, again.data, again.replayed, again.err)
			}
		}
		w.want(w.create("", "payer_email", "other@shop.example"), "PENDING")
		w.want(w.create(""), "PENDING")
		if things, _ := w.up.made(); things != 3 {
			t.Errorf("%d things exist", things)
		}
		test := w.request("K", "amount", json.Number("5000"))
		test.Identity.Mode = tenants.Test
		w.want(w.run(test), "PENDING") // nothing crosses
	})
}

func TestDuplicateReference(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs  []any
		fields []string
	}{
		"amount":           {[]any{"amount", json.Number("10001")}, []string{"amount"}},
		"more":             {[]any{"metadata", map[string]any{"a": "1"}, "description", "x"}, []string{"description", "metadata"}},
		"another default":  {[]any{"type", "qris"}, []string{"type"}},
		"another and less": {[]any{"success_url", "https://shop.example/b", "payer_email", "b@shop.example"}, []string{"payer_email", "success_url"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.want(w.create("A"), "PENDING")
				s := w.create("A", c.pairs...)
				w.want(s, "DUPLICATE_REFERENCE no never")
				var fields []string
				for _, f := range s.err.Fields {
					fields = append(fields, f.Field)
				}
				if !slices.Equal(fields, c.fields) || s.err.Reference != "A" || s.replayed {
					t.Errorf("fields %q, want %q; reference %q, replayed %t", fields, c.fields, s.err.Reference, s.replayed)
				}
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refusal sdk.Refusal
		code    fault.Code
		message string
	}{
		"as it is":          {sdk.Refusal{Code: sdk.RefuseOther, Message: "At least Rp 1.000."}, fault.ProviderRejected, "At least Rp 1.000."},
		"with fields":       {sdk.Refusal{Code: sdk.RefuseDestination, Message: "x", Fields: []sdk.FieldFault{{Field: "amount", Message: "is too small"}}}, fault.DestinationInvalid, "x"},
		"no words":          {sdk.Refusal{Code: sdk.RefuseProduct}, fault.ProductUnavailable, "The provider refused the request."},
		"no code":           {sdk.Refusal{Message: "no"}, fault.ProviderRejected, "no"},
		"a code of ours":    {sdk.Refusal{Code: "AUTH_FAILED", Message: "no"}, fault.ProviderRejected, "no"},
		"a code of nobody":  {sdk.Refusal{Code: "BROKE", Message: "no"}, fault.ProviderRejected, "no"},
		"a code of retries": {sdk.Refusal{Code: "RATE_LIMITED", Message: "no"}, fault.ProviderRejected, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.up.way = way{unmade: true, says: func(sdk.Call) sdk.Result { return sdk.Result{Outcome: sdk.Refused, Refusal: c.refusal} }}
				for i := range 2 {
					s := w.create("A")
					if s.err == nil || s.err.Code != c.code || s.err.Message != c.message || len(s.err.Fields) != len(c.refusal.Fields) ||
						s.err.Sent != fault.SentRefused || s.err.Retry != fault.RetryNever || s.replayed != (i > 0) {
						t.Errorf("answer %d: %+v, replayed %t", i, s.err, s.replayed)
					}
				}
				w.want(w.status("A"), "FAILED")
			})
		})
	}
}

// TestNotReady: what can't be sent now is refused before anything is claimed,
// and what exists is answered all the same.
func TestNotReady(t *testing.T) {
	t.Parallel()
	for name, hinder := range map[string]func(w *world){
		"breaker open": func(w *world) {
			w.up.available = &host.Unavailable{Provider: provider, Reason: "open", RetryAfter: 3 * time.Second}
		},
		"plugin down": func(w *world) { w.up.available = errNoPlugin },
		"not connected": func(w *world) {
			account, err := tenants.NewAccount(w.account.Merchant(), nil, nil, nil)
			if err != nil {
				w.Fatal(err)
			}
			w.account = account
		},
		"connection paused": func(w *world) {
			w.account = w.pausing(w.account, tenants.Pause{What: tenants.PauseConnection, Provider: provider, Mode: tenants.Live, SetBy: "ops"})
		},
		"provider paused": func(w *world) {
			w.pausing(nil, tenants.Pause{What: tenants.PauseProvider, Provider: provider, SetBy: "ops"})
		},
		"sealed otherwise": func(w *world) { w.Vault = openVault{locked: true} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				first := w.create("A")
				hinder(w)
				if again := w.create("A"); again.data != first.data || !again.replayed {
					t.Errorf("what exists is answered %s, %v", again.data, again.err)
				}
				w.want(w.create("A", "amount", json.Number("10007")), "DUPLICATE_REFERENCE no never")
				s := w.create("B")
				w.want(s, map[bool]string{true: notConnected, false: notSentLater}[name == "not connected"])
				if wait := s.err.RetryAfter; (wait > 0) != (name == "breaker open") {
					t.Errorf("retry after %v", wait)
				}
				if _, err := w.keeper.MovementByKey(w.Context(), w.keyOf("B")); err == nil {
					t.Error("it was claimed")
				}
				w.faults.down = errAway
				w.want(w.create("A"), "INTERNAL unknown lookup_first") // it was sent, and nobody can say so now
			})
		})
	}
}

// TestDatabaseAway: a merchant who is told "not sent" may pay under another
// reference, so it is only told of references that nobody else can have used.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.want(w.create("A"), "PENDING")
		w.faults.reserve = w.reserveFault("fails")
		w.faults.down = errAway
		w.want(w.create("A"), "INTERNAL unknown lookup_first")
		w.want(w.create(""), "INTERNAL no later")
		_, found, err := w.Stored(w.Context(), w.request("A"))
		if w.want(said{err: fault.From(err)}, "INTERNAL unknown lookup_first"); found {
			t.Error("found without a database")
		}
		w.want(w.status("A"), "INTERNAL no later")
		w.restart()
		w.want(w.create("A"), "PENDING")
	})
}

func TestWhileTheCallIsUnderWay(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.before = func(sdk.Call) {
			w.up.before = nil
			s := w.create("A")
			if w.want(s, "IN_PROGRESS no later"); s.err.RetryAfter != time.Second {
				t.Errorf("retry after %v", s.err.RetryAfter)
			}
			w.want(w.create("A", "type", "qris"), "DUPLICATE_REFERENCE no never")
			w.want(w.cancel("A"), "IN_PROGRESS no later")
			w.want(w.status("A"), "PENDING")
			answer, found, err := w.Stored(w.Context(), w.request("A"))
			if w.want(said{err: fault.From(err)}, "IN_PROGRESS no later"); !found || answer.Replayed {
				t.Errorf("found %t, replayed %t", found, answer.Replayed)
			}
		}
		w.want(w.create("A"), "PENDING")
		if things, calls := w.up.made(); things != 1 || calls != 1 || w.up.asked() != 0 {
			t.Errorf("%d things, %d calls, %d lookups", things, calls, w.up.asked())
		}
	})
}

// TestOvertaken: somebody else's news comes while the call is under way.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	const accepts, refuses, sendsNot, loses = "works", "refused", "not sent", "unknown, made"
	news := map[string]func(w *world, call sdk.Call){
		"paid":   func(w *world, call sdk.Call) { w.hear(finding(call, sdk.StatusDone)) },
		"failed": func(w *world, call sdk.Call) { w.hear(finding(call, sdk.StatusFailed)) },
		"seen": func(w *world, _ sdk.Call) {
			if err := w.Resolve(w.Context(), w.stored("A")); err != nil {
				w.Error(err)
			}
		},
		"proven unsent": func(w *world, _ sdk.Call) { w.prove("A") },
		"claimed again": func(w *world, _ sdk.Call) {
			w.prove("A")
			w.up.way = way{}
			w.want(w.create("A"), "PENDING")
		},
	}
	for _, c := range []struct {
		news, says string
		word       string
		listed     []string
		ends       string
	}{
		{"paid", accepts, "PENDING", nil, "PAID"},
		{"failed", accepts, "PENDING", nil, "FAILED"},
		{"seen", accepts, "PENDING", nil, "PENDING"},
		{"proven unsent", accepts, timedOut, []string{movement.ReasonContradiction}, "NOT_FOUND no never"},
		{"claimed again", accepts, timedOut, []string{movement.ReasonContradiction}, "PENDING"},
		{"seen", loses, "PENDING", nil, "PENDING"},
		{"paid", loses, "PENDING", nil, "PAID"},
		{"failed", loses, "PROVIDER_REJECTED refused never", nil, "FAILED"},
		{"paid", refuses, timedOut, []string{movement.ReasonContradiction}, "PAID"},
		{"failed", refuses, "PROVIDER_REJECTED refused never", nil, "FAILED"},
		{"proven unsent", refuses, "PROVIDER_UNAVAILABLE no later", nil, "NOT_FOUND no never"},
		{"claimed again", refuses, "PROVIDER_UNAVAILABLE no later", nil, "PENDING"},
		{"paid", sendsNot, timedOut, []string{movement.ReasonContradiction}, "PAID"},
		{"proven unsent", sendsNot, "PROVIDER_UNAVAILABLE no later", nil, "NOT_FOUND no never"},
	} {
		t.Run(c.news+" "+c.says, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.up.way = wayNamed(c.says)
				w.up.after = func(call sdk.Call) {
					w.up.after = nil
					news[c.news](w, call)
				}
				s := w.create("A")
				w.want(s, c.word)
				w.wantListed(c.listed...)
				w.want(w.status("A"), c.ends)
				if again := w.create("A"); s.err == nil && again.data != s.data {
					t.Errorf("first %s, then %s", s.data, again.data)
				}
			})
		})
	}
}

// finding is a notification's word on what a call made.
func finding(call sdk.Call, standing sdk.Status) sdk.StatusUpdate {
	return sdk.StatusUpdate{Reference: call.Reference, Status: standing, Amount: call.Amount, Currency: "IDR", EventID: "fact-" + call.Reference}
}

// prove lets the worker find nothing until that is proof.
func (w *world) prove(reference string) {
	w.Helper()
	w.up.set(func() {
		w.up.find = missing
	})
	w.work(reference, 2*time.Minute)
	w.up.set(func() { w.up.find = nil })
	if state := w.stored(reference).State; state != movement.NotSubmitted {
		w.Errorf("it stands at %s", state)
	}
}

// TestFreeAgain: a reference of which nothing was sent may carry another
// request, under another name at the provider.
func TestFreeAgain(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.way = way{unmade: true, says: func(sdk.Call) sdk.Result { return sdk.DidNotSend(sdk.BlameNone, "no process") }}
		w.want(w.create("A"), "PROVIDER_UNAVAILABLE no later")
		w.want(w.status("A"), "NOT_FOUND no never")
		w.want(w.cancel("A"), "NOT_FOUND no never")
		if _, found, err := w.Stored(w.Context(), w.request("A")); found || err != nil {
			t.Errorf("stored: %t, %v", found, err)
		}
		unsent := w.stored("A")
		w.up.available = errNoPlugin
		w.want(w.create("A", "amount", json.Number("500")), "PROVIDER_UNAVAILABLE no later")
		w.restart()
		w.up.available = nil
		w.want(w.create("A", "amount", json.Number("500")), "PENDING")
		m := w.stored("A")
		if m.ID != unsent.ID || m.Attempt != 2 || m.Amount != 500 || m.UpstreamReference() == unsent.UpstreamReference() {
			t.Errorf("got %+v", m)
		}
		if _, calls := w.up.made(); calls != 1 {
			t.Errorf("called %d times", calls)
		}
	})
}

// TestReferenceFreedDuringReservation: the reference is freed between the claim that did not
// get it and the read of who has it.
func TestReferenceFreedDuringReservation(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.way = wayNamed("not sent")
		w.create("A")
		w.faults.reserve = func(ctx context.Context, _ reserving) (movement.Movement, bool, error) {
			if by, bounded := ctx.Deadline(); !bounded || by.Sub(w.now()) > sendWindow {
				t.Errorf("a claim may take until %v", by)
			}
			return w.stored("A"), false, nil
		}
		w.want(w.create("A"), "PROVIDER_UNAVAILABLE no later")
		w.want(w.create("A", "amount", json.Number("500")), "PROVIDER_UNAVAILABLE no later")
	})
}

// TestRepetitionFreesAnUnsentReference: the merchant's own repetition proves that nothing was sent,
// and the next one sends.
func TestRepetitionFreesAnUnsentReference(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.unanswered("A")
		w.pass(time.Minute)
		w.want(w.create("A"), timedOut)
		w.pass(missGap)
		w.want(w.create("A"), "PROVIDER_UNAVAILABLE no later")
		w.restart()
		w.want(w.create("A"), "PENDING")
	})
}

// TestLinkIsNoAnswerToQRIS: a link is no answer to who asked for a QR code.
func TestLinkIsNoAnswerToQRIS(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.way = way{says: func(sdk.Call) sdk.Result {
			return sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage(`{"payment_url":"https://pay.example/1"}`)}
		}}
		s := w.create("A", "type", "qris")
		if !strings.Contains(s.data, `"qr_string":"QR-`) {
			t.Errorf("got %s, %v", s.data, s.err)
		}
	})
}

// TestPendingWithoutAnOffer: accepted is known, but not what there is to pay.
func TestPendingWithoutAnOffer(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
			f := w.up.stands(l.Reference)
			f.Data = nil
			return f
		}
		w.up.way = way{says: func(sdk.Call) sdk.Result { return sdk.DontKnow(sdk.BlameUpstream, "cut") }}
		w.want(w.create("A", "type", "qris"), timedOut)
		w.want(w.status("A"), "PENDING")
		w.up.find = nil
		w.pass(lookEvery)
		s := w.create("A", "type", "qris")
		m := w.stored("A")
		if want := "QR-" + m.UpstreamReference(); !strings.Contains(s.data, want) {
			t.Errorf("got %s, %v; want %s", s.data, s.err, want)
		}
		w.wantListed()
	})
}

// TestALimitOfOurAccountIsNotListed: it passes by itself, and the breaker tells where it
// does not.
func TestALimitOfOurAccountIsNotListed(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		w.up.way = way{unmade: true, says: func(sdk.Call) sdk.Result { return sdk.DidNotSend(sdk.BlameLimit, "429") }}
		w.want(w.create("A"), "PROVIDER_UNAVAILABLE no later")
		w.wantListed()
	})
}

// TestAFaultOfOurAccountIsListed: nobody but an operator can mend it, so it is
// told: each kind once however often it happens, and again where it goes on after
// somebody has resolved it.
func TestAFaultOfOurAccountIsListed(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		detail := "401 INVALID_API_KEY: request 1 is refused"
		w.up.way = way{unmade: true, says: func(sdk.Call) sdk.Result { return sdk.DidNotSend(sdk.BlameAccount, detail) }}
		fails := func(reference, said string) {
			w.Helper()
			w.up.set(func() { detail = said })
			w.want(w.create(reference), "PROVIDER_UNAVAILABLE no later")
		}
		fails("A", "401 INVALID_API_KEY: request 1 is refused")
		w.pass(24 * time.Hour)
		fails("B", "401 INVALID_API_KEY: request 2 is refused")
		w.wantListed(movement.ReasonAccount)
		fails("C", "403 the address is not allowed")
		w.wantListed(movement.ReasonAccount, movement.ReasonAccount)
		for _, a := range w.entries() {
			w.pass(time.Second)
			if err := w.keeper.ResolveException(w.Context(), w.now(), a, "ops-1", "mended"); err != nil {
				w.Fatal(err)
			}
		}
		w.wantListed()
		w.pass(time.Second)
		fails("D", "401 INVALID_API_KEY: request 3 is refused")
		fails("E", "401 INVALID_API_KEY: request 4 is refused")
		w.wantListed(movement.ReasonAccount)
		if a := w.entries()[0]; !strings.Contains(a.FactID, "invalid_api_key") || a.Detail != "401 INVALID_API_KEY: request 3 is refused" {
			w.Errorf("listed %+v", a)
		}
	})
}
