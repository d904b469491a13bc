package policy_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var dayDecisions = flag.Int("decisions", 1_000_000, "on how many decisions of a day the report tries a policy")

const (
	// impactWithin is the goal for that many, on two cores.
	impactWithin = time.Minute

	dayMerchants = 1_000
	dayBusy      = 10 // of them, who ask for half of all
	dayReplicas  = 3
	dayWritten   = 10 * time.Second // as often as a replica writes its log
	dayPage      = 10_000           // movements that are inserted at once

	// The greatest payment under the policy in force, under the candidate, and that is asked for.
	dayMost, dayLess, dayAsked = 900_000, 800_000, 970_000
	// dayAmount is what the payment and the transfer are of that all movements are copied from.
	dayAmount = 54_321
)

// reportImpact tries a candidate on a day of decisions, by the command.
func reportImpact(t *testing.T) string {
	t.Helper()
	d := newDay(t)
	d.fill(t, *dayDecisions)
	told, took, used, grown := d.impact(t)
	if took > impactWithin {
		t.Errorf("policy impact takes %v for %d decisions, the goal is %v", took, told.Decisions, impactWithin)
	}
	return fmt.Sprintf("## A candidate is tried on a day\n\n%d decisions of %d merchants, of which %d ask for half of all, lie in the database, in %d rows of the log as %d replicas write\n"+
		"them: %d counted alone, %d refused with their inputs, and %d with their movements. `policy impact DIR --since 24h`\n"+
		"tries other bounds of amounts, quotas and daily amounts on them. The goal for a million is %.0f s on two cores.\n\n"+
		"| decisions | took | processor time of the gateway | its memory grew by | verdict | newly denied | newly allowed | unknown | rows |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n| %d | %.1f s | %.1f s | %d MiB | %s | %d | %d | %d | %d |\n",
		d.counted+d.refused+d.moved, dayMerchants, dayBusy, d.parts, dayReplicas, d.counted, d.refused, d.moved, impactWithin.Seconds(),
		told.Decisions, took.Seconds(), used.Seconds(), grown>>20, told.Verdict, told.NewlyDenied, told.NewlyAllowed, told.Unknown, len(told.Rows))
}

// TestACandidateIsTriedOnADay is the report's own in small: it tells what was put into the
// log, and what of it a lower bound denies.
func TestACandidateIsTriedOnADay(t *testing.T) {
	t.Parallel()
	d := newDay(t)
	d.fill(t, 1_000)
	d.impact(t)
}

// day is the decisions of a day in a program's database.
type day struct {
	*harness.Program
	inside
	set   *policy.Set // that decided
	above decision.Rule
	shop  harness.Shop

	counted, refused, moved int
	parts                   int   // of the log
	own                     int64 // decisions of the program itself
	between                 int64 // admitted payments above dayLess
}

