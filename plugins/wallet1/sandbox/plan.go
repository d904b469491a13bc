package sandbox

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	// staleGap lies between a result and the outdated notice after it.
	staleGap = 2 * time.Second
	// lateGap is how long after the result a late notice comes.
	lateGap = 2 * time.Minute
	// unseenFor is how long the status does not know a transfer that has moved.
	unseenFor = 4 * time.Minute
)

// plan is the name of what becomes of a transfer. "code" and a result is a
// refusal with it; "done" and a result moves the money and answers with it.
type plan string

// Plans beside those of the results.
const (
	planSuccess      plan = ""
	planLaterSuccess plan = "pending_success"
	planLaterFail    plan = "pending_fail"
	planLaterCancel  plan = "pending_cancel"
	planNever        plan = "pending_forever"
	planTwice        plan = "twice"
	planReordered    plan = "reordered"
	planLate         plan = "late"
	planLost         plan = "lost"
	planGarbage      plan = "garbage"
	planForged       plan = "forged"
	planRefund       plan = "refund"
	planWrongAmount  plan = "wrong_amount"
	planWrongStatus  plan = "wrong_status"
	planDelayed      plan = "delayed"
	planTimeout      plan = "timeout"
	planUnseen       plan = "unseen"
	planTokenExpired plan = "token_expired"
)

const (
	refusing = "code"
	doing    = "done"
)

// course is what a plan does.
type course struct {
	plan   plan
	answer result
	first  state
	then   state // after the delay; empty is nothing
	effect string
}

// courses are the plans in the order in which they are described.
var courses = []course{
	{planLaterSuccess, resultPending, statePending, stateDone, "202, then success (00) and its notice"},
	{planLaterFail, resultPending, statePending, stateFailed, "202, then failed (06), money back and its notice"},
	{planLaterCancel, resultPending, statePending, stateCancelled, "202, then cancelled (05), money back and its notice"},
	{planNever, resultPending, statePending, "", "202 and pending for ever"},
	{planTwice, resultPending, statePending, stateDone, "202, then success; its notice is sent twice"},
	{planReordered, resultPending, statePending, stateDone, "202, then success and its notice; an outdated notice (03) follows 2 s later"},
	{planLate, resultPending, statePending, stateDone, "202, then success; its notice comes 2 min after it"},
	{planLost, resultPending, statePending, stateDone, "202, then success without a notice: only a look-up finds out"},
	{planGarbage, resultPending, statePending, stateDone, "202, then success; the notice is signed nonsense, no other comes"},
	{planForged, resultPending, statePending, stateDone, "202, then success; the notice says failed under a wrong signature, no other comes"},
	{planRefund, resultOK, stateDone, stateRefunded, "success, then taken back (04), money back and its notice"},
	{planWrongAmount, resultOK, stateDone, "", "success; the answer to a top-up says ten times the amount, and the status until the delay is over"},
	{planWrongStatus, resultPending, statePending, stateDone, "202, then success; the status always says ten times the amount"},
	{planDelayed, resultTimeout, stateQueued, stateDone, "504; the status knows nothing until the money moves after the delay"},
	{planTimeout, resultTimeout, stateDone, "", "the money moves; the answer is a 504 that comes later than callers wait"},
	{planUnseen, resultTimeout, stateDone, "", "504; the money moves and stands in the history, and for 4 min the status knows nothing of it"},
	{planTokenExpired, resultToken, "", "", "401xx01: the tokens expire as the call arrives, nothing moves"},
}

// course returns what a plan does; that of an unknown one is success.
func (p plan) course() course {
	for _, c := range courses {
		if c.plan == p {
			return c
		}
	}
	c := course{plan: p, answer: resultOK, first: stateDone, effect: "success"}
	if r, ok := p.named(doing); ok {
		c.answer, c.effect = r, "the money moves, and the answer is "+string(r[:3])+" case "+string(r[3:])
	}
	if r, ok := p.named(refusing); ok {
		c.answer, c.first, c.effect = r, "", string(r[:3])+" case "+string(r[3:])+", nothing moves"
	}
	return c
}

func (p plan) answer() result { return p.course().answer }
func (p plan) first() state   { return p.course().first }
func (p plan) then() state    { return p.course().then }
func (p plan) effect() string { return p.course().effect }

// named returns the result in the name of a plan.
func (p plan) named(prefix string) (result, bool) {
	digits, ok := strings.CutPrefix(string(p), prefix)
	_, known := messages[result(digits)]
	return result(digits), ok && known
}

