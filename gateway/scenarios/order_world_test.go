package scenarios

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// ordering is the catalog of the ppob plugin's own manifest.
var ordering = ownCatalog("ppob")

func ordersOf(path string) *catalog.Operation { return operationIn(ordering(), path) }

const (
	ppob    = "ppob"
	opening = money.Amount(1_000_000)
	markup  = money.Amount(500)
)

// shop is a world whose merchant orders from the platform's account.
type shop struct {
	*world
	up      *biller
	shelf   *shelf
	sku     string // what is ordered unless told otherwise
	markup  policy.Markup
	used    []string            // the references
	pending map[string]struct{} // those that somebody was answered Pending for
	mu      sync.Mutex
	opening money.Amount
	opened  movement.Owner // who began with something, the last one
}

func newShop(t *testing.T, k keeper, c clock) *shop {
	t.Helper()
	w := newWorld(t, k, c)
	w.kind = manifest.Order
	s := &shop{
		world: w, up: newBiller(c.now), shelf: &shelf{now: c.now, answers: map[cache.Key]cache.Answer{}}, sku: prepaidSKU,
		markup: policy.Markup{Default: markup}, pending: map[string]struct{}{},
	}
	s.connected(tenants.Platform, "deposit", 1)
	s.opens(w.account, opening)
	s.restart()
	return s
}

// restart is a new process on the same database. What the provider answers is
// the truth from now on.
func (s *shop) restart() {
	s.faults = &faulty{keeper: s.keeper}
	s.up.set(func() {
		s.up.beforeQuote, s.up.before, s.up.after, s.up.find = nil, nil, nil, nil
		s.up.deal.says, s.up.deal.unmade = nil, false
	})
	s.Engine = s.replica(s.faults)
}

// replica is an engine of its own, with what it keeps movements by.
func (s *shop) replica(k keeper) *Engine {
	return New(Dependencies{
		Store: k, Transfers: k, Records: k, Providers: s.up, Shared: s.shelf,
		Accounts: s.world, Vault: openVault{}, Catalog: ordering(), Now: s.now, Log: slog.New(slog.DiscardHandler),
		Committed: func() { s.woken.Add(1) },
	})
}

// inShop runs a test in a bubble of time of its own.
func inShop(t *testing.T, test func(*shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newShop(t, newMemory(), bubbleClock())) })
}

// inShops runs a test in memory and on the real store.
func inShops(t *testing.T, test func(*shop)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { t.Parallel(); inShop(t, test) })
	t.Run("database", func(t *testing.T) {
		t.Parallel()
		s := databaseFor(t)
		test(newShop(t, s, handClock()))
		cleanLedger(t, s)
	})
}

func cleanLedger(t *testing.T, s *store.Store) {
	t.Helper()
	report, err := s.CheckLedger(t.Context(), store.LedgerScope{Full: true})
	if err != nil || !report.Clean() {
		t.Errorf("the ledger is not clean: %+v, %v", report, err)
	}
}

// connected gives a merchant, or the platform, an account at the provider.
func (s *shop) connected(id tenants.MerchantID, username string, version int64) *tenants.Account {
	owner := tenants.OwnerMerchant
	if id == tenants.Platform {
		owner = tenants.OwnerPlatform
	}
	var connections []tenants.Connection
	for _, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
		token, err := tenants.NewNotifyToken(rand.Reader)
		if err != nil {
			s.Fatal(err)
		}
		connections = append(connections, tenants.Connection{
			MerchantID: id, Mode: mode, Provider: ppob, Owner: owner, Version: version,
			Sealed: []byte(`{"username":"` + username + `"}`), NotifyToken: token,
		})
	}
	account, err := tenants.NewAccount(tenants.Merchant{ID: id, Name: "Toko", Tier: "scale", Status: tenants.Active}, nil, connections, nil)
	if err != nil {
		s.Fatal(err)
	}
	s.others[id] = account
	return account
}

// opens gives a merchant what it begins with.
func (s *shop) opens(account *tenants.Account, amount money.Amount) {
	s.Helper()
	owner := movement.Owner{MerchantID: string(account.ID()), Mode: "live"}
	s.opened = owner
	switch k := s.keeper.(type) {
	case *memory:
		if err := k.Credit(s.Context(), owner, amount); err != nil {
			s.Fatal(err)
		}
	case *store.Store:
		audit := store.Audit{Operator: "operator", Action: "test", At: s.now()}
		if err := k.CreateMerchant(s.Context(), audit, account.Merchant(), nil, nil); err != nil {
			s.Fatal(err)
		}
		a := store.Adjustment{Owner: owner, Reference: "opening", Amount: amount, Reason: "opening"}
		if _, err := k.Adjust(s.Context(), audit, a, money.Max); err != nil {
			s.Fatal(err)
		}
	}
	s.opening = amount
}

// shelf shares answers as the cache does, within one process.
type shelf struct {
	now     func() time.Time
	mu      sync.Mutex
	answers map[cache.Key]cache.Answer
	away    error
}

