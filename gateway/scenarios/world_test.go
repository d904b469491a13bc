package scenarios

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/query"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func operation(path string) *catalog.Operation { return operationIn(payments.catalog(), path) }

func transfersOf(path string) *catalog.Operation { return operationIn(transfers.catalog(), path) }

func ordersOf(path string) *catalog.Operation { return operationIn(orders.catalog(), path) }

// ownCatalog is the catalog of a plugin's own manifest, built once.
func ownCatalog(plugin string) func() *catalog.Catalog {
	return sync.OnceValue(func() *catalog.Catalog { return catalogOf(ownManifest(plugin)) })
}

func ownManifest(plugin string) []byte {
	document, err := os.ReadFile(filepath.Join("..", "..", "plugins", plugin, "manifest.json"))
	if err != nil {
		panic(err)
	}
	return document
}

// signedCatalog is the catalog of a plugin as if its provider signed what it notifies of.
func signedCatalog(plugin string) func() *catalog.Catalog {
	return sync.OnceValue(func() *catalog.Catalog { return catalogOf(signed(ownManifest(plugin))) })
}

// signed is a manifest whose provider signs what it notifies of.
func signed(document []byte) []byte {
	const token, signed = `"notification_proof": "token"`, `"notification_proof": "signed"`
	if !bytes.Contains(document, []byte(token)) {
		panic("a manifest that does not say token")
	}
	return bytes.Replace(document, []byte(token), []byte(signed), 1)
}

func catalogOf(document []byte) *catalog.Catalog {
	parsed, err := manifest.Parse(document)
	if err != nil {
		panic(err)
	}
	snapshot, err := catalog.Build([]*manifest.Manifest{parsed})
	if err != nil {
		panic(err)
	}
	return catalog.New(snapshot)
}

func operationIn(c *catalog.Catalog, path string) *catalog.Operation {
	op, ok := c.Current().ByPath(path)
	if !ok {
		panic("the manifest has no " + path)
	}
	return op
}

// keeper is what a world's movements are kept by: the store in memory or the real one. Both
// pass package storetest, and answer random calls alike.
type keeper interface {
	lifecycle.Store
	lifecycle.OutageList
	kind.TransferRegister
	kind.RefundRegister
	reconcile.PaidOut
	reconcile.Statements
	reconcile.Lines
	query.Records
	override.Records
	History(ctx context.Context, id movement.ID) ([]movement.HistoryEntry, error)
	NotesOf(ctx context.Context, id movement.ID) ([]movement.Note, error)
	CallbacksOfMovement(ctx context.Context, owner movement.Owner, id movement.ID, history []movement.HistoryEntry) ([]movement.Callback, error)
	DueMails(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.QueuedMail, error)
	Usage(ctx context.Context, owner movement.Owner, period string) ([]store.Used, error)
	Callback(ctx context.Context, key movement.CallbackKey) (movement.Callback, error)
	OpenExceptions(ctx context.Context, most int) ([]movement.Exception, error)
	ResolveException(ctx context.Context, now time.Time, a movement.Exception, operator, resolution string) error
}

// clock is a world's time: the bubble's, or one that tests turn by hand.
type clock struct {
	now  func() time.Time
	pass func(time.Duration)
	real bool // waiting takes time all the same
}

func bubbleClock() clock { return clock{now: time.Now, pass: time.Sleep} } // synctest's own time

func handClock() clock {
	var mu sync.Mutex
	at := time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)
	return clock{
		now:  func() time.Time { mu.Lock(); defer mu.Unlock(); return at },
		pass: func(d time.Duration) { mu.Lock(); defer mu.Unlock(); at = at.Add(d) },
		real: true,
	}
}

// world is one merchant, the provider of one kind, and the engine between them.
type world struct {
	testing.TB
	clock
	*Engine
	of      *kindCase
	catalog *catalog.Catalog
	keeper  keeper
	faults  *faulty
	up      *upstream
	shelf   *shelf
	account *tenants.Account
	others  map[tenants.MerchantID]*tenants.Account
	wallet  movement.AccountID // of collections: whose statement ends them
	woken   atomic.Int32       // how often the dispatcher was
	foreign atomic.Int32       // notifications that named nothing of ours

	// What requests ask and may, unless a test says otherwise.
	path       string
	sku        string
	limits     policy.Limits
	zone       *time.Location
	reconsider func(quote map[string]any) error

	opening money.Amount   // of the merchant's balance
	opened  movement.Owner // who began with something, the last one

	mu           sync.Mutex
	used         []string            // the references
	fingerprints []string            // of transfers without one
	promised     map[string]struct{} // the references that somebody was answered Pending for
}

