package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"runtime/debug"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	// booksEvery is how long a wallet's reports are left alone after a look, over
	// all replicas.
	booksEvery = 5 * time.Second
	// statementTimeout bounds the reading of one page of them.
	statementTimeout = 5 * time.Second
	// pageOfBooks is how many rows are asked for, and matched, at once.
	pageOfBooks = 1000
	// mostPages bounds what one look reads, and longestLook how long; the next one
	// goes on.
	mostPages   = 100
	longestLook = time.Minute
	// coolDownBeyond is how much longer than rows may be late an amount stays its
	// collection's own: more than movement.Skew, and time for an operator to see it.
	coolDownBeyond = 10 * time.Minute
)

// coolDown is how long after its life the amount of a collection is nobody else's.
func coolDown(op *catalog.Operation) time.Duration {
	return time.Duration(op.Manifest.ReportsLate) + coolDownBeyond
}

// collect finds out from its account's books whether a collection was paid, and
// ends it unpaid once they are complete beyond the end of its life.
func (e *Engine) collect(ctx context.Context, op *catalog.Operation, m movement.Movement, c connection) (movement.Movement, error) {
	if !c.sameAccount(op, m) {
		return m, e.list(ctx, m, reasonUnresolved, m.UpstreamReference(), "the connection is another account at the provider now, whose books don't tell of it")
	}
	seen, err := e.reconcile(ctx, op, c, e.Now().Add(-booksEvery))
	if err = cmp.Or(err, seen.failed[m.ID]); err != nil {
		return m, err
	}
	if m, err = e.reread(ctx, m.ID); err != nil || m.State != movement.Pending || !e.over(m, seen) {
		return m, err
	}
	if m, err = e.unpaid(ctx, op, m, seen.Through); err == nil && seen.waiting {
		err = e.match(ctx, op, &seen) // what waited for its end is late money now
	}
	if err = cmp.Or(err, seen.failed[m.ID]); err != nil {
		return m, err
	}
	return e.reread(ctx, m.ID)
}

// over tells whether a collection's life is, by our clock and by the books.
func (e *Engine) over(m movement.Movement, seen sighting) bool {
	return e.Now().After(m.ExpiresAt) && seen.Through.After(m.ExpiresAt)
}

func (e *Engine) unpaid(ctx context.Context, op *catalog.Operation, m movement.Movement, through time.Time) (movement.Movement, error) {
	then := m
	then.State, then.UpdatedAt = movement.Expired, e.Now()
	_, err := e.move(ctx, store.Move{
		Movement: m, To: movement.Expired, Event: string(movement.Expired),
		Detail: detail("source", sourceBooks, "through", stamp(through)), DueAt: then.NextPoll(e.Now(), op.Pace),
	})
	if err != nil {
		return m, err
	}
	return e.reread(ctx, m.ID)
}

// sourceBooks is the source of a fact that stood in a provider's books.
const sourceBooks = "statement"

// sighting is what a look at an account's books has come to: they are complete up to
// their Through, and of that nothing is left that could pay, but for what failed.
type sighting struct {
	movement.Statement
	waiting bool                  // payments are left that may be late money
	failed  map[movement.ID]error // collections that could not be told that they are paid; the next look tells them
}

// reconcile reads what is new in an account's books, if nobody did since before, and
// settles all that stands in them. Each step is a commit that the next look finds: rows with the cursor, a row
// with its collection, the collection's end, the row's.
func (e *Engine) reconcile(ctx context.Context, op *catalog.Operation, c connection, before time.Time) (sighting, error) {
	seen := sighting{failed: map[movement.ID]error{}}
	account := movement.NewAccountID(op.Provider, c.Mode, c.account)
	book, err := e.bookOf(ctx, account, c)
	if err != nil {
		return seen, err
	}
	seen.Statement = book
	ours, err := e.Books.PollStatement(ctx, account, e.Now(), before)
	switch {
	case err != nil:
		return seen, err
	case !ours:
		return seen, e.match(ctx, op, &seen)
	}
	return toTheEnd(ctx, e.Log, func(ctx context.Context) (sighting, error) {
		if err := e.readBook(ctx, op, c, &seen); err != nil {
			return seen, err
		}
		return seen, e.match(ctx, op, &seen)
	})
}

// toTheEnd runs a look for as long as it takes, also when its caller has no more
// time to wait: it has taken the right to look from all others, and a merchant that
// keeps asking must not keep them from an answer. A panic is raised here.
func toTheEnd[T any](ctx context.Context, log *slog.Logger, look func(context.Context) (T, error)) (seen T, err error) {
	type outcome struct {
		seen   T
		err    error
		thrown any
	}
	ended := make(chan outcome, 1)
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestLook)
	go func() {
		var o outcome
		defer cancel()
		defer func() {
			if o.thrown = recover(); o.thrown != nil && ctx.Err() != nil {
				log.ErrorContext(looking, "a look that nobody waits for panicked", "panic", o.thrown, "stack", string(debug.Stack()))
			}
			ended <- o
		}()
		o.seen, o.err = look(looking)
	}()
	select {
	case <-ctx.Done():
		return seen, ctx.Err()
	case o := <-ended:
		if o.thrown != nil {
			panic(o.thrown)
		}
		return o.seen, o.err
	}
}

