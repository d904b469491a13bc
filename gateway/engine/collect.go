package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// candidates are the collections that some payments may be for, by what is to be
// paid. The payments come in the order of their times.
func (e *Engine) candidates(
	ctx context.Context, op *catalog.Operation, book movement.Statement, payments []movement.StatementLine,
) (map[money.Amount][]movement.Candidate, error) {
	found := make(map[money.Amount][]movement.Candidate, len(payments))
	known := make(map[movement.ID]bool, len(payments))
	for len(payments) > 0 { // in the order of their times
		near := payments[:nearEachOther(payments)]
		payments = payments[len(near):]
		amounts := make([]money.Amount, len(near))
		for i, s := range near {
			amounts[i] = s.Amount
		}
		slices.Sort(amounts)
		earliest, latest := near[0].At.Add(-coolDown(op)-op.Rules.Life), near[len(near)-1].At.Add(movement.Skew)
		some, err := e.Settlements.Candidates(ctx, book, slices.Compact(amounts), earliest, latest)
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

// nearEachOther is how many payments, the first of some, lie in one day: sales are
// asked for by their times, and a payment of long ago must not bring the whole
// history of an amount.
func nearEachOther(payments []movement.StatementLine) int {
	ends := payments[0].At.Add(24 * time.Hour)
	if i := slices.IndexFunc(payments, func(s movement.StatementLine) bool { return s.At.After(ends) }); i > 0 {
		return i
	}
	return len(payments)
}

// verdictOn judges a new payment, and notes among the candidates which of them it
// pays. It is false for one that can't be judged yet.
func verdictOn(s movement.StatementLine, candidates []movement.Candidate, coolDown time.Duration) (movement.Match, bool) {
	verdict := movement.Match{Payment: s.Payment, State: movement.LineUnmatched}
	switch {
	case s.Differs: // as where a part of it was taken back
		return listed(verdict, s, movement.LineAmbiguous, reasonAmbiguous, "its rows do not agree"), true
	case !s.ReversedAt.IsZero(): // it was taken back before anybody was told of it
		verdict.State = movement.LineReversed
		return verdict, true
	case s.Currency != "IDR":
		return verdict, true
	}
	match, id := movement.FindMatch(movement.Arrival{Amount: s.Amount, At: s.At}, candidates, coolDown)
	switch match {
	case movement.Paying:
		verdict.State, verdict.Movement = movement.LineMatched, id
		for i := range candidates {
			candidates[i].Taken = candidates[i].Taken || candidates[i].ID == id
		}
	case movement.Waiting:
		return verdict, false
	case movement.Ambiguous:
		return listed(verdict, s, movement.LineAmbiguous, reasonAmbiguous, "it may be for two collections"), true
	case movement.Again:
		return listed(verdict, s, movement.LineAgain, reasonPaidAgain, "its collection is paid by another"), true
	case movement.Unmatched:
	}
	return verdict, true
}

// listed is the verdict on a payment that a person must see.
func listed(v movement.Match, s movement.StatementLine, state movement.LineState, reason, text string) movement.Match {
	v.State, v.Reason, v.Detail = state, reason, text+": "+s.Amount.String()+" at "+stamp(s.At)
	return v
}

// pay does what a matched payment means for its collection: it is paid, or paid
// late; and where the payment was taken back, that is a reversal. All of it may
// have been done before.
func (e *Engine) pay(ctx context.Context, s movement.StatementLine) error {
	m, err := e.reread(ctx, s.Movement)
	if err != nil {
		return err
	}
	op, err := e.operationOf(m)
	if err != nil {
		return err
	}
	fact := sdk.StatusUpdate{
		Reference: m.UpstreamReference(), Status: sdk.StatusDone, Amount: s.Amount, Currency: s.Currency, EventID: s.ID, At: s.At,
	}
	source := sourceBooks
	if s.Operator != "" { // a person has answered for the amount
		fact.Amount, source = m.Amount, "operator "+s.Operator+": "+s.Reason
	}
	if m, err = e.settle(ctx, op, m, fact, source); err != nil {
		return err
	}
	switch {
	case s.Differs:
		return e.list(ctx, m, reasonAmount, s.ID, "the reports tell its payment once more, and otherwise")
	case s.ReversedAt.IsZero():
		return nil
	}
	fact.Status, fact.At = sdk.StatusFailed, e.plausible(s.ReversedAt)
	if m.State != movement.Succeeded && !m.PaidLateAt.IsZero() { // its merchant was told of late money, and is told that it is gone
		_, err = e.record(ctx, m, fact, movement.Reversal, source)
		return err
	}
	_, err = e.settle(ctx, op, m, fact, source)
	return err
}

// byBooks tells whether the books alone say how a movement ends.
func byBooks(op *catalog.Operation) bool { return op.Rules.Life > 0 }

// hear settles what a provider says of a movement itself. Of one that its books
// alone end, that can be no more than what there is to pay.
func (e *Engine) hear(ctx context.Context, op *catalog.Operation, m movement.Movement, f sdk.StatusUpdate, source string) (movement.Movement, error) {
	if byBooks(op) {
		f.ExpiresAt = time.Time{} // its life is ours
		if to, said := stateOf(f.Status); said && to != movement.Pending {
			return m, e.list(ctx, m, reasonContradiction, printable(f.EventID), "a "+source+" says "+string(to)+", which the reports alone may say")
		}
	}
	return e.settle(ctx, op, m, f, source)
}

// takeSlot says where the amount of a collection is taken at its claim.
func takeSlot(op *catalog.Operation, draft *movement.Movement) {
	if !byBooks(op) {
		return
	}
	draft.ExpiresAt = draft.CreatedAt.Add(op.Rules.Life)
	draft.Reserved = slotOf(op, *draft)
}

func slotOf(op *catalog.Operation, m movement.Movement) movement.ReservedAmount {
	return movement.ReservedAmount{
		Account: movement.NewAccountID(m.Provider, m.Owner.Mode, m.ConnectionAccount), FreeAt: m.ExpiresAt.Add(coolDown(op)),
	}
}

// freeSlot gives back the amount of a collection that nobody was told of, so that
// tries that come to nothing use up no amounts. Where that fails the amount becomes
// free in its time.
func (e *Engine) freeSlot(ctx context.Context, op *catalog.Operation, m movement.Movement) {
	if !byBooks(op) {
		return
	}
	m.Reserved = slotOf(op, m)
	if err := e.Books.ReleaseAmount(ctx, m); err != nil {
		e.Log.WarnContext(ctx, "the amount of a collection that was not made stays taken for a while", "movement", m.ID.String(), "error", err)
	}
}

// unslotted is the error of a collection that got no amount, nil where that was
// not why.
func (e *Engine) unslotted(err error) *fault.Error {
	if full, ok := errors.AsType[*movement.NoAmountError](err); ok {
		now := e.Now()
		return fault.New(fault.InProgress, "Every amount that this payment could have is taken by another that is open or was just now.").
			After(now, max(full.FreeAt.Sub(now), time.Second))
	}
	if errors.Is(err, movement.ErrForeignAccount) {
		return fault.New(fault.ProviderUnavailable, "The wallet account is another merchant's. Nothing was sent.").Because(err)
	}
	return nil
}

// collectionData is the first answer of a collection.
func collectionData(op *catalog.Operation, m movement.Movement, result json.RawMessage) *object {
	base := m.Amount
	if asked, err := money.Parse(string(m.Fields()[op.AmountField()])); err == nil { // it was parsed before its claim
		base = asked
	}
	o := (&object{}).set(op.Rules.ReferenceField, m.Reference).set("qr_string", offerOf(result).QR).set("amount", int64(m.Amount)).
		set("base_amount", int64(base)).set("random_code", int64(m.Amount-base)).set("status", op.Rules.Word(movement.Pending))
	echo(o, op, m.Fields())
	if m.Remaining != nil {
		o.set(remainingQuota, *m.Remaining)
	}
	return o
}

// describeCollection is the state of a collection.
func describeCollection(op *catalog.Operation, m movement.Movement) *object {
	o := (&object{}).set(op.Target.Rules.ReferenceField, m.Reference).set("status", op.Target.Rules.Word(m.State)).set("amount", int64(m.Amount))
	echo(o, op, m.Fields())
	if m.PaidAt.IsZero() {
		o.set("paid_at", nil)
	} else {
		o.set("paid_at", stamp(m.PaidAt))
	}
	if !m.PaidLateAt.IsZero() {
		o.set("paid_late_at", stamp(m.PaidLateAt))
	}
	if !m.ReversedAt.IsZero() {
		o.set("reversed_at", stamp(m.ReversedAt))
	}
	return o
}

// remainingQuota is the property in which an answer tells what is left.
const remainingQuota = "remaining_quota"

// withRemaining adds what the request's quota leaves to an answer that tells it.
func withRemaining(ctx context.Context, r Request, answer Answer) Answer {
	data, ok := answer.Data.(json.RawMessage)
	if !ok || !r.Operation.Answers(remainingQuota) {
		return answer
	}
	var told map[string]json.RawMessage
	if json.Unmarshal(data, &told) != nil || told[remainingQuota] != nil {
		return answer
	}
	remaining := r.Remaining
	if remaining == nil && r.Left != nil {
		remaining = r.Left(ctx)
	}
	o := &object{}
	o.buffer.Write(data[:len(data)-1])
	answer.Data = o.set(remainingQuota, remaining).json()
	return answer
}

// resolveByBooks is the worker's look at what the books end.
func (e *Engine) resolveByBooks(ctx context.Context, op *catalog.Operation, m movement.Movement, c connection) error {
	now := e.Now()
	if _, err := e.Inquiries.Poll(ctx, m, now, now, m.NextPoll(now, op.Pace)); err != nil {
		return err
	}
	_, err := e.collect(ctx, op, m, c)
	return err
}

// readable tells whether the books are looked at for a movement: one that its payer
// can pay, or has or could have a while ago. Rows that come later than that are
// found by whoever reads the account's books.
func readable(op *catalog.Operation, m movement.Movement) bool {
	ended := m.State == movement.Expired || m.State == movement.Succeeded
	return op.Kind == manifest.Collection && (m.State == movement.Pending || ended && !m.DueAt.IsZero())
}
