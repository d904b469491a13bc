package store_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// word is an operator's on a movement; alone is marked by an exclamation mark.
func word(text string) movement.Override {
	operator, outcome, _ := strings.Cut(text, " ")
	return movement.Override{
		Operator: operator, Outcome: movement.OverrideOutcome(strings.TrimSuffix(outcome, "!")), Alone: strings.HasSuffix(outcome, "!"),
		Reason: "because " + operator, At: epoch,
	}
}

func review(m movement.Movement) movement.Exception {
	a := fact(m.ID.String(), "decided_alone", m.UpstreamReference())
	a.Owner = m.Owner
	return a
}

// inShort is what stands: who proposed what, who confirmed it.
func inShort(d movement.Override) string {
	text := d.Operator + " " + string(d.Outcome)
	if d.Alone {
		text += "!"
	}
	if d.ConfirmedBy != "" {
		text += " " + d.ConfirmedBy
	}
	return text
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	insert(t, s, owner.MerchantID)
	for name, steps := range map[string][][2]string{ // what is said, and what stands then; "no" is refused
		"confirmed":                {{"ayu success", "ayu success"}, {"budi success", "ayu success budi"}, {"citra success", "ayu success budi"}, {"citra failed!", "no"}},
		"proposed twice":           {{"ayu failed", "ayu failed"}, {"ayu failed", "ayu failed"}, {"budi failed", "ayu failed budi"}},
		"another mind":             {{"ayu failed", "ayu failed"}, {"ayu success", "ayu success"}, {"budi failed", "no"}, {"budi success", "ayu success budi"}, {"ayu failed", "no"}},
		"alone":                    {{"ayu failed!", "ayu failed!"}, {"ayu failed!", "ayu failed!"}, {"budi failed", "ayu failed!"}, {"budi success", "no"}, {"ayu success!", "no"}},
		"alone after all":          {{"ayu failed", "ayu failed"}, {"ayu failed!", "ayu failed!"}},
		"alone against a proposal": {{"ayu failed", "ayu failed"}, {"budi success!", "budi success!"}, {"ayu failed", "no"}},
		"alone, but two say it":    {{"ayu failed", "ayu failed"}, {"budi failed!", "ayu failed budi"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := reserve(t, s, draft(name))
			for _, step := range steps {
				before, _ := s.OverrideOf(t.Context(), m.ID, m.Attempt)
				stands, err := s.Override(t.Context(), m, word(step[0]), review(m))
				if step[1] == "no" {
					if !errors.Is(err, movement.ErrOverridden) || stands != before {
						t.Errorf("%s: %s, %v", step[0], inShort(stands), err)
					}
					continue
				}
				kept, readErr := s.OverrideOf(t.Context(), m.ID, m.Attempt)
				if err != nil || readErr != nil || inShort(stands) != step[1] || kept != stands {
					t.Errorf("%s: %s, kept %+v, %v, %v", step[0], inShort(stands), kept, err, readErr)
				}
			}
			listed, err := s.ExceptionsOf(t.Context(), m.Owner, m.ID.String())
			alone := strings.HasSuffix(steps[len(steps)-1][1], "!") || strings.HasPrefix(name, "alone") && name != "alone, but two say it"
			if err != nil || (len(listed) == 1) != alone {
				t.Errorf("for review: %+v, %v", listed, err)
			}
		})
	}
}

func TestOverridesAreAudited(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("A"))
	for i, text := range []string{"ayu success", "ayu success", "ayu failed", "budi success", "budi failed", "citra failed"} {
		d := word(text)
		d.At = epoch.Add(time.Duration(i) * time.Second)
		if _, err := s.Override(t.Context(), m, d, review(m)); err != nil && !errors.Is(err, movement.ErrOverridden) {
			t.Fatal(err)
		}
	}
	entries, err := s.AuditOf(t.Context(), store.AuditRange{MerchantID: tenants.MerchantID(m.Owner.MerchantID), Most: 10})
	if err != nil {
		t.Fatal(err)
	}
	var done []string
	for _, e := range entries {
		done = append(done, e.Operator+" "+e.Action)
		if !strings.Contains(e.Detail, m.ID.String()) || !strings.Contains(e.Detail, "because "+e.Operator) {
			t.Errorf("%+v", e)
		}
	}
	slices.Reverse(done)
	if want := []string{"ayu movement.propose", "ayu movement.propose", "budi movement.confirm"}; !slices.Equal(done, want) {
		t.Errorf("audited %q, want %q", done, want)
	}
	for _, broken := range []movement.Override{{Outcome: movement.OverrideFailed, Reason: "r", At: epoch}, {Operator: "o", Reason: "", At: epoch}, {Operator: "o", Reason: "r"}} {
		if _, err := s.Override(t.Context(), m, broken, review(m)); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %v", broken, err)
		}
	}
	if _, err := s.OverrideOf(t.Context(), m.ID, 2); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another attempt: %v", err)
	}
}

