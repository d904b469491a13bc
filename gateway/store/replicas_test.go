package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	replica := uuid.New()
	want := func(s *store.Store, problem string) {
		t.Helper()
		if got, _ := s.Probe(t.Context(), replica, epoch); got != problem {
			t.Errorf("the database %q, want %q", got, problem)
		}
		if unfit := s.Unfit(); (unfit == nil) != (problem == "") || unfit != nil && unfit.Error() != "the database "+problem {
			t.Errorf("where the database %q it is unfit: %v", problem, unfit)
		}
	}
	want(s, "")
	want(s, "")
	if n := count(t, url, "SELECT count(*) FROM replicas WHERE replica_id = $1", replica); n != 1 {
		t.Errorf("%d rows of this replica", n)
	}
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	want(open(t, url+separator+"default_transaction_read_only=on", store.Options{MaxConns: 4}), "takes no writes")
	execute(t, url, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)")
	want(s, "") // it only adds to what this version knows
	execute(t, url, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, TRUE)")
	want(s, "has the schema 1000, of a later version of the gateway: this one works on those below 1000")
	execute(t, url, "DELETE FROM goose_db_version WHERE version_id > 0")
	if got, _ := s.Probe(t.Context(), replica, epoch); !strings.Contains(got, "has the schema 0, ") || !strings.Contains(got, "run gerbang migrate") {
		t.Errorf("the database %q", got)
	}
	away, cancel := context.WithCancel(t.Context())
	cancel()
	fit := open(t, database(t), store.Options{MaxConns: 4})
	if got, _ := fit.Probe(away, replica, epoch); got != "does not answer" || fit.Unfit() != nil {
		t.Errorf("nobody was asked: the database %q, unfit: %v", got, fit.Unfit())
	}
}

// TestFullDisk: a small write finds room where a movement finds none.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	url := database(t)
	s, other := open(t, url, store.Options{MaxConns: 4}), open(t, url, store.Options{MaxConns: 4})
	execute(t, url, `CREATE FUNCTION full_disk() RETURNS TRIGGER LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	execute(t, url, "CREATE TRIGGER full_disk BEFORE INSERT ON movements FOR EACH ROW EXECUTE FUNCTION full_disk()")
	if problem, err := s.Probe(t.Context(), uuid.New(), epoch); problem != "" {
		t.Error(problem, err)
	}
	if _, _, err := s.Reserve(t.Context(), draft("ORD/1")); err == nil {
		t.Error("reserved on a full disk")
	}
	if problem, err := s.Probe(t.Context(), uuid.New(), epoch); problem != "takes no writes" || err == nil || !strings.Contains(err.Error(), "No space left") {
		t.Errorf("the database %q, %v", problem, err)
	}
	if problem, err := other.Probe(t.Context(), uuid.New(), epoch); problem != "" { // as its own writes tell
		t.Error(problem, err)
	}
	s.Age(10 * time.Second)
	if problem, err := s.Probe(t.Context(), uuid.New(), epoch); problem != "" {
		t.Error("10 s later:", problem, err)
	}
	execute(t, url, `CREATE OR REPLACE FUNCTION full_disk() RETURNS TRIGGER LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'too many clients already' USING ERRCODE = '53300'; END $$`)
	if _, _, err := s.Reserve(t.Context(), draft("ORD/2")); err == nil {
		t.Error("reserved")
	}
	if problem, err := s.Probe(t.Context(), uuid.New(), epoch); problem != "" {
		t.Error("what is over in a moment:", problem, err)
	}
}

func TestNothingIsWrittenReadOnly(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 1000, store.Options{})
	writable := "&"
	if !strings.Contains(url, "?") {
		writable = "?"
	}
	reader := open(t, url+writable+"target_session_attrs=read-write", store.Options{ReadOnly: true}) // as URLs of several hosts have it
	if _, _, err := reader.Reserve(t.Context(), order("o", movement.Charged)); err == nil {
		t.Error("an order was written")
	}
	if _, err := reader.Adjust(t.Context(), by("adjust"), adjustment("a", 5), money.Max); err == nil {
		t.Error("a credit was written")
	}
	wantBalance(t, s, 1000, 0)
	if problem, err := reader.Schema(t.Context()); problem != "" || err != nil {
		t.Error(problem, err)
	}
}

func TestReplicasAreForgotten(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	for _, ago := range []time.Duration{0, 29 * 24 * time.Hour, 31 * 24 * time.Hour} {
		if problem, err := s.Probe(t.Context(), uuid.New(), epoch.Add(-ago)); problem != "" {
			t.Fatal(problem, err)
		}
	}
	if err := s.ForgetReplicas(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	if n := count(t, url, "SELECT count(*) FROM replicas"); n != 2 {
		t.Errorf("%d are left, want 2", n)
	}
}