// lookEvery is how long payments leave their provider alone about one of them.
var lookEvery = operation(createPath).Rules.Pace.Every

func newWorld(t testing.TB, of *kindCase, k keeper, c clock) *world {
	t.Helper()
	w := &world{
		TB: t, clock: c, of: of, catalog: of.catalog(), keeper: k, up: newUpstream(of, c.now), others: map[tenants.MerchantID]*tenants.Account{},
		shelf: &shelf{now: c.now, answers: map[cache.Key]cache.Answer{}}, path: of.path, sku: prepaidSKU, zone: time.UTC, promised: map[string]struct{}{},
	}
	w.account = w.merchant()
	switch of {
	case orders:
		w.limits.Markup = policy.Markup{Default: markup}
		w.connected(tenants.Platform, "deposit", 1)
		w.opens(w.account, opening)
	case transfers:
		w.limits.RepeatWithin = policy.DefaultRepeat
		w.account = w.connected(w.account.ID(), "", 1)
	case collections:
		code := uuid.NewString()
		w.account = w.connects(w.account.ID(), `{"merchant_code":"`+code+`"}`, 1)
		w.wallet = movement.NewAccountID(wallet2, "live", code)
	}
	w.restart()
	return w
}

// restart is a new process on the same database. Faults are over, and what the provider
// answers is the truth from now on.
func (w *world) restart() {
	w.faults = &faulty{keeper: w.keeper}
	w.up.set(func() {
		w.up.beforeQuote, w.up.before, w.up.after, w.up.find, w.up.quote, w.up.statement = nil, nil, nil, nil, nil, nil
		w.up.way.says, w.up.way.unmade, w.up.way.slow = nil, false, 0
	})
	w.Engine = w.replica(w.faults)
}

// replica is an engine of its own, with what it keeps movements by.
func (w *world) replica(k keeper) *Engine {
	return New(Dependencies{
		Store: k, Transfers: k, Refunds: k, PaidOut: k, Records: k, Overrides: k, Statements: k, Lines: k, Providers: w.up, Books: w.up, Shared: w.shelf,
		Accounts: w, Vault: openVault{}, Catalog: w.catalog, Now: w.now, Log: slog.New(slog.DiscardHandler),
		Committed: func() { w.woken.Add(1) }, Foreign: func(string) { w.foreign.Add(1) },
	})
}

// inMemory runs a test of a kind in a bubble of time of its own.
func inMemory(t *testing.T, of *kindCase, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t, of, newMemory(), bubbleClock())) })
}

// onBoth runs a test of a kind in memory, and where tests run long on the real store.
func onBoth(t *testing.T, of *kindCase, test func(*world)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { t.Parallel(); inMemory(t, of, test) })
	t.Run("database", func(t *testing.T) {
		tier.Long(t, "the store in memory answers as the database does")
		t.Parallel()
		s := databaseFor(t)
		test(newWorld(t, of, s, handClock()))
		cleanLedger(t, s)
	})
}

// onReplicas runs a test with one engine in memory, and with two on two stores of one
// database. One of many like it does the latter only where tests run long.
func onReplicas(t *testing.T, of *kindCase, oneOfMany bool, test func(*world, ...*Engine)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		inMemory(t, of, func(w *world) { test(w, w.Engine) })
	})
	t.Run("two replicas", func(t *testing.T) {
		if oneOfMany {
			tier.Long(t, "another of these races runs for each change")
		}
		t.Parallel()
		stores := databasesFor(t, 2)
		w := newWorld(t, of, stores[0], handClock())
		other := &faulty{keeper: stores[1], judged: func() { fire(w.faults.judged) }, compared: func() { fire(w.faults.compared) }}
		test(w, w.Engine, w.replica(other))
		cleanLedger(t, stores[0])
	})
}

