package scenarios

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
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
// all other rows are foreign. Beside it the same rows are copied into a table that
// is made like theirs, a page in a commit: nobody who keeps them does less.
func BenchmarkMatching(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w, url, rows := busyStall(b)
		w.up.write(rows...)
		bare := copied(b, url, rows)
		b.StartTimer()
		started := time.Now()
		for w.up.reads*pageSize < len(rows) {
			w.pass(readEvery)
			if err := w.ReadStatement(b.Context(), w.statement()); err != nil {
				b.Fatal(err)
			}
		}
		took := time.Since(started)
		b.StopTimer()
		b.ReportMetric(float64(len(rows))/took.Seconds(), "rows/s")
		b.ReportMetric(float64(len(rows))/bare.Seconds(), "copied/s")
		b.ReportMetric(took.Seconds()/bare.Seconds(), "x-copying")
		b.ReportMetric(float64(*openSales)/took.Seconds(), "sales/s")
		if told := len(w.told()); told != min(10_000, *openSales) {
			b.Errorf("%d sales were paid", told)
		}
		b.StartTimer()
	}
}

// copied is how long the database takes to keep rows, page by page.
func copied(b *testing.B, url string, rows []sdk.StatementLine) time.Duration {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(b.Context()))
	if _, err := conn.Exec(b.Context(), "CREATE TABLE bare (LIKE statement_lines INCLUDING ALL)"); err != nil {
		b.Fatal(err)
	}
	account := uuid.New()
	columns := []string{
		"account_id", "payment", "line_id", "amount", "currency", "at", "paid", "differs", "data", "imported_at", "state", "operator", "reason",
	}
	started := time.Now()
	for page := range slices.Chunk(rows, pageSize) {
		source := pgx.CopyFromSlice(len(page), func(i int) ([]any, error) {
			r := page[i]
			return []any{account, r.ID, r.ID, int64(r.Amount), r.Currency, r.At, true, false, "{}", r.At, "unmatched", "", ""}, nil
		})
		if _, err := conn.CopyFrom(b.Context(), pgx.Identifier{"bare"}, columns, source); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(started)
}

// busyStall has many open sales and the rows of a long day.
func busyStall(b *testing.B) (*world, string, []sdk.StatementLine) {
	b.Helper()
	url := dbtest.New(b, "engine"+store.MigrationsDigest(), func(ctx context.Context, url string) error {
		return store.Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	s, err := store.Open(b.Context(), url, store.Options{MaxConns: 8})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	w := newCollections(b, s)
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
	rows, every := make([]sdk.StatementLine, *bookRows), *bookRows / *openSales
	for i := range rows {
		amount := money.Amount(500_000_000 + i)
		if i%every == 0 && i/every < *openSales {
			amount = money.Amount(1_000_001 + i/every)
		}
		rows[i] = paid(fmt.Sprintf("r%09d", i), amount, w.now().Add(time.Minute))
	}
	return w, url, rows
}
