package scenarios

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// mails are those that wait to be sent, of this stall.
func (w *world) mails() (own []movement.QueuedMail) {
	w.Helper()
	var all []int
	for b := range movement.Buckets {
		all = append(all, b)
	}
	due, err := w.keeper.DueMails(w.Context(), all, time.Time{}, w.now(), 1000)
	if err != nil {
		w.Fatal(err)
	}
	for _, mail := range due {
		if mail.Owner.MerchantID == string(w.account.ID()) {
			own = append(own, mail)
		}
	}
	return own
}

// TestPaidCollectionGetsOneReceipt pays one sale, lets another expire, and asks about
// both again and again.
func TestPaidCollectionGetsOneReceipt(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	var woken atomic.Int32
	w.MailCommitted = func() { woken.Add(1) }
	var succeeded, expired atomic.Int32
	w.Moved = func(c movement.Change) {
		to := c.To
		switch to {
		case movement.Succeeded:
			succeeded.Add(1)
		case movement.Expired:
			expired.Add(1)
		default:
		}
	}
	m := w.sold("INV/1", 10_000)
	w.sold("INV/2", 10_000)
	w.pass(4 * time.Minute)
	at := w.now()
	w.up.write(paid("r1", m.Amount, at))
	for range 3 {
		w.pass(readEvery)
		w.status("INV/1")
		w.status("INV/2")
	}
	w.pass(48 * time.Hour)
	w.up.set(func() { w.up.through = w.now() })
	for range 3 {
		w.pass(readEvery)
		w.status("INV/2")
	}
	if s := w.stored("INV/2").State; s != movement.Expired {
		t.Errorf("the other is %s", s)
	}
	if succeeded.Load() != 1 || expired.Load() != 1 {
		t.Errorf("%d are counted as succeeded, %d as expired", succeeded.Load(), expired.Load())
	}
	mails := w.mails()
	if len(mails) != 1 || woken.Load() != 1 {
		t.Fatalf("%d mails, woken %d times", len(mails), woken.Load())
	}
	got := mails[0]
	if got.To != "payer@shop.example" || got.MovementID != m.ID || got.Subject != "Bukti pembayaran ke Toko: "+m.Amount.Format() ||
		!strings.Contains(got.Text, at.In(time.FixedZone("WIB", 7*60*60)).Format("15:04:05")) || !strings.Contains(got.Text, "INV/1") {
		t.Errorf("%+v", got)
	}
}

// TestWhoGetsNoReceipt sells to payers who leave no address, and where no mail can be
// sent.
func TestWhoGetsNoReceipt(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	m.State = movement.Succeeded
	collections := kind.AddCollection(w.Lifecycle, w.reconciler)
	if collections.Receipt(t.Context(), m) == nil {
		t.Fatal("a paid sale has no receipt")
	}
	for name, request := range map[string]string{
		"of nobody": `{"body":{"amount":1}}`, "not a text": `{"body":{"payer_email":7}}`, "not readable": `{`,
	} {
		other := m
		if other.Request = []byte(request); collections.Receipt(t.Context(), other) != nil {
			t.Errorf("%s: there is a receipt", name)
		}
	}
	m.Owner.Mode = "test"
	if got := collections.Receipt(t.Context(), m); !strings.HasPrefix(got.Subject, "[Test] ") {
		t.Errorf("of test mode: %+v", got)
	}
	w.up.write(paid("r1", m.Amount, w.now()))
	w.pass(readEvery)
	w.status("INV/1")
	if now := w.stored("INV/1"); now.State != movement.Succeeded || len(w.mails()) != 0 {
		t.Errorf("it is %s with %d mails where none can be sent", now.State, len(w.mails()))
	}
}
