package report_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp/totp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// growthVariable names the file that gets the report; make bench-growth sets it.
const growthVariable = "GERBANG_BENCH_GROWTH"

var (
	growMerchants = flag.Int("merchants", 100_000, "how many merchants the grown database has")
	growMovements = flag.Int("movements", 1_000_000, "how many movements it has, half of them one merchant's")
)

// TestGrowth measures the same program on a database that has hardly anything and on one
// that has grown, in turns, and looks at each page of the consoles on the grown one.
func TestGrowth(t *testing.T) { //nolint:paralleltest // it measures
	file := os.Getenv(growthVariable)
	if file == "" {
		t.Skip("it takes minutes: make bench-growth")
	}
	before := loadAverage()
	var paths []*contestant
	var both [2]*bench
	var owner, operator *visitor
	for i, grown := range []bool{false, true} {
		b := &bench{T: t, turns: 5, lasts: 2 * time.Second, floor: map[string]floor{}, all: map[string]*contestant{}}
		name, flags := "small", []string(nil)
		if grown {
			flags = b.moreProviders(moreProviders)
		}
		b.startProgram(t.TempDir(), flags...)
		b.seed()
		if grown {
			owner, operator = b.accept("merchants", b.program.OwnerURL), b.accept("operators", b.program.OperatorURL)
			b.provider("catalogue", harness.Fields{"more": products})
			b.grow(t.Context(), *growMerchants, *growMovements)
			name = "grown"
		}
		both[i] = b
		for _, c := range []*contestant{b.reading("/balance", nil, ""), b.statuses()} {
			c.name = name + " " + c.name
			paths = append(paths, c)
		}
	}
	slices.SortStableFunc(paths, func(a, b *contestant) int { return strings.Compare(a.name[len("small "):], b.name[len("small "):]) })
	small, grown := both[0], both[1]
	small.inTurns(paths...)
	searches := grown.searches()
	pages := slices.Concat(grown.pages(owner, searches["merchants"]), grown.pages(operator, searches["operators"]), grown.impact(operator))
	searched := grown.searchedOn(operator, searches["operators"])
	for _, make := range []func(*bench) *contestant{(*bench).payments, (*bench).orders} {
		few, many := make(small), make(grown)
		few.name, many.name = "small "+few.name, "grown "+many.name
		small.inTurns(few, many)
	}
	small.program.WantCleanLedger(t)
	grown.program.WantCleanLedger(t)
	text := small.grownReport(before, pages, searched)
	t.Logf("\n%s", text)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) grownReport(before string, pages, searched []looked) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# Measured: what growth costs

`+"`make bench-growth MOVEMENTS=%d`"+` writes this file. The same program twice on one machine: on a database as `+"`gerbang dev`"+` makes it, and on one with
%d merchants and %d movements more, half of them one merchant's, each with its history, callback and postings, %d decisions in the last day,
and with %d providers and %d products more. Both take turns as in [REPORT.md](REPORT.md). Pages are asked for one after the other, each five times, and the
third slowest counts; of a page while a policy is tried, the slowest. Files to keep are no pages. Beside what links lead to, they are what people search for and
filter by, and a policy that is tried on all these decisions.

`, *growMovements, *growMerchants, *growMovements, min(*growMovements, mostDecisions), moreProviders, products)
	b.machine(&out, before)
	out.WriteString("\n| | req/s small | req/s grown | p99 ms small | p99 ms grown | time a request, grown beside small | should be |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, path := range []struct{ name, should string }{
		{"/balance", "<= 1.1"}, {"/payments/status", "<= 1.1"}, {"/payments/create", "<= 1.3"}, {"/ppob/order", "<= 1.3"},
	} {
		small, grown := b.all["small "+path.name], b.all["grown "+path.name]
		fmt.Fprintf(&out, "| `%s` | %.0f | %.0f | %.1f | %.1f | %.2f | %s |\n", path.name, small.median(perSecond), grown.median(perSecond),
			small.median(quantile(0.99)), grown.median(quantile(0.99)), beside(small, grown, perSecond, perSecond), path.should)
	}
	slices.SortFunc(pages, func(a, b looked) int { return int(b.took - a.took) })
	out.WriteString("\n| page, on the grown database | ms on the server | should be | KiB gzipped | should be |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range pages {
		fmt.Fprintf(&out, "| %s `%s` | %.0f | <= 100 | %.1f | <= 200 |\n", p.console, p.path, float64(p.took.Microseconds())/1000, float64(p.packed)/1024)
	}
	slices.SortFunc(searched, func(a, b looked) int { return int(b.took - a.took) })
	out.WriteString(`
