package judge

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/impact"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Past is what a policy, or a change of merchants' records, is tried on.
type Past struct {
	Source policy.Source
	// Against is the policy that it is held against; nil is what was decided.
	Against *policy.Set
	// Record is the record as it would be; nil where records stay as they were.
	Record    func(*policy.Merchant) *policy.Merchant
	World     impact.World // Zone counts for nothing: merchants' labels and Clock do
	Decisions iter.Seq2[impact.Past, error]
}

// span is what of a Past is told first.
type span struct {
	Used    map[impact.Used]int64
	Clock   string
	Changes bool // records
}

// item is what follows it: an operation, a policy or a record of a number; a decision that names them by it; or the end.
type item struct {
	Operation, Policy, Record int // from 1
	Content                   []byte
	Decided                   *decided
	Forget                    bool // all records
	End                       bool
}

type base struct {
	Version string
	Source  policy.Source // nil where it is not kept
}

type records struct{ Was, Would *policy.Merchant }

// decided is impact.Past.
type decided struct {
	At, FailedAt              time.Time
	Merchant                  string
	Operation, Policy, Record int
	Live, Unused, Before      bool
	Rule                      decision.Rule
	Outcome                   decision.Outcome
	N                         uint32
	Input                     []byte // nil where it was not kept
	Lists                     []string
}

// mostRecords bounds the records that both sides remember.
const mostRecords = 100_000

// Impact is impact.Run.
func (j *Judge) Impact(ctx context.Context, p Past) (report impact.Report, err error) {
	o := order{Task: toImpact, Source: p.Source, Memory: memoryOfPast, Past: span{
		Used: p.World.Used, Clock: p.World.Clock.String(), Changes: p.Record != nil,
	}}
	if p.Against != nil {
		o.Active = p.Against.Source()
	}
	progress := func(a answer) {
		if p.World.Progress != nil {
			p.World.Progress(a.Done, a.At)
		}
	}
	feed := &feeder{past: p, operations: map[string]int{}, policies: map[string]int{}, records: map[*policy.Merchant]int{}}
	a, err := j.run(ctx, o, feed.feed, progress)
	if err == nil {
		err = a.err()
	}
	if _, large := errors.AsType[*excess](err); large {
		return report, fault.New(fault.InvalidRequest, "What merchants did in this span takes more memory than a trial on the past may. Try a shorter span, or one merchant.")
	}
	if err == nil {
		err = unmarshal(a.Result, &report)
	}
	return report, err
}

// feeder tells the past, and what it is about the first time that it is about it.
type feeder struct {
	past       Past
	to         *gob.Encoder
	operations map[string]int
	policies   map[string]int
	records    map[*policy.Merchant]int
	all        int // records
}

func (f *feeder) feed(to *gob.Encoder) error {
	f.to = to
	for p, err := range f.past.Decisions {
		if err == nil {
			err = f.tell(p)
		}
		if err != nil {
			return err
		}
	}
	return f.say(item{End: true})
}

func (f *feeder) say(i item) error {
	if err := f.to.Encode(i); err != nil {
		return errors.Join(errFed, err)
	}
	return nil
}

func (f *feeder) about(i item, content any) (err error) {
	if i.Content, err = json.Marshal(content); err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	return f.say(i)
}

