package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// DueCallbacks reads the callbacks that are due, the oldest first. Events lie in random
// buckets, so twice its part of a page is nearly always enough of each. Where the page
// has all that was read of a bucket, there may be more of it.
func (s *Store) DueCallbacks(ctx context.Context, wanted movement.DueCallbacks) ([]movement.Callback, error) {
	each := min(2*wanted.Most/max(len(wanted.Buckets), 1)+1, wanted.Most)
	page, err := s.dueCallbacks(ctx, wanted, each)
	if err == nil && each < wanted.Most && hasAllOfABucket(page, each) {
		page, err = s.dueCallbacks(ctx, wanted, wanted.Most)
	}
	return page, err
}

func (s *Store) dueCallbacks(ctx context.Context, wanted movement.DueCallbacks, each int) ([]movement.Callback, error) {
	rows, err := s.queries.DueCallbacks(ctx, dbsqlc.DueCallbacksParams{
		Buckets: narrow(wanted.Buckets), Held: objectOf(wanted.Held), UnderWay: objectOf(wanted.UnderWay),
		Since: optional(wanted.Since.Add(time.Microsecond)), Now: optional(wanted.Now),
		Each: int32(each), Most: int32(wanted.Most), //nolint:gosec // a page
	})
	due := make([]dbsqlc.Callback, len(rows))
	for i, row := range rows {
		due[i] = row.Callback
	}
	return callbacksFromRows(due, err)
}

// objectOf is a JSON object with these keys.
func objectOf[K string | uuid.UUID](keys []K) []byte {
	object := make(map[K]bool, len(keys))
	for _, key := range keys {
		object[key] = true
	}
	encoded, _ := json.Marshal(object) // which keys like these can't fail
	return encoded
}

// hasAllOfABucket tells whether so many callbacks of one bucket are in a page.
func hasAllOfABucket(page []movement.Callback, each int) bool {
	var found [movement.Buckets]int
	for _, c := range page {
		found[movement.ID(c.EventID).Bucket()]++
	}
	return slices.Max(found[:]) >= each
}

// RecordAttempt writes a try. It is false when another replica has written one
// since the callback was read; the receiver then got the event twice.
func (s *Store) RecordAttempt(ctx context.Context, a movement.CallbackAttempt) (bool, error) {
	if err := s.listGone(ctx, a); err != nil {
		return false, wrap("callback attempt", err)
	}
	written, err := s.writing(a.Callback.EventID).RecordAttempts(ctx, attemptsOf(a))
	return len(written) == 1, wrap("callback attempt", err)
}

// RecordAttempts writes tries of different callbacks in one commit, and says of each what
// RecordAttempt would. An error says that none is written, or that nobody knows: where one
// row is locked, none is, and each is to be written by itself.
func (s *Store) RecordAttempts(ctx context.Context, all []movement.CallbackAttempt) ([]bool, error) {
	if err := s.listGone(ctx, all...); err != nil {
		return nil, wrap("callback attempts", err)
	}
	leave, err := s.writer.place(ctx)
	if err != nil {
		return nil, wrap("callback attempts", err)
	}
	defer leave()
	written, err := dbsqlc.New(s.writer.pool).RecordAttempts(ctx, attemptsOf(all...))
	if err != nil {
		return nil, wrap("callback attempts", err)
	}
	ours := make([]bool, len(all))
	for i, a := range all {
		ours[i] = slices.Contains(written, a.Callback.EventID)
	}
	return ours, nil
}

