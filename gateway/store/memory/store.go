package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// constraint is a broken constraint, as a database names it: no waiting mends it.
type constraint string

// Error names the constraint.
func (c constraint) Error() string { return "memory: constraint " + string(c) }

// SQLState is that of a violated check.
func (c constraint) SQLState() string { return "23514" }

// Store keeps movements and all that belongs to them. It is safe for concurrent use.
// What it returns is the caller's own.
type Store struct {
	// Draw is a number below n. It says which reserved amounts are tried first.
	Draw func(n int) int

	mu         sync.Mutex
	movements  map[movement.Key]*movement.Movement
	ids        map[movement.ID]*movement.Movement
	history    map[movement.ID][]movement.HistoryEntry
	notes      map[movement.ID][]movement.Note
	exceptions []movement.Exception
	overrides  map[attempt]movement.Override
	claims     map[string]movement.Claim
	callbacks  []movement.Callback
	written    map[uuid.UUID]time.Time // when a callback was committed
	mails      []movement.QueuedMail
	balances   map[movement.Owner]ledger.Balance
	postings   []posting
	usage      map[usageKey]usage
	marks      map[markKey]mark
	amounts    map[amountKey]amount
	statements map[movement.AccountID]*movement.Statement
	lines      map[lineKey]*movement.StatementLine
}

// attempt names an attempt of a movement.
type attempt struct {
	id     movement.ID
	number int
}

// posting is a transaction and whose it is.
type posting struct {
	owner movement.Owner
	ledger.Transaction
}

// usageKey names what counts against a payout limit.
type usageKey struct {
	owner        movement.Owner
	name, period string
}

type usage struct{ used, ceiling int64 }

// amountKey names a payable amount of an account.
type amountKey struct {
	account movement.AccountID
	amount  money.Amount
}

type amount struct {
	movement movement.ID
	takenAt  time.Time
	freeAt   time.Time
}

// New makes an empty store.
func New() *Store {
	return &Store{
		Draw:      rand.IntN,
		movements: map[movement.Key]*movement.Movement{}, ids: map[movement.ID]*movement.Movement{},
		history: map[movement.ID][]movement.HistoryEntry{}, written: map[uuid.UUID]time.Time{}, notes: map[movement.ID][]movement.Note{},
		overrides: map[attempt]movement.Override{}, claims: map[string]movement.Claim{}, balances: map[movement.Owner]ledger.Balance{}, usage: map[usageKey]usage{}, marks: map[markKey]mark{},
		amounts: map[amountKey]amount{}, statements: map[movement.AccountID]*movement.Statement{}, lines: map[lineKey]*movement.StatementLine{},
	}
}

// MovementByKey reads a movement as its merchant names it, or movement.ErrNotFound.
func (s *Store) MovementByKey(_ context.Context, key movement.Key) (movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return found(s.movements[key])
}

// MovementByID reads a movement by its own id, or movement.ErrNotFound.
func (s *Store) MovementByID(_ context.Context, id movement.ID) (movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return found(s.ids[id])
}

func found(row *movement.Movement) (movement.Movement, error) {
	if row == nil {
		return movement.Movement{}, movement.ErrNotFound
	}
	return clone(*row), nil
}

// LastEqual reads the newest movement of a kind with a fingerprint, or
// movement.ErrNotFound.
func (s *Store) LastEqual(_ context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last *movement.Movement
	for key, row := range s.movements {
		equal := key.Owner == owner && key.Kind == kind && row.Fingerprint == fingerprint && fingerprint != ""
		if equal && (last == nil || row.Reference > last.Reference) {
			last = row
		}
	}
	return found(last)
}

// PaidOut reads the transfers of a movement's account that have succeeded by the
// provider's own word and may have made a row like the movement's, the newest first and
// without the movement itself.
func (s *Store) PaidOut(_ context.Context, m movement.Movement, most int) ([]movement.Movement, error) {
	like := m.OthersLike()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []movement.Movement{}
	for _, row := range s.ids {
		_, decided := s.overrides[attempt{row.ID, row.Attempt}]
		account := row.Owner == m.Owner && row.Kind == m.Kind && row.Provider == m.Provider && row.ConnectionAccount == m.ConnectionAccount &&
			(m.ConnectionAccount != "" || row.ConnectionVersion == m.ConnectionVersion)
		moved := row.State == movement.Succeeded && row.ReturnedAt.IsZero() && !decided
		alike := like.Least <= row.Amount && row.Amount <= like.Most && !row.CreatedAt.Before(micro(like.Since))
		if account && moved && alike && row.ID != m.ID {
			all = append(all, unpolled(*row))
		}
	}
	slices.SortFunc(all, func(a, b movement.Movement) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), slices.Compare(b.ID[:], a.ID[:]))
	})
	return all[:min(most, len(all))], nil
}

