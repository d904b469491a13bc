package store

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var planRows = flag.Int("rows", 20_000, "how many rows of each table to explain the queries on")

// filled fills each table with rows: half of them are of one busy merchant, the rest of
// a thousand, a second apart up to the end. $1 is how many.
var filled = map[string]string{
	"merchants": `INSERT INTO merchants (merchant_id, name, tier, status, labels, version, created_at, changed_at, change_shard)
		SELECT 'mer_' || n, 'Toko', 'starter', 'active', '{}', 1, TIMESTAMPTZ '2026-01-01', TIMESTAMPTZ '2026-01-01', 0
		FROM generate_series(0, LEAST($1::INT8, 1000)) AS n`,
	// One transfer in ten has no reference, and equals all others of its merchant. One
	// movement in ten is to be polled, all on one account, and one in five is a collection.
	"movements": `WITH made AS (INSERT INTO movements (
			merchant_id, mode, kind, reference, id, attempt, operation, provider, connection_account, state, ended, sequence, amount, request,
			connection_version, provider_reference, fact_id, fingerprint, callback_url, request_id, policy_version, decision_id,
			created_at, updated_at, send_by, misses, due_bucket)
		SELECT 'mer_' || CASE WHEN n % 2 = 0 THEN 0 ELSE n % 1000 END, 'live', r.kind,
			CASE WHEN r.unnamed THEN E'\x1e' || 'same-' || lpad(n::TEXT, 8, '0') ELSE 'INV/' || CASE WHEN n % 2 = 0 THEN 'M' || n ELSE (n / 1000)::TEXT END END,
			gen_random_uuid(), 1, '/' || r.kind, 'provider', 'account',
			CASE WHEN n % 100 = 20 THEN 'failed' WHEN $1 - n < 50 THEN 'pending' ELSE 'succeeded' END,
			CASE WHEN n % 100 = 20 THEN 'failed' WHEN $1 - n < 50 THEN '' ELSE 'succeeded' END, 2, 10000 + n % 100, repeat('x', 300),
			1, 'prov-' || n, '', CASE WHEN r.unnamed THEN E'\x1e' || 'same-' ELSE '' END, '', 'req-' || n, 'v1', '', r.at, r.at, r.at, 0, n % 16
		FROM (
			SELECT n, TIMESTAMPTZ '2026-06-01' - ($1 - n) * INTERVAL '1 second' AS at,
				CASE WHEN n % 5 = 4 THEN 'transfer' WHEN n % 10 = 3 THEN 'order' WHEN n % 10 IN (6, 7) THEN 'collection' ELSE 'payment' END AS kind, n % 10 = 4 AS unnamed
			FROM generate_series(1, $1::INT8) AS n
		) AS r
		ON CONFLICT DO NOTHING
		RETURNING id, due_bucket, created_at, state, amount)
		INSERT INTO polls (movement_id, attempt, version, account, bucket, due, misses)
		SELECT made.id, 1, 1, 'provider/live/mer_0', made.due_bucket, made.created_at, 0 FROM made WHERE made.state = 'pending' OR made.amount % 10 = 7`,
	// One in ten is due, and one in a thousand was given up.
	"callbacks": `INSERT INTO callbacks (
			merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, created_at, written_at, due_bucket, due_at)
		SELECT 'mer_' || CASE WHEN n % 2 = 0 THEN 0 ELSE n % 1000 END, 'live', gen_random_uuid(), lpad(n::TEXT, 32, '0')::UUID, 2, 'payments.status_update',
			'INV/' || n, 'https://shop.example/', repeat('x', 300), CASE WHEN n % 10 = 0 THEN 'waiting' WHEN n % 1000 = 2 THEN 'dead' ELSE 'delivered' END,
			1, r.at, r.at, n % 16, CASE WHEN n % 10 = 0 THEN r.at END
		FROM (SELECT n, TIMESTAMPTZ '2026-06-01' - ($1 - n) * INTERVAL '1 second' AS at FROM generate_series(1, $1::INT8) AS n) AS r`,
	// One in a hundred is open.
	"exceptions": `INSERT INTO exceptions (merchant_id, mode, subject, reason, fact_id, provider, detail, at, resolved_at)
		SELECT 'mer_' || CASE WHEN n % 2 = 0 THEN 0 ELSE n % 1000 END, 'live', gen_random_uuid()::TEXT, 'unknown_reference', 'f' || n, 'provider', repeat('x', 100),
			r.at, CASE WHEN n % 200 > 1 THEN r.at END
		FROM (SELECT n, TIMESTAMPTZ '2026-06-01' - ($1 - n) * INTERVAL '1 second' AS at FROM generate_series(1, $1::INT8) AS n) AS r`,
	// One in ten is due.
	"statements": `INSERT INTO statements (account_id, merchant_id, mode, provider, cursor, through, due_bucket, due_at)
		SELECT CASE WHEN n = 1 THEN '` + plansAccount.String() + `'::UUID ELSE gen_random_uuid() END, 'mer_' || n, 'live', 'provider', '', TIMESTAMPTZ '2026-01-01', n % 16,
			TIMESTAMPTZ '2026-06-01' + (n % 10 - 1) * INTERVAL '1 second'
		FROM generate_series(1, $1::INT8) AS n`,
	// All of one account. One in a hundred is open, and one waits for an operator.
	"statement_lines": `INSERT INTO statement_lines (account_id, payment, line_id, amount, currency, at, paid, differs, data, imported_at, state, movement_id, operator, reason)
		SELECT '` + plansAccount.String() + `', n::TEXT, n::TEXT, 10000 + n % 100, 'IDR', r.at, TRUE, FALSE, repeat('x', 100), r.at,
			CASE n % 100 WHEN 0 THEN 'new' WHEN 1 THEN 'unmatched' ELSE 'paid' END, CASE WHEN n % 100 > 1 THEN lpad(n::TEXT, 32, '0')::UUID END, '', ''
		FROM (SELECT n, TIMESTAMPTZ '2026-06-01' - ($1 - n) * INTERVAL '1 second' AS at FROM generate_series(1, $1::INT8) AS n) AS r`,
	// One in ten is a merchant's who asks every ten seconds, and of one in a thousand calls were dropped.
	"request_log": `INSERT INTO request_log (merchant_id, mode, span, replica_id, part, shard, terms, dropped, calls)
		SELECT 'mer_' || CASE WHEN n % 10 = 0 THEN 0 ELSE n % 1000 END, 'live', TIMESTAMPTZ '2026-06-01' - ($1 - n) * INTERVAL '1 second',
			'00000000-0000-0000-0000-000000000007', n, n % 16, E'\n/payments/create\nOK\nsucceeded\n' || CASE WHEN n % 100 = 0 THEN E'RATE_LIMITED\nfailed\n' ELSE '' END,
			CASE WHEN n % 1000 = 0 THEN 7 ELSE 0 END, repeat('x', 1000)::BYTEA
		FROM generate_series(1, $1::INT8) AS n`,
	// One in ten is due.
	"mails": `INSERT INTO mails (mail_id, merchant_id, mode, movement_id, recipient, subject, body, state, created_at, due_bucket, due_at)
		SELECT gen_random_uuid(), 'mer_0', 'live', gen_random_uuid(), 'p@example.com', 'Receipt', repeat('x', 300),
			CASE WHEN n % 10 = 0 THEN 'waiting' ELSE 'sent' END, r.at, n % 16, CASE WHEN n % 10 = 0 THEN r.at END
		FROM (SELECT n, TIMESTAMPTZ '2026-06-01' - ($1 - n) * INTERVAL '1 second' AS at FROM generate_series(1, $1::INT8) AS n) AS r`,
	// Twenty of each merchant.
	"invitations": `INSERT INTO invitations (hash, merchant_id, role, email, invited_by, expires_at)
		SELECT convert_to(n::TEXT, 'UTF8'), 'mer_' || n / 20, 'viewer', 'p' || n || '@example.com', 'owner@example.com', TIMESTAMPTZ '2026-06-02'
		FROM generate_series(1, $1::INT8) AS n`,
	"resets": `INSERT INTO resets (hash, person_id, expires_at)
		SELECT convert_to(n::TEXT, 'UTF8'), lpad(n::TEXT, 32, '0')::UUID, TIMESTAMPTZ '2026-06-02' FROM generate_series(1, $1::INT8) AS n`,
	"ledger_balances": `INSERT INTO ledger_balances (merchant_id, mode, available, held)
		SELECT 'mer_' || n, 'live', 1000000, 0 FROM generate_series(0, LEAST($1::INT8, 1000)) AS n`,
	// One in ten thousand was written late.
	"ledger_transactions": `INSERT INTO ledger_transactions (
			merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments, written_at)
		SELECT 'mer_' || CASE WHEN n % 2 = 0 THEN 0 ELSE n % 1000 END, 'live', gen_random_uuid(), 1, 1, 'charge', 'provider', r.at, -1000, 0, 1000, 0, 0, 0,
			CASE WHEN n % 10000 = 0 THEN r.at + INTERVAL '1 day' ELSE r.at END
		FROM (SELECT n, TIMESTAMPTZ '2026-06-01' - ($1 - n) * INTERVAL '1 second' AS at FROM generate_series(1, $1::INT8) AS n) AS r`,
	// As if days were hours: the last one ended an hour before the last row.
	"ledger_snapshots": `INSERT INTO ledger_snapshots (merchant_id, mode, until, provider, transactions, available, held, margin, cost, deposit, adjustments,
			verified_at)
		SELECT 'mer_' || m, 'live', TIMESTAMPTZ '2026-06-01' - h * INTERVAL '1 hour', 'provider', 1, -1000, 0, 1000, 0, 0, 0, TIMESTAMPTZ '2026-06-01'
		FROM generate_series(1, $1::INT8 / 3600) AS h, generate_series(0, 1000) AS m`,
}

