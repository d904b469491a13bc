package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

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
	// mostPages bounds what one look reads; the next one goes on.
	mostPages = 100
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
	book, waiting, err := e.reconcile(ctx, op, c)
	if err != nil {
		return m, err
	}
	if m, err = e.reread(ctx, m.ID); err != nil || m.State != movement.Pending || !book.Through.After(m.ExpiresAt) {
		return m, err
	}
	if m, err = e.unpaid(ctx, op, m, book.Through); err == nil && waiting {
		_, err = e.match(ctx, op, book) // what waited for its end is late money now
	}
	if err != nil {
		return m, err
	}
	return e.reread(ctx, m.ID)
}

func (e *Engine) unpaid(ctx context.Context, op *catalog.Operation, m movement.Movement, through time.Time) (movement.Movement, error) {
	then := m
	then.State, then.UpdatedAt = movement.Expired, e.Now()
	_, err := e.move(ctx, store.Move{
		Movement: m, To: movement.Expired, Event: string(movement.Expired),
		Detail: detail("source", sourceBooks, "through", stamp(through)), DueAt: then.NextLook(e.Now(), op.Pace),
	})
	if err != nil {
		return m, err
	}
	return e.reread(ctx, m.ID)
}

// sourceBooks is the source of a fact that stood in a provider's books.
const sourceBooks = "statement"

// reconcile reads what is new in an account's books and settles all that stands in
// them. Each step is a commit that the next look finds: rows with the cursor, a row
// with its collection, the collection's end, the row's.
//
// The book that is returned is complete up to its Through, and nothing is left of
// that which could pay; waiting are rows that may be late money.
func (e *Engine) reconcile(ctx context.Context, op *catalog.Operation, c connection) (book store.Book, waiting bool, err error) {
	account := movement.NewAccountID(op.Provider, c.Mode, c.account)
	if book, err = e.bookOf(ctx, account, c); err != nil {
		return book, false, err
	}
	now := e.Now()
	ours, err := e.Books.AskBook(ctx, account, now, now.Add(-booksEvery))
	if err == nil && ours {
		book, err = e.readBook(ctx, op, c, book)
	}
	if err != nil {
		return book, false, err
	}
	waiting, err = e.match(ctx, op, book)
	return book, waiting, err
}

func (e *Engine) bookOf(ctx context.Context, account movement.AccountID, c connection) (store.Book, error) {
	book, err := e.Books.Book(ctx, account)
	if err == nil && book.MerchantID != c.MerchantID {
		err = store.ErrForeignAccount
	}
	book.Name = c.account
	return book, err
}

// readBook enters what an account's reports tell since the last look. That they
// can't be read is no error: what was read before can be matched all the same.
func (e *Engine) readBook(ctx context.Context, op *catalog.Operation, c connection, book store.Book) (store.Book, error) {
	for range mostPages {
		report := e.Statements.Statement(ctx, op.Provider, sdk.Statement{
			RequestID: uuid.NewString(), Connection: c.Connection, Cursor: book.Cursor, Limit: pageOfBooks,
		}, statementTimeout)
		if report.Detail != "" {
			e.complain(ctx, op, c, report)
		}
		if !report.Known || report.Cursor == book.Cursor && len(report.Entries) == 0 && !report.Through.After(book.Through) {
			return book, nil
		}
		entered, err := persist(ctx, e.patience, func(ctx context.Context) (bool, error) {
			return e.Books.Enter(ctx, e.Now(), book, entriesOf(report.Entries), report.Cursor, report.Through)
		})
		if err != nil {
			return book, err
		}
		if !entered || !report.More || report.Cursor == book.Cursor {
			return e.bookOf(ctx, book.Account, c)
		}
		book.Cursor = report.Cursor
		if _, err := e.match(ctx, op, book); err != nil { // a page at a time: what is open stays short
			return book, err
		}
	}
	return e.bookOf(ctx, book.Account, c)
}

// complain tells operators what is wrong with an account's reports, once for each
// thing.
func (e *Engine) complain(ctx context.Context, op *catalog.Operation, c connection, report sdk.Report) {
	text := printable(report.Detail)
	e.Log.WarnContext(ctx, "reports can't be read", "provider", op.Provider, "merchant", c.MerchantID, "mode", c.Mode, "detail", text)
	if report.Blame == sdk.BlameNone && !report.Known { // our own side; it passes
		return
	}
	_, err := e.Records.AddAttention(ctx, store.Attention{
		Owner: movement.Owner{MerchantID: c.MerchantID, Mode: c.Mode}, Subject: "reports of " + op.Provider, Reason: reasonReports,
		Provider: op.Provider, FactID: text, Detail: text, At: e.Now(),
	})
	if err != nil {
		e.Log.ErrorContext(ctx, "the operators' list can't be written", "reason", reasonReports, "error", err)
	}
}

