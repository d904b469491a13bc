package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

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