// plansAccount is what the busy merchant collects on.
var plansAccount = movement.NewAccountID("provider", "live", "account")

// plansEnd is the time of the last row.
var plansEnd = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// planned are reads, with how many pages each may touch, whatever the size of the table;
// of what is counted, with its open rows.
func planned() []struct {
	name        string
	rows, pages int
	read        func(context.Context, *Store) (int, error)
} {
	busy := movement.Owner{MerchantID: "mer_0", Mode: "live"}
	buckets := make([]int, movement.Buckets)
	for i := range buckets {
		buckets[i] = i
	}
	states := []movement.State{movement.Acknowledged, movement.Pending, movement.Succeeded, movement.Failed, movement.Expired}
	hour := plansEnd.Add(-time.Hour)
	callbacks := movement.CallbackRange{Owner: busy, Until: plansEnd, Most: 100}
	dead, waiting := callbacks, callbacks
	dead.State = movement.CallbackDead
	waiting.State = movement.CallbackWaiting
	list := movement.Listing{Owner: busy, Kind: manifest.Payment, States: states, Before: plansEnd, Most: 100}
	failed, after, searched := list, list, list
	searched.Since, searched.Search = hour, fmt.Sprint("prov-", *planRows-100)
	failed.States = []movement.State{movement.Failed}
	paidOut := movement.Movement{Key: movement.Key{Owner: busy}, Provider: "provider", ConnectionAccount: "account", Amount: 10_004}
	paidOut.CreatedAt = hour.Add(paidOut.CreatedAt.Sub(paidOut.OthersLike().Since))
	after.After = movement.Movement{CreatedAt: hour, ID: movement.NewID()}
	calls := requestlog.Range{Owner: requestlog.Owner{Merchant: busy.MerchantID, Mode: busy.Mode}, Since: hour, Below: requestlog.Part{Span: plansEnd}, Most: 100}
	refused := calls
	refused.Code = "RATE_LIMITED"
	account := movement.Statement{Account: plansAccount, MerchantID: busy.MerchantID, Mode: busy.Mode, Provider: "provider"}
	of, made := movement.ID(uuid.MustParse(fmt.Sprintf("%032d", *planRows))), []movement.HistoryEntry{{At: hour}, {At: plansEnd}}
	return []struct {
		name        string
		rows, pages int
		read        func(context.Context, *Store) (int, error)
	}{
		{"the last of equal transfers", 3, 20, func(ctx context.Context, s *Store) (int, error) {
			_, err := s.LastEqual(ctx, busy, manifest.Transfer, movement.UnnamedMark+"same-")
			return 1, err
		}},
		{"movements by a reference of few", 1100, 40000, counted(func(ctx context.Context, s *Store) ([]movement.Movement, error) {
			return s.MovementsByReference(ctx, "INV/M1000", 20)
		})},
		{"movements by a reference of many", 1600, 40000, counted(func(ctx context.Context, s *Store) ([]movement.Movement, error) {
			return s.MovementsByReference(ctx, "INV/7", 20)
		})},
		{"movements by a provider's id, in an hour", 3700, 4000, counted(func(ctx context.Context, s *Store) ([]movement.Movement, error) {
			return s.MovementsByOthersID(ctx, fmt.Sprint("prov-", *planRows-100), hour, plansEnd, 20)
		})},
		// With one of the span's very end, which is not in it.
		{"callbacks of a merchant", 101, 150, counted(func(ctx context.Context, s *Store) ([]movement.Callback, error) {
			return s.Callbacks(ctx, callbacks)
		})},
		{"callbacks of a merchant that were given up", 1100, 1200, counted(func(ctx context.Context, s *Store) ([]movement.Callback, error) {
			return s.Callbacks(ctx, dead)
		})},
		{"callbacks of a merchant that wait", 101, 150, counted(func(ctx context.Context, s *Store) ([]movement.Callback, error) {
			return s.Callbacks(ctx, waiting)
		})},
		{"events of a merchant", 100, 150, counted(func(ctx context.Context, s *Store) ([]movement.ListedEvent, error) {
			return s.Events(ctx, busy, uuid.Nil, 0, 100)
		})},
		{"callbacks of a movement", 2, 20, counted(func(ctx context.Context, s *Store) ([]movement.Callback, error) {
			return s.CallbacksOfMovement(ctx, busy, of, made)
		})},
		{"how many exceptions are open", *planRows / 100, *planRows / 50, func(ctx context.Context, s *Store) (int, error) {
			open, err := s.CountExceptions(ctx)
			return len(open), err
		}},
		{"open exceptions", 1700, 2000, counted(func(ctx context.Context, s *Store) ([]movement.Exception, error) {
			return s.OpenExceptions(ctx, 100)
		})},
		{"movements of a merchant", 500, 700, counted(func(ctx context.Context, s *Store) ([]movement.Movement, error) {
			return s.Movements(ctx, list)
		})},
		{"movements of a merchant in a rare state", 200, 600, counted(func(ctx context.Context, s *Store) ([]movement.Movement, error) {
			return s.Movements(ctx, failed)
		})},
		{"movements of a merchant, a later page", 500, 700, counted(func(ctx context.Context, s *Store) ([]movement.Movement, error) {
			return s.Movements(ctx, after)
		})},
		{"a search for one, in an hour", 1800, 4000, counted(func(ctx context.Context, s *Store) ([]movement.Movement, error) {
			return s.Movements(ctx, searched)
		})},
		{"figures of an hour", 1800, 4000, func(ctx context.Context, s *Store) (int, error) {
			_, err := s.Figures(ctx, list, []time.Time{hour, plansEnd})
			return 1, err
		}},
		{"figures of callbacks, in an hour", 5500, 8000, func(ctx context.Context, s *Store) (int, error) {
			_, err := s.CallbackFigures(ctx, busy, []time.Time{hour, plansEnd}, 50_000)
			return 1, err
		}},
		{"figures of too many", 1800, 4000, func(ctx context.Context, s *Store) (int, error) {
			_, err := s.Figures(ctx, list, []time.Time{{}, hour, plansEnd})
			return 1, err
		}},
		{"open sales of an account", 50, 100, counted(func(ctx context.Context, s *Store) ([]movement.Candidate, error) {
			return s.OpenSales(ctx, account, movement.Candidate{}, 100)
		})},
		{"sales of an amount, in an hour", 50, 400, counted(func(ctx context.Context, s *Store) ([]movement.Candidate, error) {
			return s.Candidates(ctx, account, []money.Amount{10_006}, hour, plansEnd)
		})},
		{"open lines of a statement", 100, 150, counted(func(ctx context.Context, s *Store) ([]movement.StatementLine, error) {
			return s.OpenLines(ctx, plansAccount, "", 100)
		})},
		{"payments of a merchant that wait for an operator", 110, 150, counted(func(ctx context.Context, s *Store) ([]movement.ListedLine, error) {
			return s.ListLines(ctx, movement.LineRange{MerchantID: "mer_1", Most: 100})
		})},
		{"transfers like one, in an hour", 400, 1200, counted(func(ctx context.Context, s *Store) ([]movement.Movement, error) {
			return s.PaidOut(ctx, paidOut, 20)
		})},
		{"a balance at a time", 2000, 2500, func(ctx context.Context, s *Store) (int, error) {
			_, err := s.BalanceAt(ctx, busy, plansEnd)
			return 1, err
		}},
		{"an account statement", 2100, 3000, counted(func(ctx context.Context, s *Store) ([]Entry, error) {
			return s.AccountStatement(ctx, busy, plansEnd.Add(-time.Minute), plansEnd, nil, 20)
		})},
		{"an account statement of a long time", 300, 1200, counted(func(ctx context.Context, s *Store) ([]Entry, error) {
			return s.AccountStatement(ctx, busy, plansEnd.AddDate(-1, 0, 0), plansEnd, nil, 20)
		})},
		{"the platform's balance at a time", 10000, 30000, counted(func(ctx context.Context, s *Store) ([]PlatformBalance, error) {
			return s.PlatformAt(ctx, "live", plansEnd)
		})},
		{"a page of days to close", 2000, 5000, func(ctx context.Context, s *Store) (int, error) {
			_, closed, err := s.CloseDays(ctx, movement.Owner{}, plansEnd, 100)
			return closed + 1, err
		}},
		{"a check of accounts since their verified day", 20000, 60000, func(ctx context.Context, s *Store) (int, error) {
			accounts, err := accountsAfter(ctx, s.queries, movement.Owner{}, LedgerScope{})
			if err != nil {
				return 0, err
			}
			_, err = s.queries.CheckLedger(ctx, checkedPage{accounts: accounts}.params())
			return len(accounts), err
		}},
		{"due callbacks", 1100, 3000, counted(func(ctx context.Context, s *Store) ([]movement.Callback, error) {
			return s.DueCallbacks(ctx, movement.DueCallbacks{Buckets: buckets, Now: plansEnd, Most: 512})
		})},
		{"due polls, the first of each bucket", 1100, 1300, counted(func(ctx context.Context, s *Store) ([]movement.DuePoll, error) {
			return s.Due(ctx, movement.DueScan{From: places(buckets, time.Time{}), Now: plansEnd, Most: 64})
		})},
		{"due polls, behind a page", 1100, 1300, counted(func(ctx context.Context, s *Store) ([]movement.DuePoll, error) {
			return s.Due(ctx, movement.DueScan{From: places(buckets, plansEnd.Add(-time.Duration(*planRows/2)*time.Second)), Now: plansEnd, Most: 64})
		})},
		{"due statements", 1100, 1300, counted(func(ctx context.Context, s *Store) ([]movement.Statement, error) {
			return s.DueStatements(ctx, buckets, time.Time{}, plansEnd, 64)
		})},
		{"a page of a merchant's calls", 101, 200, counted(func(ctx context.Context, s *Store) ([]requestlog.Part, error) {
			return s.Requests(ctx, calls)
		})},
		{"calls with a seldom answer, in an hour", 400, 500, counted(func(ctx context.Context, s *Store) ([]requestlog.Part, error) {
			return s.Requests(ctx, refused)
		})},
		{"who has calls, in a minute", 70, 200, counted(func(ctx context.Context, s *Store) ([]requestlog.Owner, error) {
			return s.RequestOwners(ctx, plansEnd.Add(-time.Minute), plansEnd)
		})},
		{"how many calls were not kept, in an hour", 10, 30, func(ctx context.Context, s *Store) (int, error) {
			n, err := s.RequestsDropped(ctx, calls.Owner, hour)
			return int(n), err
		}},
		{"due mails", 1200, 1500, counted(func(ctx context.Context, s *Store) ([]movement.QueuedMail, error) {
			return s.DueMails(ctx, buckets, time.Time{}, plansEnd, 64)
		})},
		{"invitations of a merchant", 20, 100, counted(func(ctx context.Context, s *Store) ([]tenants.Invitation, error) {
			return s.InvitationsOf(ctx, "mer_7", plansEnd)
		})},
		{"links of a person to a new password", 1, 10, func(ctx context.Context, s *Store) (int, error) {
			n, err := s.queries.ResetsSince(ctx, dbsqlc.ResetsSinceParams{PersonID: uuid.MustParse(fmt.Sprintf("%032d", 7)), ExpiresAt: plansEnd})
			return int(n), err
		}},
		{"since when queues have been due", 100, 400, counted(func(ctx context.Context, s *Store) ([]dbsqlc.OverdueSinceRow, error) {
			return s.queries.OverdueSince(ctx, dbsqlc.OverdueSinceParams{Buckets: narrow(buckets), Now: plansEnd})
		})},
		{"the oldest movements that are open", 300, 1000, counted(func(ctx context.Context, s *Store) ([]dbsqlc.OldestOpenMovementsRow, error) {
			return s.queries.OldestOpenMovements(ctx, mostAccounts)
		})},
		{"the oldest callbacks that wait", 3000, 5000, counted(func(ctx context.Context, s *Store) ([]dbsqlc.OldestWaitingCallbacksRow, error) {
			return s.queries.OldestWaitingCallbacks(ctx, mostAccounts)
		})},
		{"the oldest mail that waits", 1700, 2500, func(ctx context.Context, s *Store) (int, error) {
			_, err := s.queries.OldestWaitingMail(ctx, narrow(buckets))
			return 1, err
		}},
	}
}