// Movements lists a merchant's movements, the newest first.
func (s *Store) Movements(_ context.Context, l movement.Listing) ([]movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newer := func(a, b movement.Movement) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), slices.Compare(b.ID[:], a.ID[:]))
	}
	listed := []movement.Movement{}
	l.Since, l.Before = micro(l.Since), micro(l.Before)
	for _, row := range s.movements {
		if l.Has(row) && (l.After.CreatedAt.IsZero() || newer(l.After, *row) < 0) {
			listed = append(listed, unpolled(*row))
		}
	}
	slices.SortFunc(listed, newer)
	return listed[:min(l.Most, len(listed))], nil
}

// Figures tells a listing in numbers, by spans of which each ends where the next begins.
func (s *Store) Figures(_ context.Context, l movement.Listing, spans []time.Time) (movement.Figures, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spans = slices.Clone(spans)
	for i := range spans {
		spans[i] = micro(spans[i])
	}
	l.Since, l.Before = spans[0], spans[len(spans)-1]
	var all []movement.Movement
	for _, row := range s.movements {
		if l.Has(row) {
			all = append(all, *row)
		}
	}
	if len(all) > l.Most {
		return movement.Figures{TooMany: true}, nil
	}
	return l.Tell(spans, all), nil
}

// Due reads polls that are due, of each place in the queue the first ones, the oldest
// first.
func (s *Store) Due(_ context.Context, scan movement.DueScan) ([]movement.DuePoll, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := []movement.DuePoll{}
	for _, from := range scan.From {
		var here []movement.DuePoll
		for id, row := range s.ids {
			if id.Bucket() == from.Bucket && !row.DueAt.IsZero() && from.Behind(row.DueAt, id) && !row.DueAt.After(micro(scan.Now)) {
				here = append(here, movement.DuePoll{ID: id, Account: row.QueueAccount(), DueAt: row.DueAt})
			}
		}
		slices.SortFunc(here, inTurn)
		due = append(due, here[:min(scan.Most, len(here))]...)
	}
	slices.SortFunc(due, inTurn)
	return due, nil
}

// inTurn is the order of a queue.
func inTurn(a, b movement.DuePoll) int {
	return cmp.Or(a.DueAt.Compare(b.DueAt), slices.Compare(a.ID[:], b.ID[:]))
}

// MovementsByID reads some movements, those that there are.
func (s *Store) MovementsByID(_ context.Context, ids []movement.ID) ([]movement.Movement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []movement.Movement{}
	for _, id := range ids {
		if row := s.ids[id]; row != nil {
			all = append(all, clone(*row))
		}
	}
	return all, nil
}

// byKey orders movements as their merchants name them, so that nothing goes by random
// ids.
func byKey(a, b movement.Key) int {
	return cmp.Or(
		cmp.Compare(a.Owner.MerchantID, b.Owner.MerchantID), cmp.Compare(a.Owner.Mode, b.Owner.Mode),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reference, b.Reference),
	)
}

// Balance reads what a merchant has in a mode.
func (s *Store) Balance(_ context.Context, owner movement.Owner) (ledger.Balance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.balances[owner], nil
}

// PostingsOf reads what a movement has done to the ledger.
func (s *Store) PostingsOf(_ context.Context, owner movement.Owner, id movement.ID) ([]ledger.Transaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	postings := []ledger.Transaction{}
	for _, p := range s.postings {
		if p.owner == owner && p.Subject == uuid.UUID(id) {
			postings = append(postings, p.Transaction)
		}
	}
	slices.SortStableFunc(postings, func(a, b ledger.Transaction) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Step, b.Step))
	})
	return postings, nil
}

// Credit is an operator's credit of a merchant's balance.
func (s *Store) Credit(_ context.Context, owner movement.Owner, amount money.Amount) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := ledger.Adjust(amount)
	tx.Subject = uuid.New()
	return s.post(owner, &tx)
}

// UsedOf is how much of one thing a merchant has used in a period.
func (s *Store) UsedOf(_ context.Context, owner movement.Owner, name, period string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage[usageKey{owner, name, period}].used, nil
}

