package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const wallet2, collectPath, collectedPath = "wallet2", "/wallet2/create", "/wallet2/status"

// collecting is the catalog of the wallet2 plugin's own manifest.
var collecting = ownCatalog("wallet2")

func collectOf(path string) *catalog.Operation { return operationIn(collecting(), path) }

// till is the wallet: its books, and what its plugin says of codes.
type till struct {
	upstream

	rows    []sdk.StatementLine
	page    int       // rows of a report at most
	through time.Time // up to when the books are complete
	reads   int
	says    func(sdk.Statement) (sdk.StatementPage, bool)
	answer  func(sdk.Call) sdk.Result
}

func code(amount money.Amount) json.RawMessage {
	return json.RawMessage(`{"qr_string":"QR-` + amount.String() + `"}`)
}

func (t *till) Call(_ context.Context, _ host.Use, call sdk.Call, _ time.Duration) sdk.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answer != nil {
		return t.answer(call)
	}
	return sdk.Result{Outcome: sdk.Pending, Data: code(call.Amount), ExpiresAt: t.now().Add(time.Minute)} // not its to say
}

func (t *till) Lookup(_ context.Context, _ host.Use, l sdk.Lookup, _ time.Duration) sdk.StatusUpdate {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.find != nil {
		return t.find(l)
	}
	return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusPending, Amount: l.Amount, Currency: "IDR", Data: code(l.Amount)}
}

func (t *till) Statement(_ context.Context, _ string, s sdk.Statement, _ time.Duration) sdk.StatementPage {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads++
	if t.says != nil {
		if report, said := t.says(s); said {
			return report
		}
	}
	from, _ := strconv.Atoi(s.Cursor)
	to := min(len(t.rows), from+min(t.page, s.Limit))
	report := sdk.StatementPage{Known: true, Lines: slices.Clone(t.rows[from:to]), Cursor: strconv.Itoa(to), More: to < len(t.rows)}
	if !report.More {
		report.Through = t.through
	}
	return report
}

func (t *till) write(rows ...sdk.StatementLine) { t.set(func() { t.rows = append(t.rows, rows...) }) }

// paid is a row of the books.
func paid(name string, amount money.Amount, at time.Time) sdk.StatementLine {
	return sdk.StatementLine{ID: name, Reference: name, Amount: amount, Currency: "IDR", At: at.Truncate(time.Second)}
}

// back is the row that takes a payment back.
func back(name string, amount money.Amount, at time.Time) sdk.StatementLine {
	return sdk.StatementLine{ID: name + "-back", Reference: name, Amount: amount, Currency: "IDR", At: at.Truncate(time.Second), Reversed: true}
}

// shaky is a store beside whose writes a process may end.
type shaky struct {
	*store.Store
	mu sync.Mutex
	at func(step string) // before and after each write, one at a time
}

func (s *shaky) around(step string, write func()) {
	s.reach("before " + step)
	write()
	s.reach("after " + step)
}

func (s *shaky) reach(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != nil {
		s.at(step)
	}
}

func (s *shaky) Reserve(ctx context.Context, m movement.Movement) (c movement.Movement, ours bool, err error) {
	s.around("claim", func() { c, ours, err = s.Store.Reserve(ctx, m) })
	return c, ours, err
}

func (s *shaky) Apply(ctx context.Context, c movement.Change) (ok bool, err error) {
	step := "move to " + string(c.To)
	switch c.Effect {
	case movement.LateMoney:
		step = "late"
	case movement.Reversal:
		step = "reversal"
	case movement.Move:
	case movement.Nothing, movement.Supplement, movement.KeepAnswer, movement.Contradiction, movement.Renewal, movement.Errored:
		return s.Store.Apply(ctx, c)
	}
	s.around(step, func() { ok, err = s.Store.Apply(ctx, c) })
	return ok, err
}

