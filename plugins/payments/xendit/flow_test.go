package xendit

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// ways are what a payment can be made of.
var ways = map[string]struct{ body, link string }{
	"link":         {linkBody, "invoice"},
	"QR code":      {qrisBody, "invoice"},
	"link as code": {linkBody, "qr"},
}

// eachWay runs a flow for each way, in a world of its own.
func eachWay(t *testing.T, flow func(w *world, body string)) {
	t.Helper()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sandbox.DefaultOptions())
			var settings map[string]string
			if err := json.Unmarshal(w.connection.Credentials, &settings); err != nil {
				t.Fatal(err)
			}
			w.connection = connect(t, settings["base_url"], "link", way.link)
			flow(w, way.body)
		})
	}
}

func TestPaid(t *testing.T) {
	t.Parallel()
	eachWay(t, func(w *world, body string) {
		result := w.made(body, 50000)
		if want := today.Add(time.Hour); body == linkBody && !result.ExpiresAt.Equal(want) {
			w.Errorf("expires %v, want %v", result.ExpiresAt, want)
		}
		w.stands(body, result, 50000, sdk.StatusPending)
		if found := w.find(body, 50000, ""); string(found.Data) != string(result.Data) || !found.ExpiresAt.Equal(result.ExpiresAt) {
			w.Errorf("a lookup can't stand in for the lost answer: %+v of %+v", found, result)
		}
		w.pay(result)
		found := w.only(w.next(), sdk.StatusDone, 50000)
		if found.ProviderReference != result.ProviderReference || found.EventID == "" || !found.At.Equal(today) {
			w.Errorf("the webhook says %+v of %+v", found, result)
		}
		w.stands(body, result, 50000, sdk.StatusDone)
		w.exist(1)
	})
}

func TestQRStringIsACodeOfTheAmount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.DefaultOptions())
	var p payable
	if err := json.Unmarshal(w.made(qrisBody, 12345).Data, &p); err != nil {
		t.Fatal(err)
	}
	code, err := qris.Parse(p.QRString)
	if err != nil {
		t.Fatal(err)
	}
	if amount, ok := code.Amount(); !ok || amount != 12345 {
		t.Errorf("the code asks for %v", amount)
	}
}

func TestAnotherAmountIsToldAsItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.DefaultOptions())
	result := w.made(qrisBody, 50000)
	var p payable
	if err := json.Unmarshal(result.Data, &p); err != nil {
		t.Fatal(err)
	}
	less := money.Amount(49999)
	if _, err := w.simulator.Pay(kit.PayRequest{QRString: p.QRString, Amount: &less}); err != nil {
		t.Fatal(err)
	}
	w.only(w.next(), sdk.StatusDone, less)
}

func TestDuplicateWebhooksAreOneEvent(t *testing.T) {
	t.Parallel()
	eachWay(t, func(w *world, body string) {
		w.pay(w.made(body, 10110))
		first, second := w.only(w.next(), sdk.StatusDone, 10110), w.only(w.next(), sdk.StatusDone, 10110)
		if first.EventID != second.EventID {
			w.Errorf("one webhook has the ids %q and %q", first.EventID, second.EventID)
		}
	})
}