// valid reports whether there is such a plan to order.
func (p plan) valid() bool {
	if r, ok := p.named(refusing); ok {
		return r.status() >= 400
	}
	if r, ok := p.named(doing); ok {
		return r.status() >= 500 || slices.Contains(unsure, r)
	}
	return slices.ContainsFunc(courses, func(c course) bool { return c.plan == p })
}

// unsure are the results below 500 that leave open whether money has moved.
var unsure = []result{resultPending, resultInconsistent, resultReference, resultTooMany}

func planOf(r result) plan { return refusing + plan(r) }

// refusal is the refusal that a plan stands for, or nil.
func (p plan) refusal(destination string) error {
	r, ok := p.named(refusing)
	if !ok {
		return nil
	}
	refused := &refusal{result: r}
	if destination == phoneNobody && r == resultDoNotHonor {
		refused.info = map[string]string{"resultMsg": "PAYEE_USER_NOT_EXIST"}
	}
	return refused
}

// input is a destination that has a plan.
type input struct {
	value             string
	inquiry, transfer plan
}

// phoneNobody is refused because nobody is behind it.
const phoneNobody = "628152768647"

const (
	// magicShortTopup and magicShortBank are refused for lack of money,
	// whatever there is.
	magicShortTopup money.Amount = 1_000_000_000_000
	magicShortBank  money.Amount = 50_000_000_000
)

// Destinations of our own: a prefix and two digits, for phones and accounts.
const (
	ownPhones   = "62878000012"
	ownAccounts = "99000012"
)

// ours are the digits of our own destinations.
var ours = []struct {
	digits string
	plan   plan
}{
	{"33", planLaterSuccess}, {"34", planLaterFail}, {"35", planLaterCancel}, {"41", planTwice}, {"42", planReordered},
	{"43", planLate}, {"44", planRefund}, {"45", planWrongAmount}, {"46", planGarbage}, {"47", planLost}, {"48", planNever},
	{"49", planForged}, {"50", planDelayed}, {"51", planTimeout}, {"52", planWrongStatus}, {"53", planUnseen},
}

// phones and accounts are DANA's public ones, then ours.
var (
	phones = withOurs(ownPhones,
		input{"62811742234", "", ""},
		input{"628123456667", planOf(resultDoNotHonor), planOf(resultDoNotHonor)},
		input{phoneNobody, planOf(resultDoNotHonor), planOf(resultDoNotHonor)},
		input{"628551005454", planTimeout, planTimeout},
		input{"628996647679", "", planOf(resultDoNotHonor)},
		input{"628551008794", "", doing + plan(resultInternalError)},
		input{"628121111111", "", planOf(resultGeneralError)},
	)
	accounts = withOurs(ownAccounts,
		input{"2460888509", "", ""},
		input{"81298055132", planOf(resultInactive), planOf(resultInactive)},
		input{"815919191", planOf(resultInvalidAccount), planOf(resultInvalidAccount)},
		input{"855100800", planOf(resultInvalidMerchant), planOf(resultInvalidMerchant)},
		input{"82298055100", "", planOf(resultFraud)},
		input{"8121111111", "", planOf(resultGeneralError)},
		input{"8551008794", "", doing + plan(resultInternalError)},
		input{"81398055100", "", planOf(resultInactive)},
	)
)

func withOurs(prefix string, public ...input) []input {
	for _, o := range ours {
		public = append(public, input{prefix + o.digits, "", o.plan})
	}
	return public
}

// inputOf returns what a destination stands for.
func inputOf(inputs []input, value string) input {
	for _, i := range inputs {
		if i.value == value {
			return i
		}
	}
	return input{value: value}
}

// Describe lists the inputs that have a plan.
func (s *Simulator) Describe(string) kit.Description {
	d := kit.Description{Prefixes: []string{}}
	for _, list := range []struct {
		name   string
		inputs []input
	}{{"phone", phones}, {"bank account", accounts}} {
		for _, i := range list.inputs {
			d.Magic = append(d.Magic, kit.Magic{
				Value: i.value, Effect: list.name + ": inquiry: " + i.inquiry.effect() + "; transfer: " + i.transfer.effect(),
			})
		}
	}
	d.Magic = append(d.Magic,
		kit.Magic{Value: magicShortTopup.String(), Effect: "amount of a top-up: 403 case 14, nothing moves"},
		kit.Magic{Value: magicShortBank.String(), Effect: "amount of a bank inquiry or transfer: 403 case 14, nothing moves"},
	)
	return d
}
