package movement

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// OverdueAfter is how long nobody may know of a movement whether it was sent, or how
// it ended, before it is an exception.
const OverdueAfter = 24 * time.Hour

// endlessAfter is how long what waits for its payer may do so where the provider has
// told no end of its life.
const endlessAfter = 30 * 24 * time.Hour

// PollLasts is longer than any poll is under way.
const PollLasts = time.Minute

// Apply says what a fact means for a movement. It is the whole of what the gateway
// does with money: calls, lookups, notifications, statements, operators and time all
// end here.
func Apply(rules Rules, m Movement, f Fact) Transition {
	t := says(rules, m, f)
	if t.Effect != Nothing && t.Effect != Contradiction {
		return t
	}
	unheard := m.unheard(f)
	if len(unheard) == 0 {
		return t
	}
	if why, text := foreign(m, f); why != "" {
		if f.Says == SaysNothing { // otherwise that has been said
			t = exception(why, cmp.Or(f.EventID, unheard[0].ID), text)
		}
		return t
	}
	for _, r := range unheard { // one that is an exception holds up no other
		back := moneyBack(rules, m, f, r)
		back.Exceptions = append(t.Exceptions, back.Exceptions...)
		if back.Effect == MoneyBack {
			return back
		}
		t.Exceptions = back.Exceptions
	}
	return t
}

func says(rules Rules, m Movement, f Fact) Transition {
	switch f.Says {
	case SaysNothing:
		return Transition{}
	case SaysAccepted:
		return accepted(rules, m, f)
	case SaysRefused:
		return refused(rules, m, f)
	case SaysNotSent:
		return notSent(rules, m, f)
	case SaysErrored:
		return errored(rules, m, f)
	case SaysNotFound:
		return notFound(rules, m, f)
	case SaysAbsent:
		return absent(rules, m, f)
	case SaysReadThrough:
		return readThrough(rules, m, f)
	case SaysDiffers:
		return exception(ReasonAmount, f.EventID, "the statement tells its payment once more, and otherwise")
	case SaysCancelled:
		return cancelled(rules, m, f)
	case SaysOverridden:
		return overridden(rules, m, f)
	case SaysOverdue:
		return overdue(rules, m, f)
	case SaysPending, SaysSucceeded, SaysFailed, SaysExpired:
	}
	return updated(rules, m, f)
}

// accepted takes in a creation that the provider has made.
func accepted(rules Rules, m Movement, f Fact) Transition {
	kept := Transition{Result: f.Data, ProviderReference: f.ProviderReference, ExpiresAt: f.ExpiresAt, Answers: true}
	if rules.Life > 0 {
		kept.ExpiresAt = m.ExpiresAt // its life is ours
	}
	switch m.State {
	case Submitting, Acknowledged:
		kept.Event, kept.Detail = "accepted", detail("source", f.source())
		return move(rules, m, f, Pending, kept)
	case Pending, Succeeded, Failed, Expired: // a notification or a lookup was faster
		kept.Effect = KeepAnswer
		return kept
	case NotSubmitted: // whoever answers the call lists it
	}
	return Transition{}
}

// refused takes in the provider's no to a creation.
func refused(rules Rules, m Movement, f Fact) Transition {
	if m.State.Unknown() {
		return move(rules, m, f, Failed, Transition{
			Event: "refused", Refusal: f.Refusal, Detail: detail("source", f.source(), "detail", f.Detail),
		})
	}
	return overtaken(m, "refused")
}

// notSent takes in the proof of a call that nothing was sent.
func notSent(rules Rules, m Movement, f Fact) Transition {
	resubmitted := rules.Resubmits && !m.PolledAt.IsZero()
	switch {
	case rules.Resubmits && (!m.State.Unknown() || resubmitted):
		return Transition{} // a lookup that resubmits may have sent it
	case !m.State.Unknown():
		return overtaken(m, "not sent")
	}
	t := free(m, Transition{Detail: detail("source", f.source())})
	t.Releases = t.To == NotSubmitted && rules.Reserves == ReserveAmount // what a status has told may be on its way to a payer
	return move(rules, m, f, t.To, t)
}

