package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// readDecision reads {"allow": bool, "reasons": set or list of strings}.
func readDecision(value ast.Value) (Decision, error) {
	object, ok := value.(ast.Object)
	if !ok {
		return Decision{}, fmt.Errorf("%s where an object must be", ast.ValueName(value))
	}
	allow, ok := field(object, "allow").(ast.Boolean)
	if !ok {
		return Decision{}, errors.New(`"allow" must be true or false`)
	}
	decision := Decision{Allow: bool(allow)}
	err := each(field(object, "reasons"), func(value ast.Value) error {
		reason, ok := value.(ast.String)
		if !ok {
			return errors.New("a reason must be a string")
		}
		decision.Reasons = append(decision.Reasons, string(reason))
		return nil
	})
	if err != nil {
		return Decision{}, fmt.Errorf(`"reasons": %w`, err)
	}
	slices.Sort(decision.Reasons)
	return decision, nil
}

// readLimits reads {"rates": [{name, rate_per_second, burst, per}], "quotas": [{name, limit}], "markup": {default, products},
// "transfers": {day, destination_day}, "repeat_within": "10m", "higher_fees": false, "log_successes": 1}.
func (s *Set) readLimits(value ast.Value) (Limits, error) {
	object, ok := value.(ast.Object)
	if !ok {
		return Limits{}, fmt.Errorf("%s where an object must be", ast.ValueName(value))
	}
	var limits Limits
	err := each(field(object, "rates"), func(value ast.Value) error {
		rate, err := readRate(value)
		if err == nil && slices.ContainsFunc(limits.Rates, func(r Rate) bool { return r.Name == rate.Name }) {
			err = fmt.Errorf("%q is there twice", rate.Name)
		}
		limits.Rates = append(limits.Rates, rate)
		return err
	})
	if err != nil {
		return Limits{}, fmt.Errorf(`"rates": %w`, err)
	}
	err = each(field(object, "quotas"), func(value ast.Value) error {
		quota, err := readQuota(value)
		if err == nil && slices.ContainsFunc(limits.Quotas, func(q Quota) bool { return q.Name == quota.Name }) {
			err = fmt.Errorf("%q is there twice", quota.Name)
		}
		limits.Quotas = append(limits.Quotas, quota)
		return err
	})
	if err != nil {
		return Limits{}, fmt.Errorf(`"quotas": %w`, err)
	}
	if limits.Markup, err = s.readMarkup(field(object, "markup")); err != nil {
		return Limits{}, fmt.Errorf(`"markup": %w`, err)
	}
	if limits.Transfers, err = readTransfers(field(object, "transfers")); err != nil {
		return Limits{}, fmt.Errorf(`"transfers": %w`, err)
	}
	if limits.RepeatWithin, err = readRepeat(field(object, "repeat_within")); err != nil {
		return Limits{}, fmt.Errorf(`"repeat_within" %w`, err)
	}
	if lets := field(object, "higher_fees"); lets != nil {
		boolean, ok := lets.(ast.Boolean)
		if !ok {
			return Limits{}, errors.New(`"higher_fees" must be true or false`)
		}
		limits.HigherFees = bool(boolean)
	}
	if share := field(object, "log_successes"); share != nil {
		number, _ := share.(ast.Number)
		logged, ok := number.Float64()
		if !ok || logged < 0 || logged > 1 {
			return Limits{}, errors.New(`"log_successes" must be a number from 0 to 1`)
		}
		limits.Unlogged = 1 - logged
	}
	return limits, nil
}

// readRate reads one rate.
func readRate(value ast.Value) (Rate, error) {
	name, err := readName(value)
	if err != nil {
		return Rate{}, err
	}
	pace, _ := field(value, "rate_per_second").(ast.Number)
	perSecond, ok := pace.Float64()
	if !ok || perSecond <= 0 || perSecond > maxRate {
		return Rate{}, fmt.Errorf(`%q: "rate_per_second" must be a number above 0 and at most %d`, name, maxRate)
	}
	burst, ok := readWhole(value, "burst")
	if !ok || burst < 1 || burst > maxBurst {
		return Rate{}, fmt.Errorf(`%q: "burst" must be a whole number from 1 to %d`, name, maxBurst)
	}
	per, err := readPer(value)
	if err != nil {
		return Rate{}, fmt.Errorf("%q: %w", name, err)
	}
	return Rate{Name: name, PerSecond: perSecond, Burst: int(burst), Per: per}, nil
}

// perMust is what a rate may say of who has it.
const perMust = `"per" must be "merchant", "operation" or "key"`

// readPer reads who has a rate of its own: the merchant, unless the rate says otherwise.
func readPer(value ast.Value) (Per, error) {
	per := field(value, "per")
	if per == nil {
		return PerMerchant, nil
	}
	text, _ := per.(ast.String)
	if !validPer(string(text)) {
		return "", errors.New(perMust)
	}
	return Per(text), nil
}

func validPer(per string) bool {
	return slices.Contains([]Per{PerMerchant, PerOperation, PerKey}, Per(per))
}

// readQuota reads one quota.
func readQuota(value ast.Value) (Quota, error) {
	name, err := readName(value)
	if err != nil {
		return Quota{}, err
	}
	limit, ok := readWhole(value, "limit")
	if !ok || limit < 0 {
		return Quota{}, fmt.Errorf(`%q: "limit" must be a whole number, not below 0`, name)
	}
	return Quota{Name: name, Limit: limit}, nil
}

// readName reads the name of a rate or a quota.
func readName(value ast.Value) (string, error) {
	name, ok := field(value, "name").(ast.String)
	if !ok || !validName(string(name)) {
		return "", fmt.Errorf(`"name" must be made of letters, digits, '_', '-' and '.', at most %d`, maxName)
	}
	return string(name), nil
}

// readWhole reads a whole number.
func readWhole(value ast.Value, name string) (int64, bool) {
	number, ok := field(value, name).(ast.Number)
	if !ok {
		return 0, false
	}
	return number.Int64()
}

// field is a field of an object, or nil.
func field(value ast.Value, name string) ast.Value {
	object, ok := value.(ast.Object)
	if !ok {
		return nil
	}
	if term := object.Get(ast.InternedTerm(name)); term != nil {
		return term.Value
	}
	return nil
}

// each visits the elements of a list or a set.
func each(value ast.Value, visit func(ast.Value) error) error {
	var elements interface {
		Iter(func(*ast.Term) error) error
	}
	switch value := value.(type) {
	case *ast.Array:
		elements = value
	case ast.Set:
		elements = value
	default:
		return errors.New("a list or a set must be here")
	}
	return elements.Iter(func(term *ast.Term) error { return visit(term.Value) })
}
