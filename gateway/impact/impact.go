package impact

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/policy"
)

// Operation is what a request asked for.
type Operation struct {
	policy.Operation
	// Reads says that a request has a body which policies may see: an amount, fields or a quote. Of any other, merchant,
	// mode, operation and time are all there is.
	Reads bool
	// Money says that it moves money: one that used no unit was a replay.
	Money bool
	// Transfer says that payout limits count it.
	Transfer bool
	// MustBeNamed says that it is refused where the policy does not name its path.
	MustBeNamed bool
}

// refusedBy reports whether a set refuses every request for it, because it does not name its path.
func (o Operation) refusedBy(set *policy.Set) bool { return o.MustBeNamed && !set.Names(o.Path) }

// Input is the body of a request, as policies see it.
type Input struct {
	Amount *int64
	Fields map[string]any
	Quote  map[string]any // nil where none was asked for
	policy.Parties
	// Limit is the digest by which payout limits count where a transfer goes, "" where nobody knows.
	Limit string
}

// Past is what was decided on a request, or on several alike in a second.
type Past struct {
	At        time.Time // with an input to the microsecond, else the second
	Merchant  string
	Live      bool
	Operation Operation
	Version   string           // of the policy that decided
	Record    *policy.Merchant // as it was then; nil where that is not known any more
	Rule      decision.Rule    // that refused
	Outcome   decision.Outcome // Decided, Spent, or Later for what was refused after it was admitted
	N         uint32
	Unused    bool     // used no unit of a quota: a replay, or nothing was sent
	Input     *Input   // nil where it was not kept
	Lists     []string // that hold something of it now, as far as it is known

	// Before is a transfer from before the span, which only counts against the limits of its day. FailedAt is when a
	// transfer failed and so gave back what it counted; zero where it did not.
	Before   bool
	FailedAt time.Time

	judged [2]judged // by the candidate, and by what it is held against
}

// Candidate is what is tried: a policy, and records that differ.
type Candidate struct {
	Set *policy.Set
	// Record is a merchant's record as it would be, under a version that no real one has; nil where records stay as they
	// were. Several goroutines may ask at once.
	Record func(*policy.Merchant) *policy.Merchant
	// Against is the policy that the candidate is held against; nil is what was decided then.
	Against *policy.Set
}

// Used names how much of a quota a merchant has used in a period.
type Used struct {
	Merchant      string
	Live          bool
	Quota, Period string
}

// World is what the simulation must know of the past besides its decisions.
type World struct {
	// Base is a policy that decided, nil where it is not kept any more.
	Base func(version string) *policy.Set
	// Used is how much of a quota was used in a period when the span began.
	Used map[Used]int64
	// Zone is where a merchant's days and months are counted.
	Zone func(*policy.Merchant) *time.Location
	// Clock is the zone of the hours and weekdays that rules see: the gateway's, whatever the merchant's.
	Clock *time.Location
	// Decisions is how many there are to try, as far as they were counted: whom progress is told needs it.
	Decisions int64
	// Progress is told how many decisions were tried, now and then; it may be nil.
	Progress func(done int64, at time.Time)
}

// Row is what changes for a merchant's operation by a rule, rate, quota or payout limit: the candidate's for what is newly
// denied, that of what it is held against for what is newly allowed. Unknown counts what was not kept and can't be told; it has no rule.
type Row struct {
	Merchant     string    `json:"merchant_id"`
	Mode         string    `json:"mode"`
	Operation    string    `json:"operation"`
	Rule         string    `json:"rule"`
	NewlyDenied  int64     `json:"newly_denied"`
	NewlyAllowed int64     `json:"newly_allowed"`
	FirstAt      time.Time `json:"first_at"`
	Rupiah       int64     `json:"rupiah"` // of these, where the amounts are known
	Unknown      int64     `json:"unknown"`
}

// Report is what changes in sum.
type Report struct {
	Verdict      string `json:"verdict"` // stricter, looser, mixed or equal
	Decisions    int64  `json:"decisions"`
	NewlyDenied  int64  `json:"newly_denied"`
	NewlyAllowed int64  `json:"newly_allowed"`
	Rupiah       int64  `json:"rupiah"` // of live requests alone: test ones move no money
	Unknown      int64  `json:"unknown"`
	Rows         []Row  `json:"rows"`
}

// chunk is how many entries of the past are judged by the rules at once.
const chunk = 4096

