package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// steps are the commits of a sale's way. A process may end before and after each.
var steps = []string{
	"reserve", "move to pending", "import", "match", "move to done", "move to expired", "late", "return", "close",
}

// fates are what becomes of a sale at its wallet.
var fates = map[string]struct {
	rows   func(m movement.Movement) []sdk.StatementLine // from a minute after it was sold
	state  movement.State
	told   []string
	listed []string
}{
	"paid": {func(m movement.Movement) []sdk.StatementLine {
		return []sdk.StatementLine{paid("r", m.Amount, m.CreatedAt.Add(time.Minute))}
	},
		movement.Succeeded, []string{"wallet2.status_update INV/1 PAID"}, nil},
	"unpaid": {func(movement.Movement) []sdk.StatementLine { return nil },
		movement.Expired, []string{"wallet2.status_update INV/1 EXPIRED"}, nil},
	"paid late": {func(m movement.Movement) []sdk.StatementLine {
		return []sdk.StatementLine{paid("r", m.Amount, m.ExpiresAt.Add(time.Minute))}
	},
		movement.Expired, []string{"wallet2.paid_late INV/1 EXPIRED", "wallet2.status_update INV/1 EXPIRED"}, []string{movement.ReasonPaidLate}},
	"paid twice": {func(m movement.Movement) []sdk.StatementLine {
		return []sdk.StatementLine{paid("r", m.Amount, m.CreatedAt.Add(time.Minute)), paid("r2", m.Amount, m.CreatedAt.Add(2*time.Minute))}
	}, movement.Succeeded, []string{"wallet2.status_update INV/1 PAID"}, []string{movement.ReasonPaidAgain}},
	"taken back": {func(m movement.Movement) []sdk.StatementLine {
		return []sdk.StatementLine{paid("r", m.Amount, m.CreatedAt.Add(time.Minute)), back("r", m.Amount, m.CreatedAt.Add(time.Hour))}
	}, movement.Succeeded, []string{"wallet2.returned INV/1 FAILED", "wallet2.status_update INV/1 PAID"}, []string{movement.ReasonReturned}},
}

// crashOfSale is one way in which the processes of a sale end.
type crashOfSale struct {
	fate, at string
	times    int
}

// TestCollectionMatrix ends the process at each step of each fate, once or at
// every first chance of three processes, and has the next one go on.
func TestCollectionMatrix(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	var all []crashOfSale
	for _, fate := range slices.Sorted(maps.Keys(fates)) {
		for _, step := range steps {
			for _, when := range []string{"before ", "after "} {
				for _, times := range []int{1, 3} {
					all = append(all, crashOfSale{fate, when + step, times})
				}
			}
		}
	}
	for _, c := range tier.Sample(t, all, 60) {
		t.Run(fmt.Sprintf("%s, %s, %d times", c.fate, c.at, c.times), func(t *testing.T) {
			t.Parallel()
			playFate(newCollections(t, s), c.fate, c.at, c.times)
		})
	}
}

func playFate(w *world, fate, at string, times int) {
	f := fates[fate]
	crashes := times
	rig := func() {
		w.restart()
		w.faults.at = func(step string) {
			if step == at && crashes > 0 {
				crashes--
				panic(crash{})
			}
		}
	}
	rig()
	for w.sell("INV/1", 10_000).word() != "PENDING" { // the shop asks again, as it is told to
		rig()
		w.pass(15 * time.Second)
	}
	m := w.stored("INV/1")
	rows := f.rows(m)
	if len(rows) > 0 {
		w.up.write(rows[0])
	}
	for end := w.now().Add(30 * time.Hour); w.now().Before(end); {
		w.complete()
		if w.now().After(m.ExpiresAt.Add(5*time.Minute)) && len(rows) > 1 {
			w.up.write(rows[1:]...)
			rows = rows[:1]
			for range 6 { // a final sale is not looked at by itself: another one's look reads on
				w.pass(readEvery)
				if w.dies(func() { w.status("INV/other") }) || w.sell("INV/other", 77_000).crashed || w.status("INV/other").crashed {
					rig()
				}
			}
		}
		if w.work("INV/1", time.Hour) {
			rig()
		}
	}
	w.faults.at = nil
	w.pass(readEvery)
	w.sell("INV/last", 88_000)
	w.status("INV/last")
	w.wantEnd(fate, m.ID)
}

// wantEnd checks that all that happened is known, once.
func (w *world) wantEnd(fate string, id movement.ID) {
	w.Helper()
	f := fates[fate]
	m := w.stored("INV/1")
	if m.State != f.state || m.ID != id {
		w.Errorf("it is %s, want %s", m.State, f.state)
	}
	told := slices.DeleteFunc(w.events(), func(text string) bool { return text == "wallet2.status_update INV/other EXPIRED" })
	if !slices.Equal(told, f.told) {
		w.Errorf("told %q, want %q", told, f.told)
	}
	w.wantListed(f.listed...)
	open, err := w.keeper.OpenLines(w.Context(), w.wallet, "", 10)
	if err != nil || len(open) != 0 {
		w.Errorf("left open: %+v, %v", open, err)
	}
}
