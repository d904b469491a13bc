package reconcile

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// match finds for each open line of an account the collection that it is for, and
// tells that. What can't be told holds up no other.
func (r *Reconciler) match(ctx context.Context, op *catalog.Operation, seen *progress) error {
	seen.waiting = false
	for after := ""; ; {
		page, err := r.lines.OpenLines(ctx, seen.Account, after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}
		matched, waiting, err := r.decide(ctx, op, seen, page)
		if err != nil {
			return err
		}
		seen.waiting = seen.waiting || waiting
		if err := r.tell(ctx, seen, matched); err != nil {
			return err
		}
		if after = page[len(page)-1].Payment; len(page) < pageSize {
			return nil
		}
	}
}

// decide finds out which collections the new lines of a page are for. It returns all
// of the page that belong to one, whoever has found that out.
func (r *Reconciler) decide(ctx context.Context, op *catalog.Operation, seen *progress, page []movement.StatementLine) (matched []movement.StatementLine, waiting bool, err error) {
	fresh := make(map[string]movement.StatementLine, len(page))
	var inTime []movement.StatementLine
	for _, line := range page {
		if line.State == movement.LineMatched {
			matched = append(matched, line)
			continue
		}
		fresh[line.Payment], inTime = line, append(inTime, line)
	}
	if len(inTime) == 0 {
		return matched, false, nil
	}
	slices.SortStableFunc(inTime, func(a, b movement.StatementLine) int { return a.At.Compare(b.At) })
	candidates, err := r.candidates(ctx, op, seen.Statement, inTime)
	if err != nil {
		return nil, false, err
	}
	matches := make([]movement.Match, 0, len(inTime))
	for _, line := range inTime {
		match, decided := op.Rules.FindMatch(line, candidates[line.Amount])
		if !decided && seen.left && r.Now().Sub(line.At) > movement.MeantWithin { // what it waits for never comes
			match, decided = movement.Unmatched(line, candidates[line.Amount]), true
		}
		if waiting = waiting || !decided; decided {
			matches = append(matches, match)
		}
	}
	decided, err := lifecycle.Persist(ctx, r.Patience, func(ctx context.Context) ([]string, error) {
		return r.lines.Match(ctx, r.Now(), seen.Statement, matches)
	})
	if err != nil {
		return nil, false, err
	}
	ours, theirs := asDecided(fresh, matches, decided)
	if matched = append(matched, ours...); len(theirs) == 0 {
		return matched, waiting, nil
	}
	others, err := r.lines.LinesNamed(ctx, seen.Account, theirs)
	others = slices.DeleteFunc(others, func(line movement.StatementLine) bool { return line.State != movement.LineMatched })
	return append(matched, others...), waiting, err
}

// asDecided are the lines that our matches gave to collections, and the names of those
// on which somebody else was faster.
func asDecided(fresh map[string]movement.StatementLine, matches []movement.Match, decided []string) (ours []movement.StatementLine, theirs []string) {
	first := make(map[string]bool, len(decided))
	for _, payment := range decided {
		first[payment] = true
	}
	for _, match := range matches {
		switch line := fresh[match.Payment]; {
		case !first[match.Payment]:
			theirs = append(theirs, match.Payment)
		case match.State == movement.LineMatched:
			line.State, line.Movement = match.State, match.Movement
			ours = append(ours, line)
		}
	}
	return ours, theirs
}

// candidates are the collections that some lines may be for, by what is to be paid.
// The lines come in the order of their times.
func (r *Reconciler) candidates(ctx context.Context, op *catalog.Operation, s movement.Statement, lines []movement.StatementLine) (map[money.Amount][]movement.Candidate, error) {
	found := make(map[money.Amount][]movement.Candidate, len(lines))
	known := make(map[movement.ID]bool, len(lines))
	for len(lines) > 0 {
		near := lines[:nearEachOther(lines)]
		lines = lines[len(near):]
		amounts := make([]money.Amount, len(near))
		for i, line := range near {
			amounts[i] = line.Amount
		}
		slices.Sort(amounts)
		earliest, latest := op.Rules.CandidatesBetween(near[0].At, near[len(near)-1].At)
		some, err := r.lines.Candidates(ctx, s, slices.Compact(amounts), earliest, latest)
		if err != nil {
			return nil, err
		}
		for _, c := range some {
			if !known[c.ID] {
				known[c.ID], found[c.Amount] = true, append(found[c.Amount], c)
			}
		}
	}
	return found, nil
}

