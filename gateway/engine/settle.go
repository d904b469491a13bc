package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// The reasons for which a fact stands on the operators' list.
const (
	reasonAmount        = "amount_differs"
	reasonCurrency      = "currency_differs"
	reasonPaidAgain     = "paid_again"
	reasonPaidLate      = "paid_late"
	reasonReversed      = "reversed"
	reasonVanished      = "vanished"
	reasonContradiction = "contradiction"
	reasonUnknown       = "unknown_reference"
	reasonUnresolved    = "unresolved"
	reasonAccount       = "our_account"
	reasonFee           = "fee_differs"
	reasonUnreadable    = "unreadable"
	reasonReports       = "reports"
	reasonAmbiguous     = "ambiguous"
)

// fromCall is the source of a fact that is the call's own answer.
const fromCall = "call"

// settle does what a fact about a movement means for it. Whoever brings the
// fact (a lookup, a notification), it ends here. An error means that the fact
// must be told again.
func (e *Engine) settle(ctx context.Context, op *catalog.Operation, m movement.Movement, f sdk.StatusUpdate, source string) (movement.Movement, error) {
	to, ok := stateOf(f.Status)
	if !ok {
		return m, nil
	}
	f.EventID, f.ProviderReference, f.At = printable(f.EventID), nameOf(f.ProviderReference), e.plausible(f.At)
	for range 3 { // another replica may move it meanwhile; the states only go forward
		if why, text := doubt(op, m, f); why != "" {
			return m, e.list(ctx, m, why, f.EventID, text)
		}
		effect := op.Rules.Judge(m.State, to)
		switch {
		case source == fromCall && effect == movement.Reversal:
			effect = movement.Contradiction // a refusal that comes late takes nothing back
		case source == fromCall && op.Resubmits() && to == movement.Failed && !m.PolledAt.IsZero() && !m.State.Final():
			return m, nil // the same request was sent again meanwhile: its answer counts
		}
		switch effect {
		case movement.Nothing:
			return e.confirm(ctx, op, m, f, to, source)
		case movement.LateMoney, movement.Reversal:
			return e.record(ctx, m, f, effect, source)
		case movement.Contradiction:
			return m, e.list(ctx, m, reasonContradiction, f.EventID, "it stands at "+string(m.State)+", the provider says "+string(to))
		case movement.Move:
		}
		moved, err := e.move(ctx, e.moveTo(ctx, op, m, f, to, source))
		if err != nil {
			return m, err
		}
		if m, err = e.reread(ctx, m.ID); err != nil || moved {
			return m, err
		}
	}
	return m, errors.New("engine: a movement kept changing while it was settled")
}

func (e *Engine) moveTo(ctx context.Context, op *catalog.Operation, m movement.Movement, f sdk.StatusUpdate, to movement.State, source string) store.Move {
	then := m
	then.State, then.UpdatedAt = to, e.Now()
	if !f.ExpiresAt.IsZero() {
		then.ExpiresAt = f.ExpiresAt
	}
	move := store.Move{
		Movement: m, To: to, Event: string(to), Detail: toldBy(op, f, source),
		ProviderReference: f.ProviderReference, ExpiresAt: f.ExpiresAt, DueAt: then.NextPoll(e.Now(), op.Pace),
	}
	if to.Final() {
		move.FactID = f.EventID
	}
	move.Unasked = source == fromCall && to == movement.Failed && op.Resubmits()
	if byBooks(op) && to == movement.Succeeded {
		if move.PaidAt = f.At; f.At.IsZero() { // nobody knows better
			move.PaidAt = then.UpdatedAt
		}
	}
	switch {
	case op.Rules.Quiet:
		move.Result = e.reported(ctx, op, m, f)
		if m.Answer == nil {
			move.Answer = e.firstAnswer(op, m, nil)
		}
		if to == movement.Succeeded {
			move.Cost = f.Amount
		}
	case op.Rules.Pends:
		move.Result = e.reported(ctx, op, m, f)
	case to != movement.Failed: // what failed before it was answered is answered so
		move.Result, move.Answer = e.offered(ctx, op, m, f)
	}
	return move
}

// toldBy is the story's entry of a finding, for operators: of money that goes out
// with what the provider gave.
func toldBy(op *catalog.Operation, f sdk.StatusUpdate, source string) string {
	amount, data := "", ""
	if op.Rules.Pends {
		data = printable(string(f.Data))
		if f.Amount != 0 {
			amount = f.Amount.String()
		}
	}
	return detail("source", source, "fact", f.EventID, "at", stampOrNone(f.At), "provider_reference", f.ProviderReference, "amount", amount, "data", data)
}

// reported is the data of a finding, where it is what the result schema has.
func (e *Engine) reported(ctx context.Context, op *catalog.Operation, m movement.Movement, f sdk.StatusUpdate) json.RawMessage {
	if len(f.Data) == 0 {
		return nil
	}
	if err := checkData(op, f.Data); err != nil {
		e.Log.WarnContext(ctx, "a provider's data does not fit", "movement", m.ID.String(), "error", err)
		return nil
	}
	return f.Data
}

