package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Movements lists a merchant's movements, the newest first.
func (s *Store) Movements(ctx context.Context, l movement.Listing) ([]movement.Movement, error) {
	states, ends := statesOf(l)
	amount, mail := l.Sought()
	after := l.After.CreatedAt
	if after.IsZero() {
		after = forever
	}
	rows, err := s.queries.ListMovements(ctx, dbsqlc.ListMovementsParams{
		MerchantID: l.Owner.MerchantID, Mode: l.Owner.Mode, Kind: string(l.Kind), States: states, Ends: ends,
		Since: micro(l.Since), Before: micro(l.Before), Prefix: l.Prefix, Search: l.Search, Amount: amount, Mail: mail,
		AfterAt: micro(after), After: uuid.UUID(l.After.ID), Most: int32(l.Most), //nolint:gosec // a page
	})
	return movementsFromRows(rows, err)
}

// statesOf are a listing's states as its index has them.
func statesOf(l movement.Listing) (states, ends []string) {
	for _, state := range l.States {
		states, ends = append(states, string(state.Of())), append(ends, state.End())
	}
	return states, ends
}

// spansOf are spans by their numbers, of which each ends where the next begins.
func spansOf(spans []time.Time) (numbers []int32, since, before []time.Time) {
	for i := range spans[:len(spans)-1] {
		numbers, since, before = append(numbers, int32(i)), append(since, micro(spans[i])), append(before, micro(spans[i+1]))
	}
	return numbers, since, before
}

// Figures tells a listing in numbers, by spans of which each ends where the next begins.
// It reads at most so many movements.
func (s *Store) Figures(ctx context.Context, l movement.Listing, spans []time.Time) (f movement.Figures, err error) {
	states, ends := statesOf(l)
	amount, mail := l.Sought()
	p := dbsqlc.MovementFiguresParams{
		MerchantID: l.Owner.MerchantID, Mode: l.Owner.Mode, Kind: string(l.Kind), States: states, Ends: ends,
		Search: l.Search, Amount: amount, Mail: mail, Most: int32(l.Most) + 1, //nolint:gosec // a bound
	}
	p.Spans, p.Since, p.Before = spansOf(spans)
	rows, err := s.queries.MovementFigures(ctx, p)
	var read int64
	for _, row := range rows {
		if row.State == "" {
			f.Waits = append(f.Waits, movement.Wait{Span: int(row.Span), N: row.N, Median: row.Median, Most: row.Slow})
			continue
		}
		state := movement.State(row.State)
		if row.Ended != "" {
			state = movement.State(row.Ended)
		}
		f.Counts = append(f.Counts, movement.Count{Span: int(row.Span), State: state, Channel: row.Channel, N: row.N, Amount: row.Amount})
		read += row.N
	}
	if read > int64(l.Most) {
		return movement.Figures{TooMany: true}, nil
	}
	return f.Sorted(), wrap("movements' figures", err)
}

// MovementsByReference finds movements by the reference that their merchants gave
// them, over all merchants, the newest first.
func (s *Store) MovementsByReference(ctx context.Context, reference string, most int) ([]movement.Movement, error) {
	kinds := make([]string, 0, len(movement.Kinds()))
	for _, kind := range movement.Kinds() {
		kinds = append(kinds, string(kind))
	}
	rows, err := s.queries.MovementsByReference(ctx, dbsqlc.MovementsByReferenceParams{
		Modes: []string{string(tenants.Live), string(tenants.Test)}, Kinds: kinds, Reference: reference, Most: int32(most), //nolint:gosec // a page
	})
	return polledFromRows(rows, err)
}

// MovementsByOthersID finds movements reserved in a span of time by the id of their
// request or policy decision, or by the provider's own name of them, the newest first.
func (s *Store) MovementsByOthersID(ctx context.Context, id string, since, before time.Time, most int) ([]movement.Movement, error) {
	buckets := make([]int32, movement.Buckets)
	for i := range buckets {
		buckets[i] = int32(i)
	}
	rows, err := s.queries.MovementsByOthersID(ctx, dbsqlc.MovementsByOthersIDParams{
		Buckets: buckets, Since: micro(since), Before: micro(before), ID: id, Most: int32(most), //nolint:gosec // a page
	})
	return polledFromRows(rows, err)
}

// embedded is a row of any query that reads whole movements without their polls.
type embedded = struct{ Movement dbsqlc.Movement }

func movementsFromRows[R ~embedded](rows []R, err error) ([]movement.Movement, error) {
	return fromRows(rows, err, func(row R) (movement.Movement, error) { return fromRow(embedded(row).Movement) })
}

func polledFromRows[R ~polledMovement](rows []R, err error) ([]movement.Movement, error) {
	return fromRows(rows, err, asPolled[R])
}

func fromRows[R any](rows []R, err error, from func(R) (movement.Movement, error)) ([]movement.Movement, error) {
	if err != nil {
		return nil, wrap("movements", err)
	}
	movements := make([]movement.Movement, len(rows))
	for i, row := range rows {
		if movements[i], err = from(row); err != nil {
			return nil, err
		}
	}
	return movements, nil
}

// MerchantsNamed finds merchants by a part of their name.
func (s *Store) MerchantsNamed(ctx context.Context, text string, most int) ([]tenants.Merchant, error) {
	rows, err := s.queries.MerchantsNamed(ctx, dbsqlc.MerchantsNamedParams{Text: text, Most: int32(most)}) //nolint:gosec // a page
	found := make([]tenants.Merchant, len(rows))
	for i, row := range rows {
		found[i] = tenants.Merchant{ID: tenants.MerchantID(row.MerchantID), Name: row.Name}
	}
	return found, wrap("merchants by a name", err)
}

// CallbacksByEvent finds callbacks by their event's id, whose merchant nobody has named.
func (s *Store) CallbacksByEvent(ctx context.Context, event uuid.UUID, most int) ([]movement.Callback, error) {
	rows, err := s.queries.CallbacksByEvent(ctx, dbsqlc.CallbacksByEventParams{
		Modes: []string{string(tenants.Live), string(tenants.Test)}, EventID: event, Most: int32(most), //nolint:gosec // a page
	})
	found := make([]movement.Callback, len(rows))
	for i, row := range rows {
		found[i].CallbackKey = movement.CallbackKey{Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, EventID: row.EventID}
		found[i].Event = row.Event
	}
	return found, wrap("callbacks by an event", err)
}

// AdjustmentsByReference finds credits and debits of all merchants, the newest first.
func (s *Store) AdjustmentsByReference(ctx context.Context, reference string, most int) ([]Adjustment, error) {
	rows, err := s.queries.AdjustmentsByReference(ctx, dbsqlc.AdjustmentsByReferenceParams{Reference: reference, Most: int32(most)}) //nolint:gosec // a page
	found := make([]Adjustment, len(rows))
	for i, row := range rows {
		found[i] = adjustmentFromRow(row)
	}
	return found, wrap("adjustments by a reference", err)
}