// errored takes in that the provider has ended the call with an error of its own, which
// does not tell what it has done: nothing is under way any more, so "not found" is
// proof sooner.
func errored(rules Rules, m Movement, f Fact) Transition {
	if !rules.ErrorEnds() || !m.State.Unknown() || m.Errored() {
		return Transition{}
	}
	then := m
	then.ErroredAt = f.Now
	return Transition{
		Effect: Errored, Event: "errored", Detail: detail("source", f.source(), "detail", f.Detail), NextPoll: then.NextPoll(f.Now, rules),
	}
}

// overtaken is about a call that made nothing, of a movement that somebody else's
// word has moved on meanwhile.
func overtaken(m Movement, said string) Transition {
	if m.State == NotSubmitted || m.State == Failed {
		return Transition{}
	}
	return exception(ReasonContradiction, m.UpstreamReference(), "the call was "+said+", but it is "+string(m.State))
}

// free ends a movement of which nothing was sent: its reference is free again,
// unless a merchant has read that it is pending. Then it has failed, and nothing else
// tells submitting from acknowledged.
func free(m Movement, t Transition) Transition {
	t.To, t.Event = NotSubmitted, notSentEvent
	if m.State == Acknowledged {
		t.To = Failed
		t.Refusal = &Refusal{Unsent: true, Message: "The " + string(m.Kind) +
			" was never sent to the provider. No money was moved. It was told as pending, so its reference stays used: ask for it again under a new one."}
	}
	return t
}

// notSentEvent is the history's word for proof that nothing was sent.
const notSentEvent = "not_sent"

// notFound weighs a lookup that answered "there is no such thing": proof that
// nothing was sent only when it comes as often as the rules say, after nothing can
// be under way any more. The first sets the time that the next waits for. It proves
// nothing on another account, which would not know it either, nor by a wrong clock.
// Where the rules want the account's mutations beside, it is counted on.
func notFound(rules Rules, m Movement, f Fact) Transition {
	switch {
	case m.State == Pending:
		return exception(ReasonVanished, "", "the provider no longer knows a movement that it had accepted")
	case !m.State.Unknown(), !f.Proves, f.Now.Before(m.ProvenAfter(rules)), m.Misses > 0 && f.Now.Before(m.DueAt):
		return Transition{}
	}
	miss := Transition{MissUntil: f.Now.Add(max(rules.NotFound.Apart, rules.Pace.Every))}
	if m.Misses >= rules.NotFound.Times {
		miss.MissUntil = f.Now.Add(m.AskAgainIn(f.Now, rules))
	}
	if m.Misses+1 < rules.NotFound.Times || rules.NotFound.Mutations {
		return miss
	}
	miss.Detail = detail("source", f.source())
	t := free(m, miss)
	return move(rules, m, f, t.To, t)
}

// readThrough ends a collection unpaid once its account's statement is complete
// beyond the end of its life.
func readThrough(rules Rules, m Movement, f Fact) Transition {
	if m.State != Pending || !unpaid(m.ExpiresAt, f.Now, f.Through) {
		return Transition{}
	}
	return move(rules, m, f, Expired, Transition{
		Event: string(Expired), Detail: detail("source", f.source(), "through", stamp(f.Through)),
	})
}

// unpaid tells whether a statement that is complete through a moment, and in which
// nothing has paid a collection, says that nothing will.
func unpaid(expires, now, through time.Time) bool {
	return now.After(expires) && through.After(expires)
}

// cancelled ends what its merchant had ended at the provider.
func cancelled(rules Rules, m Movement, f Fact) Transition {
	if m.State != Pending || m.PaidAmount != 0 { // operators decide what has another amount
		return Transition{}
	}
	return move(rules, m, f, Expired, Transition{Event: string(Expired), Detail: detail("source", f.source())})
}