The page of operators that finds an id shows at once what the gateway named itself, and then searches on by itself for what others named: references go by
every merchant, providers' ids by every movement of 31 days. An index for either would cost every creation.

| searched on, after the page | ms on the server |
| --- | --- |
`)
	for _, p := range searched {
		fmt.Fprintf(&out, "| `%s` | %.0f |\n", p.path, float64(p.took.Microseconds())/1000)
	}
	return out.String()
}

// searchedOn is what the pages that find an id search on for.
func (b *bench) searchedOn(v *visitor, named map[string]string) (found []looked) {
	for name, path := range named {
		if !strings.HasPrefix(path, "/find?") {
			continue
		}
		if content, _ := b.page(v, v.url(path)); !bytes.Contains(content, []byte("scan=true")) {
			continue
		}
		one, _ := b.look(v, name, v.url(path+"&scan=true"))
		found = append(found, one)
	}
	return found
}

// mostDecisions is what a day has of them at most: a policy's trial reads them all.
const mostDecisions = 1_000_000

// moreProviders is how many providers the grown program has more, beside the four shipped.
const moreProviders = 12

// moreProviders writes and builds providers as their authors would, and returns the flags that run them.
func (b *bench) moreProviders(count int) (flags []string) {
	for i := range count {
		name := fmt.Sprintf("kurs-%d", i)
		dir := filepath.Join(b.TempDir(), name)
		write := exec.CommandContext(b.Context(), harness.Binary(b), "plugin", "new", name, "--kind", "query", "--dir", dir)
		build := exec.CommandContext(b.Context(), "go", "build", "-o", name, ".")
		build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		for _, command := range []*exec.Cmd{write, build} {
			if out, err := command.CombinedOutput(); err != nil {
				b.Fatalf("%v: %v\n%s", command, err, out)
			}
		}
		flags = append(flags, "--plugin", filepath.Join(dir, name))
	}
	return flags
}

// seed makes what growth copies: movements that have ended, with all that belongs to them.
func (b *bench) seed() {
	for _, shop := range b.shops()[:1] {
		for range 4 {
			made := shop.Create(b, harness.Fields{"type": "payment_link"})
			b.program.Pay(b, harness.Fields{"url": b.program.ProviderPage(b, made.CheckoutURL)})
			shop.AwaitStatus(b, made.ExternalID, "PAID", harness.ReadyWithin)
		}
	}
	given := adminapi.NewAdjustment{Mode: "live", Amount: 1_000_000, Reason: "to order with", Reference: uuid.NewString()}
	given.Merchant = b.program.Merchants[harness.Large].MerchantID
	if _, err := adminapi.Credit.Call(b.Context(), b.program.Admin(), given); err != nil {
		b.Fatal(err)
	}
	shop := b.program.Shop(harness.Large, "live")
	for range 4 {
		shop.Ask(b, "/ppob/order", harness.Fields{"sku": "S5", "target": "081200001230", "ref_id": uuid.NewString()})
	}
}

// growing are the statements that grow a database. $1 is how many merchants there will be
// more, $2 how many movements; each copies rows that the program has written itself.
// Of the movements half are the busy merchant's, and they came eight seconds apart.
var growing = []string{
	`CREATE UNLOGGED TABLE grown AS
		SELECT n, md5('movement ' || n)::uuid AS id, m.id AS like_id, m.mode, now() - n * INTERVAL '8 seconds' - m.created_at AS later,
			CASE WHEN n % 2 = 0 THEN m.merchant_id ELSE 'mer_' || md5('merchant ' || n % $1)::uuid END AS merchant_id
		FROM generate_series(1, $2) AS n
		JOIN (SELECT *, row_number() OVER (ORDER BY id) - 1 AS at, count(*) OVER () AS templates FROM movements WHERE ended = 'succeeded' AND due_at IS NULL) AS m
			ON m.at = n % m.templates`,
	"CREATE INDEX ON grown (like_id)",
	copied("merchants", "(SELECT * FROM merchants WHERE merchant_id = (SELECT merchant_id FROM movements WHERE ended = 'succeeded' LIMIT 1)) AS r, generate_series(0, $1 - 1) AS n",
		map[string]string{"merchant_id": "'mer_' || md5('merchant ' || n)::uuid", "name": "'Toko ' || n"}),
	copied("movements", "movements AS r JOIN grown AS g ON g.like_id = r.id", map[string]string{
		"merchant_id": "g.merchant_id", "id": "g.id", "reference": "'GROWN/' || g.n", "provider_reference": "'grown-' || g.n", "request_id": "'grown-' || g.n",
		"created_at": "r.created_at + g.later", "updated_at": "r.updated_at + g.later", "send_by": "r.send_by + g.later", "paid_at": "r.paid_at + g.later",
		"due_bucket": "g.n % 16", "fingerprint": "CASE WHEN r.fingerprint = '' THEN '' ELSE 'grown-' || g.n END",
	}),
	copied("history", "history AS r JOIN grown AS g ON g.like_id = r.movement_id", map[string]string{
		"movement_id": "g.id", "at": "r.at + g.later", "transition_id": "NULL",
	}),
	copied("callbacks", "callbacks AS r JOIN grown AS g ON g.like_id = r.movement_id", map[string]string{
		"merchant_id": "g.merchant_id", "movement_id": "g.id", "event_id": "md5('callback ' || g.n || r.sequence)::uuid", "reference": "'GROWN/' || g.n",
		"created_at": "r.created_at + g.later", "written_at": "r.created_at + g.later", "state": "'delivered'", "due_at": "NULL",
	}),
	copied("ledger_transactions", "ledger_transactions AS r JOIN grown AS g ON g.like_id = r.subject", map[string]string{
		"merchant_id": "g.merchant_id", "subject": "g.id", "at": "r.at + g.later", "written_at": "r.at + g.later",
	}),
	// What they have spent was credited before.
	`CREATE UNLOGGED TABLE spent AS
		SELECT t.merchant_id, t.mode, md5('credit ' || t.merchant_id || t.mode)::uuid AS id, -sum(t.available)::INT8 AS amount, min(t.at) - INTERVAL '1 second' AS at
		FROM ledger_transactions AS t JOIN grown AS g ON g.id = t.subject GROUP BY t.merchant_id, t.mode`,
	copied("ledger_transactions", "(SELECT * FROM ledger_transactions WHERE kind = 'credit' LIMIT 1) AS r, spent AS s", map[string]string{
		"merchant_id": "s.merchant_id", "mode": "s.mode", "subject": "s.id", "available": "s.amount", "adjustments": "-s.amount", "at": "s.at", "written_at": "s.at",
	}),
	copied("ledger_adjustments", "(SELECT * FROM ledger_adjustments WHERE state = 'posted' LIMIT 1) AS r, spent AS s", map[string]string{
		"merchant_id": "s.merchant_id", "mode": "s.mode", "id": "s.id", "amount": "s.amount", "requested_at": "s.at", "reference": "'grown'",
	}),
	`INSERT INTO ledger_balances (merchant_id, mode, available, held)
		SELECT merchant_id, mode, 0, 0 FROM grown GROUP BY merchant_id, mode ON CONFLICT DO NOTHING`,
	"DROP TABLE grown, spent",
}

// copied is a statement that inserts copies of rows r with some columns of their own. The
// columns are found where it runs.
func copied(table, from string, own map[string]string) string {
	var values strings.Builder
	for column, value := range own {
		fmt.Fprintf(&values, " WHEN %s THEN %s", quoted(column), quoted(value))
	}
	return "COPIED " + table + "\x00" + from + "\x00CASE column_name" + values.String() + " ELSE 'r.' || column_name END"
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// grow fills the program's database.
func (b *bench) grow(ctx context.Context, merchants, movements int) {
	conn, err := pgx.Connect(ctx, b.program.DatabaseURL)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	remake := b.dropIndexes(ctx, conn)
	for _, statement := range slices.Concat(growing, remake) {
		if table, rest, found := strings.Cut(strings.TrimPrefix(statement, "COPIED "), "\x00"); found {
			from, values, _ := strings.Cut(rest, "\x00")
			var columns, selected string
			if err := conn.QueryRow(ctx, `SELECT string_agg(column_name, ', ' ORDER BY ordinal_position), string_agg(`+values+`, ', ' ORDER BY ordinal_position)
				FROM information_schema.columns WHERE table_name = $1 AND table_schema = current_schema()`, table).Scan(&columns, &selected); err != nil {
				b.Fatalf("%s: %v", table, err)
			}
			statement = "INSERT INTO " + table + " (" + columns + ") SELECT " + selected + " FROM " + from
		}
		statement = strings.NewReplacer("$1", strconv.Itoa(merchants), "$2", strconv.Itoa(movements)).Replace(statement) // what makes a table takes no parameters
		began := time.Now()
		done, err := conn.Exec(ctx, statement)
		if err != nil {
			b.Fatalf("%v\n%s", err, statement)
		}
		b.Logf("%v in %v: %.60s", done, time.Since(began).Round(time.Millisecond), statement)
	}
	b.decide(ctx, merchants, min(movements, mostDecisions))
	// One that has grown over months has been vacuumed on the way, and has written its pages.
	for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			b.Fatal(err)
		}
	}
	b.closeDays(ctx)
}

// decide writes so many decisions of all merchants into the log of the last day, as replicas do.
func (b *bench) decide(ctx context.Context, merchants, decisions int) {
	s, err := store.Open(ctx, b.program.DatabaseURL, store.Options{MaxConns: 2})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	active, err := adminapi.ShowPolicy.Call(ctx, b.program.Admin(), adminapi.PolicyName{Version: "active"})
	if err != nil {
		b.Fatal(err)
	}
	all, err := s.Merchants(ctx, "", merchants)
	if err != nil {
		b.Fatal(err)
	}
	const minutes = 24 * 60
	first, n := time.Now().UTC().Truncate(time.Minute).Add(-(minutes-1)*time.Minute), 0
	for minute := range minutes {
		var counted []decision.Counted
		for ; n < (minute+1)*decisions/minutes; n++ {
			m := all[n%len(all)]
			counted = append(counted, decision.Counted{
				Series: decision.Series{Merchant: string(m.ID), Operation: "/balance", Version: active.Version, Record: m.Version, Live: true},
				Counts: []decision.Count{{Second: uint8(n % 60), N: 1}},
			})
		}
		part := store.DecisionPart{Minute: first.Add(time.Duration(minute) * time.Minute), Replica: uuid.UUID{1}, Part: int64(minute) + 1, Counts: decision.Pack(counted)}
		if err := s.AddDecisions(ctx, part); err != nil {
			b.Fatal(err)
		}
	}
}

// searches are what people search for and filter by on each console, by what the report calls it: of a movement that is
// among the oldest of the busy merchant.
func (b *bench) searches() map[string]map[string]string {
	conn, err := pgx.Connect(b.Context(), b.program.DatabaseURL)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	var id uuid.UUID
	var mode, kind, reference, theirs string
	busy := b.program.Merchants[harness.Large].MerchantID
	if err := conn.QueryRow(b.Context(), `SELECT id, mode, kind, reference, provider_reference FROM movements
		WHERE merchant_id = $1 AND reference LIKE 'GROWN/%' AND state = 'succeeded' AND created_at > now() - INTERVAL '30 days'
		ORDER BY created_at LIMIT 1`, busy).Scan(&id, &mode, &kind, &reference, &theirs); err != nil {
		b.Fatal(err)
	}
	find := func(path, text string) string { return path + "?" + url.Values{"id": {text}}.Encode() }
	here, days := "/"+busy+"/"+mode, "from=2026-01-01&to="+time.Now().Format(time.DateOnly)
	return map[string]map[string]string{
		"operators": {
			"/find, a movement's id": find("/find", id.String()), "/find, a reference, of any merchant": find("/find", reference),
			"/find, the provider's id": find("/find", theirs), "/find, a merchant's id": find("/find", busy), "/find, the beginning of merchants' names": find("/find", "Toko 9"),
			"/find, what there is not": find("/find", "nothing-of-this-name"), "/audit, filtered": "/audit?action=policy&" + days,
			"/merchants/…/audit, filtered":     "/merchants/" + busy + "/audit?operator=ayu&" + days,
			"/merchants/…/callbacks, filtered": "/merchants/" + busy + "/callbacks?mode=" + mode + "&state=dead&" + days,
		},
		"merchants": {
			"/…/find, a movement's id": find(here+"/find", id.String()), "/…/find, a reference, of the merchant": find(here+"/find", reference),
			"/…/" + kind + "s, filtered by state": here + "/" + kind + "s?state=failed&" + days, "/…/callbacks, filtered": here + "/callbacks?state=dead&" + days,
		},
	}
}

// impact has an operator's page try a policy on the decisions of the last day, and looks at how that begins, at the page
// while it goes on, and at the result.
func (b *bench) impact(v *visitor) []looked {
	admin := b.program.Admin()
	active, err := adminapi.ShowPolicy.Call(b.Context(), admin, adminapi.PolicyName{Version: "active"})
	if err != nil {
		b.Fatal(err)
	}
	active.Files["night.rego"] = "package gerbang\n\nrefusals contains \"Not at night.\" if input.clock.hour == 3\n"
	candidate, err := adminapi.PushPolicy.Call(b.Context(), admin, adminapi.NewPolicy{Files: active.Files, Message: "to be tried"})
	if err != nil {
		b.Fatal(err)
	}
	const path = "/policies/…/impact"
	at := v.url("/policies/" + candidate.Version + "/impact?since=24h")
	began := time.Now()
	response, err := v.PostForm(at, nil)
	if err != nil {
		b.Fatal(err)
	}
	response.Body.Close()
	begun := looked{console: v.console, path: path + ", begun", took: time.Since(began)}
	var meanwhile []float64
	harness.Await(b, 10*time.Minute, "an impact is shown", func() bool {
		asked := time.Now()
		content, packed := b.page(v, at)
		if bytes.Contains(content, []byte("<progress")) {
			meanwhile, begun.packed = append(meanwhile, float64(time.Since(asked))), packed
			return false
		}
		return bytes.Contains(content, []byte(`<svg class="bar"`))
	})
	b.Logf("a policy was tried in %v", time.Since(began).Round(time.Millisecond))
	all := []looked{begun}
	if len(meanwhile) > 0 {
		all = append(all, looked{console: v.console, path: path + ", while it is tried", took: time.Duration(slices.Max(meanwhile)), packed: begun.packed})
	}
	result, _ := b.look(v, path+", the result", at)
	return append(all, result)
}

// dropIndexes drops what would be kept up with each row and is made at once in a fraction of
// the time, and returns the statements that make it. Keys stay, and indexes of some rows alone: the
// program works on, and looks for what is due by these.
func (b *bench) dropIndexes(ctx context.Context, conn *pgx.Conn) (remake []string) {
	//nolint:rowserrcheck // ForEachRow tells it
	rows, err := conn.Query(ctx, `SELECT indexname, indexdef FROM pg_indexes
		WHERE schemaname = current_schema() AND tablename IN ('movements', 'history', 'callbacks', 'ledger_transactions')
			AND indexdef NOT LIKE '% WHERE %' AND indexname NOT IN (SELECT conname FROM pg_constraint)`)
	if err != nil {
		b.Fatal(err)
	}
	drop := []string{"SET maintenance_work_mem = '512MB'", "SET synchronous_commit = off"}
	var name, made string
	if _, err := pgx.ForEachRow(rows, []any{&name, &made}, func() error {
		drop, remake = append(drop, "DROP INDEX "+name), append(remake, made)
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for _, statement := range drop {
		if _, err := conn.Exec(ctx, statement); err != nil {
			b.Fatalf("%v\n%s", err, statement)
		}
	}
	return remake
}

// closeDays closes the days of the busy merchant, as the program does once a day.
func (b *bench) closeDays(ctx context.Context) {
	s, err := store.Open(ctx, b.program.DatabaseURL, store.Options{MaxConns: 2})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	began, days := time.Now(), 0
	for {
		_, closed, err := s.CloseDays(ctx, movement.Owner{MerchantID: b.program.Merchants[harness.Large].MerchantID}, time.Now(), 1)
		if err != nil {
			b.Fatal(err)
		}
		if closed == 0 {
			break
		}
		days += closed
	}
	b.Logf("%d days closed in %v", days, time.Since(began).Round(time.Millisecond))
}

// looked is a page of a console that was looked at.
type looked struct {
	console, path string
	took          time.Duration
	packed        int
}

var (
	factorOf = regexp.MustCompile(`<code data-factor>([A-Z2-7]+)</code>`)
	linkOf   = regexp.MustCompile(`href="(/[^"#]*)"`)
	idOf     = regexp.MustCompile(`(mer_)?[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}|[=][^&]+`)
)

