package callback_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestSecretRotationUnderTraffic rotates a callback secret while payments are
// paid. A merchant verifies every delivery who adds the next secret when it is
// shown and removes the old one when the rotation is finished.
func TestSecretRotationUnderTraffic(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	m := harness.NewMerchant(t, p, "payments")
	s, box, first := p.Of(m, "test"), harness.NewReceiver(t, 0), m.TestCallbackSecret
	rest := traffic(t, p, s, box)

	phase := func(action string) (begun, done int, told string) {
		t.Helper()
		begun = len(box.All())
		changed, err := adminapi.ChangeCallbackSecret.Call(t.Context(), p.Admin(), adminapi.SecretChange{Merchant: s.MerchantID, Mode: "test", Action: action})
		if err != nil {
			t.Fatal(err)
		}
		return begun, len(box.All()), changed.CallbackSecret
	}
	more := func() {
		t.Helper()
		begun := len(box.All())
		harness.Await(t, harness.CallbacksWithin, "fifteen more deliveries", func() bool { return len(box.All()) >= begun+15 })
	}
	more()
	rotating, rotated, next := phase("rotate")
	more()
	switching, _, _ := phase("switch")
	more()
	finishing, finished, _ := phase("finish")
	more()
	rest()

	signedBy := map[string]int{}
	for i, one := range box.All() {
		// What was under way at a step may still carry the signature of before it.
		accepted := []string{first, next}
		switch {
		case i < rotating:
			accepted = accepted[:1]
		case i > finished+trafficAtOnce:
			accepted = accepted[1:]
		}
		signedBy[wantOneOf(t, fmt.Sprintf("delivery %d", i), one, accepted)]++
		if i > rotated+trafficAtOnce && i < finishing {
			wantOneOf(t, "the old secret during the rotation", one, []string{first}, anySignature)
			wantOneOf(t, "the next secret during the rotation", one, []string{next}, anySignature)
		}
	}
	t.Logf("%d deliveries: rotated at %d, switched at %d, finished at %d; signed by the old one %d, by the next %d",
		len(box.All()), rotating, switching, finishing, signedBy[first], signedBy[next])
	if signedBy[first] < switching || signedBy[next] == 0 {
		t.Errorf("signed by the old secret %d times, by the next %d", signedBy[first], signedBy[next])
	}
}

// trafficAtOnce is how many deliveries may be under way at a step.
const trafficAtOnce = 4

// traffic has payments made and paid until rest is called.
func traffic(t *testing.T, p *harness.Program, s harness.Shop, box *harness.Receiver) (rest func()) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			a, err := s.Post(t.Context(), "/payments/create", s.PaymentBody(harness.Fields{"type": "qris", "amount": 34000 + n}), "X-Callback-URL", box.URL)
			if err == nil && a.Retry == fault.RetryLater {
				continue // as merchants do where a busy machine could not judge a request in time
			}
			if err != nil || !a.Success {
				t.Errorf("traffic: %v %s", err, a)
				return
			}
			one := &paidBatch{box: box, made: []harness.Payment{a.Payment()}, paid: []bool{false}}
			one.payAll(t.Context(), p)
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// anySignature leaves the service's own signature out of what must verify.
const anySignature = true

// wantOneOf verifies a delivery as a merchant does who knows these secrets, and
// returns the one that made the service's own signature.
func wantOneOf(t *testing.T, what string, one harness.Callback, secrets []string, webhookAlone ...bool) (signer string) {
	t.Helper()
	verified := slices.ContainsFunc(secrets, func(secret string) bool {
		library, err := standardwebhooks.NewWebhook(secret)
		return err == nil && library.Verify(one.Raw, one.Header) == nil
	})
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(one.Raw)
		if hex.EncodeToString(mac.Sum(nil)) == one.Header.Get("X-Svc-Signature") {
			signer = secret
		}
	}
	if !verified || signer == "" && len(webhookAlone) == 0 {
		t.Errorf("%s can't be verified: library %v, own signature %v", what, verified, signer != "")
	}
	return signer
}

// TestEventListRecoversMissedCallbacks reads a merchant's event list to its end,
// as after an outage of the receiver: every final state is there once, in order,
// and no other merchant's.
func TestEventListRecoversMissedCallbacks(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	m := harness.NewMerchant(t, p, "payments")
	s := p.Of(m, "test")
	var want []string
	for range 5 {
		made := s.Create(t, harness.Fields{"type": "qris"})
		p.Pay(t, harness.Fields{"qr_string": made.QRString})
		s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
		want = append(want, made.ExternalID)
	}
	other := p.Of(m, "live").Create(t, harness.Fields{"type": "qris"})
	p.Pay(t, harness.Fields{"qr_string": other.QRString})

	var got []string
	cursor := harness.Fields{"limit": 2}
	harness.Await(t, harness.CallbacksWithin, "all events", func() bool {
		a := s.Ask(t, "/events", cursor)
		var page []struct {
			ID, Time string
			Body     struct {
				Event string
				Data  struct {
					Reference string `json:"external_id"`
					Status    string
				}
			}
		}
		if err := json.Unmarshal(a.Data, &page); err != nil || len(page) > 2 {
			t.Fatalf("%v: %s", err, a)
		}
		for _, event := range page {
			if event.Body.Event != "payments.status_update" || event.Body.Data.Status != "PAID" || event.Time == "" {
				t.Fatalf("%s", a)
			}
			got = append(got, event.Body.Data.Reference)
			cursor["after"] = event.ID
		}
		return len(got) >= len(want)
	})
	if a := s.Ask(t, "/events", cursor); string(a.Data) != "[]" || !slices.Equal(got, want) {
		t.Errorf("got %q and then %s, want %q and no more", got, a.Data, want)
	}
}