// overridden ends a movement as operators say. What a lookup may still be sending
// again stays as it is.
func overridden(rules Rules, m Movement, f Fact) Transition {
	if !m.State.Open() {
		return Transition{}
	}
	o, alone, arrived := f.Override, "", ""
	if m.PaidAmount != 0 {
		arrived = m.PaidAmount.String()
	}
	if o.Alone {
		alone = "yes"
	}
	t := Transition{Event: "overridden", Detail: detail("source", f.source(), "operators", o.Operators(), "alone", alone,
		"outcome", string(o.Outcome), "reason", o.Reason, "confirmation", o.ConfirmedReason, "arrived", arrived)}
	if o.Outcome == OverrideResubmit {
		return renewed(rules, m, f, t)
	}
	if rules.Resubmits && m.PolledAt.After(f.Begun.Add(-PollLasts)) {
		return Transition{}
	}
	t.Result, t.Answers = reworded(m.Result, f.Message), rules.Answers == AnswerPending && !m.Answered()
	to := rules.Ends(m.State, o.Outcome)
	t.FactID = OverrideFact
	if to == Succeeded {
		t.Cost = m.Cost // nobody knows better than what was agreed
	}
	if to == Succeeded && rules.EndedBy == EndedByStatement {
		t.PaidAt = f.Now
	}
	return move(rules, m, f, to, t)
}

// renewed has a movement resubmitted that no provider has confirmed, as operators have
// decided. The time in which that may buy counts from the decision and not from now: a
// decision that is applied late, or once more, buys nothing that nobody waits for.
func renewed(rules Rules, m Movement, f Fact, t Transition) Transition {
	decided := f.Override.MadeAt()
	if !rules.Resubmits || !m.State.Unknown() || !decided.After(m.SendBy) {
		return Transition{}
	}
	t.Effect, t.SendBy, t.NextPoll = Renewal, decided, f.Now.Add(rules.Pace.Every)
	return t
}

// reworded is a result with other words in place of those that the provider had for
// a movement under way, nil where it had none.
func reworded(result json.RawMessage, words string) json.RawMessage {
	var given map[string]json.RawMessage
	if len(result) == 0 || json.Unmarshal(result, &given) != nil || given["message"] == nil {
		return nil
	}
	given["message"], _ = json.Marshal(words) // a string
	result, err := json.Marshal(given)
	if err != nil {
		return nil
	}
	return result
}

// overdue lists what should be known by now.
func overdue(rules Rules, m Movement, f Fact) Transition {
	text, since := "", " after a day"
	switch {
	case f.Now.Sub(m.CreatedAt) < OverdueAfter:
	case m.State.Unknown() && m.Misses >= rules.NotFound.Times:
		text = "the provider does not find it, which alone proves nothing of money that goes out: see its notes for the account's mutations"
	case m.State.Unknown():
		text = "nobody knows yet whether it was sent"
	case m.State == Pending && !rules.Waits:
		text = "the provider has it and does not tell its end"
	case m.State == Pending && !m.ExpiresAt.IsZero() && f.Now.Sub(m.ExpiresAt) >= OverdueAfter:
		text = "its life has been over for a day, and the provider does not tell its end"
	case m.State == Pending && m.ExpiresAt.IsZero() && f.Now.Sub(m.CreatedAt) >= endlessAfter:
		text, since = "the provider has told no end of its life, and it has waited for a month", " after a month"
	}
	if text == "" {
		return Transition{}
	}
	return exception(ReasonUnresolved, m.UpstreamReference()+since, text)
}