// An outdated "expired" after the payment, or before it, is told as it is: the gateway asks
// how the payment stands.
func TestOutOfOrderWebhooks(t *testing.T) {
	t.Parallel()
	for amount, told := range map[money.Amount][]sdk.Status{
		10111: {sdk.StatusDone, sdk.StatusExpired}, 10113: {sdk.StatusExpired, sdk.StatusDone},
	} {
		w := newWorld(t, sandbox.DefaultOptions())
		result := w.made(linkBody, amount)
		w.pay(result)
		w.only(w.next(), told[0], amount)
		w.clock.Advance(2 * time.Second)
		w.only(w.next(), told[1], amount)
		w.stands(linkBody, result, amount, sdk.StatusDone)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	eachWay(t, func(w *world, body string) {
		result := w.made(body, 50000)
		w.clock.Advance(result.ExpiresAt.Sub(today) - time.Second)
		w.stands(body, result, 50000, sdk.StatusPending)
		w.clock.Advance(2 * time.Second)
		w.stands(body, result, 50000, sdk.StatusExpired)
		if !isQR(result.ProviderReference) { // a code ends without a word
			w.only(w.next(), sdk.StatusExpired, 50000)
		}
	})
}

func TestLateMoneyIsTold(t *testing.T) {
	t.Parallel()
	eachWay(t, func(w *world, body string) {
		const amount = 10115 // the upstream takes it for an expired link, too
		result := w.made(body, amount)
		w.clock.Advance(result.ExpiresAt.Sub(today) + time.Second)
		w.stands(body, result, amount, sdk.StatusExpired)
		if !isQR(result.ProviderReference) {
			w.only(w.next(), sdk.StatusExpired, amount)
		}
		w.pay(result)
		w.only(w.next(), sdk.StatusDone, amount)
		w.stands(body, result, amount, sdk.StatusDone)
	})
}

func TestCancelEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.DefaultOptions())
	result := w.made(linkBody, 50000)
	for range 2 { // also what has ended already
		if ended := w.cancel(w.Context(), cancelCall(w.connection, result.ProviderReference)); ended.Outcome != sdk.Done {
			t.Errorf("got %+v", ended)
		}
	}
	w.stands(linkBody, result, 50000, sdk.StatusExpired)
}

func TestCancelOfWhatIsPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.DefaultOptions())
	result := w.made(linkBody, 50000)
	w.pay(result)
	if ended := w.cancel(w.Context(), cancelCall(w.connection, result.ProviderReference)); ended.Outcome != sdk.Refused {
		t.Errorf("got %+v", ended)
	}
	w.stands(linkBody, result, 50000, sdk.StatusDone)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for fault, exists := range map[kit.Fault]int{
		kit.FaultError500: 0, kit.FaultDropBefore: 0, kit.FaultDropAfter: 1, kit.FaultGarbage: 1,
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(w *world, body string) {
				if err := w.env.Faults.Add(fault, "", 1); err != nil {
					w.Fatal(err)
				}
				result := w.create(w.Context(), w.call(body, 50000))
				if result.Outcome != sdk.Unknown || result.Blame != sdk.BlameUpstream {
					w.Errorf("got %+v, want unknown", result)
				}
				w.exist(exists)
				want := map[int]sdk.Status{0: sdk.StatusNotFound, 1: sdk.StatusPending}[exists]
				found := w.find(body, 50000, "")
				if found.Status != want || (want == sdk.StatusPending && len(found.Data) == 0) {
					w.Errorf("a lookup finds %+v, want status %v", found, want)
				}
			})
		})
	}
}

// The upstream does it after we have stopped waiting.
func TestSlowUpstream(t *testing.T) {
	t.Parallel()
	eachWay(t, func(w *world, body string) {
		if err := w.env.Faults.Add(kit.FaultLatency, "", 1); err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		go func() {
			<-w.arrived
			cancel()
		}()
		if result := w.create(ctx, w.call(body, 50000)); result.Outcome != sdk.Unknown {
			w.Errorf("got %+v, want unknown", result)
		}
		for range 100 { // far less than the life of a code
			w.clock.Advance(3 * time.Second)
			if w.find(body, 50000, "").Status == sdk.StatusPending {
				w.exist(1)
				return
			}
		}
		w.Error("what was done late is not found")
	})
}

func TestMagicRefusals(t *testing.T) {
	t.Parallel()
	for amount, want := range map[money.Amount]sdk.Result{
		10100: {Outcome: sdk.NotSent, Blame: sdk.BlameAccount},
		10101: {Outcome: sdk.NotSent, Blame: sdk.BlameUpstream},
		10102: {Outcome: sdk.Unknown, Blame: sdk.BlameUpstream},
	} {
		w := newWorld(t, sandbox.DefaultOptions())
		for _, body := range []string{linkBody, qrisBody} {
			result := w.create(t.Context(), w.call(body, amount))
			if result.Outcome != want.Outcome || result.Blame != want.Blame {
				t.Errorf("%d: got %+v", amount, result)
			}
		}
		w.exist(0)
	}
}

