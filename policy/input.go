package policy

import (
	"fmt"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The input is built as OPA's own terms: no maps, no JSON on the way. Names and what repeats are made once.
var (
	termAmount        = ast.InternedTerm("amount")
	termBurst         = ast.InternedTerm("burst")
	termClock         = ast.InternedTerm("clock")
	termContract      = ast.InternedTerm("contract")
	termCount         = ast.InternedTerm("count")
	termDate          = ast.InternedTerm("date")
	termDay           = ast.InternedTerm("day")
	termDestination   = ast.InternedTerm("destination")
	termDestinations  = ast.InternedTerm("destination_day")
	termFields        = ast.InternedTerm("fields")
	termHour          = ast.InternedTerm("hour")
	termID            = ast.InternedTerm("id")
	termKind          = ast.InternedTerm("kind")
	termLabels        = ast.InternedTerm("labels")
	termLimit         = ast.InternedTerm("limit")
	termLimits        = ast.InternedTerm("limits")
	termLists         = ast.InternedTerm("lists")
	termMarkup        = ast.InternedTerm("markup")
	termMerchant      = ast.InternedTerm("merchant")
	termMinute        = ast.InternedTerm("minute")
	termMode          = ast.InternedTerm("mode")
	termNow           = ast.InternedTerm("now")
	termOperation     = ast.InternedTerm("operation")
	termPayer         = ast.InternedTerm("payer")
	termPath          = ast.InternedTerm("path")
	termProduct       = ast.InternedTerm("product")
	termProvider      = ast.InternedTerm("provider")
	termQuote         = ast.InternedTerm("quote")
	termRatePerSecond = ast.InternedTerm("rate_per_second")
	termRepeatWithin  = ast.InternedTerm("repeat_within")
	termStatus        = ast.InternedTerm("status")
	termTier          = ast.InternedTerm("tier")
	termTold          = ast.InternedTerm("told")
	termTransfers     = ast.InternedTerm("transfers")
	termUnix          = ast.InternedTerm("unix")
	termWeekday       = ast.InternedTerm("weekday")
)

// pair is one field of an input.
type pair = [2]*ast.Term

// term is what rules see of an operation.
func (o Operation) term() *ast.Term {
	return ast.ObjectTerm(
		pair{termPath, ast.StringTerm(o.Path)},
		pair{termKind, ast.StringTerm(o.Kind)},
		pair{termProvider, ast.StringTerm(o.Provider)},
		pair{termContract, ast.StringTerm(o.Contract)},
	)
}

// term is what rules see of a merchant at a time.
func (m *Merchant) term(now time.Time) *ast.Term {
	labels, limits := ast.InternedEmptyObject, ast.InternedEmptyObject
	if len(m.Labels) > 0 {
		object := ast.NewObjectWithCapacity(len(m.Labels))
		for name, value := range m.Labels {
			object.Insert(ast.StringTerm(name), ast.StringTerm(value))
		}
		labels = ast.NewTerm(object)
	}
	transfers := ast.InternedEmptyObject
	var markup *ast.Term
	if len(m.Limits) > 0 {
		object, bounds := ast.NewObjectWithCapacity(len(m.Limits)), ast.NewObjectWithCapacity(0)
		for _, limit := range m.Limits {
			switch {
			case !limit.inForce(now):
			case limit.Markup != nil:
				markup = wholeTerm(*limit.Markup)
			case limit.Payout != nil:
				limit.Payout.insert(bounds)
			default:
				object.Insert(ast.StringTerm(limit.Name), limit.term())
			}
		}
		limits, transfers = ast.NewTerm(object), ast.NewTerm(bounds)
	}
	record := ast.NewObject(
		pair{termID, ast.StringTerm(m.ID)},
		pair{termTier, ast.StringTerm(m.Tier)},
		pair{termStatus, ast.StringTerm(m.Status)},
		pair{termLabels, labels},
		pair{termLimits, limits},
		pair{termTransfers, transfers},
	)
	if markup != nil {
		record.Insert(termMarkup, markup)
	}
	return ast.NewTerm(record)
}

// insert adds what bounds transfers to what rules see of it.
func (p *Payout) insert(bounds ast.Object) {
	for name, flow := range map[*ast.Term]Outflow{termDay: p.Day, termDestinations: p.DestinationDay} {
		object := ast.NewObjectWithCapacity(2)
		if flow.Amount != nil {
			object.Insert(termAmount, wholeTerm(*flow.Amount))
		}
		if flow.Count != nil {
			object.Insert(termCount, wholeTerm(*flow.Count))
		}
		if object.Len() > 0 {
			bounds.Insert(name, ast.NewTerm(object))
		}
	}
	if p.RepeatWithin != nil {
		bounds.Insert(termRepeatWithin, ast.StringTerm(p.RepeatWithin.String()))
	}
}

// inForce reports whether the limit counts at a time.
func (l OwnLimit) inForce(now time.Time) bool {
	return l.ExpiresAt.IsZero() || now.Before(l.ExpiresAt)
}

// term is what rules see of a merchant's own limit: only what it says.
func (l OwnLimit) term() *ast.Term {
	object := ast.NewObjectWithCapacity(3)
	if l.RatePerSecond != 0 {
		object.Insert(termRatePerSecond, ast.FloatNumberTerm(l.RatePerSecond))
	}
	if l.Burst != 0 {
		object.Insert(termBurst, wholeTerm(l.Burst))
	}
	if l.Limit != nil {
		object.Insert(termLimit, wholeTerm(*l.Limit))
	}
	return ast.NewTerm(object)
}

// lastExpiry is when the last of the limits that are not in force any more ended, or zero.
func (m *Merchant) lastExpiry(now time.Time) time.Time {
	var last time.Time
	for _, limit := range m.Limits {
		if end := limit.ExpiresAt; !limit.inForce(now) && end.After(last) {
			last = end
		}
	}
	return last
}

// nextExpiry is when the first of the limits in force ends, or zero.
func (m *Merchant) nextExpiry(now time.Time) time.Time {
	var first time.Time
	for _, limit := range m.Limits {
		if end := limit.ExpiresAt; !end.IsZero() && limit.inForce(now) && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// wholeTerm is a whole number as a term.
func wholeTerm(n int64) *ast.Term {
	return ast.NewTerm(ast.Number(strconv.FormatInt(n, 10)))
}

// clockTerm is a time in parts, in the time's own location.
func clockTerm(now time.Time) *ast.Term {
	return ast.ObjectTerm(
		pair{termUnix, wholeTerm(now.Unix())},
		pair{termDate, ast.StringTerm(now.Format(time.DateOnly))},
		pair{termWeekday, ast.InternedTerm(now.Weekday().String())},
		pair{termHour, ast.InternedTerm(now.Hour())},
		pair{termMinute, ast.InternedTerm(now.Minute())},
	)
}

// limitsTerm is the input of the limits.
func (s *Set) limitsTerm(in *LimitsInput) *ast.Term {
	return ast.ObjectTerm(
		pair{termMerchant, in.Merchant.term(in.Now)},
		pair{termMode, ast.InternedTerm(in.Mode)},
		pair{termOperation, s.operation(in.Operation)},
	)
}

// admitTerm is the input of admission. What the rules never look at is left out.
func (s *Set) admitTerm(in *AdmitInput) (*ast.Term, error) {
	input := ast.NewObjectWithCapacity(8)
	input.Insert(termMerchant, in.Merchant.term(in.Now))
	input.Insert(termMode, ast.InternedTerm(in.Mode))
	input.Insert(termOperation, s.operation(in.Operation))
	if in.Amount != nil {
		input.Insert(termAmount, wholeTerm(*in.Amount))
	}
	if s.reads.now {
		input.Insert(termNow, ast.StringTerm(in.Now.UTC().Format(time.RFC3339)))
	}
	if s.reads.clock {
		input.Insert(termClock, clockTerm(in.Now))
	}
	if s.reads.fields {
		if err := insertObject(input, termFields, in.Fields); err != nil {
			return nil, err
		}
	}
	if s.reads.parties {
		for name, value := range map[*ast.Term]string{termDestination: in.Destination, termProduct: in.Product, termPayer: in.Payer} {
			if value != "" {
				input.Insert(name, ast.StringTerm(value))
			}
		}
	}
	s.insertLists(input, in)
	if s.reads.quote && in.Quote != nil {
		if err := insertObject(input, termQuote, in.Quote); err != nil {
			return nil, err
		}
		input.Insert(termTold, input.Get(termQuote))
	}
	return ast.NewTerm(input), nil
}

// operation is an operation's term, made once: there are as many as the catalog has.
func (s *Set) operation(o Operation) *ast.Term {
	if term, ok := s.operations.get(o); ok {
		return term
	}
	term := o.term()
	s.operations.put(o, term)
	return term
}

func insertObject(input ast.Object, name *ast.Term, values map[string]any) error {
	object := ast.InternedEmptyObjectValue
	if len(values) > 0 {
		var err error
		if object, err = ast.InterfaceToValue(values); err != nil {
			return fmt.Errorf("policy: %v: %w", name, err)
		}
	}
	input.Insert(name, ast.NewTerm(object))
	return nil
}