func (e *Engine) bookOf(ctx context.Context, account movement.AccountID, c connection) (movement.Statement, error) {
	book, err := e.Books.Statement(ctx, account)
	if err == nil && book.MerchantID != c.MerchantID {
		err = movement.ErrForeignAccount
	}
	book.Name = c.account
	return book, err
}

// readBook enters what an account's reports tell since the last look. That they
// can't be read is no error: what was read before can be matched all the same.
func (e *Engine) readBook(ctx context.Context, op *catalog.Operation, c connection, seen *sighting) (err error) {
	for range mostPages {
		report := e.Statements.Statement(ctx, op.Provider, sdk.Statement{
			RequestID: uuid.NewString(), Connection: c.Connection, Cursor: seen.Cursor, Limit: pageOfBooks,
		}, statementTimeout)
		if report.Detail != "" {
			e.complain(ctx, op, c, report)
		}
		if !report.Known || report.Cursor == seen.Cursor && len(report.Lines) == 0 && !report.Through.After(seen.Through) {
			return nil
		}
		entered, err := persist(ctx, e.patience, func(ctx context.Context) (bool, error) {
			return e.Books.Import(ctx, e.Now(), seen.Statement, entriesOf(report.Lines), report.Cursor, e.past(report.Through))
		})
		if err != nil {
			return err
		}
		if !entered || !report.More || report.Cursor == seen.Cursor {
			break
		}
		seen.Cursor = report.Cursor
		if err := e.match(ctx, op, seen); err != nil { // a page at a time: what is open stays short
			return err
		}
	}
	seen.Statement, err = e.bookOf(ctx, seen.Account, c)
	return err
}

// past is a moment that a provider tells, and now where that is yet to come: of the
// future no books are complete.
func (e *Engine) past(moment time.Time) time.Time {
	if now := e.Now(); moment.After(now) {
		return now
	}
	return moment
}

// complain tells operators what is wrong with an account's reports: each thing once,
// and again where it is still so after they have dealt with it. What passes by
// itself is logged and no more.
func (e *Engine) complain(ctx context.Context, op *catalog.Operation, c connection, report sdk.StatementPage) {
	text := printable(report.Detail)
	log := e.Log.With("provider", op.Provider, "merchant", c.MerchantID, "mode", c.Mode, "detail", text)
	if report.Blame == sdk.BlameNone {
		log.InfoContext(ctx, "reports can't be read to their end now")
		return
	}
	fact := text // which file, and where
	if report.Blame == sdk.BlameUpstream {
		fact = kindOfFault(text) // in other words each time: ports, times
	}
	fresh, err := e.Records.AddException(ctx, movement.Exception{
		Owner: movement.Owner{MerchantID: c.MerchantID, Mode: c.Mode}, Subject: "reports of " + op.Provider, Reason: reasonReports,
		Provider: op.Provider, FactID: fact, Detail: text, At: e.Now(), Lasting: true,
	})
	switch {
	case err != nil:
		log.ErrorContext(ctx, "the operators' list can't be written", "reason", reasonReports, "error", err)
	case fresh:
		log.WarnContext(ctx, "reports can't be read: needs an operator")
	}
}

// entriesOf is what a page says of each payment, in the order in which it first
// says something of it.
func entriesOf(rows []sdk.StatementLine) []movement.ImportedLine {
	entries, at := make([]movement.ImportedLine, 0, len(rows)), make(map[string]int, len(rows))
	for _, row := range rows {
		told := entryOf(row)
		i, known := at[told.Payment]
		if !known {
			at[told.Payment] = len(entries)
			entries = append(entries, told)
			continue
		}
		entries[i] = merged(entries[i], told)
	}
	return entries
}

func entryOf(row sdk.StatementLine) movement.ImportedLine {
	told := movement.ImportedLine{
		ID: nameOfRow(row.ID), Amount: row.Amount, Currency: printable(cmp.Or(row.Currency, "IDR")), At: row.At, Paid: !row.Reversed,
	}
	told.Payment = told.ID
	if row.Reference != "" {
		told.Payment = nameOfRow(row.Reference)
	}
	if utf8.Valid(row.Data) {
		told.Data = printable(string(row.Data))
	}
	if row.At.IsZero() {
		told.At = time.Unix(0, 0) // in nobody's life
	}
	if row.Reversed {
		told.ReversedAt = told.At
	}
	return told
}

// merged adds what a later row says of the same payment.
func merged(first, then movement.ImportedLine) movement.ImportedLine {
	both := first
	both.Differs = first.Differs || then.Differs || first.Amount != then.Amount || first.Currency != then.Currency ||
		first.Paid && then.Paid && !first.At.Equal(then.At)
	if then.Paid && !first.Paid {
		both.ID, both.At, both.Data, both.Paid = then.ID, then.At, then.Data, true
		both.Amount, both.Currency = then.Amount, then.Currency
	}
	if both.ReversedAt.IsZero() {
		both.ReversedAt = then.ReversedAt
	}
	return both
}

// nameOfRow is a provider's name of a row as we keep it: itself, or where it can't
// be kept so, what only the same name becomes.
func nameOfRow(name string) string {
	if name != "" && nameOf(name) == name {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:])
}