// listGone makes an exception of each try that ends a callback about money by a 410: its
// merchant does not learn of that. It is listed first, and once: a try that is not written
// after that is made, and listed, again.
func (s *Store) listGone(ctx context.Context, all ...movement.CallbackAttempt) error {
	for _, a := range all {
		c := a.Callback
		if a.Then != movement.CallbackGone || c.MovementID == (movement.ID{}) {
			continue
		}
		receiver := "its address"
		if at, err := url.Parse(c.URL); err == nil {
			receiver = at.Host
		}
		_, err := s.AddException(ctx, movement.Exception{
			Owner: c.Owner, Subject: c.MovementID.String(), Reason: movement.ReasonGone, FactID: fmt.Sprintf("%s, try %d", c.EventID, c.Tries+1), At: a.At,
			Detail: "the receiver at " + receiver + " has answered 410 to " + c.Event + ", which ends it: its merchant is not told. Ask the merchant, and send it again: gerbang callback resend",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func attemptsOf(all ...movement.CallbackAttempt) dbsqlc.RecordAttemptsParams {
	var p dbsqlc.RecordAttemptsParams
	for _, a := range all {
		c := a.Callback
		p.Merchants, p.Modes, p.Events = append(p.Merchants, c.Owner.MerchantID), append(p.Modes, c.Owner.Mode), append(p.Events, c.EventID)
		p.Tries = append(p.Tries, int32(c.Tries)) //nolint:gosec // a small count
		p.States, p.Dues, p.Ats = append(p.States, string(a.Then)), append(p.Dues, micro(a.DueAt)), append(p.Ats, micro(a.At))
		p.TookMs = append(p.TookMs, int32(a.Took.Milliseconds()))                                   //nolint:gosec // bounded by a timeout
		p.Outcomes, p.Statuses = append(p.Outcomes, a.Outcome), append(p.Statuses, int32(a.Status)) //nolint:gosec // an HTTP status
		p.Faults, p.Answers = append(p.Faults, a.Fault), append(p.Answers, a.Answer)
	}
	return p
}

// PostponeCallback puts a delivery off without counting a try.
func (s *Store) PostponeCallback(ctx context.Context, key movement.CallbackKey, until time.Time) error {
	err := s.queries.PostponeCallback(ctx, dbsqlc.PostponeCallbackParams{
		MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, EventID: key.EventID, DueAt: optional(until),
	})
	if err != nil {
		return fmt.Errorf("store: postpone callback: %w", err)
	}
	return nil
}

// PostponeCallbacks puts off deliveries that are still due, without counting a
// try.
func (s *Store) PostponeCallbacks(ctx context.Context, now time.Time, put []movement.Postponed) error {
	params := dbsqlc.PostponeCallbacksParams{Now: optional(now)}
	for _, p := range put {
		params.Merchants = append(params.Merchants, p.Owner.MerchantID)
		params.Modes = append(params.Modes, p.Owner.Mode)
		params.Events = append(params.Events, p.EventID)
		params.Untils = append(params.Untils, micro(p.Until))
	}
	return wrap("postpone callbacks", s.queries.PostponeCallbacks(ctx, params))
}

// GiveUpCallbacks ends deliveries that are still due, without a try.
func (s *Store) GiveUpCallbacks(ctx context.Context, now time.Time, over []movement.CallbackKey) error {
	params := dbsqlc.GiveUpCallbacksParams{Now: optional(now)}
	for _, key := range over {
		params.Merchants = append(params.Merchants, key.Owner.MerchantID)
		params.Modes = append(params.Modes, key.Owner.Mode)
		params.Events = append(params.Events, key.EventID)
	}
	return wrap("give callbacks up", s.queries.GiveUpCallbacks(ctx, params))
}

// AddCallback stores a callback that belongs to no movement: a test.
func (s *Store) AddCallback(ctx context.Context, now time.Time, owner movement.Owner, t movement.CallbackEvent) error {
	var id uuid.UUID
	return wrap("add callback", only(ctx, s.pool, ofOwner|queueCallback, &write{owner: owner, now: micro(now), callback: &t}, &id))
}

// Callback reads one callback, or ErrNotFound.
func (s *Store) Callback(ctx context.Context, key movement.CallbackKey) (movement.Callback, error) {
	row, err := s.queries.Callback(ctx, dbsqlc.CallbackParams{MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, EventID: key.EventID})
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.Callback{}, ErrNotFound
	}
	if err != nil {
		return movement.Callback{}, fmt.Errorf("store: callback: %w", err)
	}
	return callbackFromRow(row), nil
}

// Attempts reads the tries of a delivery, the first one first.
func (s *Store) Attempts(ctx context.Context, key movement.CallbackKey) ([]movement.CallbackAttempt, error) {
	rows, err := s.queries.CallbackAttempts(ctx, dbsqlc.CallbackAttemptsParams{
		MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, EventID: key.EventID,
	})
	if err != nil {
		return nil, fmt.Errorf("store: attempts: %w", err)
	}
	attempts := make([]movement.CallbackAttempt, len(rows))
	for i, row := range rows {
		attempts[i] = movement.CallbackAttempt{
			At: row.At.UTC(), Took: time.Duration(row.TookMs) * time.Millisecond,
			Outcome: row.Outcome, Status: int(row.Status), Fault: row.Fault, Answer: row.Answer,
		}
	}
	return attempts, nil
}

// Callbacks lists callbacks, the newest first.
func (s *Store) Callbacks(ctx context.Context, r movement.CallbackRange) ([]movement.Callback, error) {
	p := dbsqlc.CallbacksOfParams{
		MerchantID: r.Owner.MerchantID, Mode: r.Owner.Mode, State: string(r.State),
		Since: micro(r.Since), Until: micro(r.Until), After: r.After, Most: int32(r.Most), //nolint:gosec // a page
	}
	if r.State == movement.CallbackWaiting || r.State == movement.CallbackGone || r.State == movement.CallbackDead {
		return callbacksFromRows(s.queries.UndeliveredCallbacks(ctx, dbsqlc.UndeliveredCallbacksParams(p)))
	}
	return callbacksFromRows(s.queries.CallbacksOf(ctx, p))
}

// CallbackFigures tells a merchant's callbacks in numbers, by spans of which each ends where
// the next begins: by their states, and after how many milliseconds receivers had them. It
// reads at most so many.
func (s *Store) CallbackFigures(ctx context.Context, owner movement.Owner, spans []time.Time, most int) (f movement.Figures, err error) {
	p := dbsqlc.CallbackFiguresParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Most: int32(most) + 1} //nolint:gosec // a bound
	p.Spans, p.Since, p.Before = spansOf(spans)
	rows, err := s.queries.CallbackFigures(ctx, p)
	var read int64
	for _, row := range rows {
		if row.State == "" {
			f.Waits = append(f.Waits, movement.Wait{Span: int(row.Span), N: row.N, Median: row.Median, Most: row.Slow})
			continue
		}
		f.Counts = append(f.Counts, movement.Count{Span: int(row.Span), State: movement.State(row.State), N: row.N})
		read += row.N
	}
	if read > int64(most) {
		return movement.Figures{TooMany: true}, nil
	}
	return f.Sorted(), wrap("callbacks' figures", err)
}

// Resend makes a delivery that has ended due again, under the same event id.
// It is false when there is none, or nowhere to send it.
func (s *Store) Resend(ctx context.Context, now time.Time, key movement.CallbackKey) (bool, error) {
	rows, err := s.queries.ResendCallback(ctx, dbsqlc.ResendCallbackParams{
		MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, EventID: key.EventID, Now: optional(now),
	})
	if err != nil {
		return false, fmt.Errorf("store: resend: %w", err)
	}
	return rows == 1, nil
}

// Events reads a merchant's events in the order of the database's clock, after one of
// them (nil UUID: from the beginning) and none that is younger than an age by it: a
// commit that is still open may hold an older one. Where the merchant has no such
// event to begin after, it is ErrNotFound.
func (s *Store) Events(ctx context.Context, owner movement.Owner, after uuid.UUID, age time.Duration, most int) ([]movement.ListedEvent, error) {
	var place time.Time
	if after != uuid.Nil {
		var err error
		place, err = s.queries.EventPlace(ctx, dbsqlc.EventPlaceParams{MerchantID: owner.MerchantID, Mode: owner.Mode, EventID: after})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, ErrNotFound
		}
		if err != nil {
			return nil, wrap("place of an event", err)
		}
	}
	rows, err := s.queries.EventsAfter(ctx, dbsqlc.EventsAfterParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Place: place, After: after,
		AgeUs: age.Microseconds(), Most: int32(most), //nolint:gosec // a page
	})
	listed := make([]movement.ListedEvent, len(rows))
	for i, row := range rows {
		listed[i] = movement.ListedEvent{ID: row.EventID, At: row.CreatedAt.UTC(), Body: json.RawMessage(row.Body)}
	}
	return listed, wrap("events", err)
}

func callbacksFromRows(rows []dbsqlc.Callback, err error) ([]movement.Callback, error) {
	if err != nil {
		return nil, fmt.Errorf("store: callbacks: %w", err)
	}
	callbacks := make([]movement.Callback, len(rows))
	for i, row := range rows {
		callbacks[i] = callbackFromRow(row)
	}
	return callbacks, nil
}

func callbackFromRow(row dbsqlc.Callback) movement.Callback {
	return movement.Callback{
		CallbackKey: movement.CallbackKey{Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, EventID: row.EventID},
		MovementID:  movement.ID(row.MovementID), Sequence: int(row.Sequence), Event: row.Event, Reference: row.Reference,
		URL: row.Url, Body: json.RawMessage(row.Body), State: movement.CallbackState(row.State),
		Attempts: int(row.Attempts), Tries: int(row.Tries), CreatedAt: row.CreatedAt.UTC(), ResentAt: orZero(row.ResentAt), DueAt: orZero(row.DueAt), Trace: row.Trace,
	}
}
