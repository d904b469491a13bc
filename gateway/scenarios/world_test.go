package scenarios

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/query"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// offering is the catalog of the payments plugin's own manifest.
var offering = ownCatalog("payments")

func operation(path string) *catalog.Operation { return operationIn(offering(), path) }

// ownCatalog is the catalog of a plugin's own manifest, built once.
func ownCatalog(plugin string) func() *catalog.Catalog {
	return sync.OnceValue(func() *catalog.Catalog {
		document, err := os.ReadFile(filepath.Join("..", "..", "plugins", plugin, "manifest.json"))
		if err != nil {
			panic(err)
		}
		return catalogOf(document)
	})
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

// world is one merchant, its provider, and the engine between them.
type world struct {
	*testing.T
	clock
	*Engine
	keeper  keeper
	faults  *faulty
	up      *upstream
	account *tenants.Account
	others  map[tenants.MerchantID]*tenants.Account
	woken   atomic.Int32 // how often the courier was
	foreign atomic.Int32 // notifications that named nothing of ours
	kind    manifest.Kind
}

const provider = "payments"

// lookEvery is how long payments leave their provider alone about one of them.
var lookEvery = operation(createPath).Rules.Pace.Every

func newWorld(t *testing.T, k keeper, c clock) *world {
	w := &world{T: t, clock: c, keeper: k, up: newUpstream(c.now), others: map[tenants.MerchantID]*tenants.Account{}, kind: manifest.Payment}
	w.account = w.merchant()
	w.restart()
	return w
}

// restart is a new process on the same database: faults are over.
func (w *world) restart() {
	w.faults = &faulty{keeper: w.keeper}
	w.up.set(func() { w.up.outcome, w.up.before, w.up.after, w.up.find = works, nil, nil, nil })
	w.Engine = New(Dependencies{
		Store: w.faults, Transfers: w.faults, Records: w.faults, Providers: w.up,
		Accounts: w, Vault: openVault{}, Catalog: offering(), Now: w.now, Log: slog.New(slog.DiscardHandler),
		Committed: func() { w.woken.Add(1) }, Foreign: func(string) { w.foreign.Add(1) },
	})
}

// inMemory runs a test in a bubble of time of its own.
func inMemory(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newWorld(t, newMemory(), bubbleClock())) })
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

// merchant adds an account.
func (w *world) merchant(secrets ...tenants.CallbackSecret) *tenants.Account {
	account := newAccount(secrets...)
	w.others[account.ID()] = account
	return account
}

// newAccount makes an account with a connection in each mode, and what else it
// is given.
func newAccount(secrets ...tenants.CallbackSecret) *tenants.Account {
	id := tenants.NewMerchantID()
	for i := range secrets {
		secrets[i].MerchantID = id
	}
	var connections []tenants.Connection
	for _, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
		token, err := tenants.NewNotifyToken(rand.Reader)
		if err != nil {
			panic(err)
		}
		connections = append(connections, tenants.Connection{
			MerchantID: id, Mode: mode, Provider: provider, Owner: tenants.OwnerMerchant, Version: 1, Sealed: []byte("{}"), NotifyToken: token,
		})
	}
	account, err := tenants.NewAccount(tenants.Merchant{ID: id, Name: "Toko", Tier: "scale", Status: tenants.Active}, nil, connections, secrets)
	if err != nil {
		panic(err)
	}
	return account
}

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

