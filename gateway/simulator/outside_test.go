package simulator_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/storetest"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// outside asks a store in goroutines that began outside of a history, whose time stands
// still until the store has answered. It has every method of a store for that.
type outside struct {
	inner storetest.Store
	lanes chan lane
}

// lane is one such goroutine.
type lane struct {
	work chan func()
	done chan struct{}
}

// lanesOfHistory is how many goroutines of a history may ask at once; more of them wait.
const lanesOfHistory = 4

func newOutside(s *store.Store) *outside {
	o := &outside{credited{s}, make(chan lane, lanesOfHistory)}
	for range lanesOfHistory {
		l := lane{make(chan func()), make(chan struct{})}
		go func() {
			for do := range l.work {
				do()
				l.done <- struct{}{}
			}
		}()
		o.lanes <- l
	}
	return o
}

// end ends the goroutines.
func (o *outside) end() {
	for range lanesOfHistory {
		close((<-o.lanes).work)
	}
}

func ask[T any](o *outside, what func(ctx context.Context) (T, error)) (result T, err error) {
	l := <-o.lanes
	l.work <- func() { result, err = what(context.Background()) } // a deadline would be of the history's time
	<-l.done
	o.lanes <- l
	return result, err
}

type both[A, B any] struct {
	a A
	b B
}

func (o *outside) Credit(_ context.Context, owner movement.Owner, amount money.Amount) error {
	_, err := ask(o, func(ctx context.Context) (struct{}, error) { return struct{}{}, o.inner.Credit(ctx, owner, amount) })
	return err
}

func (o *outside) Reserve(_ context.Context, draft movement.Movement) (movement.Movement, bool, error) {
	got, err := ask(o, func(ctx context.Context) (both[movement.Movement, bool], error) {
		a, b, err := o.inner.Reserve(ctx, draft)
		return both[movement.Movement, bool]{a, b}, err
	})
	return got.a, got.b, err
}

func (o *outside) Acknowledge(_ context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	return ask(o, func(ctx context.Context) (movement.Movement, error) { return o.inner.Acknowledge(ctx, m, answer) })
}

func (o *outside) Apply(_ context.Context, c movement.Change) (bool, error) {
	return ask(o, func(ctx context.Context) (bool, error) { return o.inner.Apply(ctx, c) })
}

func (o *outside) Poll(_ context.Context, m movement.Movement, now, before, next time.Time) (bool, error) {
	return ask(o, func(ctx context.Context) (bool, error) { return o.inner.Poll(ctx, m, now, before, next) })
}

func (o *outside) Figures(_ context.Context, l movement.Listing, spans []time.Time) (movement.Figures, error) {
	return ask(o, func(ctx context.Context) (movement.Figures, error) { return o.inner.Figures(ctx, l, spans) })
}

func (o *outside) Miss(_ context.Context, m movement.Movement, next time.Time) (int, error) {
	return ask(o, func(ctx context.Context) (int, error) { return o.inner.Miss(ctx, m, next) })
}

func (o *outside) ReleaseAmount(_ context.Context, m movement.Movement) error {
	_, err := ask(o, func(ctx context.Context) (struct{}, error) { return struct{}{}, o.inner.ReleaseAmount(ctx, m) })
	return err
}

func (o *outside) CountException(_ context.Context, x movement.Exception) (int64, error) {
	return ask(o, func(ctx context.Context) (int64, error) { return o.inner.CountException(ctx, x) })
}

func (o *outside) AddException(_ context.Context, x movement.Exception) (bool, error) {
	return ask(o, func(ctx context.Context) (bool, error) { return o.inner.AddException(ctx, x) })
}

func (o *outside) ResolveException(_ context.Context, now time.Time, x movement.Exception, operator, resolution string) error {
	_, err := ask(o, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.inner.ResolveException(ctx, now, x, operator, resolution)
	})
	return err
}

func (o *outside) ResolveExceptions(_ context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error {
	_, err := ask(o, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.inner.ResolveExceptions(ctx, now, owner, subject, reasons, operator, resolution)
	})
	return err
}

func (o *outside) Note(_ context.Context, now time.Time, m movement.Movement, event, detail string) error {
	_, err := ask(o, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.inner.Note(ctx, now, m, event, detail)
	})
	return err
}

func (o *outside) Override(_ context.Context, m movement.Movement, said movement.Override, review movement.Exception) (movement.Override, error) {
	return ask(o, func(ctx context.Context) (movement.Override, error) { return o.inner.Override(ctx, m, said, review) })
}

