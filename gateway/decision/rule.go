package decision

import (
	"fmt"
	"strconv"
	"strings"
)

// Rule numbers what decided on a request. The numbers stand in ids and in the log: they are never given to another meaning.
type Rule uint16

// What decides besides the policy's own rules, rates and quotas.
const (
	// Admitted is the number of a request that nothing refused.
	Admitted Rule = 0
	// Unjudged says that the policy could not be evaluated: the request was answered INTERNAL.
	Unjudged Rule = 1
	// NoLimits says that the policy sets no limits for the merchant and the operation.
	NoLimits Rule = 2
	// Unnamed is a rule of the policy that has no number.
	Unnamed Rule = 3
	// The payout limits of a day and of a destination's day.
	DayAmount         Rule = 4
	DayCount          Rule = 5
	DestinationAmount Rule = 6
	DestinationCount  Rule = 7
	// Suspended and Scope refuse before the policy is asked: the merchant is not active, or the key lacks the operation's scope.
	Suspended Rule = 8
	Scope     Rule = 9
	// NotNamed says that an approval alone has brought the operation, and that the policy does not name its path.
	NotNamed Rule = 10

	firstRate   Rule = 16
	firstQuota  Rule = 144
	firstPolicy Rule = 272
	rules       Rule = 1 << ruleBits
)

// Rate is the number of a rate by its place among the names of the rates that the policy sets for a request, from 0.
func Rate(place int) Rule { return firstRate + Rule(min(max(place, 0), int(firstQuota-firstRate)-1)) }

// Quota is the number of a quota by its place among the names of the quotas, from 0.
func Quota(place int) Rule {
	return firstQuota + Rule(min(max(place, 0), int(firstPolicy-firstQuota)-1))
}

// Policy is the number of a refusal rule by its number in its set, from 1; [Unnamed] for one beyond what an id holds.
func Policy(number int) Rule {
	if number < 1 || number > int(rules-firstPolicy) {
		return Unnamed
	}
	return firstPolicy + Rule(number-1)
}

// Payout is the number of a payout limit by its name in a movement's usage.
func Payout(name string) Rule {
	toDestination, number := !strings.HasPrefix(name, "out."), strings.HasSuffix(name, ".count")
	switch {
	case toDestination && number:
		return DestinationCount
	case toDestination:
		return DestinationAmount
	case number:
		return DayCount
	}
	return DayAmount
}

// Refuses reports whether a request was refused.
func (r Rule) Refuses() bool { return r != Admitted }

// RatePlace is the place of a rate, and whether the rule is one. QuotaPlace and PolicyNumber are the same for quotas and
// for rules of a set.
func (r Rule) RatePlace() (int, bool) {
	return int(r) - int(firstRate), r >= firstRate && r < firstQuota
}

// QuotaPlace is the place of a quota among their names.
func (r Rule) QuotaPlace() (int, bool) {
	return int(r) - int(firstQuota), r >= firstQuota && r < firstPolicy
}

// PolicyNumber is the number of a refusal rule in its set.
func (r Rule) PolicyNumber() (int, bool) {
	return int(r) - int(firstPolicy) + 1, r >= firstPolicy && r < rules
}

// IsPayout reports whether the rule is a payout limit.
func (r Rule) IsPayout() bool { return r >= DayAmount && r <= DestinationCount }

// Verdict is what became of a request: admitted, denied, slowed, over_quota or unjudged.
func (r Rule) Verdict() string {
	switch {
	case r == Admitted:
		return "admitted"
	case r == Unjudged:
		return "unjudged"
	case r >= firstRate && r < firstQuota:
		return "slowed"
	case r >= firstQuota && r < firstPolicy:
		return "over_quota"
	}
	return "denied"
}

// String names a rule for people.
func (r Rule) String() string {
	if place, ok := r.RatePlace(); ok {
		return "rate " + strconv.Itoa(place+1)
	}
	if place, ok := r.QuotaPlace(); ok {
		return "quota " + strconv.Itoa(place+1)
	}
	if number, ok := r.PolicyNumber(); ok {
		return "rule " + strconv.Itoa(number)
	}
	if name, ok := names[r]; ok {
		return name
	}
	return fmt.Sprintf("unknown rule %d", uint16(r))
}

var names = map[Rule]string{
	Admitted: "none", Unjudged: "the policy could not be evaluated", NoLimits: "no limits", Unnamed: "a rule without a number",
	DayAmount: "daily amount of transfers", DayCount: "daily number of transfers",
	DestinationAmount: "daily amount to a destination", DestinationCount: "daily number to a destination",
	Suspended: "the merchant is suspended", Scope: "the key lacks the scope", NotNamed: "the policy does not name this operation",
}