func cleanLedger(t *testing.T, s keeper) {
	t.Helper()
	real, is := s.(*store.Store)
	if !is {
		return
	}
	report, err := real.CheckLedger(t.Context(), store.LedgerScope{Full: true})
	if err != nil || !report.Clean() {
		t.Errorf("the ledger is not clean: %+v, %v", report, err)
	}
}

// keeperFor is one keeper for a whole test, for worlds with merchants of their own: in
// memory for each change, and the real store where tests run long.
func keeperFor(t testing.TB) keeper {
	t.Helper()
	if tier.IsLong() {
		return databaseFor(t)
	}
	return newMemory()
}

// databaseFor is the real store, for what the database proves.
func databaseFor(t testing.TB) *store.Store {
	t.Helper()
	return databasesFor(t, 1)[0]
}

// replicasFor keep the movements of several replicas: one memory that they share, and
// stores of their own on one database where tests run long.
func replicasFor(t testing.TB, n int) []keeper {
	t.Helper()
	var all []keeper
	if !tier.IsLong() {
		shared := newMemory()
		for range n {
			all = append(all, shared)
		}
		return all
	}
	for _, s := range databasesFor(t, n) {
		all = append(all, s)
	}
	return all
}

// databasesFor are the stores of several replicas on one database.
func databasesFor(t testing.TB, n int) []*store.Store {
	t.Helper()
	url := dbtest.New(t, "engine"+store.MigrationsDigest(), func(ctx context.Context, url string) error {
		return store.Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	stores := make([]*store.Store, n)
	for i := range stores {
		s, err := store.Open(t.Context(), url, store.Options{MaxConns: 8})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		stores[i] = s
	}
	return stores
}

// merchant adds an account, which is connected to the provider of payments.
func (w *world) merchant(secrets ...tenants.CallbackSecret) *tenants.Account {
	account := newAccount(tenants.NewMerchantID(), provider, "{}", 1, secrets...)
	w.others[account.ID()] = account
	return account
}

// connected gives a merchant, or the platform, an account at the provider.
func (w *world) connected(id tenants.MerchantID, username string, version int64) *tenants.Account {
	sealed := "{}"
	if username != "" {
		sealed = `{"username":"` + username + `"}`
	}
	return w.connects(id, sealed, version)
}

func (w *world) connects(id tenants.MerchantID, sealed string, version int64) *tenants.Account {
	account := newAccount(id, w.of.provider, sealed, version)
	w.others[id] = account
	return account
}

// newAccount makes an account with a connection in each mode, and what else it is given.
func newAccount(id tenants.MerchantID, provider, sealed string, version int64, secrets ...tenants.CallbackSecret) *tenants.Account {
	for i := range secrets {
		secrets[i].MerchantID = id
	}
	owner := tenants.OwnerMerchant
	if id == tenants.Platform {
		owner = tenants.OwnerPlatform
	}
	var connections []tenants.Connection
	for _, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
		token, err := tenants.NewNotifyToken(rand.Reader)
		if err != nil {
			panic(err)
		}
		connections = append(connections, tenants.Connection{
			MerchantID: id, Mode: mode, Provider: tenants.Provider(provider), Owner: owner, Version: version, Sealed: []byte(sealed), NotifyToken: token,
		})
	}
	account, err := tenants.NewAccount(tenants.Merchant{ID: id, Name: "Toko", Tier: "scale", Status: tenants.Active}, nil, connections, secrets)
	if err != nil {
		panic(err)
	}
	return account
}

// reconnected gives the merchant other connections.
func (w *world) reconnected(connections []tenants.Connection) {
	w.Helper()
	account, err := tenants.NewAccount(w.account.Merchant(), nil, connections, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.account, w.others[account.ID()] = account, account
}

func (w *world) platformAccount() *tenants.Account { return w.others[tenants.Platform] }

// Account is for the engine.
func (w *world) Account(_ context.Context, id tenants.MerchantID) (*tenants.Account, error) {
	if account, ok := w.others[id]; ok {
		return account, nil
	}
	return nil, tenants.ErrNotFound
}

// ByNotifyToken is for the engine.
func (w *world) ByNotifyToken(_ context.Context, _ time.Time, p tenants.Provider, token tenants.NotifyToken) (*tenants.Account, tenants.Connection, error) {
	for _, account := range w.others {
		for _, c := range account.Connections() {
			if c.Provider == p && c.NotifyToken == token {
				return account, c, nil
			}
		}
	}
	return nil, tenants.Connection{}, tenants.ErrNotFound
}

type openVault struct{ locked bool }

func (v openVault) OpenCredentials(c tenants.Connection) ([]byte, error) {
	if v.locked {
		return nil, errors.New("sealed with another key")
	}
	return c.Sealed, nil
}

// asks is a request of this merchant; pairs are of its body, and nil takes one out.
func (w *world) asks(path string, pairs ...any) Request {
	r := Request{
		Identity: tenants.Identity{Account: w.account, Mode: tenants.Live}, Operation: operationIn(w.catalog, path), Body: catalog.Document{},
		RequestID: uuid.NewString(), Ticket: policy.Ticket{Limits: w.limits, Zone: w.zone},
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if r.Body[fmt.Sprint(pairs[i])] = pairs[i+1]; pairs[i+1] == nil {
			delete(r.Body, fmt.Sprint(pairs[i]))
		}
	}
	if w.reconsider != nil {
		r.Reconsider = func(_ context.Context, quote map[string]any) error { return w.reconsider(quote) }
	}
	if w.of == collections {
		r.Remaining, r.CallbackURL = new(int64(41)), "https://shop.example/hook"
	}
	return r
}

// request is a creation, under no reference where it is ""; pairs change its body.
func (w *world) request(reference string, pairs ...any) Request {
	var body []any
	for name, value := range w.of.body(w) {
		body = append(body, name, value)
	}
	if reference != "" {
		body = append(body, w.of.reference, reference)
	}
	return w.asks(w.path, append(body, pairs...)...)
}

// create creates, and remembers what was promised.
func (w *world) create(reference string, pairs ...any) said {
	w.Helper()
	return w.sends(w.Engine, w.request(reference, pairs...))
}

func (w *world) sends(e *Engine, r Request) said {
	w.Helper()
	if wrong := r.Operation.Check(r.Body); len(wrong) > 0 {
		w.Errorf("the edge would refuse %v", wrong)
	}
	answer := w.runOn(e, r)
	key := w.keyOfRequest(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if reference := r.Operation.ReferenceOf(r.Body); reference != "" && !slices.Contains(w.used, reference) {
		w.used = append(w.used, reference)
	} else if print := w.fingerprintOf(r); reference == "" && print != "" && !slices.Contains(w.fingerprints, print) {
		w.fingerprints = append(w.fingerprints, print)
	}
	if answer.word() == "Pending" {
		w.promised[key.Reference] = struct{}{}
	}
	return answer
}

// status asks how a movement stands by its reference.
func (w *world) status(reference string) said {
	answer := w.run(w.asks(w.of.status, w.of.reference, reference))
	if answer.err == nil && w.of == orders {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.promised[reference] = struct{}{}
	}
	return answer
}

// statusBy asks for a status by a name of the transfer.
func (w *world) statusBy(pairs ...any) said {
	w.Helper()
	r := w.asks(w.of.status, pairs...)
	if wrong := r.Operation.Check(r.Body); len(wrong) > 0 {
		w.Errorf("the edge would refuse %v", wrong)
	}
	return w.run(r)
}

func (w *world) cancel(reference string) said {
	return w.run(w.asks(cancelPath, "external_id", reference))
}

// said is what a merchant was answered; crashed when the process ended first.
type said struct {
	data     string
	replayed bool
	err      *fault.Error
	crashed  bool
}

type crash struct{}

// dies runs what may end the process, and tells whether it did.
func (w *world) dies(work func()) (died bool) {
	defer func() {
		if thrown := recover(); thrown != nil {
			if _, ours := thrown.(crash); !ours {
				panic(thrown)
			}
			died = true
		}
	}()
	work()
	return false
}

func (w *world) run(r Request) said { return w.runOn(w.Engine, r) }

func (w *world) runOn(e *Engine, r Request) (s said) {
	s.crashed = w.dies(func() {
		answer, err := e.Run(context.WithoutCancel(w.Context()), r)
		if s.replayed = answer.Replayed; err != nil {
			s.err = fault.From(err)
			return
		}
		s.data = w.dataOf(answer)
	})
	return s
}

// dataOf is the data of an answer, however far it is finished.
func (w *world) dataOf(a lifecycle.Answer) string {
	w.Helper()
	if f := a.Finished; f != nil {
		var sent struct{ Data json.RawMessage }
		if err := json.Unmarshal(f.Plain, &sent); err != nil {
			w.Error(err)
		}
		return string(sent.Data)
	}
	var encoded strings.Builder
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false) // as the edge
	if err := encoder.Encode(a.Data); err != nil {
		w.Error(err)
	}
	return strings.TrimSuffix(encoded.String(), "\n")
}

// word is an answer in short: the status, or the error with its promises.
func (s said) word() string {
	if s.crashed {
		return "crashed"
	}
	if s.err != nil {
		return fmt.Sprintf("%s %s %s", s.err.Code, s.err.Sent, s.err.Retry)
	}
	var data struct{ Status string }
	_ = json.Unmarshal([]byte(s.data), &data)
	return data.Status
}

func (w *world) want(s said, word string) {
	w.Helper()
	if s.word() != word {
		w.Errorf("got %s (%v), want %s", s.word(), s.err, word)
	}
}

// wantCode checks an error by its code and its fields.
func (w *world) wantCode(a said, code fault.Code, fields ...string) {
	w.Helper()
	if a.err == nil || a.err.Code != code {
		w.Errorf("got %s %v, want %s", a.data, a.err, code)
		return
	}
	var named []string
	for _, f := range a.err.Fields {
		named = append(named, f.Field)
	}
	if !slices.Equal(named, fields) {
		w.Errorf("%v names %q, want %q", a.err, named, fields)
	}
}

// wantFault is wantCode of an error that also says what was sent.
func (w *world) wantFault(a said, code fault.Code, sent fault.Sent, fields ...string) {
	w.Helper()
	if w.wantCode(a, code, fields...); a.err != nil && a.err.Sent != sent {
		w.Errorf("%v says that %s was sent, want %s", a.err, a.err.Sent, sent)
	}
}

func (w *world) stored(reference string) movement.Movement {
	w.Helper()
	m, err := w.keeper.MovementByKey(w.Context(), w.keyOf(reference))
	if err != nil {
		w.Fatalf("%s: %v", reference, err)
	}
	return m
}

func (w *world) owner() movement.Owner {
	return movement.Owner{MerchantID: string(w.account.ID()), Mode: "live"}
}

func (w *world) keyOf(reference string) movement.Key {
	return movement.Key{Owner: w.owner(), Kind: w.of.kind, Reference: reference}
}

// fingerprintOf begins the references that the gateway gives to a transfer without one.
func (w *world) fingerprintOf(r Request) string {
	if w.of != transfers || r.Operation.ReferenceOf(r.Body) != "" {
		return ""
	}
	r.Body = r.Operation.WithDefaults(r.Body)
	draft := movement.Movement{Operation: r.Operation.Path, Provider: r.Operation.Provider}
	if err := w.transfers.Draft(w.Context(), r, &draft); err != nil {
		w.Error(err)
	}
	to, _ := askedFor(draft.Body())
	draft.Destination = movement.Destination(to)
	print, err := kind.Fingerprint(r.Operation, draft)
	if err != nil {
		w.Error(err)
	}
	return print
}

// keyOfRequest names the movement that a request is about.
func (w *world) keyOfRequest(r Request) movement.Key {
	w.Helper()
	reference := r.Operation.ReferenceOf(r.Body)
	if print := w.fingerprintOf(r); print != "" {
		last, err := w.keeper.LastEqual(w.Context(), w.owner(), manifest.Transfer, print)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			w.Error(err)
		}
		reference = last.Reference
	}
	return w.keyOf(reference)
}

// latest is the movement that a request is about, and whether there is one.
func (w *world) latest(r Request) (movement.Movement, bool) {
	w.Helper()
	m, err := w.keeper.MovementByKey(w.Context(), w.keyOfRequest(r))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		w.Error(err)
	}
	return m, err == nil
}

