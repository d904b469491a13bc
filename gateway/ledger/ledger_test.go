package ledger_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// made is one of everything that the package makes.
func made() []ledger.Transaction {
	return []ledger.Transaction{
		ledger.BeginCharge(1500), ledger.BeginHold(1500), ledger.EndCost(1400), ledger.EndCapture(1500, 1400),
		ledger.GiveBack(1500), ledger.LetGo(1500), ledger.TakeBack(1500, 1400), ledger.Adjust(1000), ledger.Adjust(-1000),
	}
}

func TestEverythingMadeIsSound(t *testing.T) {
	t.Parallel()
	kinds := map[ledger.Kind]bool{}
	for _, transaction := range append(made(), ledger.EndCost(0), ledger.EndCapture(1, 0), ledger.TakeBack(1, 0)) {
		kinds[transaction.Kind] = true
		if err := transaction.Check(); err != nil || !transaction.Balanced() {
			t.Errorf("%+v: %v", transaction, err)
		}
	}
	if len(kinds) != 9 {
		t.Errorf("%d kinds", len(kinds))
	}
}

func TestNothingElseIsSound(t *testing.T) {
	t.Parallel()
	for _, transaction := range made() {
		for name, change := range map[string]func(*ledger.Transaction){
			"another step":   func(x *ledger.Transaction) { x.Step++ },
			"another kind":   func(x *ledger.Transaction) { x.Kind = "gift" },
			"money from air": func(x *ledger.Transaction) { x.Available++ },
			"money vanishes": func(x *ledger.Transaction) { x.Deposit-- },
			"the wrong leg":  func(x *ledger.Transaction) { x.Margin++; x.Adjustments-- },
			"turned around":  func(x *ledger.Transaction) { x.Legs = turned(x.Legs) },
			"nothing at all": func(x *ledger.Transaction) {
				x.Legs = ledger.Legs{}
				if x.Kind == ledger.Cost { // which may be nothing
					x.Kind = ledger.Capture
				}
			},
			"an overflow":     func(x *ledger.Transaction) { x.Available, x.Held = math.MaxInt64, math.MaxInt64 },
			"no kind":         func(x *ledger.Transaction) { x.Kind = "" },
			"the step before": func(x *ledger.Transaction) { x.Step-- },
		} {
			wrong := transaction
			change(&wrong)
			if err := wrong.Check(); !errors.Is(err, ledger.ErrMalformed) {
				t.Errorf("%s, %s: %+v: %v", transaction.Kind, name, wrong, err)
			}
		}
	}
}

func turned(l ledger.Legs) ledger.Legs {
	return ledger.Legs{
		Available: -l.Available, Held: -l.Held, Margin: -l.Margin, Cost: -l.Cost, Deposit: -l.Deposit, Adjustments: -l.Adjustments,
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before ledger.Balance
		legs   ledger.Legs
		after  ledger.Balance
		err    error
	}{
		"the last rupiah":     {ledger.Balance{Available: 1500}, ledger.BeginCharge(1500).Legs, ledger.Balance{}, nil},
		"short by one":        {ledger.Balance{Available: 1499}, ledger.BeginCharge(1500).Legs, ledger.Balance{Available: 1499}, ledger.ErrBelowZero},
		"a hold":              {ledger.Balance{Available: 2000, Held: 1}, ledger.BeginHold(1500).Legs, ledger.Balance{Available: 500, Held: 1501}, nil},
		"a hold not there":    {ledger.Balance{Held: 1499}, ledger.LetGo(1500).Legs, ledger.Balance{Held: 1499}, ledger.ErrBelowZero},
		"the platform's legs": {ledger.Balance{Available: 1}, ledger.EndCost(1400).Legs, ledger.Balance{Available: 1}, nil},
		"more than fits":      {ledger.Balance{Available: math.MaxInt64}, ledger.Adjust(1).Legs, ledger.Balance{Available: math.MaxInt64}, money.ErrOverflow},
		"held more than fits": {ledger.Balance{Held: math.MaxInt64}, ledger.Legs{Held: 1}, ledger.Balance{Held: math.MaxInt64}, money.ErrOverflow},
	} {
		if after, err := c.before.Apply(c.legs); after != c.after || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", name, after, err)
		}
	}
}

// accounts apply transactions as the store does: each step of an attempt once, and
// no balance below zero.
type accounts struct {
	balance  ledger.Balance
	platform money.Amount
	posted   map[uuid.UUID]map[ledger.Step]bool
}

func (b *accounts) post(t *rapid.T, subject uuid.UUID, transaction ledger.Transaction) bool {
	if err := transaction.Check(); err != nil {
		t.Fatal(err)
	}
	if b.posted[subject][transaction.Step] {
		return false
	}
	after, err := b.balance.Apply(transaction.Legs)
	if err != nil {
		return false
	}
	if b.posted[subject] == nil {
		b.posted[subject] = map[ledger.Step]bool{}
	}
	b.posted[subject][transaction.Step] = true
	b.balance = after
	b.platform += transaction.Margin + transaction.Legs.Cost + transaction.Deposit + transaction.Adjustments
	return true
}

// TestAnySequence plays movements in any order: everything sums to zero all the
// time, nothing is below zero, each ends once, and what failed or was reversed has
// cost its merchant nothing.
func TestAnySequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string, from int) money.Amount {
			return money.Amount(rapid.IntRange(from, 5000).Draw(t, name))
		}
		b := &accounts{posted: map[uuid.UUID]map[ledger.Step]bool{}}
		granted := amount("credit", 1)
		b.post(t, uuid.New(), ledger.Adjust(granted))
		want := ledger.Balance{Available: granted}
		for range rapid.IntRange(0, 30).Draw(t, "movements") {
			id, price, cost, held := uuid.New(), amount("price", 1), amount("cost", 0), rapid.Bool().Draw(t, "held")
			begin, done, fail := ledger.BeginCharge(price), ledger.EndCost(cost), ledger.GiveBack(price)
			if held {
				begin, done, fail = ledger.BeginHold(price), ledger.EndCapture(price, cost), ledger.LetGo(price)
			}
			if began := b.post(t, id, begin); began != (want.Available >= price) {
				t.Fatalf("%d of %d available: %v", price, want.Available, began)
			} else if !began {
				continue
			}
			want.Available -= price
			switch rapid.SampledFrom([]string{"open", "done", "failed", "reversed"}).Draw(t, "end") {
			case "open":
				if held {
					want.Held += price
				}
			case "done":
				b.post(t, id, done)
			case "failed":
				b.post(t, id, fail)
				want.Available += price
			case "reversed":
				b.post(t, id, done)
				b.post(t, id, ledger.TakeBack(price, cost))
				want.Available += price
			}
			if b.posted[id][ledger.Ends] && (b.post(t, id, done) || b.post(t, id, fail)) {
				t.Fatal("it ended twice")
			}
			if b.balance != want || b.balance.Available+b.balance.Held+b.platform != 0 {
				t.Fatalf("%+v and %d of the platform's, want %+v", b.balance, b.platform, want)
			}
		}
	})
}