// updated takes in a status update: what the provider, its statement, or the answer
// of a call says of a movement's state.
func updated(rules Rules, m Movement, f Fact) Transition {
	to, _ := f.State()
	if rules.EndedBy == EndedByStatement && f.Source != FromStatement {
		f.ExpiresAt = time.Time{} // its life is ours
		if to != Pending {
			return exception(ReasonContradiction, f.EventID, "a "+string(f.Source)+" says "+string(to)+", which the statement alone may say")
		}
	}
	if f.Source == FromStatement && to == Failed && m.State != Succeeded && !m.PaidLateAt.IsZero() {
		return allBack(rules, m, f) // its merchant read of late money, and reads that it is gone
	}
	if why, text := contradicts(rules, m, f); why != "" {
		if why == ReasonAmount && rules.Events.AmountDiffers != "" && to == Succeeded && f.Amount > 0 {
			return otherAmount(rules, m, f, text)
		}
		return exception(why, f.EventID, text)
	}
	effect := rules.judge(m.State, to)
	if effect == Move && m.PaidAmount != 0 && (to == Expired || to == Failed) {
		return exception(ReasonAmount, f.EventID, m.PaidAmount.String()+" of "+m.Amount.String()+" has arrived, and the provider says "+string(to)+": operators decide")
	}
	if to == Failed && m.State.Final() && !m.PaidLateAt.IsZero() && f.Source != FromCall && (f.EventID == "" || f.EventID != m.FactID) {
		return allBack(rules, m, f) // of late money, and no older news than that
	}
	if m.PaidByOverride() && to == Expired {
		effect = Contradiction // and not older news: operators have said otherwise
	}
	if f.Source == FromCall {
		switch {
		case effect == MoneyBack:
			effect = Contradiction // a refusal that comes late takes nothing back
		case rules.Resubmits && to == Failed && !m.PolledAt.IsZero() && !m.State.Final():
			return Transition{} // the same request was sent again meanwhile: its answer counts
		}
	}
	switch effect {
	case Move:
		return moved(rules, m, f, to)
	case LateMoney:
		return lateMoney(rules, m, f)
	case MoneyBack:
		return allBack(rules, m, f)
	case Contradiction:
		return exception(ReasonContradiction, f.EventID, "it is "+string(m.State)+", the provider says "+string(to))
	case Nothing, Supplement, KeepAnswer, Renewal, Errored, OtherAmount:
	}
	return confirmed(rules, m, f, to)
}

// contradicts checks what a provider says against our own record. What differs leaves
// the movement as it is and is an exception.
func contradicts(rules Rules, m Movement, f Fact) (why, text string) {
	succeeded := f.Says == SaysSucceeded
	switch {
	case succeeded && f.Unreadable != "":
		return ReasonUnreadable, "the provider says succeeded, and its data can't be read: " + f.Unreadable
	case f.Reference != m.UpstreamReference():
		return foreign(m, f)
	case f.NamesAnother(m) != "":
		return ReasonContradiction, f.NamesAnother(m)
	case f.Currency != "" && f.Currency != "IDR":
		return foreign(m, f)
	case rules.AmountIsCost: // a bill costs what was agreed, a product at most that
		exact := m.Charge == Held && f.Amount != m.Cost
		if succeeded && (exact || f.Amount <= 0 || f.Amount > m.Cost) {
			return ReasonAmount, "agreed on " + m.Cost.String() + ", the provider says " + f.Amount.String()
		}
	case f.Amount != m.Amount && (succeeded || f.Amount != 0 && f.Amount != m.PaidAmount):
		return ReasonAmount, "asked " + m.Amount.String() + ", the provider says " + f.Amount.String()
	}
	return "", ""
}

// foreign says why what a fact tells of money is not about a movement's, "" where it is.
func foreign(m Movement, f Fact) (why, text string) {
	switch {
	case f.Reference != m.UpstreamReference():
		return ReasonContradiction, "it is asked for as " + m.UpstreamReference() + ", the provider speaks of " + f.Reference
	case f.Currency != "" && f.Currency != "IDR":
		return ReasonCurrency, "the provider says " + f.Currency
	}
	return "", ""
}

// moved is the move that a status update makes.
func moved(rules Rules, m Movement, f Fact, to State) Transition {
	t := Transition{
		Event: string(to), Detail: f.entry(rules), ProviderReference: f.ProviderReference, ExpiresAt: f.ExpiresAt,
	}
	if to.Final() {
		t.FactID = f.EventID
	}
	if rules.Answers == AnswerOffer && to == Succeeded {
		t.PaidAt, t.Channel = f.At, f.Channel
		if f.At.IsZero() && rules.EndedBy == EndedByStatement { // the contract shows one, and nobody knows better
			t.PaidAt = f.Now
		}
	}
	if rules.AmountIsCost && to == Succeeded {
		t.Cost = f.Amount
	}
	if m.PaidAmount != 0 && to == Succeeded {
		t.PaidAmount = f.Amount // the rest has arrived, too
	}
	switch {
	case rules.Answers == AnswerPending:
		t.Result, t.Answers = f.Data, !m.Answered()
	case rules.Answers == AnswerPresent:
		t.Result = f.Data
	case to != Failed && !m.Answered() && f.Offers: // what failed before it was answered is answered so
		t.Result, t.Answers = f.Data, true
	}
	return move(rules, m, f, to, t)
}

