package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Told is the callback that a change of a movement makes: it is written in the
// commit of the change, or not at all. Without a URL it is only read by its
// merchant, as an event.
type Told struct {
	ID    uuid.UUID // of the event, the same on every delivery
	Event string
	URL   string
	Body  json.RawMessage
}

// CallbackState is where a callback stands.
type CallbackState string

// The states of a callback. Only a waiting one is due.
const (
	CallbackNone      CallbackState = "none" // there is nowhere to send it
	CallbackWaiting   CallbackState = "waiting"
	CallbackDelivered CallbackState = "delivered"
	CallbackGone      CallbackState = "gone" // its receiver wants no more of it
	CallbackDead      CallbackState = "dead" // given up
)

// CallbackKey names a callback.
type CallbackKey struct {
	Owner   movement.Owner
	EventID uuid.UUID
}

// Callback is one event on its way to a merchant.
type Callback struct {
	CallbackKey
	MovementID movement.ID // zero for a test
	Sequence   int         // the event's place in its movement's story
	Event      string
	Reference  string
	URL        string
	Body       json.RawMessage
	State      CallbackState
	Attempts   int // of this series; a delivery that is sent again begins a new one
	Tries      int // of all series
	CreatedAt  time.Time
	DueAt      time.Time
}

func (t *Told) state() CallbackState {
	if t.URL == "" {
		return CallbackNone
	}
	return CallbackWaiting
}

func (t *Told) dueAt(now time.Time) *time.Time {
	if t.URL == "" {
		return nil
	}
	return optional(now)
}

func (t *Told) bucket() int32 { return int32(movement.ID(t.ID).Bucket()) } //nolint:gosec // below movement.Buckets

// orNobody is what a change without a callback writes: nothing.
func orNobody(t *Told) *Told {
	if t == nil {
		return &Told{}
	}
	return t
}

// Due says which callbacks a courier wants to see.
type Due struct {
	Buckets  []int
	Held     []string    // keys of merchants and receivers that are left out
	UnderWay []uuid.UUID // events that are left out
	Since    time.Time
	Now      time.Time
	Most     int
}

// MerchantKey names a callback's merchant and mode, as Due does.
func (c Callback) MerchantKey() string { return c.Owner.MerchantID + "/" + c.Owner.Mode }

// ReceiverKey names a callback's receiver at its merchant, as Due does: the
// host and port as the URL spells them.
func (c Callback) ReceiverKey() string {
	var host string
	if parts := strings.SplitN(c.URL, "/", 4); len(parts) > 2 {
		host = parts[2]
	}
	return c.MerchantKey() + "/" + host
}

// DueCallbacks reads the callbacks that are due, the oldest first.
func (s *Store) DueCallbacks(ctx context.Context, due Due) ([]Callback, error) {
	held, underWay := due.Held, due.UnderWay
	if held == nil {
		held = []string{} // NULL would leave out everybody
	}
	if underWay == nil {
		underWay = []uuid.UUID{}
	}
	rows, err := s.queries.DueCallbacks(ctx, dbsqlc.DueCallbacksParams{
		Buckets: narrow(due.Buckets), Held: held, UnderWay: underWay,
		Since: optional(due.Since.Add(time.Microsecond)), Now: optional(due.Now), Most: int32(due.Most), //nolint:gosec // a page
	})
	return callbacksFromRows(rows, err)
}

// Attempt is one try of a delivery, and what follows from it.
type Attempt struct {
	Callback Callback // as it was read: its count of tries is the guard
	At       time.Time
	Took     time.Duration
	Outcome  string
	Status   int // of HTTP, zero for no answer
	Fault    string
	Answer   string // the beginning of the receiver's answer
	Then     CallbackState
	DueAt    time.Time // of the next try, zero for none
}

// RecordAttempt writes a try. It is false when another replica has written one
// since the callback was read; the receiver then got the event twice.
func (s *Store) RecordAttempt(ctx context.Context, a Attempt) (bool, error) {
	c := a.Callback
	_, err := s.writes.RecordAttempt(ctx, dbsqlc.RecordAttemptParams{
		MerchantID: c.Owner.MerchantID, Mode: c.Owner.Mode, EventID: c.EventID, Tries: int32(c.Tries), //nolint:gosec // a small count
		State: string(a.Then), DueAt: optional(a.DueAt), At: micro(a.At), TookMs: int32(a.Took.Milliseconds()), //nolint:gosec // bounded by a timeout
		Outcome: a.Outcome, Status: int32(a.Status), Fault: a.Fault, Answer: a.Answer, //nolint:gosec // an HTTP status
	})
	return recorded("callback attempt", err)
}

// PostponeCallback puts a delivery off without counting a try.
func (s *Store) PostponeCallback(ctx context.Context, key CallbackKey, until time.Time) error {
	err := s.queries.PostponeCallback(ctx, dbsqlc.PostponeCallbackParams{
		MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, EventID: key.EventID, DueAt: optional(until),
	})
	if err != nil {
		return fmt.Errorf("store: postpone callback: %w", err)
	}
	return nil
}

// Postponed is a delivery that is put off.
type Postponed struct {
	CallbackKey
	Until time.Time
}

// PostponeCallbacks puts off deliveries that are still due, without counting a
// try.
func (s *Store) PostponeCallbacks(ctx context.Context, now time.Time, put []Postponed) error {
	params := dbsqlc.PostponeCallbacksParams{Now: optional(now)}
	for _, p := range put {
		params.Merchants = append(params.Merchants, p.Owner.MerchantID)
		params.Modes = append(params.Modes, p.Owner.Mode)
		params.Events = append(params.Events, p.EventID)
		params.Untils = append(params.Untils, micro(p.Until))
	}
	return wrap("postpone callbacks", s.queries.PostponeCallbacks(ctx, params))
}

