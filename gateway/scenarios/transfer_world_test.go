package scenarios

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// transferring is the catalog of the wallet1 plugin's own manifest.
var transferring = ownCatalog("wallet1")

func transfersOf(path string) *catalog.Operation { return operationIn(transferring(), path) }

const wallet1 = "wallet1"

// counted is what tells how much of a limit is used.
type counted interface {
	Usage(ctx context.Context, owner movement.Owner, period string) ([]store.Used, error)
}

// purse is a world whose merchant sends money from its own wallet.
type purse struct {
	*world
	up         *issuer
	path       string // what is done unless told otherwise
	limits     policy.Limits
	zone       *time.Location
	reconsider func(told map[string]any) error
	real       bool // what waits does so in real time, and nothing is to be waited for

	mu       sync.Mutex
	used     []string // the references
	stems    []string // those of transfers without one
	promised map[string]struct{}
}

func newPurse(t *testing.T, k keeper, c clock) *purse {
	t.Helper()
	w := newWorld(t, k, c)
	w.kind = manifest.Transfer
	p := &purse{world: w, up: newIssuer(c.now), path: bankPath, zone: time.UTC, promised: map[string]struct{}{}, real: c.real}
	p.account = p.connected(w.account.ID(), 1)
	p.restart()
	return p
}

// connected gives a merchant accounts at the provider.
func (p *purse) connected(id tenants.MerchantID, version int64) *tenants.Account {
	var connections []tenants.Connection
	for _, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
		token, err := tenants.NewNotifyToken(rand.Reader)
		if err != nil {
			p.Fatal(err)
		}
		connections = append(connections, tenants.Connection{
			MerchantID: id, Mode: mode, Provider: wallet1, Owner: tenants.OwnerMerchant, Version: version, Sealed: []byte(`{}`), NotifyToken: token,
		})
	}
	account, err := tenants.NewAccount(tenants.Merchant{ID: id, Name: "Toko", Tier: "scale", Status: tenants.Active}, nil, connections, nil)
	if err != nil {
		p.Fatal(err)
	}
	p.others[id] = account
	return account
}

// restart is a new process on the same database. What the provider answers is
// the truth from now on.
func (p *purse) restart() {
	p.faults = &faulty{keeper: p.keeper}
	p.up.set(func() {
		p.up.beforeQuote, p.up.before, p.up.after, p.up.find, p.up.quote = nil, nil, nil, nil, nil
		p.up.books = nil
		p.up.way.says, p.up.way.unmade = nil, false
	})
	p.Engine = p.replica(p.faults)
}

// replica is an engine of its own, with what it keeps movements by.
func (p *purse) replica(k keeper) *Engine {
	e := New(Dependencies{
		Store: k, Transfers: k, PaidOut: k, Records: k, Providers: p.up, Books: p.up,
		Accounts: p.world, Vault: openVault{}, Catalog: transferring(), Now: p.now, Log: slog.New(slog.DiscardHandler),
		Committed: func() { p.woken.Add(1) },
	})
	if p.real {
		e.transfers.HeardWithin = 10 * time.Millisecond
	}
	return e
}

// inPurse runs a test in a bubble of time of its own.
func inPurse(t *testing.T, test func(*purse)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newPurse(t, newMemory(), bubbleClock())) })
}

// inPurses runs a test in memory and on the real store.
func inPurses(t *testing.T, test func(*purse)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { t.Parallel(); inPurse(t, test) })
	t.Run("database", func(t *testing.T) { t.Parallel(); test(newPurse(t, databaseFor(t), handClock())) })
}

// acrossReplicas runs a test with one engine in memory, and with two on two
// stores of one database.
func acrossReplicas(t *testing.T, test func(*purse, ...*Engine)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		inPurse(t, func(p *purse) { test(p, p.Engine) })
	})
	t.Run("two replicas", func(t *testing.T) {
		t.Parallel()
		stores := replicasFor(t, 2)
		p := newPurse(t, stores[0], handClock())
		other := &faulty{keeper: stores[1], judged: func() { fire(p.faults.judged) }}
		test(p, p.Engine, p.replica(other))
	})
}

// asks is a request of this merchant.
func (p *purse) asks(path string, pairs ...any) Request {
	r := Request{
		Identity:  tenants.Identity{Account: p.account, Mode: tenants.Live},
		Operation: transfersOf(path), Body: catalog.Document{}, RequestID: uuid.NewString(), Ticket: policy.Ticket{Limits: p.limits, Zone: p.zone},
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if r.Body[fmt.Sprint(pairs[i])] = pairs[i+1]; pairs[i+1] == nil {
			delete(r.Body, fmt.Sprint(pairs[i]))
		}
	}
	if p.reconsider != nil {
		r.Reconsider = func(_ context.Context, quote map[string]any) error { return p.reconsider(quote) }
	}
	return r
}

