package decision

import (
	"slices"
	"time"
)

// Sum is how often a merchant's requests for an operation were decided in one way.
type Sum struct {
	Operation string
	Version   string // of the policy: it numbers the rules
	Live      bool
	Rule      Rule
	Invalid   bool // nothing refused it, and the policy was not asked: its request was invalid
	N         int64
	Last      time.Time // the minute of the last one
}

// Tally sums counts by merchant. It holds a sum for each merchant, operation, version and rule that was counted, however long the span
// and however many the replicas. Only one goroutine may add; once all is added, any number may read.
type Tally struct{ of map[string][]Sum }

// Add adds a part of a minute, as Pack wrote it.
func (t *Tally) Add(minute time.Time, packed []byte) error {
	counted, err := Unpack(packed)
	if err != nil {
		return err
	}
	if t.of == nil {
		t.of = map[string][]Sum{}
	}
	for _, c := range counted {
		if c.Outcome == Unused || c.Outcome == Later && !c.Rule.Refuses() {
			continue // of those that are counted already
		}
		var n int64
		for _, one := range c.Counts {
			n += int64(one.N)
		}
		sums, invalid := t.of[c.Merchant], c.Outcome == Spent && !c.Rule.Refuses()
		i := slices.IndexFunc(sums, func(s Sum) bool {
			return s.Rule == c.Rule && s.Invalid == invalid && s.Live == c.Live && s.Operation == c.Operation && s.Version == c.Version
		})
		if i < 0 {
			i, sums = len(sums), append(sums, Sum{Operation: c.Operation, Version: c.Version, Live: c.Live, Rule: c.Rule, Invalid: invalid})
			t.of[c.Merchant] = sums
		}
		sums[i].N += n
		if minute.After(sums[i].Last) {
			sums[i].Last = minute
		}
	}
	return nil
}

// Of are a merchant's sums.
func (t *Tally) Of(merchant string) []Sum { return t.of[merchant] }
