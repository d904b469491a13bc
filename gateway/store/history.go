package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// History reads the history of a movement, in order.
func (s *Store) History(ctx context.Context, id movement.ID) ([]movement.HistoryEntry, error) {
	rows, err := s.queries.History(ctx, uuid.UUID(id))
	entries := make([]movement.HistoryEntry, len(rows))
	for i, row := range rows {
		entries[i] = movement.HistoryEntry{Sequence: int(row.Sequence), Event: row.Event, At: row.At.UTC(), Detail: row.Detail}
	}
	return entries, wrap("history", err)
}

// maxNotes bounds the notes of one movement.
const maxNotes = 200

// Note keeps a note of what a provider said, or counts it where it said the same
// before.
func (s *Store) Note(ctx context.Context, now time.Time, m movement.Movement, event, detail string) error {
	return wrap("note", s.queries.AddNote(ctx, dbsqlc.AddNoteParams{
		MovementID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Event: event, Detail: detail, Now: micro(now), Most: maxNotes, //nolint:gosec // a small count
	}))
}

// NotesOf reads the notes of a movement, the oldest first.
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

// PostingsOf reads the ledger transactions of a movement.
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

// CallbacksOfMovement reads the callbacks that the entries of a movement's history
// have made, in their order.
func (s *Store) CallbacksOfMovement(ctx context.Context, owner movement.Owner, id movement.ID, history []movement.HistoryEntry) ([]movement.Callback, error) {
	times := make([]time.Time, len(history))
	for i, e := range history {
		times[i] = e.At
	}
	rows, err := s.queries.CallbacksOfMovement(ctx, dbsqlc.CallbacksOfMovementParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Times: times, MovementID: uuid.UUID(id),
	})
	return callbacksFromRows(rows, err)
}