// nearEachOther is how many lines, the first of some, lie in one day: sales are asked
// for by their times, and a payment of long ago must not bring the whole history of an
// amount.
func nearEachOther(lines []movement.StatementLine) int {
	ends := lines[0].At.Add(24 * time.Hour)
	if i := slices.IndexFunc(lines, func(line movement.StatementLine) bool { return line.At.After(ends) }); i > 0 {
		return i
	}
	return len(lines)
}

// tell tells collections of their payments, and closes the lines of those that know.
func (r *Reconciler) tell(ctx context.Context, seen *progress, matched []movement.StatementLine) error {
	done, failed := r.payAll(ctx, matched)
	seen.ended = seen.ended || len(done) > 0
	for _, line := range done {
		delete(seen.failed, line.Movement)
	}
	for id, err := range failed {
		seen.failed[id] = err
		r.Log.ErrorContext(ctx, "a collection can't be told that it is paid", "movement", id.String(), "error", err)
	}
	return r.close(ctx, seen.Account, done)
}

// close closes the lines of collections that know. The amounts that they paid can soon
// be others'.
func (r *Reconciler) close(ctx context.Context, account movement.AccountID, done []movement.StatementLine) error {
	return r.lines.CloseLines(ctx, account, done, r.Now().Add(movement.FreeAfterPaid))
}

// paidAtOnce is how many collections are told at once that they are paid: their
// commits are shared.
const paidAtOnce = 16

// payAll tells collections of their payments, and returns the lines whose collections
// know, and the collections that could not be told. A panic is raised here.
func (r *Reconciler) payAll(ctx context.Context, matched []movement.StatementLine) (done []movement.StatementLine, failed map[movement.ID]error) {
	failed = map[movement.ID]error{}
	var mu sync.Mutex
	var thrown any
	var group errgroup.Group
	group.SetLimit(paidAtOnce)
	for _, line := range matched {
		group.Go(func() error {
			defer func() {
				if cause := recover(); cause != nil {
					mu.Lock()
					defer mu.Unlock()
					thrown = cause
				}
			}()
			err := r.pay(ctx, line)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[line.Movement] = err
				return nil
			}
			done = append(done, line)
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors themselves
	if thrown != nil {
		panic(thrown)
	}
	return done, failed
}

// pay applies what a matched line means for its collection: it is paid, or paid late;
// and where the payment was taken back, that is a reversal. All of it may have been
// applied before.
func (r *Reconciler) pay(ctx context.Context, line movement.StatementLine) error {
	m, err := r.Reread(ctx, line.Movement)
	if err != nil {
		return err
	}
	op, err := r.Operation(m)
	if err != nil {
		return err
	}
	fact := movement.Fact{
		Source: movement.FromStatement, Says: movement.SaysSucceeded, Reference: m.UpstreamReference(),
		Amount: line.Amount, Currency: line.Currency, EventID: line.ID, At: lifecycle.Plausible(line.At, r.Now()),
	}
	if line.Operator != "" { // a person has answered for the amount
		fact.Amount, fact.By = m.Amount, "operator "+line.Operator+": "+line.Reason
	}
	if m, err = r.Apply(ctx, op, m, fact); err != nil {
		return err
	}
	switch {
	case line.Differs:
		fact.Says = movement.SaysDiffers
	case line.ReversedAt.IsZero():
		return nil
	default:
		fact.Says, fact.At = movement.SaysFailed, lifecycle.Plausible(line.ReversedAt, r.Now())
	}
	_, err = r.Apply(ctx, op, m, fact)
	return err
}
