package engine

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

var (
	bookRows  = flag.Int("book-rows", 20_000, "rows of the books that BenchmarkMatching reads")
	openSales = flag.Int("open-sales", 2_000, "collections that are open meanwhile, all of which a row pays")
)

// BenchmarkMatching reads, matches and settles long books: every sale is paid, and
// all other rows are foreign.
func BenchmarkMatching(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w, rows := busyStall(b)
		w.till.write(rows...)
		b.StartTimer()
		started := time.Now()
		for w.till.reads*pageOfBooks < len(rows) {
			w.pass(booksEvery)
			c, err := w.connect(b.Context(), collectOf(collectPath), w.account, "live")
			if err != nil {
				b.Fatal(err)
			}
			if _, _, err := w.reconcile(b.Context(), collectOf(collectPath), c); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(rows))/time.Since(started).Seconds(), "rows/s")
		b.StopTimer()
		if told := len(w.told()); told != min(10_000, *openSales) {
			b.Errorf("%d sales were paid", told)
		}
		b.StartTimer()
	}
}

// busyStall has many open sales and the rows of a long day.
func busyStall(b *testing.B) (*stall, []sdk.Entry) {
	b.Helper()
	url := dbtest.New(b, "engine"+store.MigrationsDigest(), func(ctx context.Context, url string) error {
		return store.Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	s, err := store.Open(b.Context(), url, store.Options{MaxConns: 8})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	w := newStall(b, s)
	pattern := w.sold("0", 1_000)
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(b.Context()))
	if _, err := conn.Exec(b.Context(), `INSERT INTO movements (merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
		amount, request, result, answer, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
		send_by, created_at, updated_at, expires_at, misses, due_bucket, connection_owner, connection_account)
		SELECT merchant_id, mode, kind, 'sale ' || n, gen_random_uuid(), 1, operation, provider, state, sequence, 1000000 + n, request, result, answer,
		connection_version, '', '', callback_url, request_id, '', '', send_by, created_at, updated_at, expires_at, 0, 0, connection_owner, connection_account
		FROM movements, generate_series(1, $2) AS n WHERE id = $1`, pattern.ID.String(), *openSales); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(b.Context(), "ANALYZE"); err != nil {
		b.Fatal(err)
	}
	rows, every := make([]sdk.Entry, *bookRows), *bookRows / *openSales
	for i := range rows {
		amount := money.Amount(500_000_000 + i)
		if i%every == 0 && i/every < *openSales {
			amount = money.Amount(1_000_001 + i/every)
		}
		rows[i] = paid(fmt.Sprintf("r%09d", i), amount, w.now().Add(time.Minute))
	}
	return w, rows
}
