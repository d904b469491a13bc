package judge

import (
	"cmp"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/policy"
)

// The codes with which a process ends that answers nothing.
const (
	exitUnbounded = 70 // it can't bound itself
	exitTooMuch   = 71
)

// Main carries out the order that is said to it. It returns only to say why nothing was done.
func Main(in io.Reader, out io.Writer) error {
	orders, answers := gob.NewDecoder(in), gob.NewEncoder(out)
	var o order
	if err := orders.Decode(&o); err != nil {
		return errors.New("this command is the gateway's own: it judges a policy, and needs the gateway's order")
	}
	if err := confine.Bound(o.Memory); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "can't be bounded:", err) // it is kept by who started it
		os.Exit(exitUnbounded)
	}
	time.AfterFunc(o.Within+time.Second, func() { os.Exit(1) }) // whoever waits for it has given up
	ctx, end := context.WithCancelCause(context.Background())
	go watch(o.Memory, end)
	return answers.Encode(carryOut(ctx, o, orders, answers))
}

// serve is Main without bounds.
func serve(ctx context.Context, orders *gob.Decoder, answers *gob.Encoder) error {
	var o order
	if err := orders.Decode(&o); err != nil {
		return err
	}
	return answers.Encode(carryOut(ctx, o, orders, answers))
}

// watch ends a judgement that takes too much, and where that does not help the process.
func watch(memory int64, end context.CancelCauseFunc) {
	const often, grace = 5 * time.Millisecond, time.Second
	used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	var ended time.Time
	for range time.Tick(often) {
		metrics.Read(used)
		switch over := int64(used[0].Value.Uint64()-used[1].Value.Uint64()) > memory; { //nolint:gosec // bytes of this machine
		case !ended.IsZero() && time.Since(ended) > grace:
			os.Exit(exitTooMuch)
		case over && ended.IsZero():
			ended = time.Now()
			end(policy.ErrTooLarge)
		}
	}
}

// carryOut does what is ordered.
func carryOut(ctx context.Context, o order, orders *gob.Decoder, answers *gob.Encoder) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	var result any
	var err error
	switch o.Task {
	case toCompile:
		_, err = policy.Compile(ctx, o.Source)
	case toGate, toMeaning:
		a.Findings, err = findings(ctx, o)
	case toTry:
		result, err = try(ctx, o)
	case toImpact:
		result, err = impactOf(ctx, o, orders, answers)
	}
	a.Last = true
	if err == nil && result != nil {
		a.Result, err = json.Marshal(result)
	}
	if err == nil {
		return a
	}
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		a.Problems = wrong.Problems
	} else {
		a.Failed, a.TooMuch = err.Error(), errors.Is(context.Cause(ctx), policy.ErrTooLarge)
	}
	return a
}

// findings are what the gate says, or of it what is of meaning.
func findings(ctx context.Context, o order) (found []policy.Finding, err error) {
	var facts policy.Facts
	if err = unmarshal(o.Facts, &facts); err != nil {
		return nil, err
	}
	if o.Active != nil {
		if facts.Active, err = policy.CompileAgain(ctx, o.Active); err != nil {
			return nil, err
		}
	}
	if o.Task == toMeaning {
		return policy.Meaning(ctx, o.Source, facts)
	}
	facts.Now = time.Now
	_, found, err = policy.Gate(ctx, o.Source, facts)
	return found, err
}

func try(ctx context.Context, o order) (got tried, err error) {
	var in policy.AdmitInput
	if err = unmarshal(o.Input, &in); err != nil {
		return got, err
	}
	set, err := policy.Compile(ctx, o.Source)
	if err != nil {
		return got, err
	}
	got.Trial, err = set.Try(ctx, in)
	got.Named = set.Names(in.Operation.Path)
	return got, cmp.Or(err, ctx.Err())
}
