package store_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func TestPostingsAndCallbacksOfAMovement(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 10_000, store.Options{MaxConns: 4})
	m, other := reserve(t, s, order("O/1", movement.Held)), reserve(t, s, order("O/2", movement.Charged))
	for _, of := range []movement.Movement{m, other} { // at the same time
		change := posted(of, movement.Succeeded)
		change.Callback = &movement.CallbackEvent{ID: uuid.New(), Event: "ppob.status_update", URL: "https://shop.example/cb", Body: []byte(`{}`)}
		moved(t, s, change)
	}
	postings, err := s.PostingsOf(t.Context(), payer, m.ID)
	if err != nil || len(postings) != 2 || postings[0].Kind != "hold" || postings[1].Kind != "capture" || postings[1].Legs.Cost == 0 || postings[1].Check() != nil {
		t.Errorf("posted %+v, %v", postings, err)
	}
	callbacks, err := s.CallbacksOfMovement(t.Context(), payer, m.ID, history(t, s, m.ID))
	if err != nil || len(callbacks) != 1 || callbacks[0].MovementID != m.ID || callbacks[0].Reference != "O/1" {
		t.Errorf("callbacks %+v, %v", callbacks, err)
	}
	if callbacks, err := s.CallbacksOfMovement(t.Context(), payer, m.ID, nil); err != nil || len(callbacks) != 0 {
		t.Errorf("before anything happened: %+v, %v", callbacks, err)
	}
}

func namesOf(movements []movement.Movement) []string {
	var all []string
	for _, m := range movements {
		all = append(all, m.Owner.MerchantID+" "+m.Owner.Mode+" "+m.Reference)
	}
	return all
}

func TestFinding(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for _, merchant := range []string{"mer_1", "mer_2", "mer_3"} {
		insert(t, s, merchant)
	}
	put := func(merchant, mode, reference string, at time.Duration, change func(*movement.Movement)) {
		m := draft(reference)
		m.Owner, m.CreatedAt = movement.Owner{MerchantID: merchant, Mode: mode}, epoch.Add(at)
		if change != nil {
			change(&m)
		}
		m = reserve(t, s, m)
		moved(t, s, func() movement.Change {
			c := move(m, movement.Pending)
			c.ProviderReference = "prov-" + reference
			return c
		}())
	}
	put("mer_1", "live", "INV/1", 0, func(m *movement.Movement) { m.RequestID = "shared" })
	put("mer_2", "test", "INV/1", time.Hour, func(m *movement.Movement) { m.DecisionID = "shared" })
	put("mer_2", "test", "INV/2", 2*time.Hour, nil)
	put("mer_3", "live", "shared", 3*time.Hour, nil)

	byReference := func(reference string, most int, want ...string) {
		t.Helper()
		found, err := s.MovementsByReference(t.Context(), reference, most)
		if err != nil || !slices.Equal(namesOf(found), want) {
			t.Errorf("%s: %q, %v", reference, namesOf(found), err)
		}
	}
	byReference("INV/1", 10, "mer_2 test INV/1", "mer_1 live INV/1")
	byReference("INV/1", 1, "mer_2 test INV/1")
	byReference("inv/1", 10)

	byOthers := func(id string, since, before time.Duration, want ...string) {
		t.Helper()
		found, err := s.MovementsByOthersID(t.Context(), id, epoch.Add(since), epoch.Add(before), 10)
		if err != nil || !slices.Equal(namesOf(found), want) {
			t.Errorf("%s: %q, %v", id, namesOf(found), err)
		}
	}
	byOthers("shared", 0, 10*time.Hour, "mer_2 test INV/1", "mer_1 live INV/1")
	byOthers("shared", time.Second, 10*time.Hour, "mer_2 test INV/1")
	byOthers("shared", 0, time.Hour, "mer_1 live INV/1")
	byOthers("prov-INV/2", 0, 10*time.Hour, "mer_2 test INV/2")
	byOthers("", -time.Hour, 10*time.Hour)
	byOthers("INV/2", 0, 10*time.Hour)
}

// TestFindingGoesByIndexes: neither way of finding reads the whole table, however
// large it is. Other engines plan by themselves.
func TestFindingGoesByIndexes(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 2})
	if s.Engine() != store.PostgreSQL {
		t.Skip("the plan is PostgreSQL's")
	}
	execute(t, url,
		`INSERT INTO merchants (merchant_id, name, tier, status, labels, version, created_at, changed_at, change_shard)
			SELECT 'mer_' || n, 'Toko', 'starter', 'active', '{}', 1, now(), now(), 0 FROM generate_series(1, 100) AS n`,
		`INSERT INTO movements (merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request,
				connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
				send_by, created_at, updated_at, misses, due_bucket)
			SELECT 'mer_' || n % 100, 'live', 'payment', 'INV/' || n, gen_random_uuid(), 1, '/payments/create', 'payments', 'succeeded', 2, 15000,
				repeat('x', 500), 1, '', '', '', 'r' || n, '', '', now(), now() - n * INTERVAL '1 minute', now(), 0, n % 16
			FROM generate_series(1, 40000) AS n`,
		"ANALYZE merchants", "ANALYZE movements")
	for name, args := range map[string][]any{
		"movementsByReference": {[]string{"live", "test"}, []string{"payment", "collection", "transfer", "order"}, "INV/77", 20},
		"movementsByOthersID":  {[]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, time.Now().Add(-time.Hour), time.Now(), "r7", 20},
	} {
		if plan := explain(t, url, sqlOf(t, name), args...); strings.Contains(plan, "Seq Scan on movements") || !strings.Contains(plan, "movements_") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}

// sqlOf is the text of a query that sqlc made, so that what is explained is the very
// same.
func sqlOf(tb testing.TB, name string) (text string) {
	tb.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "dbsqlc/movements.sql.go", nil, 0)
	if err != nil {
		tb.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == name {
			text, err = strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		}
		return true
	})
	if err != nil || text == "" {
		tb.Fatalf("no statement %s: %v", name, err)
	}
	return text
}

func explain(t *testing.T, url, query string, args ...any) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "EXPLAIN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(strings.Join(lines, "\n"))
}