// Get is for the engine.
func (s *shelf) Get(ctx context.Context, key cache.Key, maxAge time.Duration, fetch func(context.Context) (json.RawMessage, error)) (cache.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return cache.Answer{}, s.away
	}
	if a, ok := s.answers[key]; ok && s.now().Sub(a.FetchedAt) < maxAge {
		return a, nil
	}
	body, err := fetch(ctx)
	if err != nil {
		return cache.Answer{}, err
	}
	a := cache.Answer{Body: body, FetchedAt: s.now(), Version: uuid.NewString()}
	s.answers[key] = a
	return a, nil
}

// stock changes what can be bought, for all who ask from now on.
func (s *shop) stock(change func(*product)) {
	s.up.set(func() {
		s.up.products = slices.Clone(s.up.products)
		for i := range s.up.products {
			change(&s.up.products[i])
		}
	})
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	clear(s.shelf.answers)
}

// asks is a request of this merchant.
func (s *shop) asks(path string, pairs ...any) Request {
	body := catalog.Document{}
	for i := 0; i+1 < len(pairs); i += 2 {
		body[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return Request{
		Identity:  tenants.Identity{Account: s.account, Mode: tenants.Live},
		Operation: ordersOf(path), Body: body, RequestID: uuid.NewString(), Ticket: policy.Ticket{Limits: policy.Limits{Markup: s.markup}},
	}
}

// ordering is a request for an order; pairs change its body, and nil takes out.
func (s *shop) ordering(reference string, pairs ...any) Request {
	r := s.asks(orderPath, "ref_id", reference, "sku", s.sku, "target", "081200001111")
	if s.sku == billSKU {
		r.Body["qty"] = json.Number((billTotal + markup).String())
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if r.Body[fmt.Sprint(pairs[i])] = pairs[i+1]; pairs[i+1] == nil {
			delete(r.Body, fmt.Sprint(pairs[i]))
		}
	}
	return r
}

// order orders, and remembers what was promised.
func (s *shop) order(reference string, pairs ...any) said {
	r := s.ordering(reference, pairs...)
	if wrong := r.Operation.Check(r.Body); len(wrong) > 0 {
		s.Errorf("the edge would refuse %v", wrong)
	}
	answer := s.run(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.used, reference) {
		s.used = append(s.used, reference)
	}
	if answer.err == nil && !answer.crashed {
		s.pending[reference] = struct{}{}
	}
	return answer
}

func (s *shop) stateOf(reference string) said {
	answer := s.run(s.asks(orderStatusPath, "ref_id", reference))
	if answer.err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pending[reference] = struct{}{}
	}
	return answer
}

// hears tells the engine findings on the route of an account.
func (s *shop) hears(account *tenants.Account, findings ...sdk.StatusUpdate) {
	s.Helper()
	s.up.set(func() { s.up.ack = sdk.Acknowledgement{Status: 200, Updates: findings} })
	c, _ := account.Connection(tenants.Live, ppob)
	if _, err := s.notifyAt(s.Context(), ppob, c.NotifyToken); err != nil {
		s.Error(err)
	}
}

func (s *shop) platformAccount() *tenants.Account { return s.others[tenants.Platform] }

// balance is what the merchant has.
func (s *shop) balance() ledger.Balance {
	s.Helper()
	b, err := s.keeper.Balance(s.Context(), s.keyOf("").Owner)
	if err != nil {
		s.Fatal(err)
	}
	return b
}

func (s *shop) wantBalance(available, held money.Amount) {
	s.Helper()
	if b := s.balance(); b.Available != available || b.Held != held {
		s.Errorf("available %v, held %v; want %v and %v", b.Available, b.Held, available, held)
	}
}

// postings are the merchant's transactions.
func (s *shop) postings() []ledger.Transaction {
	s.Helper()
	var all []ledger.Transaction
	switch k := s.keeper.(type) {
	case *memory:
		if all = k.Postings(s.opened); s.opened != s.keyOf("").Owner {
			all = append(all, k.Postings(s.keyOf("").Owner)...)
		}
	case *store.Store:
		entries, err := k.AccountStatement(s.Context(), s.keyOf("").Owner, time.Unix(0, 0), s.now().Add(1e6*time.Hour), nil, 10_000)
		if err != nil {
			s.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Transaction)
		}
	}
	return all
}

func nameOfMovement(id movement.ID) string { return hex.EncodeToString(id[:]) }

func number(n money.Amount) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

// wantCode checks an error by its code and its fields.
func (s *shop) wantCode(a said, code fault.Code, fields ...string) {
	s.Helper()
	if a.err == nil || a.err.Code != code {
		s.Errorf("got %s %v, want %s", a.data, a.err, code)
		return
	}
	var named []string
	for _, f := range a.err.Fields {
		named = append(named, f.Field)
	}
	if !slices.Equal(named, fields) {
		s.Errorf("%v names %q, want %q", a.err, named, fields)
	}
}
