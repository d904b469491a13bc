package sandbox

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/qris"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// demoCode is a published example of a static code: it belongs to nobody.
const demoCode = "00020101021126670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI" +
	"51370014ID.CO.QRIS.WWW0215ID10191234567815204123453033605802ID5914NamaMerchantC16009NamaKota1" +
	"6110123456789062070703K196304B22E"

// Simulator is the upstream: its state in memory, its journal on disk.
type Simulator struct {
	env     *kit.Env
	options Options
	demo    qris.Code
	rates   *rates
	agenda  *kit.Agenda[task]

	invoiceTopic *kit.Topic[invoiceEvent]
	qrTopic      *kit.Topic[qrEvent]

	// mu guards the state. The apply functions run under it, or in Replay.
	mu       sync.RWMutex
	invoices invoiceBook
	codes    codeBook
	refunds  refundBook
}

// task is something that happens later to an invoice, a code or a refund.
type task struct {
	do func(*Simulator, string) error
	id string
}

// New replays the journal of env and returns the upstream as it was.
func New(env *kit.Env, options Options) (*Simulator, error) {
	demo, err := qris.Parse(demoCode)
	if err != nil {
		return nil, err
	}
	s := &Simulator{
		env: env, options: options, demo: demo,
		rates:    &rates{limit: options.RateLimit, windows: map[rateKey]*window{}},
		invoices: newInvoiceBook(),
		codes:    newCodeBook(),
		refunds:  newRefundBook(),
	}
	s.agenda = kit.NewAgenda(env.Clock, func(_ context.Context, t task) {
		if err := t.do(s, t.id); err != nil {
			env.Log.Warn("something due did not happen", "id", t.id, "err", err)
		}
	})
	s.invoiceTopic = kit.NewTopic(env.Journal, "invoice", s.applyInvoice)
	s.qrTopic = kit.NewTopic(env.Journal, "qr", s.applyQR)
	env.Faults.ServerError = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fail(w, errServer) })
	if err := env.Begin(); err != nil {
		return nil, err
	}
	env.Go(s.agenda.Run)
	return s, nil
}

// Handler serves the API and the payers' pages.
func (s *Simulator) Handler() http.Handler {
	create := s.guard("invoices.create", true, s.createInvoice)
	list := s.guard("invoices.list", false, s.listInvoices)
	mux := http.NewServeMux()
	mux.Handle("POST /v2/invoices", create)
	mux.Handle("POST /v2/invoices/{$}", create)
	mux.Handle("GET /v2/invoices", list)
	mux.Handle("GET /v2/invoices/{$}", list)
	mux.Handle("GET /v2/invoices/{id}", s.guard("invoices.get", false, s.getInvoice))
	mux.Handle("POST /refunds", s.guard("refunds.create", true, s.createRefund))
	mux.Handle("GET /refunds", s.guard("refunds.list", false, s.listRefunds))
	mux.Handle("GET /refunds/{id}", s.guard("refunds.get", false, s.getRefund))
	mux.Handle("POST /invoices/{id}/expire!", s.guard("invoices.expire", false, s.expireInvoiceNow))
	mux.Handle("POST /qr_codes", s.guard("qr_codes.create", true, s.createQR))
	mux.Handle("GET /qr_codes/{id}", s.guard("qr_codes.get", false, s.getQR))
	mux.Handle("GET /qr_codes/{id}/payments", s.guard("qr_codes.payments", false, s.listQRPayments))
	kit.NewRoom(s.env, pagePrefix, s.find).Serve(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, problem(http.StatusNotFound, "NOT_FOUND", "The requested resource was not found"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Request-Id", kit.RandomHex(16))
		mux.ServeHTTP(w, r)
	})
}

// now is the present as the upstream tells it: UTC, milliseconds.
func (s *Simulator) now() time.Time { return s.env.Clock.Now().UTC().Truncate(time.Millisecond) }

// stamp is how the upstream writes a time; the zero time is not written.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
