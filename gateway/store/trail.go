package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// maxNotes bounds what is noted of one movement.
const maxNotes = 200

// Note keeps one, or counts it where the same was said before.
func (s *Store) Note(ctx context.Context, now time.Time, m movement.Movement, event, detail string) error {
	return wrap("note", s.queries.NoteEvent(ctx, dbsqlc.NoteEventParams{
		MovementID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Event: event, Detail: detail, Now: micro(now), Most: maxNotes, //nolint:gosec // a small count
	}))
}

// NotesOf reads what was noted of a movement, the oldest first.
func (s *Store) NotesOf(ctx context.Context, id movement.ID) ([]movement.Note, error) {
	rows, err := s.queries.NotesOf(ctx, uuid.UUID(id))
	notes := make([]movement.Note, len(rows))
	for i, row := range rows {
		notes[i] = movement.Note{
			Attempt: int(row.Attempt), Event: row.Event, Detail: row.Detail, At: row.At.UTC(), LastAt: row.LastAt.UTC(), Times: int(row.Times),
		}
	}
	return notes, wrap("notes", err)
}

// PostingsOf reads what a movement has done to the ledger.
func (s *Store) PostingsOf(ctx context.Context, owner movement.Owner, id movement.ID) ([]ledger.Transaction, error) {
	rows, err := s.queries.PostingsOf(ctx, dbsqlc.PostingsOfParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Subject: uuid.UUID(id)})
	postings := make([]ledger.Transaction, len(rows))
	for i, row := range rows {
		postings[i] = ledger.Transaction{
			Subject: uuid.UUID(id), Attempt: int(row.Attempt), Step: ledger.Step(row.Step), Kind: ledger.Kind(row.Kind),
			Provider: row.Provider, At: row.At.UTC(),
			Legs: ledger.Legs{
				Available: money.Amount(row.Available), Held: money.Amount(row.Held), Margin: money.Amount(row.Margin),
				Cost: money.Amount(row.Cost), Deposit: money.Amount(row.Deposit), Adjustments: money.Amount(row.Adjustments),
			},
		}
	}
	return postings, wrap("postings", err)
}

// CallbacksOfMovement reads the callbacks that the events of a movement's story
// have made, in their order.
func (s *Store) CallbacksOfMovement(ctx context.Context, owner movement.Owner, id movement.ID, story []movement.HistoryEntry) ([]movement.Callback, error) {
	times := make([]time.Time, len(story))
	for i, e := range story {
		times[i] = e.At
	}
	rows, err := s.queries.CallbacksOfMovement(ctx, dbsqlc.CallbacksOfMovementParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Times: times, MovementID: uuid.UUID(id),
	})
	return callbacksFromRows(rows, err)
}

// kinds are those that have movements.
var kinds = []string{string(manifest.Payment), string(manifest.Collection), string(manifest.Transfer), string(manifest.Order)}

// MovementsByReference finds movements by the reference that their merchants gave
// them, over all merchants, the newest first.
func (s *Store) MovementsByReference(ctx context.Context, reference string, most int) ([]movement.Movement, error) {
	rows, err := s.queries.MovementsByReference(ctx, dbsqlc.MovementsByReferenceParams{
		Modes: []string{string(tenants.Live), string(tenants.Test)}, Kinds: kinds, Reference: reference, Most: int32(most), //nolint:gosec // a page
	})
	return movementsFromRows(rows, err)
}

// MovementsByOthersID finds movements claimed in a span of time by the id of the
// request or decision that claimed them, or by the provider's own name of them,
// the newest first.
func (s *Store) MovementsByOthersID(ctx context.Context, id string, since, before time.Time, most int) ([]movement.Movement, error) {
	buckets := make([]int32, movement.Buckets)
	for i := range buckets {
		buckets[i] = int32(i)
	}
	rows, err := s.queries.MovementsByOthersID(ctx, dbsqlc.MovementsByOthersIDParams{
		Buckets: buckets, Since: micro(since), Before: micro(before), ID: id, Most: int32(most), //nolint:gosec // a page
	})
	return movementsFromRows(rows, err)
}

func movementsFromRows(rows []dbsqlc.Movement, err error) ([]movement.Movement, error) {
	if err != nil {
		return nil, wrap("find", err)
	}
	movements := make([]movement.Movement, len(rows))
	for i, row := range rows {
		if movements[i], err = fromRow(row); err != nil {
			return nil, err
		}
	}
	return movements, nil
}
