package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// TestBatchThatIsCut cuts the connection at the commit of many reservations at once:
// each reserver hears the truth about its own.
func TestBatchThatIsCut(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]cut{
		"before the commit": {},
		"after it":          {after: true},
		"in its answer":     {after: true, part: true},
	} {
		p, s, truth, url := cuttable(t)
		if s.Engine() != store.PostgreSQL {
			t.Skip("commits are shared on PostgreSQL alone")
		}
		how.at = batch()
		p.arm(how)
		reserved, failed := 0, 0
		for round := 0; p.happened() == 0 && round < 100; round++ { // until reservations meet
			ours, errs := reserveAll(t, s, fmt.Sprint(round))
			reserved, failed = reserved+ours, failed+errs
		}
		if p.happened() != 1 {
			t.Fatalf("%s: no two reservations met", name)
		}
		if n := count(t, url, rows); n != reserved || how.after == (failed > 0) {
			t.Errorf("%s: %d reserved, %d failed, %d rows", name, reserved, failed, n)
		}
		reserve(t, truth, draft("afterwards"))
	}
}

// reserveAll reserves many references at once.
func reserveAll(t *testing.T, s *store.Store, round string) (reserved, failed int) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	for i := range 32 {
		wait.Go(func() {
			_, ours, err := s.Reserve(t.Context(), draft(fmt.Sprint(round, "/", i)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failed++
			case ours:
				reserved++
			default:
				t.Error("a reference of our own is taken")
			}
		})
	}
	wait.Wait()
	return reserved, failed
}

// TestCommitOfAReservationThatFails has the database take a reservation and refuse its
// commit, and cuts the connection between the two: the reserver must not send.
func TestCommitOfAReservationThatFails(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		url := database(t)
		p, through := between(t, url)
		s := open(t, through, store.Options{OwnCommits: own})
		if s.Engine() != store.PostgreSQL {
			t.Skip("CockroachDB checks all constraints at once, so nothing but a conflict fails its commit")
		}
		execute(t, url,
			`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''at commit'' USING ERRCODE = ''23514''; END'`,
			`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON movements DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
		_, ours, err := s.Reserve(t.Context(), draft("INV/1"))
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); ours || !ok || pgErr.Code != "23514" {
			t.Errorf("%v, %v", ours, err)
		}
		p.arm(cut{at: execution, after: true, part: true})
		if _, ours, err := s.Reserve(t.Context(), draft("INV/1")); ours || err == nil || p.happened() != 1 {
			t.Errorf("and cut: %v, %v", ours, err)
		}
		if n := count(t, url, rows); n != 0 {
			t.Errorf("%d rows", n)
		}
	}
}

// TestPoisonedReservations mixes reservations that are refused with good ones, at once.
func TestPoisonedReservations(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	var wait sync.WaitGroup
	for i := range 96 {
		wait.Go(func() {
			m := draft(fmt.Sprint(i))
			bad := i%8 == 0
			if bad && i%16 == 0 {
				m.Amount = 0
			} else if bad {
				m.Reference += "\x00"
			}
			if _, ours, err := s.Reserve(t.Context(), m); ours == bad || (err != nil) != bad {
				t.Errorf("%q of %d: %v, %v", m.Reference, m.Amount, ours, err)
			}
		})
	}
	wait.Wait()
}

// TestOwnCommits does without sharing what everything else here does with it.
func TestOwnCommits(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{OwnCommits: true})
	m := at(t, s, "INV/1", movement.Succeeded)
	if _, ours, err := s.Reserve(t.Context(), draft("INV/1")); ours || err != nil || len(history(t, s, m.ID)) != 2 {
		t.Errorf("%v, %v", ours, err)
	}
}

func TestWriteAfterTheEnd(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), database(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() { reserveAll(t, s, "late") }) // either way, and nobody hangs
	s.Close()
	wait.Wait()
	if _, ours, err := s.Reserve(t.Context(), draft("INV/1")); err == nil || ours {
		t.Errorf("%v, %v", ours, err)
	}
}
