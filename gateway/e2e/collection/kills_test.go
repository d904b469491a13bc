package collection_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// TestCollectionsSurviveKills kills the gateway in the middle of a report of 1,500 lines
// for 150 open sales, in the long tier three times in one of 5,000 lines for 500. Each
// sale is paid once, by one payment, and its merchant gets that callback and no other.
func TestCollectionsSurviveKills(t *testing.T) {
	t.Parallel()
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	edit.LiftRates(t)
	s := harness.Settings{Data: harness.DataDir(t), DatabaseURL: harness.DevDatabase(t), Flags: []string{"--policy-dir", filepath.Dir(edit.File)}}
	p := harness.Start(t, s)
	sales, kills := 150, []int{40}
	if tier.IsLong() {
		sales, kills = 500, []int{40, 180, 330}
	}
	b := newBatch(t, p, sales)
	b.report(t, 10*sales)
	for _, done := range kills {
		t.Logf("killed with %s", b.upTo(t, done, collectedWithin))
		p.Kill(t)
		p = harness.Start(t, s)
		b.move(p)
	}
	b.check(t)
	if n := p.LogCount("an account's code can't be read"); n > 0 {
		t.Errorf("the simulator has forgotten its shops: %d", n)
	}
}

// batch is many open sales on one account, a report that pays them, and what is
// known of both.
type batch struct {
	*outlet
	box   *harness.Receiver
	sales []collectionData
	again int // payments of a sale that another pays
	other int // payments of no sale
}

func newBatch(t *testing.T, p *harness.Program, count int) *batch {
	t.Helper()
	b := &batch{outlet: newOutlet(t, p), box: harness.NewReceiver(t, 0)}
	b.sell(t, count)
	return b
}

// sell makes so many more sales, of a few amounts.
func (b *batch) sell(t *testing.T, count int) {
	t.Helper()
	const clients, amounts = 16, 10
	answers, faults := make([]harness.Answer, count), make([]error, count)
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			for i := client; i < count; i += clients {
				order := collectionBody(b.outlet.Shop, harness.Fields{"amount": 100_000 + 2_000*(i%amounts), "payer_email": fmt.Sprintf("payer%d@example.com", len(b.sales)+i)})
				answers[i], faults[i] = b.Insist(t.Context(), "/wallet2/create", order, "X-Callback-URL", b.box.URL)
			}
		})
	}
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if !a.Success {
			t.Fatalf("create: %s", a)
		}
		b.sales = append(b.sales, collectionOf(a))
	}
}

// report drops a report of so many rows in a random order. All sales are paid, one
// in ten by two payers; each of their rows stands there three times. Others are of
// no sale, or of another shop.
func (b *batch) report(t *testing.T, count int) {
	t.Helper()
	now := time.Now()
	var rows []reportRow
	for i, sale := range b.sales {
		row := sale.paid(now)
		rows = append(rows, row, row, row)
		if i%10 == 0 {
			row.id += "B"
			rows = append(rows, row)
			b.again++
		}
	}
	for i := 0; len(rows) < count; i++ {
		foreign := reportRow{id: fmt.Sprintf("F%d", i), at: now, amount: 1_000_000 + int64(i)}
		if i%3 == 0 {
			foreign.merchant = "ID1099999999999"
		} else {
			b.other++
		}
		rows = append(rows, foreign)
	}
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	b.outlet.report(t, rows...)
}

// progress is how far a batch is.
type progress struct{ rows, matched, done int }

func (g progress) String() string {
	return fmt.Sprintf("%d payments read, %d sales paid, and %d payments whose sales did not know", g.rows, g.done, g.matched)
}

// ofAccount is which statement lines are a merchant's.
const ofAccount = "account_id = (SELECT account_id FROM statements WHERE merchant_id = $1)"

const progressSQL = "SELECT (SELECT count(*) FROM statement_lines WHERE " + ofAccount + "), (SELECT count(*) FROM statement_lines WHERE state = 'matched' AND " + ofAccount + "), " +
	"(SELECT count(*) FROM movements WHERE merchant_id = $1 AND kind = 'collection' AND state = 'succeeded')"

// upTo waits until so many sales are paid, and asks for some of them meanwhile,
// which has the reports read.
func (b *batch) upTo(t *testing.T, done int, within time.Duration) (g progress) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	shop := b.Shop
	go func() {
		for ctx.Err() == nil { // it may be cut
			_, _ = shop.Post(ctx, "/wallet2/status", harness.Fields{"external_id": b.sales[rand.IntN(len(b.sales))].ExternalID})
			<-time.After(100 * time.Millisecond)
		}
	}()
	for began := time.Now(); g.done < done; {
		if err := conn.QueryRow(ctx, progressSQL, b.MerchantID).Scan(&g.rows, &g.matched, &g.done); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > within {
			t.Fatalf("%v for %d sales to be paid: %s", harness.ErrTimeout, done, g)
		}
	}
	return g
}

// move tells the batch that the gateway is another process now.
func (b *batch) move(p *harness.Program) {
	p.KeepSecret(b.Shop.Known()...)
	b.Shop.Program = p
}