// Run tries a candidate on the past, which comes in the order of its seconds. It holds a second of the past in memory, and
// what merchants have used.
func Run(ctx context.Context, c Candidate, w World, past iter.Seq2[Past, error]) (Report, error) {
	s := newSimulation(c, w)
	pending := make([]Past, 0, chunk)
	flush := func(all bool) error {
		if err := s.judge(ctx, pending); err != nil {
			return err
		}
		rest, err := s.seconds(ctx, pending, all)
		pending = append(pending[:0], rest...)
		return err
	}
	for p, err := range past {
		if err != nil {
			return Report{}, err
		}
		pending = append(pending, p)
		if len(pending) >= chunk {
			if err := flush(false); err != nil {
				return Report{}, err
			}
		}
	}
	if err := flush(true); err != nil {
		return Report{}, err
	}
	return s.report(), nil
}

// seconds simulates whole seconds, one after the other, and returns what may be of a second that is not complete yet.
func (s *simulation) seconds(ctx context.Context, pending []Past, all bool) ([]Past, error) {
	for len(pending) > 0 {
		second := pending[0].At.Unix()
		end := slices.IndexFunc(pending, func(p Past) bool { return p.At.Unix() != second })
		if end < 0 {
			if !all {
				return pending, nil
			}
			end = len(pending)
		}
		if err := s.second(ctx, pending[:end]); err != nil {
			return nil, err
		}
		pending = pending[end:]
	}
	return nil, nil
}

// second simulates what was decided in a second, merchant by merchant. What a quota refused comes last, as it came after
// what used the quota up.
func (s *simulation) second(ctx context.Context, all []Past) error {
	slices.SortStableFunc(all, func(a, b Past) int {
		return cmp.Or(cmp.Compare(a.Merchant, b.Merchant), cmp.Compare(after(a), after(b)), cmp.Compare(a.Operation.Path, b.Operation.Path),
			cmp.Compare(a.Rule, b.Rule))
	})
	for len(all) > 0 {
		end := slices.IndexFunc(all, func(p Past) bool { return p.Merchant != all[0].Merchant || after(p) != after(all[0]) })
		if end < 0 {
			end = len(all)
		}
		if err := s.spread(ctx, all[:end]); err != nil {
			return err
		}
		all = all[end:]
	}
	return nil
}

// after is 1 for what was refused because a quota was used up.
func after(p Past) int {
	if _, quota := p.Rule.QuotaPlace(); quota {
		return 1
	}
	return 0
}

// unit is one request of several alike.
type unit struct {
	past   *Past
	offset float64 // into its second
}

// spread simulates each request of a merchant's second: when in the second it came, where that is known, and else evenly
// spread over it.
func (s *simulation) spread(ctx context.Context, all []Past) error {
	units := s.units[:0]
	for i := range all {
		p := &all[i]
		if p.Input != nil && p.N == 1 {
			units = append(units, unit{p, float64(p.At.Nanosecond()) / float64(time.Second)})
			continue
		}
		for n := range p.N {
			units = append(units, unit{p, (float64(n) + 0.5) / float64(p.N)})
		}
	}
	slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(a.offset, b.offset) })
	s.units = units
	for _, u := range units {
		t, err := s.try(ctx, u)
		var before *trial
		if s.against != nil && err == nil {
			before, err = s.against.try(ctx, u)
		}
		if err != nil {
			return err
		}
		s.compare(t, before)
	}
	return nil
}

func (s *simulation) report() Report {
	s.countFlips()
	r := Report{Decisions: s.done, Rows: make([]Row, 0, len(s.rows))}
	for key, row := range s.rows {
		if row.NewlyDenied == 0 && row.NewlyAllowed == 0 && row.Unknown == 0 {
			continue
		}
		row.Merchant, row.Mode, row.Operation, row.Rule = key.merchant, decision.ModeOf(key.live), key.operation, key.rule
		r.NewlyDenied += row.NewlyDenied
		r.NewlyAllowed += row.NewlyAllowed
		if key.live {
			r.Rupiah += row.Rupiah
		}
		r.Unknown += row.Unknown
		r.Rows = append(r.Rows, *row)
	}
	slices.SortFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Merchant, b.Merchant), cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Rule, b.Rule))
	})
	switch {
	case r.NewlyDenied > 0 && r.NewlyAllowed > 0:
		r.Verdict = "mixed"
	case r.NewlyDenied > 0:
		r.Verdict = "stricter"
	case r.NewlyAllowed > 0:
		r.Verdict = "looser"
	default:
		r.Verdict = "equal"
	}
	return r
}