func (o *outside) TakeUsage(_ context.Context, owner movement.Owner, name, period, replica string, batch, want, limit int64) (taken, used int64, err error) {
	got, err := ask(o, func(ctx context.Context) (both[int64, int64], error) {
		a, b, err := o.inner.TakeUsage(ctx, owner, name, period, replica, batch, want, limit)
		return both[int64, int64]{a, b}, err
	})
	return got.a, got.b, err
}

func (o *outside) GiveUsage(_ context.Context, owner movement.Owner, name, period, replica string, batch, back int64) (int64, error) {
	return ask(o, func(ctx context.Context) (int64, error) {
		return o.inner.GiveUsage(ctx, owner, name, period, replica, batch, back)
	})
}

func (o *outside) Statement(_ context.Context, account movement.AccountID) (movement.Statement, error) {
	return ask(o, func(ctx context.Context) (movement.Statement, error) { return o.inner.Statement(ctx, account) })
}

func (o *outside) PollStatement(_ context.Context, account movement.AccountID, now, before, until time.Time) (bool, error) {
	return ask(o, func(ctx context.Context) (bool, error) {
		return o.inner.PollStatement(ctx, account, now, before, until)
	})
}

func (o *outside) RestStatement(_ context.Context, account movement.AccountID, until, next time.Time) error {
	_, err := ask(o, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.inner.RestStatement(ctx, account, until, next)
	})
	return err
}

func (o *outside) DueStatements(_ context.Context, buckets []int, since, now time.Time, most int) ([]movement.Statement, error) {
	return ask(o, func(ctx context.Context) ([]movement.Statement, error) {
		return o.inner.DueStatements(ctx, buckets, since, now, most)
	})
}

func (o *outside) OpenSales(_ context.Context, s movement.Statement, behind movement.Candidate, most int) ([]movement.Candidate, error) {
	return ask(o, func(ctx context.Context) ([]movement.Candidate, error) {
		return o.inner.OpenSales(ctx, s, behind, most)
	})
}

func (o *outside) Import(_ context.Context, now time.Time, s movement.Statement, lines []movement.ImportedLine, next string, through time.Time) (bool, error) {
	return ask(o, func(ctx context.Context) (bool, error) { return o.inner.Import(ctx, now, s, lines, next, through) })
}

func (o *outside) OpenLines(_ context.Context, account movement.AccountID, after string, most int) ([]movement.StatementLine, error) {
	return ask(o, func(ctx context.Context) ([]movement.StatementLine, error) {
		return o.inner.OpenLines(ctx, account, after, most)
	})
}

func (o *outside) Candidates(_ context.Context, s movement.Statement, amounts []money.Amount, earliest, latest time.Time) ([]movement.Candidate, error) {
	return ask(o, func(ctx context.Context) ([]movement.Candidate, error) {
		return o.inner.Candidates(ctx, s, amounts, earliest, latest)
	})
}

func (o *outside) Match(_ context.Context, now time.Time, s movement.Statement, matches []movement.Match) ([]string, error) {
	return ask(o, func(ctx context.Context) ([]string, error) { return o.inner.Match(ctx, now, s, matches) })
}

func (o *outside) LinesNamed(_ context.Context, account movement.AccountID, payments []string) ([]movement.StatementLine, error) {
	return ask(o, func(ctx context.Context) ([]movement.StatementLine, error) {
		return o.inner.LinesNamed(ctx, account, payments)
	})
}

func (o *outside) ListLines(_ context.Context, r movement.LineRange) ([]movement.ListedLine, error) {
	return ask(o, func(ctx context.Context) ([]movement.ListedLine, error) {
		return o.inner.ListLines(ctx, r)
	})
}

func (o *outside) CloseLines(_ context.Context, account movement.AccountID, done []movement.StatementLine, freeAt time.Time) error {
	_, err := ask(o, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.inner.CloseLines(ctx, account, done, freeAt)
	})
	return err
}

func (o *outside) Line(_ context.Context, account movement.AccountID, payment string) (movement.StatementLine, error) {
	return ask(o, func(ctx context.Context) (movement.StatementLine, error) { return o.inner.Line(ctx, account, payment) })
}

func (o *outside) Claim(_ context.Context, c movement.Claim) (movement.Claim, error) {
	return ask(o, func(ctx context.Context) (movement.Claim, error) { return o.inner.Claim(ctx, c) })
}

