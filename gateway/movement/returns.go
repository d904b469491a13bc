package movement

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// ReturnSort is why money went back.
type ReturnSort string

// The sorts of returns.
const (
	Refund     ReturnSort = "refund"     // the merchant, or the provider for it, gave it back
	Void       ReturnSort = "void"       // it was taken back before it was settled
	Chargeback ReturnSort = "chargeback" // the payer's bank took it back
	Reversal   ReturnSort = "reversal"   // the provider took it back
)

// Known tells whether it is one of the sorts.
func (s ReturnSort) Known() bool {
	return s == Refund || s == Void || s == Chargeback || s == Reversal
}

// Return is money of a success that went back. It is kept once.
type Return struct {
	ID     string       `json:"id"` // the provider's; "" where only a status told that all of it went back
	Sort   ReturnSort   `json:"sort"`
	Amount money.Amount `json:"amount"`
	At     time.Time    `json:"at"`
	Refund string       `json:"refund,omitempty"` // the reference of the refund by which the merchant has ordered it, "" for none
	// UndoneAt is when the money came again: a dispute was won, a refund failed. It is
	// zero while it is gone.
	UndoneAt time.Time `json:"undone_at,omitzero"`
}

// Paid is what has arrived: what the provider has told, or the amount asked for.
func (m *Movement) Paid() money.Amount {
	if m.PaidAmount != 0 {
		return m.PaidAmount
	}
	return m.Amount
}

// HasPaid tells whether it was paid, in time or late.
func (m *Movement) HasPaid() bool { return m.State == Succeeded || !m.PaidLateAt.IsZero() }

// Returned is how much of it went back.
func (m *Movement) Returned() money.Amount {
	var sum money.Amount
	for _, r := range m.Returns {
		if r.UndoneAt.IsZero() {
			sum += r.Amount
		}
	}
	if len(m.Returns) == 0 && !m.ReturnedAt.IsZero() {
		return m.Paid() // a gateway of before kept no more than when
	}
	return sum
}

// Holds tells whether the movement has a return as it is told: gone, or come again.
func (m *Movement) Holds(r Return) bool {
	i := m.returnAt(r)
	return i >= 0 && m.Returns[i].UndoneAt.IsZero() == r.UndoneAt.IsZero()
}

// Counts tells whether the movement's usage counts: it is under way, or its money has moved
// and is not all back.
func (m *Movement) Counts() bool {
	return m.State.Open() || m.State == Succeeded && !m.Gone()
}

// Gone tells of a success whether nothing of its money is left.
func (m *Movement) Gone() bool { return m.State == Succeeded && !m.ReturnedAt.IsZero() }

// Listed is the state by which lists show the movement.
func (m *Movement) Listed() State {
	if m.Gone() {
		return Returned
	}
	return m.State
}

// EndedIn is what lists go by once it has ended, "" before.
func (m *Movement) EndedIn() string { return m.Listed().End() }

// withReturn is the movement with a return that it did not have, or had otherwise.
func (m Movement) withReturn(r Return) Movement {
	m.Returns = slices.Clone(m.Returns)
	if i := m.returnAt(r); i >= 0 {
		m.Returns[i] = r
	} else {
		m.Returns = append(m.Returns, r)
	}
	switch gone := m.Returned() >= m.Paid(); {
	case !gone:
		m.ReturnedAt = time.Time{}
	case m.ReturnedAt.IsZero():
		m.ReturnedAt = r.At
	}
	return m
}

// returnAt is where the movement has a return, by the provider's name or else by the refund.
func (m *Movement) returnAt(r Return) int {
	i := slices.IndexFunc(m.Returns, func(has Return) bool { return has.ID == r.ID })
	if i < 0 && r.Refund != "" {
		i = slices.IndexFunc(m.Returns, func(has Return) bool { return has.Refund == r.Refund })
	}
	return i
}

// twin is a return that is no other than one that is told: its refund had succeeded under our
// own name, when nobody knew any more that the provider's was of it. That is so after a
// restore that had forgotten the refund.
func (m *Movement) twin(r Return) (twin Return, is bool) {
	i := slices.IndexFunc(m.Returns, func(has Return) bool {
		_, ours := ParseUpstreamReference(has.ID)
		return ours && has.ID != r.ID && r.Refund != "" && has.Refund == r.Refund && has.UndoneAt.IsZero()
	})
	if i < 0 || m.returnAt(Return{ID: r.ID}) < 0 { // of what is told for the first time it is the record
		return twin, false
	}
	return m.Returns[i], true
}

// tellsAll tells whether a status said that all of it went back, and nothing more.
func (m *Movement) tellsAll() bool {
	return m.returnAt(Return{}) >= 0 || len(m.Returns) == 0 && !m.ReturnedAt.IsZero()
}