// lateMoney keeps that money came after the end, once, and watches it from then on.
func lateMoney(rules Rules, m Movement, f Fact) Transition {
	t := Transition{
		Effect: LateMoney, HappenedAt: f.At, Event: "paid_late", Tells: PaidLateEvent,
		Detail:     detail("source", f.source(), "fact", f.EventID),
		Exceptions: []Cause{{ReasonPaidLate, f.EventID, "amount " + f.Amount.String()}},
	}
	if f.At.IsZero() {
		t.HappenedAt = f.Now
	}
	if !m.PaidLateAt.IsZero() {
		return Transition{Exceptions: t.Exceptions} // a second one, of which operators hear
	}
	m.PaidLateAt, m.UpdatedAt = t.HappenedAt, f.Now
	t.NextPoll = m.NextPoll(f.Now, rules)
	return t
}

// allBack takes in a status that says no more than that all of the money went back.
// Where the provider tells what went back, that counts.
func allBack(rules Rules, m Movement, f Fact) Transition {
	left, came := m.Paid()-m.Returned(), later(m.PaidAt, m.PaidLateAt)
	older := f.Source == FromNotification && !f.At.IsZero() && f.At.Before(came) // notifications come in any order
	if len(f.Returns) > 0 || left <= 0 || older {
		return Transition{}
	}
	at := f.At
	if at.IsZero() {
		at = f.Now
	}
	return moneyBack(rules, m, f, Return{Sort: Reversal, Amount: left, At: at})
}

// otherAmount keeps what has arrived where it is not what was asked for: the state stays
// until operators decide, and the merchant reads of it.
func otherAmount(rules Rules, m Movement, f Fact, text string) Transition {
	t := Transition{Exceptions: []Cause{{ReasonAmount, f.EventID, text}}}
	switch {
	case m.PaidAmount == f.Amount && (m.State != Expired || m.FactID == OverrideFact), m.State == Succeeded, m.State == NotSubmitted:
		return t
	case rules.judge(m.State, Succeeded) == LateMoney:
		if !m.PaidLateAt.IsZero() {
			return t
		}
		late := lateMoney(rules, m, f)
		late.PaidAmount, late.Exceptions = f.Amount, append(late.Exceptions, t.Exceptions...)
		return late
	}
	t.Effect, t.Event, t.Tells, t.PaidAmount = OtherAmount, "amount_differs", AmountEvent, f.Amount
	t.Detail = detail("source", f.source(), "fact", f.EventID, "at", stamp(f.At), "channel", f.Channel, "amount", f.Amount.String())
	return t
}

// confirmed takes what is left of a status update that changes no state: an answer
// that nobody had yet, or a second success.
func confirmed(rules Rules, m Movement, f Fact, to State) Transition {
	again := to == Succeeded && m.FactID != "" && f.EventID != "" && f.EventID != m.FactID
	switch {
	case to == Succeeded && rules.Flow == MoneyOut:
		return succeededAgain(rules, m, f, again && !m.PaidByOverride())
	case again && m.PaidByOverride() && f.By != "": // an operator says that this is the payment
		return Transition{}
	case to == Succeeded && m.Gone() && f.Source == FromLookup && !f.tellsGone(rules, m):
		return exception(ReasonContradiction, f.EventID, "its money went back, and the provider says succeeded")
	case again && m.PaidByOverride() && m.PaidAmount != 0 && f.Amount > m.PaidAmount: // the rest
		t := Transition{
			Effect: OtherAmount, Event: "amount_differs", Tells: AmountEvent, PaidAmount: f.Amount,
			Detail: detail("source", f.source(), "fact", f.EventID, "at", stamp(f.At), "channel", f.Channel, "amount", f.Amount.String()),
		}
		t.Exceptions = []Cause{{ReasonPaidAgain, f.EventID, "operators ended it with " + m.PaidAmount.String() + ", and the provider tells of " + f.Amount.String()}}
		return t
	case again && m.PaidByOverride(): // nobody knows which payment the operators saw
		return exception(ReasonPaidAgain, f.EventID, "operators ended it as paid, and the provider tells of a payment")
	case again:
		return exception(ReasonPaidAgain, f.EventID, "it was paid before by "+m.FactID)
	case to != Pending, m.State != Pending, rules.Answers != AnswerOffer, m.Answered(), !f.Offers:
		return Transition{}
	}
	return Transition{Effect: KeepAnswer, Result: f.Data, Answers: true, ProviderReference: f.ProviderReference, ExpiresAt: f.ExpiresAt}
}