func (s *shaky) Import(ctx context.Context, now time.Time, b movement.Statement, entries []movement.ImportedLine, next string, through time.Time) (ok bool, err error) {
	s.around("enter", func() { ok, err = s.Store.Import(ctx, now, b, entries, next, through) })
	return ok, err
}

func (s *shaky) Match(ctx context.Context, now time.Time, b movement.Statement, verdicts []movement.Match) (decided []string, err error) {
	s.around("judge", func() { decided, err = s.Store.Match(ctx, now, b, verdicts) })
	return decided, err
}

func (s *shaky) CloseLines(ctx context.Context, account movement.AccountID, done []movement.StatementLine, freeAt time.Time) (err error) {
	s.around("settled", func() { err = s.Store.CloseLines(ctx, account, done, freeAt) })
	return err
}

func (s *shaky) Assign(ctx context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (ok bool, err error) {
	s.around("assign", func() { ok, err = s.Store.Assign(ctx, now, seen, to, operator, reason) })
	return ok, err
}

// stall is a merchant with a printed code, its wallet, and the engine between them.
type stall struct {
	testing.TB
	clock
	*Engine
	kept    *shaky
	till    *till
	account *tenants.Account
	wallet  movement.AccountID
}

func newStall(t testing.TB, s *store.Store) *stall {
	t.Helper()
	w := &stall{TB: t, clock: handClock()}
	w.till = &till{page: 1000}
	w.till.now, w.till.things = w.now, map[string]*thing{}
	id := tenants.NewMerchantID()
	name := uuid.NewString()
	connections := []tenants.Connection{{
		MerchantID: id, Mode: tenants.Live, Provider: wallet2, Owner: tenants.OwnerMerchant, Version: 1,
		Sealed: []byte(`{"merchant_code":"` + name + `"}`),
	}}
	w.wallet = movement.NewAccountID(wallet2, "live", name)
	var err error
	w.account, err = tenants.NewAccount(tenants.Merchant{ID: id, Name: "Toko", Tier: "scale", Status: tenants.Active}, nil, connections, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.restart(s)
	return w
}

// restart is a new process, or another replica, on the same database.
func (w *stall) restart(s *store.Store) {
	w.kept = &shaky{Store: s}
	w.Engine = New(Dependencies{
		Store: w.kept, Transfers: w.kept, Records: w.kept, Statements: w.kept, Lines: w.kept, Providers: w.till, Books: w.till, Accounts: w, Vault: openVault{}, Catalog: collecting(),
		Now: w.now, Log: slog.New(slog.DiscardHandler),
	})
}

// statement is the statement of the wallet, on which something was sold.
func (w *stall) statement() movement.Statement {
	w.Helper()
	s, err := w.kept.Statement(w.Context(), w.wallet)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *stall) Account(context.Context, tenants.MerchantID) (*tenants.Account, error) {
	return w.account, nil
}

func (w *stall) ByNotifyToken(context.Context, time.Time, tenants.Provider, tenants.NotifyToken) (*tenants.Account, tenants.Connection, error) {
	return nil, tenants.Connection{}, tenants.ErrNotFound
}

// try runs what may end the process, and tells whether it did.
func (w *stall) try(work func()) (crashed bool) {
	defer func() {
		if thrown := recover(); thrown != nil {
			if _, ours := thrown.(crash); !ours {
				panic(thrown)
			}
			crashed = true
		}
	}()
	work()
	return false
}

func (w *stall) ask(path, reference string, amount int64) (s said) {
	body := catalog.Document{"external_id": reference}
	if path == collectPath {
		body["amount"], body["payer_email"] = json.Number(strconv.FormatInt(amount, 10)), "payer@shop.example"
	}
	r := Request{
		Identity: tenants.Identity{Account: w.account, Mode: tenants.Live}, Operation: collectOf(path), Body: body,
		RequestID: uuid.NewString(), Ticket: policy.Ticket{Remaining: new(int64(41))}, CallbackURL: "https://shop.example/hook",
	}
	s.crashed = w.try(func() {
		answer, err := w.Run(context.WithoutCancel(w.Context()), r)
		s.replayed = answer.Replayed
		if err != nil {
			s.err = fault.From(err)
			return
		}
		s.data = string(answer.Data.(json.RawMessage))
	})
	return s
}

func (w *stall) sell(reference string, amount int64) said {
	return w.ask(collectPath, reference, amount)
}

func (w *stall) status(reference string) said { return w.ask(collectedPath, reference, 0) }

// sold makes a sale that has a code.
func (w *stall) sold(reference string, amount int64) movement.Movement {
	w.Helper()
	if s := w.sell(reference, amount); s.word() != "PENDING" {
		w.Fatalf("sale %s: %s %v", reference, s.data, s.err)
	}
	return w.stored(reference)
}

func (w *stall) stored(reference string) movement.Movement {
	w.Helper()
	m, err := w.kept.MovementByKey(w.Context(), movement.Key{
		Owner: movement.Owner{MerchantID: string(w.account.ID()), Mode: "live"}, Kind: manifest.Collection, Reference: reference,
	})
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// work is the workers, for as long as the time given: they look at a sale, and read the
// statement, whenever these are due. A crash ends it.
func (w *stall) work(reference string, span time.Duration) (crashed bool) {
	w.Helper()
	for end := w.now().Add(span); w.now().Before(end); {
		ctx, s := context.WithoutCancel(w.Context()), w.statement()
		due, at := func() error { return w.ReadBooks(ctx, s) }, s.DueAt
		if m := w.stored(reference); !m.DueAt.IsZero() && m.DueAt.Before(at) {
			due, at = func() error { return w.Resolve(ctx, m) }, m.DueAt
		}
		if at.After(end) {
			w.pass(end.Sub(w.now()))
			return false
		}
		w.pass(max(at.Sub(w.now()), time.Second))
		if w.try(func() {
			if err := due(); err != nil {
				w.Errorf("what is due: %v", err)
			}
		}) {
			return true
		}
	}
	return false
}

// complete says that the books are, up to now.
func (w *stall) complete() { w.till.set(func() { w.till.through = w.now() }) }

// told are the events that the merchant gets, with the status in them.
func (w *stall) told() []string {
	w.Helper()
	owner := movement.Owner{MerchantID: string(w.account.ID()), Mode: "live"}
	notices, err := w.kept.Events(w.Context(), owner, uuid.Nil, 0, 10_000)
	if err != nil {
		w.Fatal(err)
	}
	var told []string
	for _, n := range notices {
		var body struct {
			Event string
			Data  struct {
				Status string
				ID     string `json:"external_id"`
			}
		}
		if err := json.Unmarshal(n.Body, &body); err != nil {
			w.Fatal(err)
		}
		told = append(told, fmt.Sprintf("%s %s %s", body.Event, body.Data.ID, body.Data.Status))
	}
	slices.Sort(told)
	return told
}

func (w *stall) wantTold(want ...string) {
	w.Helper()
	if got := w.told(); !slices.Equal(got, want) {
		w.Errorf("told %q, want %q", got, want)
	}
}

// payment is a row of the books as it stands with us.
func (w *stall) payment(name string) movement.StatementLine {
	w.Helper()
	s, err := w.kept.Line(w.Context(), w.wallet, name)
	if err != nil {
		w.Fatalf("payment %s: %v", name, err)
	}
	return s
}

// listed are the reasons on the operators' list.
func (w *stall) listed() (reasons []string) {
	w.Helper()
	all, err := w.kept.OpenExceptions(w.Context(), 100_000)
	if err != nil {
		w.Fatal(err)
	}
	for _, a := range all {
		if a.Owner.MerchantID == string(w.account.ID()) {
			reasons = append(reasons, a.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

func (w *stall) wantListed(want ...string) {
	w.Helper()
	if got := w.listed(); !slices.Equal(got, want) {
		w.Errorf("the operators' list has %q, want %q", got, want)
	}
}
