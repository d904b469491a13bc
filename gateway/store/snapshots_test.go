package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// past is a transaction some time ago.
type past struct {
	owner     movement.Owner
	provider  string
	at        time.Time
	available money.Amount
	held      money.Amount
}

// pastOf plants transactions of the last days of two merchants: nobody writes such
// but at their time. One in ten is written late, one in ten is from before anybody
// noted when.
func pastOf(tb testing.TB, url string, dice *rand.Rand, now time.Time, number int) (all []past) {
	tb.Helper()
	var statements []string
	for _, owner := range owners {
		statements = append(statements, fmt.Sprintf("INSERT INTO ledger_balances VALUES ('%s', '%s', 1, 1)", owner.MerchantID, owner.Mode))
	}
	for range number {
		p := past{
			owner: owners[dice.IntN(len(owners))], provider: []string{"", "ppob", "other"}[dice.IntN(3)],
			at: now.Add(-time.Duration(dice.Int64N(int64(5 * 24 * time.Hour)))).Truncate(time.Microsecond), available: money.Amount(dice.IntN(100)), held: money.Amount(dice.IntN(100)),
		}
		if dice.IntN(4) == 0 {
			p.at = ledger.DayEnd(p.at).Add(-24*time.Hour + time.Duration(dice.IntN(3)-1)*time.Microsecond)
		}
		written := fmt.Sprintf("'%s'", p.at.Add(time.Duration(dice.IntN(3599))*time.Second).Format(time.RFC3339Nano))
		switch dice.IntN(10) {
		case 0:
			written = fmt.Sprintf("'%s'", p.at.Add(time.Hour+time.Duration(dice.IntN(100_000))*time.Second+time.Microsecond).Format(time.RFC3339Nano))
		case 1:
			written = "NULL"
		}
		statements = append(statements, fmt.Sprintf(`INSERT INTO ledger_transactions (merchant_id, mode, subject, attempt, step, kind, provider, at, written_at,
			available, held, margin, cost, deposit, adjustments)
			VALUES ('%s', '%s', gen_random_uuid(), 1, 1, 'charge', '%s', '%s', %s, %d, %d, %d, -7, 7, 0)`, p.owner.MerchantID, p.owner.Mode, p.provider,
			p.at.Format(time.RFC3339Nano), written, p.available, p.held, -p.available-p.held))
		all = append(all, p)
	}
	execute(tb, url, statements...)
	return all
}

var owners = []movement.Owner{{MerchantID: "mer_1", Mode: "live"}, {MerchantID: "mer_1", Mode: "test"}, {MerchantID: "mer_2", Mode: "live"}}

// wantPast compares what is read of some times with what was planted.
func wantPast(t *testing.T, s *store.Store, all []past, times []time.Time) {
	t.Helper()
	for _, at := range times {
		for _, owner := range owners {
			want := ledger.Balance{}
			for _, p := range all {
				if p.owner == owner && !p.at.After(at) {
					want.Available, want.Held = want.Available+p.available, want.Held+p.held
				}
			}
			got, err := s.BalanceAt(t.Context(), owner, at)
			if err != nil || got != want {
				t.Fatalf("%v had %+v at %v, %v; want %+v", owner, got, at, err, want)
			}
			rest, err := s.AccountStatement(t.Context(), owner, at.Add(time.Microsecond), at.Add(1000*time.Hour), nil, 1)
			if err != nil || len(rest) > 0 && (rest[0].Balance != ledger.Balance{Available: want.Available + rest[0].Available, Held: want.Held + rest[0].Held}) {
				t.Fatalf("%v's statement goes on from %+v with %+v, %v", owner, want, rest, err)
			}
		}
		margins := map[string]money.Amount{}
		for _, p := range all {
			if p.owner.Mode == "live" && !p.at.After(at) {
				margins[p.provider] -= p.available + p.held
			}
		}
		platform, err := s.PlatformAt(t.Context(), "live", at)
		got := map[string]money.Amount{}
		for _, p := range platform {
			got[p.Provider] = p.Margin
		}
		if err != nil || !reflect.DeepEqual(got, margins) {
			t.Fatalf("the platform had %v at %v, %v; want %v", got, at, err, margins)
		}
	}
}

