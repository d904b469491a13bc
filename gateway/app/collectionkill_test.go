package app_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// TestCollectionsAndKills kills the gateway in the middle of a report of 5,000 rows
// for 500 open sales, three times. Then each sale is paid once, by one payment, and
// its merchant was told of it and of nothing else.
func TestCollectionsAndKills(t *testing.T) {
	t.Parallel()
	edit := &limits{file: filepath.Join(t.TempDir(), "data.json")}
	edit.lift(t)
	s := settings{data: dataDir(t), databaseURL: dbtest.New(t, "", nil), flags: []string{"--policy-dir", filepath.Dir(edit.file)}}
	p := start(t, s)
	b := newBatch(t, p, 500)
	b.report(t, 5_000)
	for _, done := range []int{40, 180, 330} {
		t.Logf("killed with %s", b.upTo(t, done, collectedWithin))
		p.kill(t)
		p = start(t, s)
		b.move(p)
	}
	b.check(t)
	if n := p.logs("an account's code can't be read"); n > 0 {
		t.Errorf("the simulator has forgotten its shops: %d", n)
	}
}

// batch is many open sales on one account, a report that pays them, and what is
// known of both.
type batch struct {
	*stall
	box   *mailbox
	sales []collected
	again int // payments of a sale that another pays
	other int // payments of no sale
}

func newBatch(t *testing.T, p *program, count int) *batch {
	t.Helper()
	b := &batch{stall: p.newStall(t), box: newMailbox(t, 0)}
	b.sell(t, count)
	return b
}

// sell makes so many more sales, of a few amounts.
func (b *batch) sell(t *testing.T, count int) {
	t.Helper()
	const clients, amounts = 16, 10
	answers, faults := make([]answer, count), make([]error, count)
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			for i := client; i < count; i += clients {
				order := b.collection(fields{"amount": 100_000 + 2_000*(i%amounts), "payer_email": fmt.Sprintf("payer%d@example.com", len(b.sales)+i)})
				answers[i], faults[i] = b.post(t.Context(), "/wallet2/create", order, "X-Callback-URL", b.box.url)
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
		b.sales = append(b.sales, a.collected())
	}
}

// report drops a report of so many rows in a random order. All sales are paid, one
// in ten by two payers; each of their rows stands there three times. Others are of
// no sale, or of another shop.
func (b *batch) report(t *testing.T, count int) {
	t.Helper()
	now := time.Now()
	var rows []settled
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
		foreign := settled{id: fmt.Sprintf("F%d", i), at: now, amount: 1_000_000 + int64(i)}
		if i%3 == 0 {
			foreign.merchant = "ID1099999999999"
		} else {
			b.other++
		}
		rows = append(rows, foreign)
	}
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	b.stall.report(t, rows...)
}

// progress is how far a batch is.
type progress struct{ rows, matched, done int }

func (g progress) String() string {
	return fmt.Sprintf("%d payments read, %d sales paid, and %d payments whose sales did not know", g.rows, g.done, g.matched)
}

// ofAccount is which settlements are a merchant's.
const ofAccount = "account_id = (SELECT account_id FROM statements WHERE merchant_id = $1)"

const progressSQL = "SELECT (SELECT count(*) FROM statement_lines WHERE " + ofAccount + "), (SELECT count(*) FROM statement_lines WHERE state = 'matched' AND " + ofAccount + "), " +
	"(SELECT count(*) FROM movements WHERE merchant_id = $1 AND kind = 'collection' AND state = 'succeeded')"

// upTo waits until so many sales are paid, and asks for some of them meanwhile, which
// has the reports read.
func (b *batch) upTo(t *testing.T, done int, within time.Duration) (g progress) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	shop := b.shop
	go func() {
		for ctx.Err() == nil { // it may be cut
			_, _ = shop.post(ctx, "/wallet2/status", fields{"external_id": b.sales[rand.IntN(len(b.sales))].ExternalID})
			<-time.After(100 * time.Millisecond)
		}
	}()
	for began := time.Now(); g.done < done; {
		if err := conn.QueryRow(ctx, progressSQL, b.merchant).Scan(&g.rows, &g.matched, &g.done); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > within {
			t.Fatalf("%v for %d sales to be paid: %s", errInVain, done, g)
		}
	}
	return g
}