// unheard are the returns that a fact tells which the movement does not have as they are
// told. What a status alone told to be gone has no name: who names it then tells nothing
// new.
func (m *Movement) unheard(f Fact) (news []Return) {
	for _, r := range f.Returns {
		if r.At.IsZero() {
			r.At = f.Now
		}
		i := m.returnAt(r)
		links := i >= 0 && r.Refund != "" && m.Returns[i].Refund == "" && m.Returns[i].UndoneAt.IsZero() == r.UndoneAt.IsZero()
		switch {
		case i < 0 && m.tellsAll() && !r.UndoneAt.IsZero(): // a dispute was won of what had no name
			all := m.returnAt(Return{})
			named := all >= 0 && m.Returns[all].Amount == r.Amount
			if named {
				r.ID, r.At = "", m.Returns[all].At
			}
			if !named || m.Returns[all].UndoneAt.IsZero() {
				news = append(news, r)
			}
		case i < 0 && (m.tellsAll() || !r.UndoneAt.IsZero()): // nor does what came again unheard
		case i < 0:
			news = append(news, r)
		case m.Returns[i].UndoneAt.IsZero() != r.UndoneAt.IsZero() && r.UndoneAt.After(m.Returns[i].UndoneAt):
			r.ID, r.At, r.Refund = m.Returns[i].ID, m.Returns[i].At, cmp.Or(r.Refund, m.Returns[i].Refund)
			news = append(news, r)
		case links && m.Returns[i].Amount == r.Amount:
			linked := m.Returns[i]
			linked.Refund = r.Refund
			news = append(news, linked)
		case m.Returns[i].Amount != r.Amount && (m.Cost == 0 || r.Amount != m.Cost): // of an order its price is kept
			news = append(news, r)
		}
		if twin, is := m.twin(r); is && twin.Amount == r.Amount {
			twin.UndoneAt, twin.Refund = f.Now, ""
			news = append(news, twin)
		}
	}
	return news
}

// tellsGone tells whether a fact agrees that nothing of a movement's money is left: by what
// it tells to have gone back, or to have come again.
func (f Fact) tellsGone(rules Rules, m Movement) bool {
	var gone money.Amount
	for _, r := range f.Returns {
		if r.UndoneAt.IsZero() {
			gone += r.Amount
		}
	}
	paid := m.Paid()
	if rules.AmountIsCost {
		paid = m.Cost
	}
	return gone >= paid || len(m.unheard(f)) > 0
}

// moneyBack takes in a return. Of an order, whose price may be another than its cost, the
// provider takes all back or a person decides; so one does where it came again.
func moneyBack(rules Rules, m Movement, f Fact, r Return) Transition {
	paid := m.HasPaid()
	known := m.returnAt(r)
	whole := r.UndoneAt.IsZero() && (r.ID == "" || r.Amount == m.Cost)
	what := string(r.Sort) + " of " + r.Amount.String()
	fact := r.ID
	if fact == "" {
		fact = f.EventID
	}
	switch {
	case !r.Sort.Known():
		return exception(ReasonNotUnderstood, fact, "the provider tells of "+r.Amount.String()+" that went back, and not why")
	case !paid && r.Sort == Void && m.State.Final():
		return Transition{} // it was never paid, and nothing is left to pay
	case !paid:
		return exception(ReasonContradiction, fact, "it is "+string(m.State)+", the provider says that money of it went back: "+what)
	case rules.AmountIsCost && m.Gone():
		return exception(ReasonContradiction, fact, "all of it had gone back before, the provider tells of a "+what)
	case rules.AmountIsCost && !whole:
		return exception(ReasonAmount, fact, "it cost "+m.Cost.String()+", the provider tells of a "+what)
	case rules.AmountIsCost:
		r.Amount = m.Amount
	case known >= 0 && m.Returns[known].Amount != r.Amount:
		return exception(ReasonAmount, fact+" of "+r.Amount.String(), "the provider told of "+m.Returns[known].Amount.String()+" before, and now of a "+what)
	case r.Amount <= 0 || r.Amount > m.Paid():
		return exception(ReasonAmount, fact, "of "+m.Paid().String()+", the provider tells of a "+what)
	case known < 0 && !r.UndoneAt.IsZero():
		return exception(ReasonContradiction, fact, "all of it had gone back without a name, the provider tells that a "+what+" came again")
	}
	then := m.withReturn(r)
	counts := 0
	if rules.Follows && m.Counts() != then.Counts() { // what it gave may be given again, or has gone after all
		counts = 1
		if then.Counts() {
			counts = -1
		}
	}
	left := max(then.Paid()-then.Returned(), 0)
	t := Transition{
		Effect: MoneyBack, Event: "returned", Tells: ReturnedEvent, HappenedAt: r.At, Return: &r, GivesBack: counts,
		Detail: detail("source", f.source(), "fact", fact, "sort", string(r.Sort), "amount", r.Amount.String(), "at", stamp(r.At), "left", left.String(), "refund", r.Refund),
	}
	if known >= 0 && m.Returns[known].UndoneAt.Equal(r.UndoneAt) {
		t.Event, t.Tells = "return_ordered", NoEvent // it was told before anybody knew that
		return t
	}
	why := what
	if !r.UndoneAt.IsZero() {
		t.Event, t.HappenedAt, why = "return_undone", r.UndoneAt, what+" was undone"
		fact += " undone"
	}
	if m.Charge != Unpaid {
		t.Posting = m.posts(f.Now, takeBack(m))
	}
	if r.Refund == "" || !r.UndoneAt.IsZero() { // else its merchant has ordered it
		t.Exceptions = []Cause{{ReasonReturned, fact, why + ", " + left.String() + " left"}}
	}
	return t
}
