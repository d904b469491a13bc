package movement_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// section is one section of the truth table: a kind, and how it is paid.
type section struct {
	title, about string
	rules        movement.Rules
	charge       movement.Charge
}

func sections(t testing.TB) []section {
	t.Helper()
	pace := movement.Pace{SettlesWithin: 30 * time.Second, ErrorSettlesWithin: 5 * time.Second, Every: 5 * time.Second}
	order := rules(t, manifest.Order, pace)
	return []section{
		{
			"Payment", "A payer pays at the provider. A creation is answered with what there is to pay, or with the provider's refusal.",
			rules(t, manifest.Payment, pace), movement.Unpaid,
		},
		{
			"Collection", "A payer pays to an account, and the lines of its statement end the collection. Every open collection of an account has an amount of its own.",
			rules(t, manifest.Collection, pace), movement.Unpaid,
		},
		{
			"Order, prepaid", "The price is taken at the reservation (`charged`), its end is the posting `cost` or `refund`. A creation is always answered that it is pending. " +
				"The cost may be lower than agreed, and what the provider says is posted; an override posts the agreed cost. " +
				"For an order on the merchant's own connection the same is true, without postings.",
			order, movement.Charged,
		},
		{
			billed, "The price is held at the reservation (`held`), its end is the posting `capture` or `release`. The cost must be the agreed one to the rupiah. Everything else is as for prepaid orders.",
			order, movement.Held,
		},
		{
			"Transfer", "Money goes out from the merchant's own account, within payout limits. A creation is answered how it stands.",
			rules(t, manifest.Transfer, pace), movement.Unpaid,
		},
		{
			"Refund", "Money of a payment goes back, never more than has come. A creation is answered how it stands. Before a refund ends as succeeded, its payment takes in what went back.",
			rules(t, manifest.Refund, pace), movement.Unpaid,
		},
	}
}

const billed = "Order, bill"

// states are those that the section's movements have.
func (s section) states() []movement.State {
	return slices.DeleteFunc(slices.Clone(states), func(state movement.State) bool {
		return s.rules.From[state] == nil
	})
}

const (
	asked  money.Amount = 10_000 // of every movement here, and
	agreed money.Amount = 9_500  // what an order costs

	life    = 30 * time.Minute
	seen    = 10 * time.Minute // when facts come, after the creation
	earlier = "fact-1"         // the id of the fact that ended a movement
)

// movement is one that has come to a state.
func (s section) movement(state movement.State) movement.Movement {
	m := movement.Movement{
		Key: movement.Key{Kind: s.rules.Kind, Reference: "INV-1"}, ID: movement.ID{1}, Attempt: 1, State: state,
		Amount: asked, ProviderReference: "TX-1", CreatedAt: epoch, SendBy: epoch.Add(5 * time.Second), UpdatedAt: epoch, ExpiresAt: epoch.Add(life),
	}
	if s.rules.Flow == movement.MoneyOut {
		m.ExpiresAt = time.Time{}
	}
	if s.rules.Reserves == movement.ReserveBalance {
		m.Purchase = movement.Purchase{Cost: agreed, Charge: s.charge}
	}
	if s.rules.Reserves == movement.ReserveLimits {
		m.Usage = []movement.Usage{{Name: "out.amount", Period: "2026-01-01", Amount: int64(asked)}}
	}
	if state == movement.Acknowledged && s.rules.Answers != movement.AnswerOffer {
		m.Answer = json.RawMessage(`{}`)
	}
	if state == movement.Succeeded {
		m.FactID = earlier
	}
	return m
}

// situation is what a movement's state does not tell, and the manifest.
type situation struct {
	name   string
	change func(*movement.Rules, *movement.Movement)
}

func as(name string, change func(*movement.Movement)) situation {
	return situation{name, func(_ *movement.Rules, m *movement.Movement) { change(m) }}
}

func asItIs(*movement.Movement) {}