// transferring is a request for a transfer, under no reference where it is "";
// pairs change its body.
func (p *purse) transferring(reference string, pairs ...any) Request {
	body := []any{"phone", "081234567890", "amount", number(sending)}
	if p.path == bankPath {
		body = []any{"bank_code", "014", "account_no", "2460888509", "account_name", "Budi Santoso", "amount", number(sending)}
	}
	if reference != "" {
		body = append(body, "external_id", reference)
	}
	return p.asks(p.path, append(body, pairs...)...)
}

// transfer transfers, and remembers what was promised.
func (p *purse) transfer(reference string, pairs ...any) said {
	return p.sends(p.Engine, p.transferring(reference, pairs...))
}

func (p *purse) sends(e *Engine, r Request) said {
	p.Helper()
	if wrong := r.Operation.Check(r.Body); len(wrong) > 0 {
		p.Errorf("the edge would refuse %v", wrong)
	}
	answer := p.runOn(e, r)
	key := p.keyOfRequest(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	if stem, reference := p.stemOf(r), r.Operation.ReferenceOf(r.Body); reference == "" && !slices.Contains(p.stems, stem) {
		p.stems = append(p.stems, stem)
	} else if reference != "" && !slices.Contains(p.used, reference) {
		p.used = append(p.used, reference)
	}
	if answer.word() == "Pending" {
		p.promised[key.Reference] = struct{}{}
	}
	return answer
}

// stemOf begins the references that the gateway gives to a transfer without one.
func (p *purse) stemOf(r Request) string {
	if r.Operation.ReferenceOf(r.Body) != "" {
		return ""
	}
	r.Body = r.Operation.WithDefaults(r.Body)
	draft := movement.Movement{Key: movement.Key{Owner: r.Owner(), Kind: r.Operation.Kind}}
	if err := p.replica(&faulty{keeper: newMemory()}).transfers.Draft(p.Context(), r, &draft); err != nil {
		p.Error(err)
	}
	return draft.Fingerprint
}

// keyOfRequest names the movement that a request is about.
func (p *purse) keyOfRequest(r Request) movement.Key {
	p.Helper()
	if reference := r.Operation.ReferenceOf(r.Body); reference != "" {
		return p.keyOf(reference)
	}
	last, err := p.keeper.LastEqual(p.Context(), p.keyOf("").Owner, manifest.Transfer, p.stemOf(r))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		p.Error(err)
	}
	return p.keyOf(last.Reference)
}

// latest is the movement that a request is about, and whether there is one.
func (p *purse) latest(r Request) (movement.Movement, bool) {
	p.Helper()
	m, err := p.keeper.MovementByKey(p.Context(), p.keyOfRequest(r))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		p.Error(err)
	}
	return m, err == nil
}

// stateOf asks for a status by a name of the transfer.
func (p *purse) stateOf(pairs ...any) said {
	p.Helper()
	r := p.asks(transferStatusPath, pairs...)
	if wrong := r.Operation.Check(r.Body); len(wrong) > 0 {
		p.Errorf("the edge would refuse %v", wrong)
	}
	return p.run(r)
}

// hears tells the engine findings on the route of this merchant's account.
func (p *purse) hears(findings ...sdk.StatusUpdate) {
	p.Helper()
	p.up.set(func() { p.up.ack = sdk.Acknowledgement{Status: 200, Updates: findings} })
	c, _ := p.account.Connection(tenants.Live, wallet1)
	if _, err := p.notifyAt(p.Context(), wallet1, c.NotifyToken); err != nil {
		p.Error(err)
	}
}

// wantCode checks an error by its code, what it says was sent, and its fields.
func (p *purse) wantCode(a said, code fault.Code, sent fault.Sent, fields ...string) {
	p.Helper()
	if a.err == nil || a.err.Code != code || a.err.Sent != sent {
		p.Errorf("got %s %v, want %s %s", a.data, a.err, code, sent)
		return
	}
	var named []string
	for _, f := range a.err.Fields {
		named = append(named, f.Field)
	}
	if !slices.Equal(named, fields) {
		p.Errorf("%v names %q, want %q", a.err, named, fields)
	}
}

// idOf is our name of a transfer as its answer tells it.
func idOf(a said) string {
	var data struct{ RefID, TxID string }
	_ = json.Unmarshal([]byte(a.data), &data)
	return data.RefID + data.TxID
}

// stopsAfterClaim is a process that is stopped when its claim is through.
func (p *purse) stopsAfterClaim(stopped func()) func(context.Context, claiming) (movement.Movement, bool, error) {
	return func(_ context.Context, do claiming) (movement.Movement, bool, error) {
		m, claimed, err := do()
		if claimed {
			stopped()
		}
		return m, claimed, err
	}
}

// attention is this merchant's entry on the operators' list for a reason.
func (p *purse) attention(reason string) movement.Exception {
	p.Helper()
	all, err := p.keeper.OpenExceptions(p.Context(), 1000)
	if err != nil {
		p.Fatal(err)
	}
	for _, a := range all {
		if a.Reason == reason && a.Owner == p.keyOf("").Owner {
			return a
		}
	}
	return movement.Exception{}
}