// request is a creation under a reference; pairs change its body.
func (w *world) request(path, reference string, pairs ...any) Request {
	body := catalog.Document{}
	if path == createPath {
		body = catalog.Document{"amount": json.Number("10000"), "payer_email": "payer@shop.example"}
	}
	if reference != "" {
		body["external_id"] = reference
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		body[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return Request{
		Identity:  tenants.Identity{Account: w.account, Mode: tenants.Live},
		Operation: operation(path), Body: body, RequestID: uuid.NewString(),
	}
}

// said is what a merchant was answered; crashed when the process ended first.
type said struct {
	data     string
	replayed bool
	err      *fault.Error
	crashed  bool
	receipt  movement.ID
}

type crash struct{}

func (w *world) run(r Request) said { return w.runOn(w.Engine, r) }

func (w *world) runOn(e *Engine, r Request) (s said) {
	defer func() {
		if thrown := recover(); thrown != nil {
			if _, ours := thrown.(crash); !ours {
				panic(thrown)
			}
			s = said{crashed: true}
		}
	}()
	answer, err := e.Run(w.Context(), r)
	s.replayed, s.receipt = answer.Replayed, answer.Receipt
	if err != nil {
		s.err = fault.From(err)
		return s
	}
	s.data = w.dataOf(answer)
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

func (w *world) create(reference string, pairs ...any) said {
	return w.run(w.request(createPath, reference, pairs...))
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

func (w *world) stored(reference string) movement.Movement {
	w.Helper()
	m, err := w.keeper.MovementByKey(w.Context(), w.keyOf(reference))
	if err != nil {
		w.Fatalf("%s: %v", reference, err)
	}
	return m
}

func (w *world) keyOf(reference string) movement.Key {
	return movement.Key{
		Owner: movement.Owner{MerchantID: string(w.account.ID()), Mode: "live"}, Kind: w.kind, Reference: reference,
	}
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

// work is the worker: it looks at the movement when it is due, for as long as
// the time given.
func (w *world) work(reference string, span time.Duration) {
	w.Helper()
	for end := w.now().Add(span); w.now().Before(end); {
		m, err := w.keeper.MovementByKey(w.Context(), w.keyOf(reference))
		if err != nil || m.DueAt.IsZero() || m.DueAt.After(end) {
			w.pass(end.Sub(w.now()))
			return
		}
		w.pass(max(m.DueAt.Sub(w.now()), time.Second))
		if err := w.Resolve(w.Context(), m); err != nil {
			w.Errorf("resolve: %v", err)
		}
	}
}

// claiming is the keeper's own claim.
type claiming func() (movement.Movement, bool, error)

// faulty is a keeper that fails as told. A commit can fail with or without
// having happened.
type faulty struct {
	keeper

	claim     func(ctx context.Context, do claiming) (movement.Movement, bool, error)
	move      func(do func() (bool, error)) (bool, error)
	promise   func(do func() (movement.Movement, error)) (movement.Movement, error)
	deliver   func(do func() error) error
	judged    func()                        // sees each look at a reference
	compared  func()                        // sees each look for an equal transfer
	down      error                         // of reads, and of the right to ask
	recording error                         // of records and the operators' list
	listing   error                         // of the operators' list alone
	told      func(*movement.CallbackEvent) // sees the event of each try
}

var errAway = errors.New("the database is away")

// broken is an error that no waiting mends.
type broken struct{ error }

func (broken) SQLState() string { return "23514" }

func (b broken) Unwrap() error { return b.error }

func (f *faulty) Reserve(ctx context.Context, m movement.Movement) (movement.Movement, bool, error) {
	do := func() (movement.Movement, bool, error) { return f.keeper.Reserve(ctx, m) }
	if err := ctx.Err(); err != nil {
		return movement.Movement{}, false, err
	}
	if f.claim != nil {
		return f.claim(ctx, do)
	}
	return do()
}

func (f *faulty) Apply(ctx context.Context, c movement.Change) (bool, error) {
	if c.Effect == movement.LateMoney || c.Effect == movement.Reversal || c.Effect == movement.Move {
		if f.told != nil {
			f.told(c.Callback)
		}
	}
	switch do := func() (bool, error) { return f.keeper.Apply(ctx, c) }; {
	case c.Effect == movement.LateMoney && f.recording != nil:
		return false, f.recording
	case c.Effect != movement.Move && c.Effect != movement.Renewal:
		return do()
	case ctx.Err() != nil:
		return false, ctx.Err()
	case f.move != nil:
		return f.move(do)
	default:
		return do()
	}
}

func (f *faulty) Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	do := func() (movement.Movement, error) { return f.keeper.Acknowledge(ctx, m, answer) }
	if f.promise != nil {
		return f.promise(do)
	}
	return do()
}

func (f *faulty) Deliver(ctx context.Context, id movement.ID) error {
	do := func() error { return f.keeper.Deliver(ctx, id) }
	if f.deliver != nil {
		return f.deliver(do)
	}
	return do()
}

func (f *faulty) LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error) {
	m, err := f.keeper.LastEqual(ctx, owner, kind, fingerprint)
	fire(f.compared)
	return m, err
}

func (f *faulty) MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return movement.Movement{}, err
	}
	m, err := f.keeper.MovementByKey(ctx, key)
	if f.judged != nil {
		f.judged()
	}
	return m, err
}

func (f *faulty) MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return movement.Movement{}, err
	}
	return f.keeper.MovementByID(ctx, id)
}

func (f *faulty) Events(ctx context.Context, owner movement.Owner, after uuid.UUID, age time.Duration, most int) ([]movement.ListedEvent, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return nil, err
	}
	return f.keeper.Events(ctx, owner, after, age, most)
}

func (f *faulty) Movements(ctx context.Context, l movement.Listing) ([]movement.Movement, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return nil, err
	}
	return f.keeper.Movements(ctx, l)
}

func (f *faulty) Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return false, err
	}
	return f.keeper.Poll(ctx, m, now, before, next)
}

func (f *faulty) AddException(ctx context.Context, a movement.Exception) (bool, error) {
	if err := cmp.Or(f.recording, f.listing); err != nil {
		return false, err
	}
	return f.keeper.AddException(ctx, a)
}

// notify tells the engine findings on a route of this merchant's.
func (w *world) notify(mode tenants.Mode, findings ...sdk.StatusUpdate) (sdk.Acknowledgement, error) {
	w.up.set(func() { w.up.ack = sdk.Acknowledgement{Status: 200, Updates: findings} })
	c, _ := w.account.Connection(mode, provider)
	return w.notifyAt(w.Context(), provider, c.NotifyToken)
}