// situations are those of a state that may matter, in dimensions that are independent.
func (s section) situations(state movement.State) [][]situation {
	var dimensions [][]situation
	dimensions = append(dimensions, []situation{
		as("lookups read", asItIs),
		{"lookups resubmit", func(r *movement.Rules, _ *movement.Movement) { r.Resubmits = true }},
	})
	if !state.Final() {
		dimensions = append(dimensions, []situation{
			as("not polled yet", asItIs),
			as("polled before", func(m *movement.Movement) { m.PolledAt = epoch.Add(seen - time.Minute) }),
		})
	}
	if s.rules.Answers == movement.AnswerOffer && !state.Unknown() && state != movement.NotSubmitted {
		dimensions = append(dimensions, []situation{
			as("not answered yet", asItIs),
			as("answered", func(m *movement.Movement) { m.Answer = json.RawMessage(`{}`) }),
		})
	}
	if state == movement.Succeeded {
		dimensions = append(dimensions, []situation{
			as("as the provider says", asItIs),
			as("as operators say", func(m *movement.Movement) { m.FactID = movement.OverrideFact }),
		})
	}
	if s.rules.Events.PaidLate != "" && (state == movement.Failed || state == movement.Expired) {
		dimensions = append(dimensions, []situation{
			as("no late money yet", asItIs),
			as("late money recorded", func(m *movement.Movement) { m.PaidLateAt = epoch.Add(seen) }),
		})
	}
	if state == movement.Succeeded {
		left := []situation{
			as("all of it is there", asItIs),
			as("all of it went back", func(m *movement.Movement) {
				m.Returns, m.ReturnedAt = []movement.Return{refund("r-1", asked)}, epoch.Add(seen)
			}),
		}
		if !s.rules.AmountIsCost { // which goes back whole
			left = append(left, as("a part went back", func(m *movement.Movement) { m.Returns = []movement.Return{refund("r-1", asked/2)} }))
		}
		dimensions = append(dimensions, left)
	}
	return dimensions
}

// told is one thing that a source can say of a movement.
type told struct {
	source movement.Source
	says   string
	how    string // "" where there is only one way to say it
	fact   func(*movement.Movement) movement.Fact
}

// facts are all that can be said of the section's movements, in the order of the
// document.
func (s section) facts() []told {
	all := s.calls()
	for _, source := range []movement.Source{movement.FromLookup, movement.FromNotification} {
		for _, says := range []struct {
			word string
			says movement.Says
		}{{"pending", movement.SaysPending}, {"succeeded", movement.SaysSucceeded}, {"failed", movement.SaysFailed}, {"expired", movement.SaysExpired}} {
			all = append(all, s.updates(source, says.word, says.says)...)
		}
		all = append(all, told{source, "nothing", "", says(movement.Fact{})})
		all = append(all, returns(source)...)
	}
	all = append(all, s.notFound()...)
	if s.rules.NotFound.Mutations {
		all = append(all, s.absent()...)
	}
	if s.rules.EndedBy == movement.EndedByStatement {
		all = append(all, s.lines()...)
	}
	if s.rules.Kind == manifest.Payment {
		all = append(all, told{movement.FromCancel, "cancelled", "", says(movement.Fact{Says: movement.SaysCancelled})})
	}
	for _, outcome := range movement.OverrideOutcomes {
		o := movement.Override{Operator: "ops@example.com", Outcome: outcome, Reason: "seen in the account", Alone: true, At: epoch.Add(seen)}
		f := movement.Fact{Says: movement.SaysOverridden, Override: &o, Begun: epoch.Add(seen)}
		all = append(all, told{movement.FromOperators, "override " + string(outcome), "no poll under way", says(f)})
		all = append(all, told{movement.FromOperators, "override " + string(outcome), "perhaps during a poll", func(m *movement.Movement) movement.Fact {
			m.PolledAt = f.Begun.Add(-movement.PollLasts + 1)
			return f
		}})
	}
	return append(all,
		told{movement.FromClock, "open", "under a day", says(movement.Fact{Says: movement.SaysOverdue})},
		told{movement.FromClock, "open", "a day or more", says(movement.Fact{Says: movement.SaysOverdue, Now: epoch.Add(24 * time.Hour)})},
		told{movement.FromClock, "open", "a month or more, without an end", func(m *movement.Movement) movement.Fact {
			m.ExpiresAt = time.Time{}
			return movement.Fact{Says: movement.SaysOverdue, Now: epoch.Add(30 * 24 * time.Hour)}
		}},
		told{movement.FromClock, "open", "a day after its life", says(movement.Fact{Says: movement.SaysOverdue, Now: epoch.Add(life + 24*time.Hour)})},
	)
}

// says is a fact that is the same for every movement.
func says(f movement.Fact) func(*movement.Movement) movement.Fact {
	return func(*movement.Movement) movement.Fact { return f }
}

// calls are what the call can say that submitted the movement.
func (s section) calls() []told {
	refusal := &movement.Refusal{Code: "REFUSED", Message: "no"}
	refused, data := movement.Fact{Says: movement.SaysRefused, Refusal: refusal}, json.RawMessage(`{"message":"ok"}`)
	var all []told
	if s.rules.Answers == movement.AnswerOffer {
		offer := movement.Fact{Says: movement.SaysAccepted, Data: data, Offers: true, ExpiresAt: epoch.Add(life)}
		all = append(all, told{movement.FromCall, "accepted", "", says(offer)})
	} else {
		all = slices.DeleteFunc(slices.Concat(
			s.updates(movement.FromCall, "pending", movement.SaysPending), s.updates(movement.FromCall, "succeeded", movement.SaysSucceeded),
		), func(c told) bool { // what a call has no room to say
			return c.how == anotherCurrency || c.how == anotherReference || c.how == anotherName || c.how == anotherID || s.rules.Reports == nil && c.how == unreadable
		})
	}
	if s.rules.Answers == movement.AnswerPending {
		refused = movement.Fact{Says: movement.SaysFailed, Data: data}
	}
	return append(all,
		told{movement.FromCall, "refused", "", s.ours(refused)},
		told{movement.FromCall, "not sent", "", says(movement.Fact{Says: movement.SaysNotSent})},
		told{movement.FromCall, "ended in the provider's error", "", says(movement.Fact{Says: movement.SaysErrored})},
		told{movement.FromCall, "nothing", "", says(movement.Fact{})},
	)
}

