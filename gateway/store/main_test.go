package store_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// epoch is when the tests play.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

// database is a migrated database of the test's own, as long as it runs.
func database(tb testing.TB) string {
	tb.Helper()
	return migrated.Database(tb)
}

func open(tb testing.TB, url string, options store.Options) *store.Store {
	tb.Helper()
	return migrated.Open(tb, url, options)
}

func fresh(tb testing.TB) *store.Store {
	tb.Helper()
	return open(tb, database(tb), store.Options{MaxConns: 8})
}

// execute runs statements that the store has no method for.
func execute(tb testing.TB, url string, statements ...string) {
	tb.Helper()
	dbtest.Conn(tb, url, func(conn *pgx.Conn) {
		for _, statement := range statements {
			if _, err := conn.Exec(tb.Context(), statement); err != nil {
				tb.Fatalf("%s: %v", statement, err)
			}
		}
	})
}

func count(tb testing.TB, url, query string, args ...any) (n int) {
	tb.Helper()
	dbtest.Conn(tb, url, func(conn *pgx.Conn) {
		if err := conn.QueryRow(tb.Context(), query, args...).Scan(&n); err != nil {
			tb.Fatalf("%s: %v", query, err)
		}
	})
	return n
}

// draft is a movement before its reservation, with something in every field that a
// reservation stores.
func draft(reference string) movement.Movement {
	return movement.Movement{
		Key: movement.Key{
			Owner: movement.Owner{MerchantID: "mer_1", Mode: "live"}, Kind: manifest.Payment, Reference: reference,
		},
		ID: movement.NewID(), Operation: "/payments/create", Provider: "payments", State: movement.Submitting,
		Amount: 15_000, Request: json.RawMessage(`{"path":"/payments/create","body":{"amount":15000}}`),
		CallbackURL: "https://shop.example/callback", RequestID: uuid.NewString(), PolicyVersion: "v1", DecisionID: "d-1",
		CreatedAt: epoch, SendBy: epoch.Add(5 * time.Second),
		Polled: movement.Polled{DueAt: epoch.Add(7 * time.Second)},
	}
}

func reserve(tb testing.TB, s *store.Store, m movement.Movement) movement.Movement {
	tb.Helper()
	reserved, ours, err := s.Reserve(tb.Context(), m)
	if err != nil || !ours {
		tb.Fatalf("Reserve of %s = %v, %v", m.Reference, ours, err)
	}
	return reserved
}

// apply commits a change at a time.
func apply(ctx context.Context, s *store.Store, now time.Time, c movement.Change) (bool, error) {
	c.At = now
	return s.Apply(ctx, c)
}

// move is the plainest move that there is.
func move(m movement.Movement, to movement.State) movement.Change {
	from := []movement.State{m.State}
	if m.State == movement.Submitting && to != movement.NotSubmitted {
		from = append(from, movement.Acknowledged)
	}
	c := movement.Change{Movement: m, Transition: movement.Transition{
		Effect: movement.Move, From: from, To: to, Event: string(to), Detail: `{"source":"test"}`,
	}}
	counts, counted := to != movement.Failed && to != movement.NotSubmitted, m.State != movement.NotSubmitted
	switch {
	case len(m.Usage) == 0 || counts == counted:
	case counted:
		c.GivesBack = 1
	default:
		c.GivesBack = -1
	}
	return c
}

// record is late money, or all of it gone back, that happened at a time.
func record(m movement.Movement, effect movement.Effect, happened time.Time) movement.Change {
	c := movement.Change{Movement: m, Transition: movement.Transition{Effect: effect, Event: "paid_late", Detail: "{}", HappenedAt: happened}}
	if effect == movement.MoneyBack {
		c.Event, c.Return = "returned", &movement.Return{ID: "r-1", Sort: movement.Reversal, Amount: m.Amount, At: happened}
		if happened.IsZero() {
			c.Return.At = epoch
		}
	}
	return c
}

// moved moves a movement that must stand where it is said to.
func moved(tb testing.TB, s *store.Store, change movement.Change) movement.Movement {
	tb.Helper()
	ok, err := apply(tb.Context(), s, epoch.Add(time.Second), change)
	if err != nil || !ok {
		tb.Fatalf("Move to %s = %v, %v", change.To, ok, err)
	}
	return byID(tb, s, change.Movement.ID)
}

func byID(tb testing.TB, s *store.Store, id movement.ID) movement.Movement {
	tb.Helper()
	m, err := s.MovementByID(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// at is a movement brought to a state.
func at(tb testing.TB, s *store.Store, reference string, state movement.State) movement.Movement {
	tb.Helper()
	m := reserve(tb, s, draft(reference))
	switch state {
	case movement.Submitting:
		return m
	case movement.Acknowledged:
		m, err := s.Acknowledge(tb.Context(), m, json.RawMessage(`{"status":"Pending"}`))
		if err != nil || m.State != state {
			tb.Fatalf("Acknowledge of %s = %s, %v", reference, m.State, err)
		}
		return m
	case movement.Pending, movement.NotSubmitted:
	case movement.Succeeded, movement.Failed, movement.Expired:
		m = moved(tb, s, move(m, movement.Pending))
	}
	return moved(tb, s, move(m, state))
}

func history(tb testing.TB, s *store.Store, id movement.ID) []movement.HistoryEntry {
	tb.Helper()
	events, err := s.History(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return events
}