func (f *feeder) tell(p impact.Past) (err error) {
	d := decided{
		At: p.At, FailedAt: p.FailedAt, Merchant: p.Merchant, Operation: f.operations[p.Operation.Path], Policy: f.policies[p.Version], Record: f.records[p.Record],
		Live: p.Live, Unused: p.Unused, Before: p.Before, Rule: p.Rule, Outcome: p.Outcome, N: p.N, Lists: p.Lists,
	}
	if p.Input != nil {
		if d.Input, err = json.Marshal(p.Input); err != nil {
			return fmt.Errorf("judge: %w", err)
		}
	}
	if d.Operation == 0 {
		d.Operation = len(f.operations) + 1
		f.operations[p.Operation.Path] = d.Operation
		err = f.about(item{Operation: d.Operation}, p.Operation)
	}
	if d.Policy == 0 && err == nil {
		d.Policy = len(f.policies) + 1
		f.policies[p.Version] = d.Policy
		of := base{Version: p.Version}
		if set := f.past.World.Base(p.Version); set != nil {
			of.Source = set.Source()
		}
		err = f.about(item{Policy: d.Policy}, of)
	}
	if p.Record != nil && d.Record == 0 && err == nil {
		if d.Record, err = f.record(p.Record); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return f.say(item{Decided: &d})
}

func (f *feeder) record(was *policy.Merchant) (int, error) {
	if len(f.records) >= mostRecords {
		clear(f.records)
		if err := f.say(item{Forget: true}); err != nil {
			return 0, err
		}
	}
	f.all++
	f.records[was] = f.all
	of := records{Was: was}
	if f.past.Record != nil {
		of.Would = f.past.Record(was)
	}
	return f.all, f.about(item{Record: f.all}, of)
}

// listener is the other side of a feeder.
type listener struct {
	from       *gob.Decoder
	operations map[int]impact.Operation
	policies   map[int]base
	sources    map[string]policy.Source
	records    map[int]*policy.Merchant
	would      map[*policy.Merchant]*policy.Merchant
}

// errCutShort says that the past ended in the middle.
var errCutShort = errors.New("judge: the past was cut short")

func (l *listener) decisions(yield func(impact.Past, error) bool) {
	for {
		var i item
		err := l.from.Decode(&i)
		switch {
		case errors.Is(err, io.EOF):
			err = errCutShort
		case err != nil:
		case i.End:
			return
		case i.Forget:
			clear(l.records) // those of what is not simulated yet are still held
		case i.Decided == nil:
			err = l.learn(i)
		default:
			var p impact.Past
			if p, err = l.past(i.Decided); err == nil {
				if !yield(p, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(impact.Past{}, err)
			return
		}
	}
}

func (l *listener) learn(i item) error {
	switch {
	case i.Operation != 0:
		var op impact.Operation
		err := unmarshal(i.Content, &op)
		l.operations[i.Operation] = op
		return err
	case i.Policy != 0:
		var of base
		err := unmarshal(i.Content, &of)
		l.policies[i.Policy], l.sources[of.Version] = of, of.Source
		return err
	}
	var of records
	err := unmarshal(i.Content, &of)
	l.records[i.Record] = of.Was
	if of.Would != nil {
		l.would[of.Was] = of.Would
	}
	return err
}

func (l *listener) past(d *decided) (impact.Past, error) {
	p := impact.Past{
		At: d.At, FailedAt: d.FailedAt, Merchant: d.Merchant, Operation: l.operations[d.Operation], Version: l.policies[d.Policy].Version, Record: l.records[d.Record],
		Live: d.Live, Unused: d.Unused, Before: d.Before, Rule: d.Rule, Outcome: d.Outcome, N: d.N, Lists: d.Lists,
	}
	if d.Input == nil {
		return p, nil
	}
	p.Input = &impact.Input{}
	return p, unmarshal(d.Input, p.Input)
}

// impactOf carries out the order of a trial on the past.
func impactOf(ctx context.Context, o order, from *gob.Decoder, to *gob.Encoder) (report impact.Report, err error) {
	clock, err := time.LoadLocation(o.Past.Clock)
	if err != nil {
		clock = admission.ZoneOf(tenants.Merchant{}, nil) // the gateway's own, where it has none of a name
	}
	compiling, cancel := context.WithTimeout(ctx, compileWithin)
	defer cancel()
	var c impact.Candidate
	if c.Set, err = policy.Compile(compiling, o.Source); err != nil {
		return report, err
	}
	if o.Active != nil {
		if c.Against, err = policy.CompileAgain(compiling, o.Active); err != nil {
			return report, err
		}
	}
	l := &listener{
		from: from, operations: map[int]impact.Operation{}, policies: map[int]base{}, sources: map[string]policy.Source{},
		records: map[int]*policy.Merchant{}, would: map[*policy.Merchant]*policy.Merchant{},
	}
	if o.Past.Changes {
		c.Record = func(was *policy.Merchant) *policy.Merchant { return l.would[was] }
	}
	world := impact.World{
		Used: o.Past.Used, Clock: clock,
		Base: func(version string) *policy.Set {
			switch {
			case l.sources[version] == nil:
				return nil
			case version == string(c.Set.Version()):
				return c.Set
			case c.Against != nil && version == string(c.Against.Version()):
				return c.Against
			}
			set, err := policy.CompileAgain(ctx, l.sources[version])
			if err != nil {
				return nil
			}
			return set
		},
		Zone: func(m *policy.Merchant) *time.Location {
			return admission.ZoneOf(tenants.Merchant{Labels: m.Labels}, clock)
		},
		Progress: func(done int64, at time.Time) { _ = to.Encode(answer{Done: done, At: at}) },
	}
	return impact.Run(ctx, c, world, l.decisions)
}