// succeededAgain takes what is left of a success of money that goes out that is told
// once more: another cost, which is not posted; what was not told before, which
// status answers have from now on; or another name, which may be a second success.
func succeededAgain(rules Rules, m Movement, f Fact, renamed bool) Transition {
	var t Transition
	cheaper := rules.AmountIsCost && f.Amount != m.Cost // what is dearer contradicts our record
	if cheaper {
		t.Exceptions = append(t.Exceptions, Cause{ReasonAmount, f.EventID, "booked at " + m.Cost.String() + ", the provider says " + f.Amount.String()})
	}
	switch {
	case f.Late != "" && m.ReturnedAt.IsZero():
		// An operator has to know: the merchant was called back without it. It is
		// listed as another success would be, so that the same one told again is not.
		t.Effect, t.Result, t.Event, t.Detail = Supplement, f.Fuller, "supplemented", f.entry(rules)
		t.Exceptions = append(t.Exceptions, Cause{ReasonContradiction, f.EventID, "the provider told " + f.Late + " late, after the success: the callback went without it"})
	case m.Gone() && f.Source == FromLookup && !f.tellsGone(rules, m):
		t.Exceptions = append(t.Exceptions, Cause{ReasonContradiction, f.EventID, "it came back, and the provider says succeeded"})
	case renamed && !cheaper:
		t.Exceptions = append(t.Exceptions, Cause{ReasonContradiction, f.EventID, "it had succeeded before as " + m.FactID})
	}
	return t
}

// move completes a move with all that follows from it by the rules.
func move(rules Rules, m Movement, f Fact, to State, t Transition) Transition {
	t.Effect, t.To, t.From = Move, to, []State{m.State}
	if m.State.Unknown() && t.Event != notSentEvent {
		t.From = slices.Clone(unknown)
	}
	if to.Final() {
		t.Tells = EndedEvent
	}
	t.Receipt = rules.Receipts && to == Succeeded
	t.GivesBack = m.givesBack(to)
	t.Posting = t.posting(m, f.Now)
	then := m
	then.State, then.UpdatedAt = to, f.Now
	if !t.ExpiresAt.IsZero() || t.Event == "accepted" {
		then.ExpiresAt = t.ExpiresAt
	}
	t.NextPoll = then.NextPoll(f.Now, rules)
	return t
}

func exception(reason, fact, text string) Transition {
	effect := Nothing
	if reason == ReasonContradiction {
		effect = Contradiction
	}
	return Transition{Effect: effect, Exceptions: []Cause{{reason, fact, text}}}
}

// entry is a status update's entry in the history, for operators: of money that goes
// out with what the provider gave.
func (f Fact) entry(rules Rules) string {
	amount, told := "", ""
	if rules.Flow == MoneyOut {
		told = f.Raw
		if f.Amount != 0 {
			amount = f.Amount.String()
		}
	}
	return detail("source", f.source(), "fact", f.EventID, "at", stamp(f.At), "channel", f.Channel, "provider_reference", f.ProviderReference, "amount", amount, "data", told)
}

// source is the source as the history names it.
func (f Fact) source() string {
	switch {
	case f.By != "":
		return f.By
	case f.Hinted:
		return string(f.Source) + " after a notification"
	}
	return string(f.Source)
}

// NamesAnother says of a notification that it is about something else than what the provider
// called a movement, "" where it is not: two things were made under one name of ours.
func (f Fact) NamesAnother(m Movement) string {
	if f.Source != FromNotification || f.ProviderReference == "" || m.ProviderReference == "" || f.ProviderReference == m.ProviderReference {
		return ""
	}
	return "the provider called it " + m.ProviderReference + ", its notification speaks of " + f.ProviderReference
}