// offered is the first answer that a finding's data allows, where there was
// none.
func (e *Engine) offered(ctx context.Context, op *catalog.Operation, m movement.Movement, f sdk.StatusUpdate) (result, answer json.RawMessage) {
	if m.Answer != nil || len(f.Data) == 0 {
		return nil, nil
	}
	if err := checkOffer(op, m, f.Data); err != nil {
		e.Log.WarnContext(ctx, "a finding's data does not fit", "movement", m.ID.String(), "error", err)
		return nil, nil
	}
	return f.Data, e.firstAnswer(op, m, f.Data)
}

// confirm takes what is left of a fact that changes no state: an answer that
// nobody had yet, or a second payment of what is paid already.
func (e *Engine) confirm(ctx context.Context, op *catalog.Operation, m movement.Movement, f sdk.StatusUpdate, to movement.State, source string) (movement.Movement, error) {
	again := to == movement.Succeeded && m.FactID != "" && f.EventID != "" && f.EventID != m.FactID
	switch {
	case to == movement.Succeeded && op.Rules.Pends:
		return e.doneAgain(ctx, op, m, f, again, source)
	case again:
		return m, e.list(ctx, m, reasonPaidAgain, f.EventID, "it was paid before by "+m.FactID)
	case to != movement.Pending || m.State != movement.Pending || op.Rules.Pends:
		return m, nil
	}
	result, answer := e.offered(ctx, op, m, f)
	if answer == nil {
		return m, nil
	}
	move := store.Move{Movement: m, Result: result, Answer: answer, ProviderReference: f.ProviderReference, ExpiresAt: f.ExpiresAt}
	if err := e.complete(ctx, move); err != nil {
		return m, err
	}
	return e.reread(ctx, m.ID)
}

// doneAgain takes what is left of a success of money that goes out that is told once
// more: another cost, which is not posted, what was not told before, which status
// answers have from now on, or another name, which may be a second success.
func (e *Engine) doneAgain(ctx context.Context, op *catalog.Operation, m movement.Movement, f sdk.StatusUpdate, renamed bool, source string) (movement.Movement, error) {
	cheaper := op.Rules.Quiet && f.Amount != m.Cost // what is dearer was doubted
	if cheaper {
		if err := e.list(ctx, m, reasonAmount, f.EventID, "booked at "+m.Cost.String()+", the provider says "+f.Amount.String()); err != nil {
			return m, err
		}
	}
	fuller, late := supplement(op, m, f.Data)
	switch {
	case len(late) > 0 && m.ReversedAt.IsZero():
		return e.supplemented(ctx, m, f.EventID, late, store.Move{
			Movement: m, Result: fuller, Event: "supplemented", Detail: toldBy(op, f, source),
		})
	case renamed && !cheaper:
		return m, e.list(ctx, m, reasonContradiction, f.EventID, "it was told done before as "+m.FactID)
	}
	return m, nil
}

// supplemented keeps what a provider told of a success only after it. An operator
// has to know: the merchant was called back without it. It is listed as another
// success would be, so that the same one told again is not listed as that.
func (e *Engine) supplemented(ctx context.Context, m movement.Movement, fact string, late []string, move store.Move) (movement.Movement, error) {
	text := "the provider told " + strings.Join(late, ", ") + " late, after the success: the callback went without it"
	if err := e.list(ctx, m, reasonContradiction, fact, text); err != nil {
		return m, err
	}
	if _, err := persist(ctx, e.patience, func(ctx context.Context) (bool, error) {
		return e.Movements.Supplement(ctx, e.Now(), move)
	}); err != nil {
		return m, err
	}
	return e.reread(ctx, m.ID)
}

func (e *Engine) complete(ctx context.Context, move store.Move) error {
	_, err := persist(ctx, e.patience, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.Movements.Complete(ctx, move)
	})
	return err
}

// doubt checks what a provider says against our own record. What differs leaves
// the movement as it is and goes to the operators, with the reason and a text.
func doubt(op *catalog.Operation, m movement.Movement, f sdk.StatusUpdate) (why, text string) {
	if f.Status == sdk.StatusDone && op.Rules.Pends && len(f.Data) > 0 {
		if err := checkSuccess(op, f.Data); err != nil {
			return reasonUnreadable, "the provider says done, and its data can't be read: " + printable(err.Error())
		}
	}
	switch {
	case f.Reference != m.UpstreamReference():
		return reasonContradiction, "it is asked for as " + m.UpstreamReference() + ", the provider speaks of " + printable(f.Reference)
	case f.Currency != "" && f.Currency != "IDR":
		return reasonCurrency, "the provider says " + printable(f.Currency)
	case op.Rules.Quiet: // how much it cost is told when it is done
		return overcharged(m, f)
	case f.Amount != m.Amount && (f.Status == sdk.StatusDone || f.Amount != 0):
		return reasonAmount, "asked " + m.Amount.String() + ", the provider says " + f.Amount.String()
	}
	return "", ""
}