// listed are the reasons on the operators' list that concern this merchant.
func (w *world) listed() []string {
	w.Helper()
	var reasons []string
	for _, a := range w.entries() {
		reasons = append(reasons, a.Reason)
	}
	slices.Sort(reasons)
	return reasons
}

// entries are what stands on the operators' list about this merchant.
func (w *world) entries() []movement.Exception {
	w.Helper()
	all, err := w.keeper.OpenExceptions(w.Context(), 1000)
	if err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(all, func(a movement.Exception) bool { return a.Owner.MerchantID != string(w.account.ID()) })
}

func (w *world) wantListed(reasons ...string) {
	w.Helper()
	if got := w.listed(); !slices.Equal(got, reasons) {
		w.Errorf("the operators' list has %q, want %q", got, reasons)
	}
}

// exception is this merchant's exception for a reason.
func (w *world) exception(reason string) movement.Exception {
	w.Helper()
	for _, x := range w.entries() {
		if x.Reason == reason {
			return x
		}
	}
	return movement.Exception{}
}

// told are this merchant's callbacks in live mode, the oldest first.
func (w *world) told() []movement.Callback {
	w.Helper()
	events, err := w.keeper.Events(w.Context(), w.owner(), uuid.Nil, 0, 10_000)
	if err != nil {
		w.Fatal(err)
	}
	callbacks := make([]movement.Callback, len(events))
	for i, e := range events {
		if callbacks[i], err = w.keeper.Callback(w.Context(), movement.CallbackKey{Owner: w.owner(), EventID: e.ID}); err != nil {
			w.Fatal(err)
		}
	}
	return callbacks
}