// AddCallback stores a callback that belongs to no movement: a test.
func (s *Store) AddCallback(ctx context.Context, now time.Time, owner movement.Owner, t Told) error {
	err := s.queries.InsertCallback(ctx, dbsqlc.InsertCallbackParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, EventID: t.ID, Sequence: 1, Event: t.Event, Url: t.URL,
		Body: string(t.Body), State: string(t.state()), CreatedAt: micro(now), DueBucket: t.bucket(), DueAt: t.dueAt(now),
	})
	if err != nil {
		return fmt.Errorf("store: add callback: %w", err)
	}
	return nil
}

// Callback reads one callback, or ErrNotFound.
func (s *Store) Callback(ctx context.Context, key CallbackKey) (Callback, error) {
	row, err := s.queries.Callback(ctx, dbsqlc.CallbackParams{MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, EventID: key.EventID})
	if errors.Is(err, pgx.ErrNoRows) {
		return Callback{}, ErrNotFound
	}
	if err != nil {
		return Callback{}, fmt.Errorf("store: callback: %w", err)
	}
	return callbackFromRow(row), nil
}

// Attempts reads the tries of a delivery, the first one first.
func (s *Store) Attempts(ctx context.Context, key CallbackKey) ([]Attempt, error) {
	rows, err := s.queries.CallbackAttempts(ctx, dbsqlc.CallbackAttemptsParams{
		MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, EventID: key.EventID,
	})
	if err != nil {
		return nil, fmt.Errorf("store: attempts: %w", err)
	}
	attempts := make([]Attempt, len(rows))
	for i, row := range rows {
		attempts[i] = Attempt{
			At: row.At.UTC(), Took: time.Duration(row.TookMs) * time.Millisecond,
			Outcome: row.Outcome, Status: int(row.Status), Fault: row.Fault, Answer: row.Answer,
		}
	}
	return attempts, nil
}

// CallbackRange names callbacks of a merchant: those of a state ("" for any)
// that were made in a span of time.
type CallbackRange struct {
	Owner        movement.Owner
	State        CallbackState
	Since, Until time.Time
	Most         int
}

// Callbacks lists callbacks, the newest first.
func (s *Store) Callbacks(ctx context.Context, r CallbackRange) ([]Callback, error) {
	rows, err := s.queries.CallbacksOf(ctx, dbsqlc.CallbacksOfParams{
		MerchantID: r.Owner.MerchantID, Mode: r.Owner.Mode, State: string(r.State),
		Since: micro(r.Since), Until: micro(r.Until), Most: int32(r.Most), //nolint:gosec // a page
	})
	return callbacksFromRows(rows, err)
}

// Resend makes a delivery that has ended due again, under the same event id.
// It is false when there is none, or nowhere to send it.
func (s *Store) Resend(ctx context.Context, now time.Time, key CallbackKey) (bool, error) {
	rows, err := s.queries.ResendCallback(ctx, dbsqlc.ResendCallbackParams{
		MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, EventID: key.EventID, Now: optional(now),
	})
	if err != nil {
		return false, fmt.Errorf("store: resend: %w", err)
	}
	return rows == 1, nil
}

// Notice is an event as its merchant reads it.
type Notice struct {
	ID   uuid.UUID
	At   time.Time
	Body json.RawMessage
}

// Events reads a merchant's events, the oldest first, after one of them (nil
// UUID: from the beginning) and none that is younger than before: a commit
// that is still under way may hold an older one. Where the merchant has no such
// event to begin after, it is ErrNotFound.
func (s *Store) Events(ctx context.Context, owner movement.Owner, after uuid.UUID, before time.Time, most int) ([]Notice, error) {
	var last Callback
	if after != uuid.Nil {
		var err error
		if last, err = s.Callback(ctx, CallbackKey{Owner: owner, EventID: after}); err != nil {
			return nil, err
		}
	}
	rows, err := s.queries.EventsAfter(ctx, dbsqlc.EventsAfterParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, AfterAt: last.CreatedAt, After: after,
		Before: micro(before), Most: int32(most), //nolint:gosec // a page
	})
	notices := make([]Notice, len(rows))
	for i, row := range rows {
		notices[i] = Notice{ID: row.EventID, At: row.CreatedAt.UTC(), Body: json.RawMessage(row.Body)}
	}
	return notices, wrap("events", err)
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("store: %s: %w", what, err)
	}
	return nil
}

func callbacksFromRows(rows []dbsqlc.Callback, err error) ([]Callback, error) {
	if err != nil {
		return nil, fmt.Errorf("store: callbacks: %w", err)
	}
	callbacks := make([]Callback, len(rows))
	for i, row := range rows {
		callbacks[i] = callbackFromRow(row)
	}
	return callbacks, nil
}

func callbackFromRow(row dbsqlc.Callback) Callback {
	return Callback{
		CallbackKey: CallbackKey{Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, EventID: row.EventID},
		MovementID:  movement.ID(row.MovementID), Sequence: int(row.Sequence), Event: row.Event, Reference: row.Reference,
		URL: row.Url, Body: json.RawMessage(row.Body), State: CallbackState(row.State),
		Attempts: int(row.Attempts), Tries: int(row.Tries), CreatedAt: row.CreatedAt.UTC(), DueAt: orZero(row.DueAt),
	}
}