// overcharged checks what an order has cost against what was agreed: a bill to
// the rupiah, a product at most.
func overcharged(m movement.Movement, f sdk.StatusUpdate) (why, text string) {
	exact := m.Charge == movement.Held && f.Amount != m.Cost
	if f.Status == sdk.StatusDone && (exact || f.Amount <= 0 || f.Amount > m.Cost) {
		return reasonAmount, "agreed on " + m.Cost.String() + ", the provider says " + f.Amount.String()
	}
	return "", ""
}

// record keeps late money and reversals, which change no state.
func (e *Engine) record(ctx context.Context, m movement.Movement, f sdk.StatusUpdate, effect movement.Effect, source string) (movement.Movement, error) {
	at := f.At
	if at.IsZero() {
		at = e.Now()
	}
	note := detail("source", source, "fact", f.EventID)
	then, what, reason, keep := m, paidLate, reasonPaidLate, e.Records.PaidLate
	then.PaidLateAt = at
	if effect == movement.Reversal {
		then, what, reason, keep = m, reversed, reasonReversed, e.Records.Reversed
		then.ReversedAt = at
	}
	fact, event := store.Record{ID: m.ID, At: at, Detail: note}, uuid.New()
	_, err := persist(ctx, e.patience, func(ctx context.Context) (kept bool, err error) {
		then.UpdatedAt = e.Now()
		fact.Posting = takenBack(m, effect, then.UpdatedAt)
		if fact.Callback, err = e.tell(ctx, then, what, event, then.UpdatedAt); err != nil {
			return false, err
		}
		return keep(ctx, then.UpdatedAt, fact)
	})
	if err != nil {
		return m, err
	}
	e.announce(fact.Callback)
	if err := e.list(ctx, m, reason, f.EventID, "amount "+m.Amount.String()); err != nil {
		return m, err
	}
	return e.reread(ctx, m.ID)
}

// takenBack is what a reversal means for the ledger, nil for nothing.
func takenBack(m movement.Movement, effect movement.Effect, now time.Time) *ledger.Transaction {
	if effect != movement.Reversal || m.Charge == movement.Unpaid {
		return nil
	}
	return posted(m, now, ledger.TakeBack(m.Amount, m.Cost))
}

// list puts a fact on the operators' list.
func (e *Engine) list(ctx context.Context, m movement.Movement, reason, fact, text string) error {
	entry := movement.Exception{
		Owner: m.Owner, Subject: m.ID.String(), Reason: reason, FactID: fact, Provider: m.Provider, Detail: text, At: e.Now(),
	}
	fresh, err := persist(ctx, e.patience, func(ctx context.Context) (bool, error) { return e.Records.AddException(ctx, entry) })
	log := e.Log.With("reason", reason, "movement", m.ID.String(), "merchant", m.Owner.MerchantID,
		"mode", m.Owner.Mode, "provider", m.Provider, "detail", text)
	switch {
	case err != nil:
		log.ErrorContext(ctx, "the operators' list can't be written", "error", err)
	case fresh:
		log.WarnContext(ctx, "needs an operator")
	}
	return err
}

// plausible is a moment that a provider tells, or none where nothing of ours can
// have happened then.
func (e *Engine) plausible(at time.Time) time.Time {
	if at.Year() < 2000 || at.After(e.Now().Add(24*time.Hour)) {
		return time.Time{}
	}
	return at
}

func stateOf(s sdk.Status) (movement.State, bool) {
	switch s {
	case sdk.StatusPending:
		return movement.Pending, true
	case sdk.StatusDone:
		return movement.Succeeded, true
	case sdk.StatusFailed:
		return movement.Failed, true
	case sdk.StatusExpired:
		return movement.Expired, true
	case sdk.StatusUnknown, sdk.StatusNotFound:
		return "", false
	}
	return "", false
}

func stampOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t)
}

func (e *Engine) accountOf(ctx context.Context, m movement.Movement) (*tenants.Account, error) {
	return e.Accounts.Account(ctx, tenants.MerchantID(m.Owner.MerchantID))
}

// logResult tells operators what came back, at a level that fits.
func (e *Engine) logResult(ctx context.Context, m movement.Movement, r sdk.Result) {
	level := slog.LevelDebug
	switch {
	case r.Blame == sdk.BlameAccount:
		level = slog.LevelError // our own account: nobody but an operator can mend it
	case r.Outcome == sdk.Unknown || r.Outcome == sdk.NotSent:
		level = slog.LevelWarn
	}
	e.Log.Log(ctx, level, "provider answered", "movement", m.ID.String(), "provider", m.Provider, "merchant", m.Owner.MerchantID,
		"mode", m.Owner.Mode, "outcome", r.Outcome.String(), "our_account", r.Blame == sdk.BlameAccount, "detail", r.Detail)
}

// noteTimeout bounds the writing of what is good to know and no more.
const noteTimeout = time.Second

// note keeps for operators what a provider said of money that goes out, where it
// may change no state.
func (e *Engine) note(ctx context.Context, op *catalog.Operation, m movement.Movement, event, word, text string) {
	if !op.Rules.Pends {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	if err := e.Records.Note(ctx, e.Now(), m, event, detail("said", word, "detail", printable(text))); err != nil {
		e.Log.WarnContext(ctx, "what the provider said can't be noted", "movement", m.ID.String(), "error", err)
	}
}
