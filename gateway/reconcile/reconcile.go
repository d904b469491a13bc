package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Provider reads the statements of providers' accounts. It never fails: what went
// wrong is in the page.
type Provider interface {
	Statement(ctx context.Context, provider string, s sdk.Statement, timeout time.Duration) sdk.StatementPage
}

// Statements is how far the statements of accounts were read. Statement is
// movement.ErrNotFound for an account on which nothing was collected. PollStatement
// says who may read on, over all replicas, and has the statement due again at until.
// RestStatement has it due at next instead, unless a new sale has it due sooner.
// Import keeps lines together with the cursor behind them, or nothing where somebody
// else was faster. OpenSales reads the account's open collections, the oldest first,
// behind one of them.
type Statements interface {
	Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error)
	PollStatement(ctx context.Context, account movement.AccountID, now, before, until time.Time) (bool, error)
	RestStatement(ctx context.Context, account movement.AccountID, until, next time.Time) error
	OpenSales(ctx context.Context, s movement.Statement, behind movement.Candidate, most int) ([]movement.Candidate, error)
	Import(ctx context.Context, now time.Time, s movement.Statement, lines []movement.ImportedLine, next string, through time.Time) (bool, error)
}

// Lines are the lines of statements. Match gives lines to their collections, once for
// both, and returns those that it decided: on the others somebody else was faster.
// CloseLines closes those whose collections have learned of them, and has their amounts
// free from a time on. Assign is false where a line no longer stands as it was seen, or
// the collection has another. Claim writes an operator's claim and returns what stands.
type Lines interface {
	OpenLines(ctx context.Context, account movement.AccountID, after string, most int) ([]movement.StatementLine, error)
	Candidates(ctx context.Context, s movement.Statement, amounts []money.Amount, earliest, latest time.Time) ([]movement.Candidate, error)
	Match(ctx context.Context, now time.Time, s movement.Statement, matches []movement.Match) (decided []string, err error)
	LinesNamed(ctx context.Context, account movement.AccountID, payments []string) ([]movement.StatementLine, error)
	CloseLines(ctx context.Context, account movement.AccountID, done []movement.StatementLine, freeAt time.Time) error
	Line(ctx context.Context, account movement.AccountID, payment string) (movement.StatementLine, error)
	Assign(ctx context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (bool, error)
	Claim(ctx context.Context, c movement.Claim) (movement.Claim, error)
	ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
}

// Reconciler reads statements and matches them. It is safe for concurrent use.
type Reconciler struct {
	*lifecycle.Lifecycle
	provider   Provider
	statements Statements
	lines      Lines
}

// New makes a reconciler.
func New(l *lifecycle.Lifecycle, p Provider, s Statements, lines Lines) *Reconciler {
	return &Reconciler{l, p, s, lines}
}

const (
	// pageTimeout bounds the reading of one page of a statement.
	pageTimeout = 5 * time.Second
	// pageSize is how many lines are asked for, and matched, at once.
	pageSize = 1000
	// mostPages bounds what one reading reads; the next one goes on.
	mostPages = 100
)

// progress is what a reading of a statement has come to: it is complete up to its
// Through, and of that nothing is left that could pay, but for what failed.
type progress struct {
	movement.Statement
	left    bool                  // its merchant has left the account: it can't be read any more
	waiting bool                  // lines are left that may be late money
	ended   bool                  // a collection was paid, or ended unpaid
	failed  map[movement.ID]error // collections that could not be told that they are paid; the next reading tells them
}

// Refresh finds out from its account's statement whether a collection was paid, and
// ends it unpaid once that is complete beyond the end of its life.
// One that its merchant's leaving of the account keeps from its end is an exception.
func (r *Reconciler) Refresh(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	statement, err := r.statements.Statement(ctx, m.Account())
	if err == nil && statement.MerchantID != m.Owner.MerchantID {
		err = movement.ErrForeignAccount
	}
	if err != nil {
		return m, err
	}
	seen, err := r.reconcile(ctx, op, statement, r.Now().Add(-max(op.Rules.Pace.Every, movement.ReadEvery)))
	if err = cmp.Or(err, seen.failed[m.ID]); err != nil {
		return m, err
	}
	if m, err = r.Reread(ctx, m.ID); err != nil {
		return m, err
	}
	ended, err := r.Apply(ctx, op, m, movement.Fact{Source: movement.FromStatement, Says: movement.SaysReadThrough, Through: seen.Through})
	switch {
	case err != nil:
		return m, err
	case ended.State == movement.Pending && seen.left:
		return m, r.leftBehind(ctx, m)
	case ended.State == m.State:
		return m, nil
	}
	if seen.waiting {
		err = r.match(ctx, op, &seen) // what waited for its end is late money now
	}
	if err = cmp.Or(err, seen.failed[m.ID]); err != nil {
		return m, err
	}
	return r.Reread(ctx, m.ID)
}

// leftBehind lists a collection of an account that its merchant has left.
func (r *Reconciler) leftBehind(ctx context.Context, m movement.Movement) error {
	return r.List(ctx, m, movement.Cause{
		Reason: movement.ReasonUnresolved, FactID: m.UpstreamReference(),
		Detail: "its account is connected no more, so nobody reads whether it was paid: connect it again, or decide",
	})
}

// Read reads an account's statement for all its collections, unless somebody has just
// done so: those that it says were paid, or not, end. Lines may come at any time, also
// when nothing was sold for long. Of an account that its merchant has left, what was
// read before is matched and told.
func (r *Reconciler) Read(ctx context.Context, s movement.Statement) error {
	now := r.Now()
	op, ok := r.collector(s.Provider)
	if !ok { // no provider has it, for now
		_, err := r.statements.PollStatement(ctx, s.Account, now, now.Add(-movement.ReadEvery), s.NextReading(now, nil))
		return err
	}
	statement, err := r.statements.Statement(ctx, s.Account)
	if err == nil {
		_, err = r.reconcile(ctx, op, statement, now.Add(-movement.ReadEvery))
	}
	return err
}

// connected opens the account that a statement is of. It is false where its merchant
// has left it: the connection was removed, or is another account's now.
func (r *Reconciler) connected(ctx context.Context, op *catalog.Operation, s movement.Statement) (lifecycle.Connection, bool, error) {
	account, err := r.Accounts.Account(ctx, tenants.MerchantID(s.MerchantID))
	if err != nil {
		return lifecycle.Connection{}, false, err
	}
	c, err := r.Connect(ctx, op, account, s.Mode)
	if errors.Is(err, lifecycle.ErrNotConnected) {
		return lifecycle.Connection{}, false, nil
	}
	return c, err == nil && movement.NewAccountID(s.Provider, s.Mode, c.Account) == s.Account, err
}

// collector is an operation of a provider whose movements its statement ends.
func (r *Reconciler) collector(provider string) (*catalog.Operation, bool) {
	for _, op := range r.Catalog.Current().Operations() {
		if op.Provider == provider && op.Rules.EndedBy == movement.EndedByStatement {
			return op, true
		}
	}
	return nil, false
}

// reconcile reads what is new in an account's statement, if nobody did since before,
// and matches all that stands in it. Who reads it ends its collections as well.
func (r *Reconciler) reconcile(ctx context.Context, op *catalog.Operation, statement movement.Statement, before time.Time) (progress, error) {
	seen := progress{Statement: statement, failed: map[movement.ID]error{}}
	now := r.Now()
	until := now.Add(lifecycle.LongestPoll) // where this reading is cut off
	ours, err := r.statements.PollStatement(ctx, statement.Account, now, before, until)
	if err != nil {
		return seen, err
	}
	c, connected, err := r.connected(ctx, op, statement)
	if err != nil {
		return seen, err
	}
	if seen.left = !connected; !ours {
		return seen, r.match(ctx, op, &seen)
	}
	return lifecycle.ToTheEnd(ctx, r.Log, func(ctx context.Context) (progress, error) {
		if connected {
			if err := r.read(ctx, op, c, &seen); err != nil {
				return seen, err
			}
		}
		if err := r.match(ctx, op, &seen); err != nil {
			return seen, err
		}
		open, err := r.end(ctx, op, &seen)
		if err != nil {
			return seen, err
		}
		if seen.PolledAt = statement.PolledAt; seen.ended { // lines come late
			seen.PolledAt = now
		}
		return seen, r.statements.RestStatement(ctx, statement.Account, until, seen.NextReading(r.Now(), open))
	})
}

// end ends the collections that the statement says nobody has paid, and returns those
// that stay open, also those of which a call is under way. Those of an account that was left are exceptions. What can't be ended holds
// up no other.
func (r *Reconciler) end(ctx context.Context, op *catalog.Operation, seen *progress) (open []movement.Candidate, err error) {
	over := false
	for behind := (movement.Candidate{}); ; {
		page, err := r.statements.OpenSales(ctx, seen.Statement, behind, pageSize)
		if err != nil {
			return nil, err
		}
		ended := r.endAll(ctx, page, seen)
		over = over || ended
		for _, c := range page {
			if seen.failed[c.ID] != nil || !seen.Unpaid(c, r.Now()) {
				open = append(open, c)
			}
		}
		if len(page) < pageSize {
			break
		}
		behind = page[len(page)-1]
	}
	seen.ended = seen.ended || over
	if over && seen.waiting {
		err = r.match(ctx, op, seen) // what waited for its end is late money now
	}
	return open, err
}

// endAll ends those of a page, some at once, and tells whether there were any.
func (r *Reconciler) endAll(ctx context.Context, page []movement.Candidate, seen *progress) (ended bool) {
	var (
		mu     sync.Mutex
		failed = map[movement.ID]error{}
		group  errgroup.Group
	)
	group.SetLimit(paidAtOnce)
	for _, c := range page {
		unpaid := seen.Unpaid(c, r.Now())
		if seen.failed[c.ID] != nil || !unpaid && !seen.left { // what could not be told that it is paid must not end unpaid
			continue
		}
		ended = ended || unpaid
		group.Go(func() error {
			if err := lifecycle.Recovered(func() error { return r.endOne(ctx, c.ID, *seen) }); err != nil {
				r.Log.ErrorContext(ctx, "a collection can't be ended", "movement", c.ID.String(), "error", err)
				mu.Lock()
				defer mu.Unlock()
				failed[c.ID] = err
			}
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors themselves
	maps.Copy(seen.failed, failed)
	return ended
}

// endOne tells a collection through when its account's statement was read. One that its
// merchant's leaving of the account keeps from its end is an exception.
func (r *Reconciler) endOne(ctx context.Context, id movement.ID, seen progress) error {
	m, err := r.Reread(ctx, id)
	if err != nil {
		return err
	}
	op, err := r.Operation(m)
	if err != nil {
		return err
	}
	m, err = r.Apply(ctx, op, m, movement.Fact{Source: movement.FromStatement, Says: movement.SaysReadThrough, Through: seen.Through})
	if err != nil || m.State != movement.Pending || !seen.left {
		return err
	}
	return r.leftBehind(ctx, m)
}

// read imports what an account's statement tells since the last reading. That it can't
// be read is no error: what was read before can be matched all the same.
func (r *Reconciler) read(ctx context.Context, op *catalog.Operation, c lifecycle.Connection, seen *progress) (err error) {
	reading := uuid.NewString()
	for range mostPages {
		page := r.provider.Statement(ctx, op.Provider, sdk.Statement{
			RequestID: reading, Connection: c.Connection, Cursor: seen.Cursor, Limit: pageSize,
		}, pageTimeout)
		if page.Detail != "" {
			r.complain(ctx, op, c, page)
		}
		if !page.Known || page.Cursor == seen.Cursor && len(page.Lines) == 0 && !page.Through.After(seen.Through) {
			return nil
		}
		imported, err := lifecycle.Persist(ctx, r.Patience, func(ctx context.Context) (bool, error) {
			now := r.Now()
			through := page.Through
			if through.After(now) { // of the future no statement is complete
				through = now
			}
			return r.statements.Import(ctx, now, seen.Statement, linesOf(page.Lines), page.Cursor, through)
		})
		if err != nil {
			return err
		}
		if !imported || !page.More || page.Cursor == seen.Cursor {
			break
		}
		seen.Cursor = page.Cursor
		if err := r.match(ctx, op, seen); err != nil { // a page at a time: what is open stays short
			return err
		}
	}
	seen.Statement, err = r.statements.Statement(ctx, seen.Account)
	return err
}

// complain makes an exception of what is wrong with an account's statement: each thing
// once, and again where it is still so after an operator has dealt with it. What
// passes by itself is logged and no more.
func (r *Reconciler) complain(ctx context.Context, op *catalog.Operation, c lifecycle.Connection, page sdk.StatementPage) {
	text := lifecycle.Printable(page.Detail)
	log := r.Log.With("provider", op.Provider, "merchant", c.MerchantID, "mode", c.Mode, "detail", text)
	if page.Blame == sdk.BlameNone {
		log.InfoContext(ctx, "a statement can't be read to its end now")
		return
	}
	fact := text // which file, and where
	if page.Blame == sdk.BlameUpstream {
		fact = lifecycle.SortOfFault(text) // in other words each time: ports, times
	}
	fresh, err := r.Store.AddException(ctx, movement.Exception{
		Owner:   movement.Owner{MerchantID: c.MerchantID, Mode: c.Mode},
		Subject: "statement of " + op.Provider, Reason: movement.ReasonStatement,
		Provider: op.Provider, FactID: fact, Detail: text, At: r.Now(), Lasting: true,
	})
	switch {
	case err != nil:
		log.ErrorContext(ctx, "an exception can't be written", "reason", movement.ReasonStatement, "error", err)
	case fresh:
		log.WarnContext(ctx, "a statement can't be read: needs an operator")
	}
}