// visitor is somebody who is signed in to a console.
type visitor struct {
	*http.Client
	console string
	at      url.URL
}

// accept accepts an invitation, which is good for minutes: the session is for as long as a database takes to grow.
func (b *bench) accept(console, invitation string) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	at, err := url.Parse(invitation)
	if err != nil {
		b.Fatal(err)
	}
	v := &visitor{Client: &http.Client{Jar: jar, Timeout: time.Minute}, console: console, at: *at}
	content, _ := b.page(v, invitation)
	factor := factorOf.FindSubmatch(content)
	if factor == nil {
		b.Fatalf("no invitation: %s", content)
	}
	code, err := totp.GenerateCode(string(factor[1]), time.Now())
	if err != nil {
		b.Fatal(err)
	}
	response, err := v.PostForm(invitation, url.Values{"name": {"Budi"}, "password": {"correct horse battery"}, "code": {code}})
	if err != nil {
		b.Fatal(err)
	}
	response.Body.Close()
	return v
}

// url is that of a path of the console.
func (v *visitor) url(path string) string {
	v.at.Path, v.at.RawQuery, _ = strings.Cut(path, "?")
	return v.at.String()
}

// pages follows every link that a visitor is shown, one of each form, after some paths of their own names.
func (b *bench) pages(v *visitor, named map[string]string) []looked {
	var found []looked
	for name, path := range named {
		one, _ := b.look(v, name, v.url(path))
		found = append(found, one)
	}
	waiting, seen := []string{"/"}, map[string]bool{"/": true}
	for len(waiting) > 0 {
		path := waiting[0]
		waiting = waiting[1:]
		one, content := b.look(v, idOf.ReplaceAllString(path, "…"), v.url(path))
		found = append(found, one)
		for _, link := range linkOf.FindAllSubmatch(content, -1) {
			next := strings.ReplaceAll(string(link[1]), "&amp;", "&")
			form := idOf.ReplaceAllString(next, "…")
			if !seen[form] && !strings.Contains(form, "/confirm") && !strings.HasPrefix(form, "/assets") && !strings.Contains(form, ".csv") {
				seen[form] = true
				waiting = append(waiting, next)
			}
		}
	}
	if len(found)-len(named) < 10 {
		b.Fatalf("%d pages of the %s' console were found: %+v", len(found), v.console, found)
	}
	return found
}

// look looks at a page five times.
func (b *bench) look(v *visitor, name, at string) (one looked, content []byte) {
	one = looked{console: v.console, path: name}
	var took []float64
	for range 5 {
		began := time.Now()
		content, one.packed = b.page(v, at)
		took = append(took, float64(time.Since(began)))
	}
	one.took = time.Duration(median(took))
	return one, content
}

// page is a page, and its size on the way.
func (b *bench) page(v *visitor, at string) (content []byte, packed int) {
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, at, nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := v.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	sent, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d, %v\n%.500s", at, response.StatusCode, err, sent)
	}
	packed = len(sent)
	unpacked, err := gzip.NewReader(bytes.NewReader(sent))
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) {
		return sent, packed
	}
	if err == nil {
		sent, err = io.ReadAll(unpacked)
	}
	if err != nil {
		b.Fatalf("%s: %v", at, err)
	}
	return sent, packed
}