func TestTheProvidersBoundsAreNamed(t *testing.T) {
	t.Parallel()
	options := sandbox.DefaultOptions()
	options.MinAmount, options.MaxInvoice, options.MaxQR = 10000, 20000, 15000
	w := newWorld(t, options)
	for _, c := range []struct {
		body   string
		amount money.Amount
		bound  string
	}{
		{linkBody, 9999, "10000"}, {linkBody, 20001, "20000"}, {qrisBody, 9999, "10000"}, {qrisBody, 15001, "15000"},
	} {
		result := w.create(t.Context(), w.call(c.body, c.amount))
		fields := result.Refusal.Fields
		if result.Outcome != sdk.Refused || len(fields) != 1 || fields[0].Field != "amount" || !strings.Contains(fields[0].Message, c.bound) {
			t.Errorf("%d: %+v, want the bound %s", c.amount, result, c.bound)
		}
	}
	w.exist(0)
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	options := sandbox.DefaultOptions()
	options.RateLimit = 1
	w := newWorld(t, options)
	w.made(linkBody, 50000)
	second := w.call(linkBody, 50000)
	second.Reference = "gb-0002"
	if result := w.create(t.Context(), second); result.Outcome != sdk.NotSent || result.Blame != sdk.BlameLimit {
		t.Errorf("got %+v", result)
	}
	w.exist(1)
}

func TestForeignKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.DefaultOptions())
	c := w.connection
	w.connection.Credentials = json.RawMessage(strings.Replace(string(c.Credentials), testKey, "sk_unknown", 1))
	w.connection.Version++
	if result := w.create(t.Context(), w.call(linkBody, 50000)); result.Outcome != sdk.NotSent || result.Blame != sdk.BlameAccount {
		t.Errorf("got %+v", result)
	}
	if found := w.find(linkBody, 50000, ""); found.Status != sdk.StatusUnknown || found.Blame != sdk.BlameAccount {
		t.Errorf("got %+v", found)
	}
}

// The gateway never sends a reference twice that may be under way; were it to, also
// at once, there would still be one payment.
func TestOneReferenceIsOnePayment(t *testing.T) {
	t.Parallel()
	eachWay(t, func(w *world, body string) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				result := w.create(w.Context(), w.call(body, 50000))
				if result.Outcome != sdk.Pending && result.Outcome != sdk.Unknown {
					w.Errorf("got %+v", result)
				}
			})
		}
		group.Wait()
		w.exist(1)
		if again := w.create(w.Context(), w.call(body, 50000)); again.Outcome != sdk.Pending {
			w.Errorf("what exists is not read back: %+v", again)
		}
	})
}

// A reference that was tried before, and of which the upstream has nothing, is made
// once nothing of the first can be under way any more.
func TestAReferenceIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sandbox.DefaultOptions())
	call := w.call(linkBody, 50000)
	call.SendBy = time.Time{}
	w.attempts.begin(call.Reference, w.now())
	w.clock.Advance(attemptLasts - time.Second)
	if early := w.create(w.Context(), call); early.Outcome != sdk.Unknown {
		t.Errorf("while the first may be under way: %+v", early)
	}
	w.exist(0)
	w.clock.Advance(attemptLasts)
	if made := w.create(w.Context(), call); made.Outcome != sdk.Pending {
		t.Errorf("afterwards: %+v", made)
	}
	w.clock.Advance(attemptLasts)
	if again := w.create(w.Context(), call); again.Outcome != sdk.Pending {
		t.Errorf("what exists is not read back: %+v", again)
	}
	w.exist(1)
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	var a attempts
	now := time.Now()
	for i := range 3 * rememberedAttempts {
		if !a.begin(time.Duration(i).String(), now).IsZero() {
			t.Fatalf("attempt %d was no new one", i)
		}
	}
	if n := len(a.recent) + len(a.older); n > 2*rememberedAttempts {
		t.Errorf("%d are remembered", n)
	}
	last := time.Duration(3*rememberedAttempts - 1).String()
	if !a.begin(last, now).Equal(now) {
		t.Error("the last attempt is forgotten")
	}
	a.forget(last)
	if !a.begin(last, now).IsZero() {
		t.Error("a forgotten attempt is remembered")
	}
}