func places(buckets []int, due time.Time) (all []movement.QueuePlace) {
	for _, bucket := range buckets {
		all = append(all, movement.QueuePlace{Bucket: bucket, DueAt: due})
	}
	return all
}

// counted is a read with how many rows it has found.
func counted[R any](read func(context.Context, *Store) ([]R, error)) func(context.Context, *Store) (int, error) {
	return func(ctx context.Context, s *Store) (int, error) {
		rows, err := read(ctx, s)
		return len(rows), err
	}
}

// TestPlans has the database tell what each read costs it on tables of -rows rows: the
// plan made for its values, and the one made for any values, which a statement gets
// that is run often.
func TestPlans(t *testing.T) {
	t.Parallel()
	if dbtest.Engine(t) != database.PostgreSQL {
		t.Skip("reads PostgreSQL's plans")
	}
	conn := fill(t, *planRows)
	if *planRows < 200_000 {
		// Of a small table all rows are cheaply read and sorted.
		if _, err := conn.Exec(t.Context(), "SET random_page_cost = 1; SET enable_bitmapscan = off"); err != nil {
			t.Fatal(err)
		}
	}
	var table strings.Builder
	lines := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(lines, "query\tfound\trows read\tat most\tpages\tat most\t")
	for _, q := range planned() {
		x := &explainer{conn: conn}
		found, err := q.read(t.Context(), &Store{queries: dbsqlc.New(x)})
		if err != nil || found == 0 {
			t.Errorf("%s: found %d, %v", q.name, found, err)
		}
		fmt.Fprintf(lines, "%s\t%d\t%d\t%d\t%d\t%d\t\n", q.name, found, x.rows, q.rows, x.pages, q.pages)
		if x.rows > q.rows || x.pages > q.pages {
			t.Errorf("%s reads %d rows and %d pages, more than %d and %d, where tables have %d rows:\n%s", q.name, x.rows, x.pages, q.rows, q.pages, *planRows, x.plan)
		}
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows a table\n%s", *planRows, table.String())
}

// TestKeysAreLookedUpByTheKey: also on a new database, of whose tables nothing is known
// yet, where an index that begins like the key seems as good.
func TestKeysAreLookedUpByTheKey(t *testing.T) {
	t.Parallel()
	if dbtest.Engine(t) != database.PostgreSQL {
		t.Skip("reads PostgreSQL's plans")
	}
	x := &explainer{conn: fill(t, 0)}
	_, err := dbsqlc.New(x).MovementByKey(t.Context(), dbsqlc.MovementByKeyParams{MerchantID: "mer_0", Mode: "live", Kind: "payment", Reference: "INV/1"})
	if !errors.Is(err, pgx.ErrNoRows) || strings.Count(x.plan, "movements movements_pkey") != 2 {
		t.Errorf("%v, %s", err, x.plan)
	}
}

// TestAttemptsGoByTheKey: also where the database does not know yet how many callbacks wait, as after a receiver's outage.
func TestAttemptsGoByTheKey(t *testing.T) {
	t.Parallel()
	if dbtest.Engine(t) != database.PostgreSQL {
		t.Skip("reads PostgreSQL's plans")
	}
	const waiting, attempts = 20_000, 128
	x := &explainer{conn: fill(t, 0)}
	if _, err := x.conn.Exec(t.Context(), filled["callbacks"], waiting); err != nil {
		t.Fatal(err)
	}
	if _, err := x.conn.Exec(t.Context(), "UPDATE callbacks SET state = 'waiting', due_at = created_at"); err != nil {
		t.Fatal(err)
	}
	all := make([]movement.CallbackAttempt, attempts)
	for i := range all {
		all[i].Callback.CallbackKey = movement.CallbackKey{Owner: movement.Owner{MerchantID: "mer_0", Mode: "live"}, EventID: uuid.New()}
	}
	if written, err := dbsqlc.New(x).RecordAttempts(t.Context(), attemptsOf(all...)); err != nil || len(written) != 0 || x.rows > attempts {
		t.Errorf("%d of other events are written, %d rows read, %v:\n%s", len(written), x.rows, err, x.plan)
	}
}

// fill is a connection to a database with so many rows in each table, which it knows of;
// of empty tables it knows nothing.
func fill(t *testing.T, rows int) *pgx.Conn {
	t.Helper()
	url := dbtest.New(t, MigrationsDigest(), func(ctx context.Context, url string) error {
		return Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if rows == 0 {
		return conn
	}
	for table, insert := range filled {
		if _, err := conn.Exec(t.Context(), insert, rows); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		if _, err := conn.Exec(t.Context(), "VACUUM ANALYZE "+table); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "VACUUM ANALYZE polls"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// explainer explains every statement before it runs it.
type explainer struct {
	conn  *pgx.Conn
	rows  int
	pages int
	plan  string
}

// Exec explains and runs.
func (x *explainer) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := x.explain(ctx, sql, args); err != nil {
		return pgconn.CommandTag{}, err
	}
	return x.conn.Exec(ctx, sql, args...)
}

// Query explains and runs.
func (x *explainer) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := x.explain(ctx, sql, args); err != nil {
		return nil, err
	}
	return x.conn.Query(ctx, sql, args...) //nolint:rowserrcheck // its caller's
}

// QueryRow explains and runs.
func (x *explainer) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := x.explain(ctx, sql, args); err != nil {
		return scanning(func(...any) error { return err })
	}
	return x.conn.QueryRow(ctx, sql, args...)
}

func (x *explainer) explain(ctx context.Context, sql string, args []any) error {
	const how = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "
	own, err := x.planOf(ctx, how+sql, args)
	if err != nil {
		return err
	}
	often, err := x.planOfMany(ctx, how, sql, args)
	if err != nil {
		return err
	}
	x.rows += max(own.read(), often.read())
	x.pages += max(own.pages(), often.pages())
	x.plan += "at first:" + own.text("\n  ") + "\nlater:" + often.text("\n  ") + "\n"
	return nil
}

// planOfMany is the plan that a prepared statement has after some runs: the database
// takes one for any values where that seems no dearer.
func (x *explainer) planOfMany(ctx context.Context, how, sql string, args []any) (often plan, err error) {
	if _, err := x.conn.Exec(ctx, "PREPARE explained AS "+sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return plan{}, err
	}
	values := []any{pgx.QueryExecModeSimpleProtocol}
	places := make([]string, len(args))
	for i, arg := range args {
		switch given := arg.(type) {
		case []uuid.UUID:
			texts := make([]string, len(given))
			for j, id := range given {
				texts[j] = id.String()
			}
			arg = texts
		case []byte: // JSON
			arg = string(given)
		}
		values, places[i] = append(values, arg), fmt.Sprint("$", i+1)
	}
	call := "EXECUTE explained"
	if len(args) > 0 {
		call += "(" + strings.Join(places, ", ") + ")"
	}
	for range 6 {
		if often, err = x.planOf(ctx, how+call, values); err != nil {
			return plan{}, err
		}
	}
	_, err = x.conn.Exec(ctx, "DEALLOCATE explained")
	return often, err
}

func (x *explainer) planOf(ctx context.Context, explain string, args []any) (plan, error) {
	var document string
	if err := x.conn.QueryRow(ctx, explain, args...).Scan(&document); err != nil {
		return plan{}, fmt.Errorf("%w: %s", err, explain)
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal([]byte(document), &plans); err != nil || len(plans) != 1 {
		return plan{}, fmt.Errorf("%d plans, %w", len(plans), err)
	}
	return plans[0].Plan, nil
}

// plan is what is told of a node of one.
type plan struct {
	Type      string  `json:"Node Type"`
	Index     string  `json:"Index Name"`
	Table     string  `json:"Relation Name"`
	Rows      float64 `json:"Actual Rows"`
	Loops     float64 `json:"Actual Loops"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Hit       int     `json:"Shared Hit Blocks"`
	Read      int     `json:"Shared Read Blocks"`
	Plans     []plan  `json:""`
}

// pages are all that it has touched.
func (p plan) pages() int { return p.Hit + p.Read }

// text is one line for each node.
func (p plan) text(indent string) string {
	text := fmt.Sprintf("%s%s %s %s: %.0f rows x %.0f, %.0f filtered, %d pages", indent, p.Type, p.Table, p.Index, p.Rows, p.Loops, p.Filtered, p.pages())
	for _, part := range p.Plans {
		text += part.text(indent + "  ")
	}
	return text
}

// read is how many rows its scans have read.
func (p plan) read() int {
	rows := 0
	if p.Table != "" {
		rows = int((p.Rows + p.Filtered + p.Rechecked) * p.Loops)
	}
	for _, part := range p.Plans {
		rows += part.read()
	}
	return rows
}
