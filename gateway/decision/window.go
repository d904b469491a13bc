package decision

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Slice is how often requests were decided in each way in a part of a window.
type Slice struct {
	Admitted  int64 `json:"admitted"`
	Slowed    int64 `json:"slowed"`
	OverQuota int64 `json:"over_quota"`
	Denied    int64 `json:"denied"`
	Unjudged  int64 `json:"unjudged"` // the policy could not be evaluated
}

// Refused is all but what was admitted.
func (s Slice) Refused() int64 { return s.Slowed + s.OverQuota + s.Denied + s.Unjudged }

// Refusal is what was refused to a merchant, and by what.
type Refusal struct {
	Merchant, Operation string
	Live                bool
	Rule                Rule
}

// Window sums counts of all merchants over a span, by equal slices of it, by operation and by refusal.
type Window struct {
	From       time.Time
	Width      time.Duration // of a slice
	Slices     []Slice
	Operations map[string]*Slice
	Refusals   map[Refusal]int64
}

// NewWindow makes an empty window.
func NewWindow(from time.Time, width time.Duration, slices int) *Window {
	return &Window{From: from, Width: width, Slices: make([]Slice, slices), Operations: map[string]*Slice{}, Refusals: map[Refusal]int64{}}
}

// Add adds a part of a minute, as Pack wrote it.
func (w *Window) Add(minute time.Time, packed []byte) error {
	counted, err := Unpack(packed)
	if err != nil {
		return err
	}
	for _, c := range counted {
		if c.Outcome == Unused || c.Outcome == Later && !c.Rule.Refuses() {
			continue // of those that are counted already
		}
		for _, one := range c.Counts {
			since := minute.Add(time.Duration(one.Second) * time.Second).Sub(w.From)
			if since < 0 || int(since/w.Width) >= len(w.Slices) {
				continue
			}
			w.Slices[since/w.Width].add(c.Rule, int64(one.N))
			if w.Operations[c.Operation] == nil {
				w.Operations[c.Operation] = &Slice{}
			}
			w.Operations[c.Operation].add(c.Rule, int64(one.N))
			if c.Rule.Refuses() {
				w.Refusals[Refusal{c.Merchant, c.Operation, c.Live, c.Rule}] += int64(one.N)
			}
		}
	}
	return nil
}

func (s *Slice) add(rule Rule, n int64) {
	switch rule.Verdict() {
	case "admitted":
		s.Admitted += n
	case "slowed":
		s.Slowed += n
	case "over_quota":
		s.OverQuota += n
	case "unjudged":
		s.Unjudged += n
	default:
		s.Denied += n
	}
}

// MostRefused are the refusals with the greatest counts, the greatest first.
func (w *Window) MostRefused(most int) []Refusal {
	all := slices.SortedFunc(maps.Keys(w.Refusals), func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(w.Refusals[b], w.Refusals[a]), cmp.Compare(a.Merchant, b.Merchant), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Rule, b.Rule))
	})
	return all[:min(len(all), most)]
}