// check holds sales, payments, callbacks and mails against one another, once all
// is settled.
func (b *batch) check(t *testing.T) {
	t.Helper()
	count := len(b.sales)
	b.upTo(t, count, harness.ResolvesWithin)
	harness.Await(t, collectedWithin, "every payment to be matched", func() bool {
		b.looked(t, b.sales[0].ExternalID)
		var left int
		b.QueryRow(t, &left, "SELECT count(*) FROM statement_lines WHERE state IN ('new', 'matched') AND "+ofAccount, b.MerchantID)
		return left == 0
	})
	harness.Await(t, harness.CallbacksWithin, "every callback", func() bool { return harness.UndeliveredCallbacks(t, b.Program) == 0 })
	var mailed, unsent, distinct, payments, matched, paying, again, other int
	harness.Await(t, harness.CallbacksWithin, "every mail", func() bool {
		b.QueryRow(t, &unsent, "SELECT count(*) FROM mails WHERE merchant_id = $1 AND state <> 'sent'", b.MerchantID)
		return unsent == 0
	})
	for into, sql := range map[*int]string{
		&mailed:   "count(*) FROM mails WHERE merchant_id = $1",
		&distinct: "count(DISTINCT movement_id) FROM mails WHERE merchant_id = $1",
		&payments: "count(*) FROM statement_lines WHERE " + ofAccount,
		&matched:  "count(*) FROM statement_lines WHERE state IN ('new', 'matched') AND " + ofAccount,
		&paying:   "count(DISTINCT movement_id) FROM statement_lines WHERE state = 'paid' AND " + ofAccount,
		&again:    "count(*) FROM statement_lines WHERE state = 'again' AND " + ofAccount,
		&other:    "count(*) FROM statement_lines WHERE state = 'unmatched' AND " + ofAccount,
	} {
		b.QueryRow(t, into, "SELECT "+sql, b.MerchantID)
	}
	if payments != count+b.again+b.other || matched != 0 || paying != count || again != b.again || other != b.other || mailed != count || distinct != count {
		t.Errorf("%d payments, %d of them not matched, %d paying, %d again, %d of no sale, %d mails to %d; want %d sales, %d again, %d of none",
			payments, matched, paying, again, other, mailed, distinct, count, b.again, b.other)
	}
	told := map[string]map[string]int{} // by sale, by event and id
	for _, one := range b.box.All() {
		reference := one.Field("external_id")
		if told[reference] == nil {
			told[reference] = map[string]int{}
		}
		told[reference][one.Event+" "+one.ID()+" "+one.Field("status")]++
	}
	repeats := 0
	for _, sale := range b.sales {
		for what, times := range told[sale.ExternalID] {
			if repeats += times - 1; len(told[sale.ExternalID]) != 1 || what[:len("wallet2.status_update ")] != "wallet2.status_update " || what[len(what)-5:] != " PAID" {
				t.Errorf("%s was told %v", sale.ExternalID, told[sale.ExternalID])
			}
		}
	}
	if len(told) != count {
		t.Errorf("%d sales were told of, want %d", len(told), count)
	}
	t.Logf("%d sales paid once each by %d payments; %d payments again, %d of no sale; %d callbacks and %d of them repeated; %d mails",
		paying, payments, again, other, len(b.box.All()), repeats, mailed)
}

// TestTortureCollections sells and reports for minutes while gateway, plugin and
// database are killed at random moments, and then checks everything.
func TestTortureCollections(t *testing.T) {
	t.Parallel()
	minutes := harness.TortureMinutes(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	db, edit := harness.NewPostgreSQL(t), &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	edit.LiftRates(t)
	s := harness.Settings{Data: harness.DataDir(t), DatabaseURL: db.Proxy.URL, Flags: []string{"--policy-dir", filepath.Dir(edit.File)}}
	p := harness.Start(t, s)
	kills, rounds := map[string]int{}, 0
	for began := time.Now(); time.Since(began) < time.Duration(minutes*float64(time.Minute)); rounds++ {
		b := newBatch(t, p, 900)
		b.report(t, 20_000)
		for range 6 {
			<-time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
			switch n := random.IntN(10); {
			case n < 2 && p.KillProvider(t, "wallet2", false):
				kills["plugin"]++
			case n < 5:
				db.Kill(t, time.Duration(random.Int64N(int64(time.Second))))
				kills["database"]++
			default:
				p.Kill(t)
				p = harness.Start(t, s)
				b.move(p)
				kills["gateway"]++
			}
		}
		b.check(t)
	}
	t.Logf("seed %d, %d rounds of 900 sales and 20,000 rows; kills: %s", seed, rounds, harness.Counted(kills))
}

// TestTortureLongReport reads a report of a hundred thousand payments into one
// account, of which nine hundred pay its open sales.
func TestTortureLongReport(t *testing.T) {
	t.Parallel()
	harness.TortureMinutes(t)
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	edit.LiftRates(t)
	b := newBatch(t, harness.Start(t, harness.Settings{Flags: []string{"--policy-dir", filepath.Dir(edit.File)}}), 900)
	began := time.Now()
	b.other = 100_000 - len(b.sales)
	b.drop(t, "long.csv", b.longReport(b.sales, 100_000, 100_000))
	for {
		g := b.progress(t)
		if g.done == len(b.sales) && g.rows == 100_000 && g.matched == 0 {
			break
		}
		if time.Since(began) > 10*time.Minute {
			t.Fatalf("after %v: %s", time.Since(began), g)
		}
		statusOfCollection(t, b.outlet.Shop, b.sales[rand.IntN(len(b.sales))].ExternalID)
		<-time.After(100 * time.Millisecond)
	}
	t.Logf("100,000 payments were read, and 900 sales paid, within %v", time.Since(began).Round(time.Millisecond))
	b.check(t)
}

// progress is how far the batch is.
func (b *batch) progress(t *testing.T) (g progress) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), progressSQL, b.MerchantID).Scan(&g.rows, &g.matched, &g.done); err != nil {
		t.Fatal(err)
	}
	return g
}
