package sandbox

import (
	"slices"
	"strings"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	// staleGap lies between a result and the outdated webhook after it.
	staleGap = 2 * time.Second
	// lateGap is how long after the result a late webhook comes.
	lateGap = 2 * time.Minute
	// wrongFactor is how much too high a wrong price is.
	wrongFactor = 10
)

// plan is the name of what becomes of a purchase. "rc" and two digits is the
// code that it is answered with; what that code leaves pending succeeds later.
type plan string

// Plans beside those of the codes.
const (
	planSuccess plan = "success"
	planFail    plan = "fail"
	// The following are pending at first.
	planLaterSuccess plan = "pending_success"
	planLaterFail    plan = "pending_fail"
	planNever        plan = "pending_forever"
	planTwice        plan = "twice"
	planReordered    plan = "reordered"
	planLate         plan = "late"
	planLost         plan = "lost"
	planWrongPrice   plan = "wrong_price"
	planGarbage      plan = "garbage"
	planForged       plan = "forged"
	// planRefund succeeds at first.
	planRefund plan = "refund"
)

// explained is a plan in words.
type explained struct {
	plan   plan
	effect string
}

// planEffects explains the plans, in this order.
var planEffects = []explained{
	{planSuccess, "Sukses at once"},
	{planFail, "Gagal at once (rc 02)"},
	{planLaterSuccess, "Pending, then Sukses and its webhook"},
	{planLaterFail, "Pending, then Gagal and its webhook"},
	{planNever, "Pending for ever, no webhook"},
	{planTwice, "Pending, then Sukses; its webhook is sent twice"},
	{planReordered, "Pending, then Sukses and its webhook; an outdated webhook Pending follows 2 s later"},
	{planLate, "Pending, then Sukses; its webhook comes 2 min after it"},
	{planLost, "Pending, then Sukses without a webhook: only a look-up finds out"},
	{planWrongPrice, "Pending, then Sukses; the webhook's price is ten times too high"},
	{planGarbage, "Pending, then Sukses; the webhook is signed nonsense, no other comes"},
	{planForged, "Pending, then Sukses; the webhook says Gagal under a wrong signature, no other comes"},
	{planRefund, "Sukses at once, then taken back (rc 74) and its webhook"},
}

// valid reports whether there is such a plan.
func (p plan) valid() bool {
	_, isCode := p.code()
	return isCode || slices.ContainsFunc(planEffects, func(e explained) bool { return e.plan == p })
}

func planOf(code rc) plan { return "rc" + plan(code) }

// code returns the code that a plan is named by.
func (p plan) code() (rc, bool) {
	digits, ok := strings.CutPrefix(string(p), "rc")
	_, known := meanings[rc(digits)]
	return rc(digits), ok && known
}

// first is what a purchase is answered with.
func (p plan) first() rc {
	if code, ok := p.code(); ok {
		return code
	}
	switch p {
	case planSuccess, planRefund:
		return rcSuccess
	case planFail:
		return rcFailed
	default:
		return rcPending
	}
}

// then is what becomes of it after the delay; empty is nothing.
func (p plan) then() state {
	switch {
	case p == planRefund:
		return stateRefunded
	case p == planNever || meanings[p.first()].status != pending:
		return ""
	case p == planLaterFail:
		return stateFailed
	default:
		return stateSucceeded
	}
}

// firstTarget begins the numbers 0878000012NN that have plans, and codeTarget
// those whose last two digits are the code.
const (
	firstTarget = "0878000012"
	codeTarget  = "0878000020"
)

// targets are the prepaid customer numbers that have a plan: the upstream's
// own four, then ours. They fit a phone, a wallet and a meter.
var targets = []struct {
	customer string
	plan     plan
}{
	{firstTarget + "30", planSuccess},
	{firstTarget + "32", planFail},
	{firstTarget + "33", planLaterSuccess},
	{firstTarget + "34", planLaterFail},
	{firstTarget + "40", planOf(rcRouterTrouble)},
	{firstTarget + "41", planTwice},
	{firstTarget + "42", planReordered},
	{firstTarget + "43", planLate},
	{firstTarget + "44", planRefund},
	{firstTarget + "45", planWrongPrice},
	{firstTarget + "46", planGarbage},
	{firstTarget + "47", planLost},
	{firstTarget + "48", planNever},
	{firstTarget + "49", planForged},
}

// planFor is what a prepaid customer number stands for.
func planFor(customer string) plan {
	for _, t := range targets {
		if t.customer == customer {
			return t.plan
		}
	}
	if digits, ok := strings.CutPrefix(customer, codeTarget); ok {
		if p := planOf(rc(digits)); p.valid() {
			return p
		}
	}
	return planSuccess
}

// effect explains a plan.
func (p plan) effect() string {
	for _, e := range planEffects {
		if e.plan == p {
			return e.effect
		}
	}
	return "Pending (" + string(p) + "), then Sukses and its webhook"
}

// Describe lists the customer numbers that have a plan.
func (s *Simulator) Describe(string) kit.Description {
	d := kit.Description{Prefixes: []string{}}
	for _, t := range targets {
		d.Magic = append(d.Magic, kit.Magic{Value: t.customer, Effect: "prepaid: " + t.plan.effect()})
	}
	d.Magic = append(d.Magic, kit.Magic{Value: codeTarget + "NN", Effect: "prepaid: answered with rc NN"})
	return d
}