// ours is a fact that names the movement.
func (s section) ours(f movement.Fact) func(*movement.Movement) movement.Fact {
	return func(m *movement.Movement) movement.Fact {
		f.Reference = m.UpstreamReference()
		return f
	}
}

// The ways to say a status update, beside the amounts.
const (
	anotherCurrency  = "another currency"
	anotherReference = "another reference"
	anotherName      = "another name of the provider's"
	anotherID        = "under another id"
	withOffer        = "with what there is to pay"
	unreadable       = "data that can't be read"
	withReports      = "with what was missing"
)

// sum is a way to say how much.
type sum struct {
	how    string
	amount money.Amount
}

// updates are the ways to say a status.
func (s section) updates(source movement.Source, word string, status movement.Says) []told {
	right, amounts := asked, []sum{{"amount as asked", asked}, {"another amount", asked + 1}, {"no amount", 0}}
	if s.rules.AmountIsCost {
		right, amounts = agreed, []sum{{"cost as agreed", agreed}, {"lower cost", agreed - 1}, {"higher cost", agreed + 1}, {"no cost", 0}}
	}
	var all []told
	add := func(how string, change func(*movement.Fact)) {
		all = append(all, told{source, word, how, func(m *movement.Movement) movement.Fact {
			f := movement.Fact{Says: status, Reference: m.UpstreamReference(), EventID: earlier, Amount: right, Currency: "IDR"}
			change(&f)
			if m.Answer != nil && s.rules.Flow == movement.MoneyIn { // then nobody looks
				f.Data, f.Offers = nil, false
			}
			if m.State != movement.Succeeded { // only a success can lack something
				f.Late, f.Fuller = "", nil
			}
			return f
		}})
	}
	for _, a := range amounts {
		if source == movement.FromCall && a.amount == 0 && !s.rules.AmountIsCost {
			continue // then it is about what was asked
		}
		add(a.how, func(f *movement.Fact) { f.Amount = a.amount })
	}
	add(anotherCurrency, func(f *movement.Fact) { f.Currency = "USD" })
	add(anotherReference, func(f *movement.Fact) { f.Reference = "INV-1" })
	if source == movement.FromNotification {
		add(anotherName, func(f *movement.Fact) { f.ProviderReference = "TX-2" })
	}
	if s.rules.Answers == movement.AnswerOffer {
		add(withOffer, func(f *movement.Fact) { f.Data, f.Offers = json.RawMessage(`{"qr_string":"00"}`), true })
	}
	if status != movement.SaysSucceeded {
		return all
	}
	add(anotherID, func(f *movement.Fact) { f.EventID = "fact-2" })
	if s.rules.Flow == movement.MoneyOut {
		add(unreadable, func(f *movement.Fact) { f.Unreadable = "not what the schema says" })
	}
	if s.rules.Reports != nil {
		add(withReports, func(f *movement.Fact) { f.Late, f.Fuller = "sn", json.RawMessage(`{"sn":"1"}`) })
	}
	return all
}

// refund is money that went back.
func refund(id string, amount money.Amount) movement.Return {
	return movement.Return{ID: id, Sort: movement.Refund, Amount: amount, At: epoch.Add(seen)}
}

const wentBack = "went back"

// returns are the ways to say that money went back, and no more than that.
func returns(source movement.Source) []told {
	telling := func(how string, change func(*movement.Fact), all func(m *movement.Movement) []movement.Return) told {
		return told{source, wentBack, how, func(m *movement.Movement) movement.Fact {
			f := movement.Fact{Reference: m.UpstreamReference(), Returns: all(m)}
			change(&f)
			return f
		}}
	}
	asTold := func(*movement.Fact) {}
	fact := func(how string, returns ...movement.Return) told {
		return telling(how, asTold, func(*movement.Movement) []movement.Return { return returns })
	}
	unsorted := refund("r-4", asked)
	unsorted.Sort = ""
	all := func(*movement.Movement) []movement.Return { return []movement.Return{refund("r-3", asked)} }
	return []told{
		fact("a part", refund("r-1", asked/2)),
		fact("another part", refund("r-2", asked/2)),
		fact("all", refund("r-3", asked)),
		fact("what it cost", refund("r-3", agreed)),
		fact("more than all", refund("r-3", asked+1)),
		fact("nobody knows why", unsorted),
		fact("nobody knows why, and a part", unsorted, refund("r-2", asked/2)),
		telling("another reference", func(f *movement.Fact) { f.Reference = "another" }, all),
		telling("another currency", func(f *movement.Fact) { f.Currency = "USD" }, all),
		telling("undone", asTold, func(m *movement.Movement) []movement.Return {
			r := refund("r-1", asked/2)
			if len(m.Returns) > 0 {
				r = m.Returns[0]
			}
			r.UndoneAt = epoch.Add(seen)
			return []movement.Return{r}
		}),
	}
}

