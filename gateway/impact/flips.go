package impact

import (
	"cmp"
	"math"
	"time"

	"github.com/seed-f006e74d/gerbang/policy"
)

// compare notes where the candidate decides otherwise than the policy that it is held against, or where there is none than
// was decided then.
func (s *simulation) compare(t, against *trial) {
	denies, denied, open := t.rule != "", t.Rule.Refuses() && !t.replay, t.open
	_, byRateThen := t.Rule.RatePlace()
	unsure, alike := t.unsure, false
	if against != nil {
		denied, byRateThen, unsure = against.rule != "", against.stage == byRate, unsure || against.unsure
		alike = s.candidate.Record == nil && s.candidate.Set.Version() == s.candidate.Against.Version()
		if against.open == open {
			open = "" // whatever decides it decides it alike
		} else {
			open = cmp.Or(open, against.open)
		}
	}
	unknown := (t.untried || open != "") && !alike
	if unknown {
		s.row(t, "").unknown(t.At)
	}
	if t.skipped || unknown && unsure || denies == denied {
		return
	}
	f := flip{rule: t.rule, at: t.At, n: 1}
	if t.Input != nil {
		if amount := (policy.AdmitInput{Amount: t.Input.Amount}).Quoted(t.Input.Quote).Amount; amount != nil {
			f.rupiah = *amount
		}
	}
	if denied && against != nil {
		f.rule = against.rule
	} else if denied {
		f.rule = RuleName(t.judged.base, t.Rule, t.then)
	}
	if t.stage != byRate && !(denied && byRateThen) {
		s.row(t, f.rule).flip(f, denies)
		return
	}
	of := t.m.flips[t.Operation.Path]
	if of == nil {
		of = &flips{}
		t.m.flips[t.Operation.Path] = of
	}
	of.note(f, denies)
}

// note sets a change against an opposite one that waits, the last first, or lets it wait.
func (f *flips) note(one flip, denies bool) {
	same, opposite := &f.allowed, &f.denied
	if denies {
		same, opposite = opposite, same
	}
	if last := len(*opposite) - 1; last >= 0 {
		waiting := &(*opposite)[last]
		waiting.rupiah -= waiting.rupiah / waiting.n
		if waiting.n--; waiting.n == 0 {
			*opposite = (*opposite)[:last]
		}
		return
	}
	if last := len(*same) - 1; last >= 0 {
		if waiting := &(*same)[last]; waiting.rule == one.rule && waiting.at.Unix()/60 == one.at.Unix()/60 {
			waiting.n++
			waiting.rupiah += one.rupiah
			return
		}
	}
	*same = append(*same, one)
}

// countFlips counts what rates change in the end.
func (s *simulation) countFlips() {
	for who, m := range s.merchants {
		for operation, of := range m.flips {
			t := trial{Past: &Past{Operation: Operation{Operation: policy.Operation{Path: operation}}}, who: who}
			for _, f := range of.denied {
				s.row(&t, f.rule).flip(f, true)
			}
			for _, f := range of.allowed {
				s.row(&t, f.rule).flip(f, false)
			}
		}
	}
}

func (s *simulation) row(t *trial, rule string) *Row {
	key := rowKey{t.who.id, t.who.live, t.Operation.Path, rule}
	row := s.rows[key]
	if row == nil {
		row = &Row{}
		s.rows[key] = row
	}
	return row
}

func (r *Row) first(at time.Time) {
	if r.FirstAt.IsZero() || at.Before(r.FirstAt) {
		r.FirstAt = at.UTC()
	}
}

func (r *Row) unknown(at time.Time) {
	r.Unknown++
	r.first(at)
}

func (r *Row) flip(f flip, denies bool) {
	if denies {
		r.NewlyDenied += f.n
	} else {
		r.NewlyAllowed += f.n
	}
	if r.Rupiah > math.MaxInt64-f.rupiah {
		f.rupiah = 0
	}
	r.Rupiah += f.rupiah
	r.first(f.at)
}