func (o *outside) Assign(_ context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (bool, error) {
	return ask(o, func(ctx context.Context) (bool, error) { return o.inner.Assign(ctx, now, seen, to, operator, reason) })
}

func (o *outside) MovementByKey(_ context.Context, key movement.Key) (movement.Movement, error) {
	return ask(o, func(ctx context.Context) (movement.Movement, error) { return o.inner.MovementByKey(ctx, key) })
}

func (o *outside) MovementByID(_ context.Context, id movement.ID) (movement.Movement, error) {
	return ask(o, func(ctx context.Context) (movement.Movement, error) { return o.inner.MovementByID(ctx, id) })
}

func (o *outside) LastEqual(_ context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error) {
	return ask(o, func(ctx context.Context) (movement.Movement, error) {
		return o.inner.LastEqual(ctx, owner, kind, fingerprint)
	})
}

func (o *outside) Due(_ context.Context, scan movement.DueScan) ([]movement.DuePoll, error) {
	return ask(o, func(ctx context.Context) ([]movement.DuePoll, error) { return o.inner.Due(ctx, scan) })
}

func (o *outside) MovementsByID(_ context.Context, ids []movement.ID) ([]movement.Movement, error) {
	return ask(o, func(ctx context.Context) ([]movement.Movement, error) { return o.inner.MovementsByID(ctx, ids) })
}

func (o *outside) Balance(_ context.Context, owner movement.Owner) (ledger.Balance, error) {
	return ask(o, func(ctx context.Context) (ledger.Balance, error) { return o.inner.Balance(ctx, owner) })
}

func (o *outside) PostingsOf(_ context.Context, owner movement.Owner, id movement.ID) ([]ledger.Transaction, error) {
	return ask(o, func(ctx context.Context) ([]ledger.Transaction, error) { return o.inner.PostingsOf(ctx, owner, id) })
}

func (o *outside) UsedOf(_ context.Context, owner movement.Owner, name, period string) (int64, error) {
	return ask(o, func(ctx context.Context) (int64, error) { return o.inner.UsedOf(ctx, owner, name, period) })
}

func (o *outside) History(_ context.Context, id movement.ID) ([]movement.HistoryEntry, error) {
	return ask(o, func(ctx context.Context) ([]movement.HistoryEntry, error) { return o.inner.History(ctx, id) })
}

func (o *outside) NotesOf(_ context.Context, id movement.ID) ([]movement.Note, error) {
	return ask(o, func(ctx context.Context) ([]movement.Note, error) { return o.inner.NotesOf(ctx, id) })
}

func (o *outside) CallbacksOfMovement(_ context.Context, owner movement.Owner, id movement.ID, history []movement.HistoryEntry) ([]movement.Callback, error) {
	return ask(o, func(ctx context.Context) ([]movement.Callback, error) {
		return o.inner.CallbacksOfMovement(ctx, owner, id, history)
	})
}

func (o *outside) Events(_ context.Context, owner movement.Owner, after uuid.UUID, age time.Duration, most int) ([]movement.ListedEvent, error) {
	return ask(o, func(ctx context.Context) ([]movement.ListedEvent, error) {
		return o.inner.Events(ctx, owner, after, age, most)
	})
}

func (o *outside) Movements(_ context.Context, l movement.Listing) ([]movement.Movement, error) {
	return ask(o, func(ctx context.Context) ([]movement.Movement, error) { return o.inner.Movements(ctx, l) })
}

func (o *outside) DueMails(_ context.Context, buckets []int, since, now time.Time, most int) ([]movement.QueuedMail, error) {
	return ask(o, func(ctx context.Context) ([]movement.QueuedMail, error) {
		return o.inner.DueMails(ctx, buckets, since, now, most)
	})
}

func (o *outside) OverrideOf(_ context.Context, id movement.ID, attempt int) (movement.Override, error) {
	return ask(o, func(ctx context.Context) (movement.Override, error) { return o.inner.OverrideOf(ctx, id, attempt) })
}

func (o *outside) ExceptionsOf(_ context.Context, owner movement.Owner, subject string) ([]movement.Exception, error) {
	return ask(o, func(ctx context.Context) ([]movement.Exception, error) {
		return o.inner.ExceptionsOf(ctx, owner, subject)
	})
}

func (o *outside) PaidOut(_ context.Context, m movement.Movement, most int) ([]movement.Movement, error) {
	return ask(o, func(ctx context.Context) ([]movement.Movement, error) {
		return o.inner.PaidOut(ctx, m, most)
	})
}