// wantTold checks which callback events there are, each as its name and status; of
// collections with the reference between them.
func (w *world) wantTold(want ...string) {
	w.Helper()
	if got := w.events(); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		w.Errorf("told %q, want %q", got, want)
	}
}

func (w *world) events() []string {
	w.Helper()
	var got []string
	for _, c := range w.told() {
		var body struct{ Data struct{ Status string } }
		if err := json.Unmarshal(c.Body, &body); err != nil {
			w.Errorf("%s: %v", c.Body, err)
		}
		if w.of == collections {
			c.Event += " " + c.Reference
		}
		got = append(got, c.Event+" "+body.Data.Status)
	}
	slices.Sort(got)
	return got
}

// work is the workers, for as long as the time given: they poll the movement, and read
// the statement, whenever these are due. A crash ends it.
func (w *world) work(reference string, span time.Duration) (crashed bool) {
	w.Helper()
	for end := w.now().Add(span); w.now().Before(end); {
		ctx := context.WithoutCancel(w.Context())
		m, err := w.keeper.MovementByKey(ctx, w.keyOf(reference))
		due, at := func() error { return w.Resolve(ctx, m) }, m.DueAt
		if w.of == collections {
			if s := w.statement(); at.IsZero() || !at.Before(s.DueAt) {
				due, at, err = func() error { return w.ReadStatement(ctx, s) }, s.DueAt, nil
			}
		}
		if err != nil || at.IsZero() || at.After(end) {
			w.pass(end.Sub(w.now()))
			return false
		}
		w.pass(max(at.Sub(w.now()), time.Second))
		if w.dies(func() {
			if err := due(); err != nil {
				w.Errorf("what is due: %v", err)
			}
		}) {
			return true
		}
	}
	return false
}

