package store_test

import (
	"maps"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func TestBacklog(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{})
	before := s.Outcomes()["ok"]
	empty, err := s.Backlog(t.Context(), epoch)
	if err != nil || empty.Mail != 0 || empty.Overdue[store.PollQueue] != 0 {
		t.Fatalf("of an empty database: %+v, %v", empty, err)
	}
	if none, err := s.Oldest(t.Context(), epoch); err != nil || len(none.Movements)+len(none.Callbacks) > 0 {
		t.Fatalf("of an empty database: %+v, %v", none, err)
	}
	moved := func(merchant, mode, kind, ended, age string) string {
		return `INSERT INTO movements (merchant_id, mode, kind, reference, id, attempt, operation, provider, state, ended, sequence, amount, request,
			connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, created_at, updated_at, send_by, misses, due_bucket)
			SELECT '` + merchant + `', '` + mode + `', '` + kind + `', gen_random_uuid()::TEXT, gen_random_uuid(), 1, '', '', '', '` + ended + `', 1, 1, '', 1, '', '', '', '', '', '',
			t.at, t.at, t.at, 0, 0 FROM (SELECT ` + ago(age) + ` AS at) AS t`
	}
	called := func(merchant, state, age, due string) string {
		return `INSERT INTO callbacks (merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, created_at, due_bucket, due_at)
			VALUES ('` + merchant + `', 'live', gen_random_uuid(), gen_random_uuid(), 1, '', '', '', '', '` + state + `', 0, ` + ago(age) + `, 3, ` + due + `)`
	}
	execute(t, url,
		moved("mer_a", "live", "transfer", "", "2 hours"), moved("mer_a", "live", "transfer", "", "1 hour"), moved("mer_a", "live", "order", "", "5 minutes"),
		moved("mer_b", "live", "transfer", "", "3 hours"), moved("mer_b", "live", "transfer", "succeeded", "9 hours"), moved("mer_b", "test", "payment", "", "1 day"),
		called("mer_a", "dead", "9 days", "NULL"), called("mer_a", "waiting", "1 day", ago("10 minutes")), called("mer_b", "waiting", "2 days", ago("-1 hour")),
		`INSERT INTO mails (mail_id, merchant_id, mode, movement_id, recipient, subject, body, state, created_at, due_bucket, due_at)
			VALUES (gen_random_uuid(), 'mer_a', 'live', gen_random_uuid(), '', '', '', 'waiting', `+ago("4 hours")+`, 15, `+ago("-1 hour")+`)`,
		`INSERT INTO polls (movement_id, attempt, version, account, bucket, due, misses)
			VALUES (gen_random_uuid(), 1, 1, '', 0, NULL, 0), (gen_random_uuid(), 1, 1, '', 0, `+ago("1 minute")+`, 0), (gen_random_uuid(), 1, 1, '', 9, `+ago("7 minutes")+`, 0)`,
		`INSERT INTO statements (account_id, merchant_id, mode, provider, cursor, through, due_at)
			VALUES (gen_random_uuid(), 'mer_a', 'live', '', '', `+ago("1 day")+`, '1970-01-01')`)
	got, err := s.Backlog(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	old, err := s.Oldest(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	want := store.Backlog{
		Overdue: map[string]time.Duration{store.PollQueue: 7 * time.Minute, store.CallbackQueue: 10 * time.Minute, store.MailQueue: 0, store.StatementQueue: 0},
		Mail:    4 * time.Hour,
	}
	wanted := store.Oldest{
		Movements: map[store.OpenKind]time.Duration{
			{Kind: "transfer", Mode: "live"}: 3 * time.Hour, {Kind: "order", Mode: "live"}: 5 * time.Minute, {Kind: "payment", Mode: "test"}: 24 * time.Hour,
		},
		Callbacks: map[string]time.Duration{"live": 48 * time.Hour},
	}
	if !maps.Equal(got.Overdue, want.Overdue) || !maps.Equal(old.Movements, wanted.Movements) || !maps.Equal(old.Callbacks, wanted.Callbacks) || got.Mail != want.Mail {
		t.Errorf("it is\n%+v %+v, want\n%+v %+v", got, old, want, wanted)
	}
	for most, complete := range map[int64]bool{1: false, 3: false, 5: true} { // four accounts and kinds have something open
		if some, err := s.OldestOf(t.Context(), epoch, most); (err == nil) != complete {
			t.Errorf("of %d accounts at most: %+v, %v", most, some, err)
		}
	}
	if n := s.Outcomes()["ok"] - before; n < 8 {
		t.Errorf("%d statements are counted as ok", n)
	}
	if pools := s.Pools(); len(pools) != 3 || pools[0].Max == 0 {
		t.Errorf("the pools are %+v", pools)
	}
}

// ago is a time before epoch, in SQL.
func ago(age string) string {
	return "TIMESTAMPTZ '" + epoch.Format(time.RFC3339Nano) + "' - INTERVAL '" + age + "'"
}