// TestOverridesAtOnce: of two operators who say the same at once one proposes and
// the other confirms; of two outcomes one stands.
func TestOverridesAtOnce(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for round := range 10 {
		m := reserve(t, s, draft(time.Duration(round).String()))
		other := []string{"budi success", "budi failed"}[round%2]
		var saying sync.WaitGroup
		for _, text := range []string{"ayu success", other, "ayu success", other} {
			saying.Go(func() {
				if _, err := s.Override(t.Context(), m, word(text), review(m)); err != nil && !errors.Is(err, movement.ErrOverridden) {
					t.Error(err)
				}
			})
		}
		saying.Wait()
		d, err := s.OverrideOf(t.Context(), m.ID, m.Attempt)
		if same := other == "budi success"; err != nil || d.Made() != same || d.ConfirmedBy == d.Operator {
			t.Errorf("%s: %s, %v", other, inShort(d), err)
		}
	}
}

func TestExceptionsAreResolvedByReason(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for _, a := range []movement.Exception{fact("m-1", "unresolved", "1"), fact("m-1", "unresolved", "2"), fact("m-1", "paid_late", "3"), fact("m-2", "unresolved", "4")} {
		if _, err := s.AddException(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	owner := fact("", "", "").Owner
	if err := s.ResolveExceptions(t.Context(), epoch.Add(time.Hour), owner, "m-1", []string{"unresolved", "vanished"}, "ayu, budi", "decided"); err != nil {
		t.Fatal(err)
	}
	entries, err := s.ExceptionsOf(t.Context(), owner, "m-1")
	if err != nil || len(entries) != 3 {
		t.Fatal(entries, err)
	}
	for _, a := range entries {
		resolved := a.Reason == "unresolved"
		if a.ResolvedAt.IsZero() == resolved || (a.ResolvedBy == "ayu, budi" && a.Resolution == "decided") != resolved {
			t.Errorf("%+v", a)
		}
	}
	if open, err := s.OpenExceptions(t.Context(), 10); err != nil || len(open) != 2 {
		t.Errorf("open: %+v, %v", open, err)
	}
}

// TestPolledSinceIsNotMoved: what somebody has polled since it was seen stays, and what
// has ended is polled by nobody who saw it open.
func TestPolledSinceIsNotMoved(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 10_000, store.Options{MaxConns: 4})
	out := draft("T")
	out.Kind, out.Usage = manifest.Transfer, []movement.Usage{{Name: "out.count", Period: "2026-01-02", Amount: 1, Ceiling: 5}}
	for _, m := range []movement.Movement{draft("P"), order("O", movement.Held), out} {
		m = reserve(t, s, m)
		polled := epoch.Add(time.Hour)
		if ours, err := s.Poll(t.Context(), m, polled, polled, polled.Add(time.Hour)); err != nil || !ours {
			t.Fatal(ours, err)
		}
		if done, err := apply(t.Context(), s, polled, posted(m, movement.Failed)); err != nil || done || byID(t, s, m.ID).State != movement.Submitting {
			t.Errorf("%s moved: %v, %v", m.Kind, done, err)
		}
		seen := byID(t, s, m.ID)
		if done, err := apply(t.Context(), s, polled, posted(seen, movement.Failed)); err != nil || !done {
			t.Errorf("%s: %v, %v", m.Kind, done, err)
		}
		if ours, err := s.Poll(t.Context(), seen, polled, polled, polled); err != nil || ours {
			t.Errorf("%s is polled after its end: %v, %v", m.Kind, ours, err)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("A"))
	note := func(at time.Duration, event, detail string) {
		t.Helper()
		if err := s.Note(t.Context(), epoch.Add(at), m, event, detail); err != nil {
			t.Fatal(err)
		}
	}
	note(0, "called", "{}")
	note(time.Second, "polled", "{}")
	note(time.Minute, "polled", "{}")
	want := []movement.Note{
		{Attempt: 1, Event: "called", Detail: "{}", At: epoch, LastAt: epoch, Times: 1},
		{Attempt: 1, Event: "polled", Detail: "{}", At: epoch.Add(time.Second), LastAt: epoch.Add(time.Minute), Times: 2},
	}
	if notes, err := s.NotesOf(t.Context(), m.ID); err != nil || !reflect.DeepEqual(notes, want) {
		t.Errorf("%+v, %v", notes, err)
	}
	for i := range 300 {
		note(time.Hour, "polled", time.Duration(i).String())
	}
	if notes, err := s.NotesOf(t.Context(), m.ID); err != nil || len(notes) != 200 {
		t.Errorf("%d are kept, %v", len(notes), err)
	}
}