// UsedIn is how much of each thing a merchant has used in a period.
func (s *Store) UsedIn(owner movement.Owner, period string) map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[string]int64{}
	for key, u := range s.usage {
		if key.owner == owner && key.period == period {
			used[key.name] = u.used
		}
	}
	return used
}

// Postings reads all that was posted for a merchant, in order.
func (s *Store) Postings(owner movement.Owner) []ledger.Transaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	var postings []ledger.Transaction
	for _, p := range s.postings {
		if p.owner == owner {
			postings = append(postings, p.Transaction)
		}
	}
	return postings
}

// History reads what happened to a movement, in order.
func (s *Store) History(_ context.Context, id movement.ID) ([]movement.HistoryEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]movement.HistoryEntry{}, s.history[id]...), nil
}

// CallbacksOfMovement reads the callbacks that the entries of a movement's history
// have made, in their order.
func (s *Store) CallbacksOfMovement(_ context.Context, owner movement.Owner, id movement.ID, history []movement.HistoryEntry) ([]movement.Callback, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := []movement.Callback{}
	for _, c := range s.callbacks {
		at := func(e movement.HistoryEntry) bool { return e.At.Equal(c.CreatedAt) }
		if c.Owner == owner && c.MovementID == id && slices.ContainsFunc(history, at) {
			made = append(made, c)
		}
	}
	slices.SortStableFunc(made, func(a, b movement.Callback) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return made, nil
}

// Events reads a merchant's events in the order of their commits, after one of them
// and none that is younger than an age, or movement.ErrNotFound where there is none to
// begin after.
func (s *Store) Events(_ context.Context, owner movement.Owner, after uuid.UUID, age time.Duration, most int) ([]movement.ListedEvent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := slices.DeleteFunc(slices.Clone(s.callbacks), func(c movement.Callback) bool { return c.Owner != owner })
	from := slices.IndexFunc(of, func(c movement.Callback) bool { return c.EventID == after })
	if from < 0 && after != uuid.Nil {
		return nil, movement.ErrNotFound
	}
	events := []movement.ListedEvent{}
	for _, c := range of[from+1:] {
		if time.Since(s.written[c.EventID]) >= age && len(events) < most {
			events = append(events, movement.ListedEvent{ID: c.EventID, At: c.CreatedAt, Body: slices.Clone(c.Body)})
		}
	}
	return events, nil
}

// Callback reads one callback, or movement.ErrNotFound.
func (s *Store) Callback(_ context.Context, key movement.CallbackKey) (movement.Callback, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.callbacks, func(c movement.Callback) bool { return c.CallbackKey == key })
	if at < 0 {
		return movement.Callback{}, movement.ErrNotFound
	}
	return s.callbacks[at], nil
}

// DueMails reads the mails that wait to be sent, the oldest first.
func (s *Store) DueMails(_ context.Context, buckets []int, since, now time.Time, most int) ([]movement.QueuedMail, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := []movement.QueuedMail{}
	for _, m := range s.mails {
		if slices.Contains(buckets, int(m.Bucket())) && !m.CreatedAt.Before(micro(since)) && !m.CreatedAt.After(micro(now)) {
			due = append(due, m)
		}
	}
	slices.SortStableFunc(due, func(a, b movement.QueuedMail) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return due[:min(most, len(due))], nil
}

// clone is a movement that shares nothing.
func clone(m movement.Movement) movement.Movement {
	for _, document := range []*json.RawMessage{&m.Quote, &m.Request, &m.Result, &m.Answer} {
		*document = slices.Clone(*document)
	}
	m.Usage = slices.Clone(m.Usage)
	m.NameMatch, m.Remaining = copied(m.NameMatch), copied(m.Remaining)
	if m.Refusal = copied(m.Refusal); m.Refusal != nil {
		m.Refusal.Fields = slices.Clone(m.Refusal.Fields)
	}
	return m
}

// unpolled is a movement as lists show it: without what is known of asking about it.
func unpolled(m movement.Movement) movement.Movement {
	m = clone(m)
	m.Polled = movement.Polled{}
	return m
}

func copied[T any](value *T) *T {
	if value == nil {
		return nil
	}
	return new(*value)
}

// micro cuts a time to what a database keeps.
func micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// Spoil changes a movement as no change does, for tests of what finds wrong ones.
func (s *Store) Spoil(id movement.ID, change func(*movement.Movement)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if row := s.ids[id]; row != nil {
		change(row)
	}
}

// Post posts a transaction, for tests of what finds wrong ones.
func (s *Store) Post(owner movement.Owner, tx ledger.Transaction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.post(owner, &tx)
}