// TestPastIsTheSameWithSnapshots: before any day is closed, whenever some are, with
// what is written late meanwhile, and when all are.
func TestPastIsTheSameWithSnapshots(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	now, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(7, 7))
	all := pastOf(t, url, dice, now, 300)
	var times []time.Time
	for range 12 {
		p := all[dice.IntN(len(all))]
		times = append(times, p.at, p.at.Add(-time.Microsecond), ledger.DayEnd(p.at), ledger.DayEnd(p.at).Add(-time.Microsecond))
	}
	times = append(times, now.Add(time.Hour), now.Add(-100*24*time.Hour))
	wantPast(t, s, all, times)
	taken := 0
	for follows, more := (movement.Owner{}), true; more; {
		last, closed, err := s.CloseDays(t.Context(), follows, now, 2)
		if err != nil {
			t.Fatal(err)
		}
		if taken += closed; closed == 0 {
			follows, more = last, last != movement.Owner{}
		}
		wantPast(t, s, all, times)
	}
	if want := count(t, url, `SELECT count(*) FROM (SELECT DISTINCT merchant_id, mode, until FROM ledger_snapshots) AS x`); taken < 10 || taken != want {
		t.Errorf("closed %d days, there are %d", taken, want)
	}
	late := past{owner: owners[0], provider: "ppob", at: ledger.Closed(now).Add(-30 * time.Hour), available: 5}
	execute(t, url, fmt.Sprintf(`INSERT INTO ledger_transactions (merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments)
		VALUES ('mer_1', 'live', gen_random_uuid(), 1, 1, 'charge', 'ppob', '%s', 5, 0, -5, 0, 0, 0)`, late.at.Format(time.RFC3339Nano)))
	wantPast(t, s, append(all, late), append(times, late.at))
	if _, closed, err := s.CloseDays(t.Context(), movement.Owner{}, now, 100); closed != 0 || err != nil {
		t.Errorf("closed %d more, %v", closed, err)
	}
}

// TestPastIsNotReadAgain: what a snapshot counts need not be there any more.
func TestPastIsNotReadAgain(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	now, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := pastOf(t, url, rand.New(rand.NewPCG(8, 8)), now, 100)
	closeAll(t, s, now)
	execute(t, url, fmt.Sprintf(`DELETE FROM ledger_transactions WHERE at < '%s' AND (written_at - at > INTERVAL '1 hour') IS NOT TRUE`,
		ledger.Closed(now).Add(-48*time.Hour).Format(time.RFC3339Nano)))
	if n := count(t, url, "SELECT count(*) FROM ledger_transactions"); n > len(all)*3/4 {
		t.Fatalf("%d of %d are left", n, len(all))
	}
	wantPast(t, s, all, []time.Time{ledger.Closed(now), now})
}

// closeAll closes every day that can be.
func closeAll(tb testing.TB, s *store.Store, now time.Time) {
	tb.Helper()
	for closed := 1; closed > 0; {
		var err error
		if _, closed, err = s.CloseDays(tb.Context(), movement.Owner{}, now, 1000); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestNoClockClosesADayEarly: not even one that is days ahead.
func TestNoClockClosesADayEarly(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	now, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pastOf(t, url, rand.New(rand.NewPCG(9, 9)), now.Add(3*24*time.Hour), 100)
	closeAll(t, s, now.Add(5*24*time.Hour))
	if n := count(t, url, fmt.Sprintf("SELECT count(*) FROM ledger_snapshots WHERE until > '%s'", ledger.Closed(now.Add(time.Minute)).Format(time.RFC3339Nano))); n != 0 {
		t.Errorf("%d are of days that are not closed", n)
	}
	if n := count(t, url, "SELECT count(*) FROM ledger_snapshots"); n == 0 {
		t.Error("there are none")
	}
}

// TestReplicasCloseADayOnce: whoever adds it up, wherever it stops.
func TestReplicasCloseADayOnce(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 16})
	now, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := pastOf(t, url, rand.New(rand.NewPCG(10, 10)), now, 100)
	got := every(8, func(int) string {
		for closed := 1; closed > 0; {
			var err error
			if _, closed, err = s.CloseDays(t.Context(), movement.Owner{}, now, 1000); err != nil {
				return err.Error()
			}
		}
		return "fine"
	})
	if !reflect.DeepEqual(got, map[string]int{"fine": 8}) {
		t.Errorf("%v", got)
	}
	closeAll(t, s, now)
	times := []time.Time{now}
	for end := ledger.Closed(now); len(times) < 6; end = end.Add(-24 * time.Hour) {
		times = append(times, end)
	}
	slices.Reverse(times)
	wantPast(t, s, all, times)
}

// TestADayThatCannotBeClosed keeps no other account's open.
func TestADayThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	now := ledger.DayEnd(epoch).Add(4 * 24 * time.Hour)
	pastOf(t, url, rand.New(rand.NewPCG(1, 2)), now, 100)
	execute(t, url, "ALTER TABLE ledger_snapshots ADD CONSTRAINT failing CHECK (merchant_id <> 'mer_1' OR mode <> 'live')")
	last, closed, err := s.CloseDays(t.Context(), movement.Owner{}, now, 100)
	if last != owners[2] || closed != 2 || err == nil {
		t.Errorf("closed %d days up to %v, %v", closed, last, err)
	}
}