// proofs name how often a lookup has said "not found".
var proofs = []string{"no proof", "first proof", "second proof", "third proof", "fourth proof", "fifth proof"}

// notFound are the ways in which a lookup says that there is no such thing.
func (s section) notFound() []told {
	fact := func(proves bool, after time.Duration, misses int, due time.Duration) func(*movement.Movement) movement.Fact {
		return func(m *movement.Movement) movement.Fact {
			m.Misses, m.DueAt, m.PolledAt = misses, epoch.Add(due), epoch.Add(after)
			return movement.Fact{Says: movement.SaysNotFound, Proves: proves, Now: m.PolledAt}
		}
	}
	afterError := func(after time.Duration) func(*movement.Movement) movement.Fact {
		return func(m *movement.Movement) movement.Fact {
			m.ErroredAt = epoch.Add(time.Millisecond)
			return fact(true, time.Millisecond+after, 0, 0)(m)
		}
	}
	const lookup, word = movement.FromLookup, "not found"
	last := s.rules.NotFound.Times - 1
	all := []told{
		{lookup, word, "while it may be on its way", fact(true, 10*time.Second, last, 0)},
		{lookup, word, "soon after the provider's error", afterError(5*time.Second + 2*movement.ClockSkew)},
		{lookup, word, "too soon after the provider's error", afterError(5*time.Second + 2*movement.ClockSkew - 1)},
		{lookup, word, "on another account or by a wrong clock", fact(false, seen, last, 0)},
	}
	if last > 0 {
		all = append(all, told{lookup, word, "too soon after the one before", fact(true, seen, last, seen+1)})
	}
	for misses := range s.rules.NotFound.Times {
		all = append(all, told{lookup, word, proofs[misses+1], fact(true, seen, misses, 0)})
	}
	return all
}

const absentSays = "absent from the mutations"

// absent are the ways in which the account's mutations don't have a movement.
func (s section) absent() []told {
	const skew = movement.ProviderSkew
	fact := func(proves bool, misses int, from, begun time.Duration) func(*movement.Movement) movement.Fact {
		return func(m *movement.Movement) movement.Fact {
			m.Misses, m.PolledAt = misses, epoch.Add(begun)
			return movement.Fact{Says: movement.SaysAbsent, Proves: proves, From: epoch.Add(from), Begun: epoch.Add(begun), Now: epoch.Add(seen)}
		}
	}
	const statement, word = movement.FromStatement, absentSays
	times := s.rules.NotFound.Times
	return []told{
		{statement, word, "after the " + proofs[times] + ", read in time", fact(true, times, -skew, seen)},
		{statement, word, "after the " + proofs[times-1], fact(true, times-1, -skew, seen)},
		{statement, word, "on another account or by a wrong clock", fact(false, times, -skew, seen)},
		{statement, word, "read from too late on", fact(true, times, -skew+1, seen)},
		{statement, word, "read while it may be on its way", fact(true, times, -skew, 10*time.Second)},
	}
}

// lines are what the statement can say.
func (s section) lines() []told {
	const statement = movement.FromStatement
	line := movement.Fact{Says: movement.SaysSucceeded, EventID: earlier, Amount: asked, Currency: "IDR"}
	other, second, gone, differs := line, line, line, line
	other.Amount, second.EventID, gone.Says, differs.Says = asked+1, "fact-2", movement.SaysFailed, movement.SaysDiffers
	through := func(after time.Duration) movement.Fact {
		return movement.Fact{Says: movement.SaysReadThrough, Now: epoch.Add(life + time.Minute), Through: epoch.Add(after)}
	}
	return []told{
		{statement, "paid", "amount as asked", s.ours(line)},
		{statement, "paid", "another amount", s.ours(other)},
		{statement, "paid", "by another line", s.ours(second)},
		{statement, "taken back", "", s.ours(gone)},
		{statement, "its lines differ", "", s.ours(differs)},
		{statement, "read through", "a moment of its life", says(through(life))},
		{statement, "read through", "the end of its life", says(through(life + time.Second))},
	}
}
