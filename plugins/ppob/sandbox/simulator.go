package sandbox

import (
	"context"
	"net/http"
	"sync"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// jakarta is where the upstream's days begin.
var jakarta = time.FixedZone("WIB", 7*60*60)

// Simulator is the upstream: its state in memory, its journal on disk.
type Simulator struct {
	env     *kit.Env
	options Options
	agenda  *kit.Agenda[string]

	buyerTopic    *kit.Topic[buyerEvent]
	productTopic  *kit.Topic[product]
	inquiryTopic  *kit.Topic[inquiry]
	purchaseTopic *kit.Topic[purchaseEvent]

	// mu guards everything below. The apply functions run under it, or in
	// Replay.
	mu        sync.Mutex
	delay     time.Duration
	accounts  map[kit.AccountID]*account
	products  []*product
	bySKU     map[string]*product
	inquiries map[reference]inquiry
	purchases purchaseBook
	planned   []plannedNext
	listed    map[listing]time.Time
}

// reference is a buyer's own name for a purchase.
type reference struct {
	account kit.AccountID
	text    string
}

// New replays the journal of env and returns the upstream as it was.
func New(env *kit.Env, options Options) (*Simulator, error) {
	s := &Simulator{
		env: env, options: options, delay: options.Delay,
		accounts:  map[kit.AccountID]*account{},
		bySKU:     map[string]*product{},
		inquiries: map[reference]inquiry{},
		purchases: newPurchaseBook(),
		listed:    map[listing]time.Time{},
	}
	s.agenda = kit.NewAgenda(env.Clock, func(_ context.Context, id string) {
		if err := s.resultOf(id); err != nil {
			env.Log.Warn("a result did not come", "id", id, "err", err)
		}
	})
	for _, p := range catalogue() {
		s.setProduct(p)
	}
	s.buyerTopic = kit.NewTopic(env.Journal, "buyer", s.applyBuyer)
	s.productTopic = kit.NewTopic(env.Journal, "product", s.setProduct)
	s.inquiryTopic = kit.NewTopic(env.Journal, "inquiry", s.applyInquiry)
	s.purchaseTopic = kit.NewTopic(env.Journal, "purchase", s.applyPurchase)
	env.Faults.ServerError = http.HandlerFunc(serverError)
	if err := env.Begin(); err != nil {
		return nil, err
	}
	env.Go(s.agenda.Run)
	return s, nil
}

// Handler serves the API.
func (s *Simulator) Handler() http.Handler {
	text := func(fixed string) func(request) string { return func(request) string { return fixed } }
	byRef := func(q request) string { return q.Ref }
	only := func(op operation, commands ...string) http.Handler {
		return s.guard(func(q request) (operation, bool) {
			for _, c := range commands {
				if q.Command == c {
					return op, true
				}
			}
			return op, len(commands) == 0
		})
	}
	transactions := map[string]operation{
		"":             s.operation("transaction", true, byRef, s.buy),
		"inq-pasca":    s.operation("inq-pasca", false, byRef, s.inquire),
		"pay-pasca":    s.operation("pay-pasca", true, byRef, s.payBill),
		"status-pasca": s.operation("status-pasca", false, byRef, s.billStatus),
	}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/cek-saldo", only(s.operation("cek-saldo", false, text("depo"), s.balance), "deposit"))
	mux.Handle("POST /v1/price-list", only(s.operation("price-list", false, text("pricelist"), s.priceList), "", prepaidList, pascaList))
	mux.Handle("POST /v1/transaction", s.guard(func(q request) (operation, bool) {
		op, ok := transactions[q.Commands]
		return op, ok
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, refused{Message: "Halaman tidak ada", Status: failed, Code: rcPayload})
	})
	return mux
}

// Pay implements the kit's upstream: nothing here is paid by a payer.
func (s *Simulator) Pay(kit.PayRequest) (kit.Receipt, error) { return kit.Receipt{}, kit.ErrUnknown }

// balance answers what is left of the deposit.
func (s *Simulator) balance(c call) (any, error) {
	s.mu.Lock()
	left := s.accounts[c.account].deposit
	s.mu.Unlock()
	// What is answered must not be undone by a crash.
	return map[string]any{"deposit": left}, s.env.Journal.Sync()
}

// now is the present as the journal keeps it.
func (s *Simulator) now() time.Time { return s.env.Clock.Now().UTC() }

// newID returns an id that was never used.
func newID() string { return kit.RandomHex(12) }