// notify sends the engine status updates on a route of this merchant's.
func (w *world) notify(mode tenants.Mode, updates ...sdk.StatusUpdate) (sdk.Acknowledgement, error) {
	return w.notifyOn(w.account, mode, updates...)
}

func (w *world) notifyOn(account *tenants.Account, mode tenants.Mode, updates ...sdk.StatusUpdate) (sdk.Acknowledgement, error) {
	w.up.set(func() { w.up.ack = sdk.Acknowledgement{Status: 200, Updates: updates} })
	c, _ := account.Connection(mode, tenants.Provider(w.of.provider))
	return w.notifyAt(w.Context(), tenants.Provider(w.of.provider), c.NotifyToken)
}

// hear notifies on the route of the account that the kind uses: the merchant's own, and
// the platform's for orders.
func (w *world) hear(updates ...sdk.StatusUpdate) {
	w.Helper()
	account := w.account
	if w.of == orders {
		account = w.platformAccount()
	}
	w.hearOn(account, updates...)
}

func (w *world) hearOn(account *tenants.Account, updates ...sdk.StatusUpdate) {
	w.Helper()
	if _, err := w.notifyOn(account, tenants.Live, updates...); err != nil {
		w.Error(err)
	}
}

// opens gives a merchant what it begins with.
func (w *world) opens(account *tenants.Account, amount money.Amount) {
	w.Helper()
	owner := movement.Owner{MerchantID: string(account.ID()), Mode: "live"}
	w.opened = owner
	switch k := w.keeper.(type) {
	case *memory:
		if err := k.Credit(w.Context(), owner, amount); err != nil {
			w.Fatal(err)
		}
	case *store.Store:
		audit := store.Audit{Operator: "operator", Action: "test", At: w.now()}
		if err := k.CreateMerchant(w.Context(), audit, account.Merchant(), nil, nil); err != nil {
			w.Fatal(err)
		}
		a := store.Adjustment{Owner: owner, Reference: "opening", Amount: amount, Reason: "opening"}
		if _, err := k.Adjust(w.Context(), audit, a, money.Max); err != nil {
			w.Fatal(err)
		}
	}
	w.opening = amount
}

