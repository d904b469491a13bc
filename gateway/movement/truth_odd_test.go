package movement_test

import (
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// oddity is what some cells have in common at which an engineer would stop. What is
// empty matches anything.
type oddity struct {
	kinds   []manifest.Kind
	states  []movement.State
	sources []movement.Source
	says    []string
	hows    []string
	where   string // a situation
	means   string // a part of the meaning
	why     string
}

var (
	paidIn    = []manifest.Kind{manifest.Payment, manifest.Collection}
	paidOut   = []manifest.Kind{manifest.Order, manifest.Transfer}
	moneyCame = []string{"succeeded", "paid"}
	provider  = []movement.Source{movement.FromLookup, movement.FromNotification}
)

// oddities are looked through in this order; the first that matches marks a cell.
var oddities = []oddity{
	{
		kinds: []manifest.Kind{manifest.Collection}, sources: provider, says: []string{"succeeded", "failed", "expired"}, means: exceptionOf(movement.ReasonContradiction),
		hows: []string{"amount as asked", "another amount", "no amount", anotherCurrency, anotherReference, anotherID, withOffer},
		why: "The statement alone ends a collection. Any other word is an exception, also where it says what is known, and where it says that nothing was ever made: " +
			"that one stays open until it is not found twice.",
	},
	{
		kinds: []manifest.Kind{manifest.Payment}, says: moneyCame, hows: []string{"no amount", anotherCurrency},
		why: "Money moved, and its merchant does not hear of it: an open movement stays open until operators override it.",
	},
	{
		kinds: []manifest.Kind{manifest.Collection}, says: moneyCame, hows: []string{"another amount", "no amount", anotherCurrency},
		why: "Money moved, and its merchant does not hear of it: an open movement stays open until operators override it.",
	},
	{
		says: moneyCame, hows: []string{anotherReference}, sources: provider,
		why: "This is also how the success of an earlier attempt looks, after its reference was freed and used again: money moved, perhaps twice, and only operators hear of it.",
	},
	{
		kinds: paidOut, says: moneyCame, hows: []string{"higher cost", "no cost", "another amount", "no amount", anotherCurrency, unreadable},
		why: "Money moved, and the merchant does not hear of it before operators override; what they book is what was agreed, not what the provider says. After a failure this reason hides that it succeeded after all.",
	},
	{
		states: []movement.State{movement.Failed, movement.Expired}, says: []string{"accepted"},
		why: "A call that was slower than the provider's no is answered as pending, with something to pay that can't be paid any more.",
	},
	{
		states: []movement.State{movement.Submitting, movement.Pending}, says: []string{"expired"}, hows: []string{withOffer}, means: "answer kept",
		why: "What has expired before it was answered is answered as pending, with something to pay that can't be paid any more.",
	},
	{
		states: []movement.State{movement.NotSubmitted}, says: []string{"accepted"}, means: nothing,
		why: "The provider has made what was proven never sent. Apply drops it; only whoever answers the call makes an exception of it.",
	},
	{
		states: []movement.State{movement.NotSubmitted}, says: []string{"pending", "succeeded", "paid"}, means: exceptionOf(movement.ReasonContradiction),
		why: "The provider has what was proven never sent, and it may be paid. The movement is not polled any more, its merchant hears nothing, and the reference is free: the next creation makes a second one.",
	},
	{
		states: []movement.State{movement.NotSubmitted}, says: []string{"failed", "expired", "refused", "taken back"}, means: exceptionOf(movement.ReasonContradiction),
		why: "Nothing moved, and that is what the gateway knows: an exception that tells operators nothing.",
	},
	{
		kinds: paidIn, states: []movement.State{movement.Succeeded}, says: moneyCame, means: exceptionOf(movement.ReasonPaidAgain),
		why: "Its payer paid twice, or operators ended it as paid and this is the payment that they meant. Only operators hear of it; no callback tells the merchant.",
	},
	{
		kinds: []manifest.Kind{manifest.Collection}, states: []movement.State{movement.Submitting}, says: []string{"taken back"},
		why: "A line that was taken back fails a collection of which nobody knows whether its payer could pay.",
	},
	{
		kinds: []manifest.Kind{manifest.Collection}, states: []movement.State{movement.Submitting}, says: []string{"refused"},
		why: "Nothing can be paid, and the amount stays reserved until its quarantine is over; after *not sent* it is free at once.",
	},
	{
		kinds: []manifest.Kind{manifest.Collection}, states: []movement.State{movement.Submitting}, says: []string{"not found"}, hows: proofs, means: "→ **not_submitted**",
		why: "Nothing can be paid, and the amount stays reserved until its quarantine is over; after *not sent* it is free at once.",
	},
	{
		kinds: paidOut, states: []movement.State{movement.Failed}, says: moneyCame, means: exceptionOf(movement.ReasonContradiction),
		why: "Money moved after the merchant has read of a failure. The price was refunded, or the limits were given back, and neither is taken again; only operators hear.",
	},
	{
		kinds: paidOut, states: []movement.State{movement.Submitting, movement.Acknowledged, movement.Pending}, sources: provider, says: []string{"expired"},
		why: "The provider has ended it without money, and is not believed: it stays open, with its price or limits taken, until operators override it.",
	},
	{
		kinds: paidOut, states: []movement.State{movement.Failed}, sources: provider, says: []string{"expired"},
		why: "Nothing moved, and that is what the gateway knows: an exception that tells operators nothing.",
	},
	{
		says: []string{"succeeded"}, hows: []string{withReports}, means: "added to the result",
		why: "What was bought, such as a token, comes after the callback. Status answers have it from now on, and the merchant is not called back again.",
	},
	{
		kinds: []manifest.Kind{manifest.Transfer}, states: []movement.State{movement.Succeeded}, sources: provider, says: []string{"failed"},
		means: "return recorded",
		why:   "The money came back, and the payout limits stay used.",
	},
}

func exceptionOf(reason string) string { return "exception `" + reason + "`" }

// oddityOf is why a cell is odd, "" where it is not.
func oddityOf(s section, c cell) string {
	for _, o := range oddities {
		if o.matches(s.rules.Kind, c) {
			return o.why
		}
	}
	return ""
}

func (o oddity) matches(kind manifest.Kind, c cell) bool {
	return (o.kinds == nil || slices.Contains(o.kinds, kind)) &&
		(o.states == nil || slices.Contains(o.states, c.state)) &&
		(o.sources == nil || slices.Contains(o.sources, c.fact.source)) &&
		(o.says == nil || slices.Contains(o.says, c.fact.says)) &&
		(o.hows == nil && !c.contradicts() || slices.Contains(o.hows, c.fact.how)) &&
		(o.where == "" || slices.Contains(c.situation, o.where)) &&
		strings.Contains(c.means, o.means)
}

// doubted tells whether the fact is an exception for how it is said.
func (c cell) contradicts() bool {
	for _, reason := range []string{movement.ReasonAmount, movement.ReasonCurrency, movement.ReasonUnreadable} {
		if c.means == exceptionOf(reason) {
			return true
		}
	}
	return c.fact.how == anotherReference || c.fact.how == anotherName
}