// newDay starts a program, which makes what movements are copied from.
func newDay(t *testing.T) *day {
	t.Helper()
	databaseURL := harness.ServeDatabase(t)
	deployment := harness.NewDeployment(t)
	wallet := deployment.Another(t, "wallet1")
	p := deployment.Launch(t, databaseURL, deployment.Approved, wallet.Approved.Beside())
	deployment.Join(t, p)
	d := &day{Program: p, shop: deployment.NewShop(t, p, "starter")}
	wallet.Connect(t, p, d.shop.MerchantID)

	source := dayPolicy(dayMost, 1_000_000_000, 1_000_000_000_000)
	dir := filepath.Join(t.TempDir(), "base")
	if err := source.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	p.MustRun(t, "", nil, "policy", "push", dir, "--message", "of the day", "--activate", "--wait")
	var err error
	if d.set, err = policy.Compile(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	d.above = d.tooMuch(t)
	d.inside = lookInside(t, databaseURL, deployment.Dir)

	paid := d.shop.Create(t, harness.Fields{"amount": dayAmount, "type": "qris"})
	p.Pay(t, harness.Fields{"qr_string": paid.QRString})
	if a := d.shop.Ask(t, toWallet, harness.Fields{"amount": dayAmount, "phone": "081234567890", "external_id": harness.NewReference()}); !a.Success {
		t.Fatal(a)
	}
	d.own = 2
	harness.Await(t, harness.ReadyWithin, "a payment and a transfer that have succeeded", func() bool {
		var n int
		p.QueryRow(t, &n, "SELECT count(*) FROM movements WHERE ended = 'succeeded'")
		return n == 2
	})
	return d
}

// dayPolicy is a policy with bounds of a payment, of payments a month, and of transfers a
// day.
func dayPolicy(amount, sales, out int64) policy.Source {
	source := policy.Default()
	source["data.json"] = fmt.Appendf(nil, `{
	"tiers": {"starter": {"rate_per_second": 5, "burst": 10, "quotas": {"sales": {"limit": %d}}}},
	"quotas": {"sales": {"operations": ["/payments/create"]}},
	"amounts": {"/payments/create": {"max": %d}},
	"transfers": {"tiers": {"starter": {"day": {"amount": %d}}}}
}`, sales, amount, out)
	return source
}

// dayReplica writes a log as a replica does.
type dayReplica struct {
	id     uuid.UUID
	log    *decision.Log
	namer  *decision.Namer
	writer *decision.Writer
	store  *store.Store
	parts  int
	failed error
}

// Add keeps a part.
func (r *dayReplica) Add(ctx context.Context, p decision.Part) error {
	r.parts++
	r.failed = cmp.Or(r.failed, r.store.AddDecisions(ctx, store.DecisionPart{Minute: p.Minute, Replica: r.id, Part: p.Number, Counts: p.Counts, Inputs: p.Inputs}))
	return r.failed
}

// Forget is for packages that run a writer.
func (*dayReplica) Forget(context.Context, time.Time) error { return nil }

// moves are movements that are to be inserted, column by column.
type moves struct {
	ids, merchants, operations, decisions []string
	amounts                               []int64
	at                                    []time.Time
}

// fill has decisions made all over the day: of ten, six are of reads, two of payments and
// one of a transfer that are admitted, and one is refused.
func (d *day) fill(t *testing.T, n int) {
	t.Helper()
	merchants := d.merchants(t)
	replicas := make([]*dayReplica, dayReplicas)
	for i := range replicas {
		r := &dayReplica{id: uuid.New(), log: decision.NewLog(), namer: decision.NewNamer(d.key, uint16(i)), store: d.store}
		r.writer = decision.NewWriter(r.log, r, d.vault.SealDecisions, time.Now, slog.New(slog.DiscardHandler))
		replicas[i] = r
	}
	write := func() {
		for _, r := range replicas {
			if r.writer.Write(t.Context()); r.failed != nil {
				t.Fatal(r.failed)
			}
		}
	}
	random := rand.New(rand.NewPCG(14, 2))
	const lasts = 23*time.Hour + 45*time.Minute // what is filled in takes a while
	from := time.Now().Add(-lasts - time.Minute).Truncate(time.Second)
	last, moved := from, moves{}
	for i := range n {
		at := from.Add(time.Duration(i) * (lasts / time.Duration(n)))
		if at.Sub(last) >= dayWritten {
			last = at
			write()
		}
		merchant := merchants[random.IntN(dayMerchants)]
		if random.IntN(2) == 0 {
			merchant = merchants[random.IntN(dayBusy)]
		}
		if d.decide(t, replicas[i%dayReplicas], at, merchant, i%10, random.Int64N(dayAsked), &moved); len(moved.ids) == dayPage {
			d.insert(t, &moved)
		}
	}
	write()
	d.insert(t, &moved)
	for _, r := range replicas {
		d.parts += r.parts
	}
	for _, table := range []string{"movements", "decision_log"} {
		if _, err := d.conn.Exec(t.Context(), "ANALYZE "+table); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d counted, %d refused, %d moved, in %d parts", d.counted, d.refused, d.moved, d.parts)
}

// merchants makes merchants, and returns their names.
func (d *day) merchants(t *testing.T) []string {
	t.Helper()
	names := make([]string, dayMerchants)
	for i := range names {
		names[i] = "mer_" + uuid.NewString()
	}
	if _, err := d.conn.Exec(t.Context(), `INSERT INTO merchants (merchant_id, name, tier, status, labels, version, created_at, changed_at, change_shard)
		SELECT n, 'Toko', 'starter', 'active', '{}', 1, '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', 0 FROM unnest($1::TEXT[]) AS s(n)`, names); err != nil {
		t.Fatal(err)
	}
	return names
}

// decide makes a decision of a kind from 0 to 9.
func (d *day) decide(t *testing.T, r *dayReplica, at time.Time, merchant string, kind int, amount int64, moved *moves) {
	t.Helper()
	s := decision.Series{Merchant: merchant, Operation: statuses, Version: string(d.set.Version()), Record: 1, Live: true}
	switch {
	case kind < 6:
		d.counted++
	case kind == 6:
		s.Operation, s.Rule, amount = creates, d.above, dayMost+1+amount%(dayAsked-dayMost)
		d.refused++
		in := decision.Input{
			ID: r.namer.Name(at, s.Version, s.Merchant, s.Live, s.Operation, s.Rule), At: at, Series: s, Amount: &amount, Fields: map[string]any{"type": "qris"},
		}
		if r.log.Keep(in); inputsDropped(r.log) > 0 {
			t.Fatal("an input is not kept")
		}
	default:
		s.Operation, amount = creates, 1+amount%dayMost
		if kind == 7 {
			s.Operation = toWallet
		} else if amount > dayLess {
			d.between++
		}
		d.moved++
		moved.ids, moved.merchants, moved.operations = append(moved.ids, uuid.NewString()), append(moved.merchants, merchant), append(moved.operations, s.Operation)
		moved.amounts, moved.at = append(moved.amounts, amount), append(moved.at, at)
		moved.decisions = append(moved.decisions, r.namer.Name(at, s.Version, s.Merchant, s.Live, s.Operation, s.Rule).String())
	}
	r.log.Count(at, s)
}

// tooMuch is the rule that refuses a payment above dayMost.
func (d *day) tooMuch(t *testing.T) decision.Rule {
	t.Helper()
	explained, err := d.set.Explain(t.Context(), policy.AdmitInput{
		Merchant: policy.Merchant{Tier: "starter", Status: string(tenants.Active)}, Mode: string(tenants.Live),
		Operation: policy.Operation{Path: creates, Kind: "payment"}, Amount: new(int64(dayMost + 1)),
	})
	if err != nil || len(explained.Because) != 1 {
		t.Fatal(explained, err)
	}
	return decision.Policy(explained.Because[0].Rule.Number)
}

// insert inserts movements as copies of those that the program has made.
func (d *day) insert(t *testing.T, m *moves) {
	t.Helper()
	rows, _ := d.conn.Query(t.Context(), "SELECT column_name FROM information_schema.columns WHERE table_name = 'movements' AND table_schema = current_schema()")
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{
		"merchant_id": "m.merchant", "id": "m.id", "reference": "'DAY/' || m.id::TEXT", "provider_reference": "'day-' || m.id::TEXT", "request_id": "m.id::TEXT",
		"decision_id": "m.decision", "amount": "m.amount", "request": fmt.Sprintf(`replace(r.request, '"amount":%d', '"amount":' || m.amount::TEXT)`, dayAmount),
		"created_at": "m.at", "updated_at": "m.at", "send_by": "m.at", "due_bucket": fmt.Sprintf("m.amount %% %d", movement.Buckets),
	}
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = cmp.Or(own[column], "r."+column)
	}
	_, err = d.conn.Exec(t.Context(), "INSERT INTO movements ("+strings.Join(columns, ", ")+") SELECT "+strings.Join(values, ", ")+` FROM movements AS r
		JOIN (SELECT unnest($2::UUID[]) AS id, unnest($3::TEXT[]) AS merchant, unnest($4::TEXT[]) AS operation, unnest($5::TEXT[]) AS decision,
			unnest($6::INT8[]) AS amount, unnest($7::TIMESTAMPTZ[]) AS at) AS m ON m.operation = r.operation
		WHERE r.merchant_id = $1`, d.shop.MerchantID, m.ids, m.merchants, m.operations, m.decisions, m.amounts, m.at)
	if err != nil {
		t.Fatal(err)
	}
	*m = moves{}
}

// impact tries a candidate, and tells how long that took, and what the gateway used of the
// processors and more of memory meanwhile.
func (d *day) impact(t *testing.T) (told adminapi.Impact, took, used time.Duration, grown int64) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "candidate")
	busy := int64(d.moved) / 2 / dayBusy // of a busy merchant: two thirds are payments, and one third transfers of two days
	if err := dayPolicy(dayLess, busy/3, busy/12*dayMost/2).WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	memory := func() int64 { return harness.Memories(t, d.Command.Process.Pid, d.Role)["gateway"] }
	before, used := memory(), -gatewayUsed(t, d.shop)
	most, done, watch := before, make(chan struct{}), sync.WaitGroup{}
	watch.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				most = max(most, memory())
			}
		}
	})
	began := time.Now()
	d.MustRun(t, "", &told, "policy", "impact", dir, "--since", "24h")
	took = time.Since(began)
	close(done)
	watch.Wait()
	used += gatewayUsed(t, d.shop)
	t.Logf("%d decisions in %v: %s, %d newly denied, %d newly allowed, %d unknown", told.Decisions, took, told.Verdict, told.NewlyDenied, told.NewlyAllowed, told.Unknown)

	if all := int64(d.counted + d.refused + d.moved); told.Decisions < all || told.Decisions > all+d.own || told.Unknown != 0 {
		t.Errorf("of %d decisions %d are tried, and %d unknown", all, told.Decisions, told.Unknown)
	}
	denied := map[string]int64{}
	for _, row := range told.Rows {
		kind, _, _ := strings.Cut(row.Rule, " ")
		denied[kind] += row.NewlyDenied
	}
	if denied["rule"] != d.between || denied["quota"] == 0 || denied["daily"] == 0 {
		t.Errorf("newly denied are %v, by the bound of an amount %d payments are", denied, d.between)
	}
	return told, took, used, most - before
}