// stock changes what can be bought, for all who ask from now on.
func (w *world) stock(change func(*product)) {
	w.up.set(func() {
		w.up.products = slices.Clone(w.up.products)
		for i := range w.up.products {
			change(&w.up.products[i])
		}
	})
	w.shelf.mu.Lock()
	defer w.shelf.mu.Unlock()
	clear(w.shelf.answers)
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

// balance is what the merchant has.
func (w *world) balance() ledger.Balance {
	w.Helper()
	b, err := w.keeper.Balance(w.Context(), w.owner())
	if err != nil {
		w.Fatal(err)
	}
	return b
}

func (w *world) wantBalance(available, held money.Amount) {
	w.Helper()
	if b := w.balance(); b.Available != available || b.Held != held {
		w.Errorf("available %v, held %v; want %v and %v", b.Available, b.Held, available, held)
	}
}

// postings are the merchant's transactions.
func (w *world) postings() []ledger.Transaction {
	w.Helper()
	var all []ledger.Transaction
	switch k := w.keeper.(type) {
	case *memory:
		if all = k.Postings(w.opened); w.opened != w.owner() {
			all = append(all, k.Postings(w.owner())...)
		}
	case *store.Store:
		entries, err := k.AccountStatement(w.Context(), w.owner(), time.Unix(0, 0), w.now().Add(1e6*time.Hour), nil, 10_000)
		if err != nil {
			w.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Transaction)
		}
	}
	return all
}

func nameOfMovement(id movement.ID) string { return hex.EncodeToString(id[:]) }

func number(n money.Amount) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

// newCollections is a merchant with a printed code, and its wallet.
func newCollections(t testing.TB, k keeper) *world {
	t.Helper()
	return newWorld(t, collections, k, handClock())
}

func (w *world) sell(reference string, amount int64) said {
	return w.create(reference, "amount", number(money.Amount(amount)))
}

// sold makes a sale that has a code.
func (w *world) sold(reference string, amount int64) movement.Movement {
	w.Helper()
	if s := w.sell(reference, amount); s.word() != "PENDING" {
		w.Fatalf("sale %s: %s %v", reference, s.data, s.err)
	}
	return w.stored(reference)
}

// statement is the statement of the wallet, on which something was sold.
func (w *world) statement() movement.Statement {
	w.Helper()
	s, err := w.keeper.Statement(w.Context(), w.wallet)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// readStatement reads the wallet's statement once more.
func (w *world) readStatement() {
	w.Helper()
	w.pass(readEvery)
	if err := w.ReadStatement(w.Context(), w.statement()); err != nil {
		w.Error(err)
	}
}

// complete says that the statement is, up to now.
func (w *world) complete() { w.up.set(func() { w.up.through = w.now() }) }

// line is a line of the statement as it is kept.
func (w *world) line(name string) movement.StatementLine {
	w.Helper()
	l, err := w.keeper.Line(w.Context(), w.wallet, name)
	if err != nil {
		w.Fatalf("line %s: %v", name, err)
	}
	return l
}