// entriesOf is what a page says of each payment, in the order in which it first
// says something of it.
func entriesOf(rows []sdk.Entry) []store.BookEntry {
	entries, at := make([]store.BookEntry, 0, len(rows)), make(map[string]int, len(rows))
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

func entryOf(row sdk.Entry) store.BookEntry {
	told := store.BookEntry{
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
func merged(first, then store.BookEntry) store.BookEntry {
	both := first
	both.Differs = first.Differs || then.Differs || first.Amount != then.Amount || first.Currency != then.Currency ||
		first.Paid && then.Paid && !first.At.Equal(then.At)
	if then.Paid && !first.Paid {
		both.ID, both.At, both.Data, both.Paid = then.ID, then.At, then.Data, true
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

// match finds for each payment of an account the collection that it is for, and
// settles it. It tells whether some are left that may be late money.
func (e *Engine) match(ctx context.Context, op *catalog.Operation, book store.Book) (waiting bool, err error) {
	for after := ""; ; {
		page, err := e.Settlements.OpenSettlements(ctx, book.Account, after, pageOfBooks)
		if err != nil || len(page) == 0 {
			return waiting, err
		}
		last := page[len(page)-1].Payment
		left, err := e.judge(ctx, op, book, page)
		if err != nil {
			return waiting, err
		}
		waiting = waiting || left
		if err := e.settleMatched(ctx, book, after, last); err != nil {
			return waiting, err
		}
		if after = last; len(page) < pageOfBooks {
			return waiting, nil
		}
	}
}

// judge finds out which collections the new payments of a page are for.
func (e *Engine) judge(ctx context.Context, op *catalog.Operation, book store.Book, page []store.Settlement) (waiting bool, err error) {
	fresh := slices.DeleteFunc(slices.Clone(page), func(s store.Settlement) bool { return s.State != store.SettlementNew })
	if len(fresh) == 0 {
		return false, nil
	}
	slices.SortStableFunc(fresh, func(a, b store.Settlement) int { return a.At.Compare(b.At) })
	candidates, err := e.candidates(ctx, op, book, fresh)
	if err != nil {
		return false, err
	}
	verdicts := make([]store.Verdict, 0, len(fresh))
	for _, s := range fresh {
		verdict, decided := verdictOn(s, candidates[s.Amount], coolDown(op))
		if !decided {
			waiting = true
			continue
		}
		verdicts = append(verdicts, verdict)
	}
	_, err = persist(ctx, e.patience, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.Settlements.Judge(ctx, e.Now(), book, verdicts)
	})
	return waiting, err
}

// settleMatched tells the collections of matched payments, up to a payment's name.
func (e *Engine) settleMatched(ctx context.Context, book store.Book, after, last string) error {
	open, err := e.Settlements.OpenSettlements(ctx, book.Account, after, pageOfBooks)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(s store.Settlement) bool { return s.State != store.SettlementMatched || s.Payment > last })
	done, failed := e.payAll(ctx, open)
	return errors.Join(failed, e.Settlements.Settled(ctx, book.Account, done))
}

// paidAtOnce is how many collections are told at once that they are paid: their
// commits are shared.
const paidAtOnce = 16

// payAll tells collections of their payments, and returns the payments that are
// settled: one that can't be must not hold up the others. A panic is raised here.
func (e *Engine) payAll(ctx context.Context, matched []store.Settlement) (done []store.Settlement, failed error) {
	var mu sync.Mutex
	var thrown any
	var group errgroup.Group
	group.SetLimit(paidAtOnce)
	for _, s := range matched {
		group.Go(func() error {
			defer func() {
				if cause := recover(); cause != nil {
					mu.Lock()
					defer mu.Unlock()
					thrown = cause
				}
			}()
			err := e.pay(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done = append(done, s)
			}
			failed = errors.Join(failed, err)
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors themselves
	if thrown != nil {
		panic(thrown)
	}
	return done, failed
}