// move tells the batch that the gateway is another process now.
func (b *batch) move(p *program) {
	p.known.Lock()
	defer p.known.Unlock()
	p.guests, b.shop.program = b.shop.guests, p
}

// check holds sales, payments, callbacks and mails against one another, once all
// is settled.
func (b *batch) check(t *testing.T) {
	t.Helper()
	count := len(b.sales)
	b.upTo(t, count, resolvesWithin)
	await(t, collectedWithin, "every payment to be settled", func() bool {
		b.looked(t, b.sales[0].ExternalID)
		var left int
		b.query(t, &left, "SELECT count(*) FROM statement_lines WHERE state IN ('new', 'matched') AND "+ofAccount, b.merchant)
		return left == 0
	})
	await(t, callbacksWithin, "every callback", func() bool { return waiting(t, b.program) == 0 })
	var mailed, unsent, distinct, payments, matched, paying, again, other int
	await(t, callbacksWithin, "every mail", func() bool {
		b.query(t, &unsent, "SELECT count(*) FROM mails WHERE merchant_id = $1 AND state <> 'sent'", b.merchant)
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
		b.query(t, into, "SELECT "+sql, b.merchant)
	}
	if payments != count+b.again+b.other || matched != 0 || paying != count || again != b.again || other != b.other || mailed != count || distinct != count {
		t.Errorf("%d payments, %d of them not settled, %d paying, %d again, %d of no sale, %d mails to %d; want %d sales, %d again, %d of none",
			payments, matched, paying, again, other, mailed, distinct, count, b.again, b.other)
	}
	told := map[string]map[string]int{} // by sale, by event and id
	for _, one := range b.box.all() {
		reference := one.field("external_id")
		if told[reference] == nil {
			told[reference] = map[string]int{}
		}
		told[reference][one.Event+" "+one.id()+" "+one.field("status")]++
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
		paying, payments, again, other, len(b.box.all()), repeats, mailed)
}

// TestTortureCollections sells and reports for minutes while gateway, plugin and
// database are killed at random moments, and checks all of it at last.
func TestTortureCollections(t *testing.T) {
	t.Parallel()
	minutes := torturedFor(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	db, edit := newMortal(t), &limits{file: filepath.Join(t.TempDir(), "data.json")}
	edit.lift(t)
	s := settings{data: dataDir(t), databaseURL: db.wire.url, flags: []string{"--policy-dir", filepath.Dir(edit.file)}}
	p := start(t, s)
	kills, rounds := map[string]int{}, 0
	for began := time.Now(); time.Since(began) < time.Duration(minutes*float64(time.Minute)); rounds++ {
		b := newBatch(t, p, 900)
		b.report(t, 20_000)
		for range 6 {
			<-time.After(time.Duration(random.Int64N(int64(1500 * time.Millisecond))))
			switch n := random.IntN(10); {
			case n < 2 && p.killOne(t, "wallet2", false):
				kills["plugin"]++
			case n < 5:
				db.kill(t, time.Duration(random.Int64N(int64(time.Second))))
				kills["database"]++
			default:
				p.kill(t)
				p = start(t, s)
				b.move(p)
				kills["gateway"]++
			}
		}
		b.check(t)
	}
	t.Logf("seed %d, %d rounds of 900 sales and 20,000 rows; kills: %s", seed, rounds, counted(kills))
}

// torturedFor is how long a test tortures, which is not run without an order.
func torturedFor(t *testing.T) float64 {
	t.Helper()
	minutes, err := strconv.ParseFloat(os.Getenv(minutesVariable), 64)
	if err != nil || minutes <= 0 {
		t.Skipf("set %s, as make torture does", minutesVariable)
	}
	return minutes
}

// TestTortureLongReport reads a report of a hundred thousand payments into one
// account, of which nine hundred pay its open sales.
func TestTortureLongReport(t *testing.T) {
	t.Parallel()
	torturedFor(t)
	edit := &limits{file: filepath.Join(t.TempDir(), "data.json")}
	edit.lift(t)
	b := newBatch(t, start(t, settings{flags: []string{"--policy-dir", filepath.Dir(edit.file)}}), 900)
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
		b.collectionOf(t, b.sales[rand.IntN(len(b.sales))].ExternalID)
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
	if err := conn.QueryRow(t.Context(), progressSQL, b.merchant).Scan(&g.rows, &g.matched, &g.done); err != nil {
		t.Fatal(err)
	}
	return g
}
