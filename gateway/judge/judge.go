package judge

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/seed-f006e74d/gerbang/policy"
)

// Command is the subcommand whose work is [Main].
const Command = "policy-judge"

const (
	// memory is what a judgement may take: a set of the greatest size takes less than the half. What a replica
	// compiles has passed it, so the replica takes no more.
	memory = 256 << 20
	// memoryOfPast is what a trial on the past may take: it remembers what each merchant has used.
	memoryOfPast = 1 << 30
	// withinGate bounds a judgement: tests, and every operation of every tier.
	withinGate = 30 * time.Second
	// within bounds what has no deadline, and withinPast a trial on the past, where compiling is to take compileWithin.
	within        = time.Minute
	withinPast    = 15 * time.Minute
	compileWithin = 15 * time.Second
)

// Judge starts the processes. Nil works in this one, unbounded but for time: that is for tests. Any number of goroutines may
// use it; what comes at once waits for one another, so that judging takes no more than a few processes do.
type Judge struct {
	log   *slog.Logger
	slots map[task]chan struct{}
}

// New makes a judge.
func New(log *slog.Logger) *Judge {
	compiling, judging, past := make(chan struct{}, 1), make(chan struct{}, 2), make(chan struct{}, 1)
	return &Judge{log: log, slots: map[task]chan struct{}{toCompile: compiling, toGate: judging, toMeaning: judging, toTry: judging, toImpact: past}}
}

// task is what is wanted of the process.
type task string

const (
	toCompile task = "compile"
	toGate    task = "gate"
	toMeaning task = "meaning"
	toTry     task = "try"
	toImpact  task = "impact"
)

// order is what the process is told first. What has numbers of any size or pointers in it is JSON: gob would lose them.
type order struct {
	Task   task
	Source policy.Source
	Active policy.Source // in force, nil where that is not needed
	Facts  []byte
	Input  []byte
	Past   span

	Memory int64
	Within time.Duration
}

// answer is what the process says: progress first, and then one that is Last.
type answer struct {
	Last     bool
	Done     int64
	At       time.Time
	Findings []policy.Finding
	Problems []policy.Problem // of a set that can't be used
	TooMuch  bool             // memory
	Failed   string           // of anything else
	Result   []byte           // JSON
}

// err is the failure that an answer tells of.
func (a answer) err() error {
	switch {
	case len(a.Problems) > 0:
		return &policy.Error{Problems: a.Problems}
	case a.Failed != "":
		return errors.New(a.Failed)
	}
	return nil
}

// Gate is policy.Gate without the set. What takes too much is refused by a finding.
func (j *Judge) Gate(ctx context.Context, source policy.Source, facts policy.Facts) ([]policy.Finding, error) {
	return j.findings(ctx, toGate, source, facts)
}

// Meaning is policy.Meaning.
func (j *Judge) Meaning(ctx context.Context, source policy.Source, facts policy.Facts) ([]policy.Finding, error) {
	return j.findings(ctx, toMeaning, source, facts)
}

func (j *Judge) findings(ctx context.Context, what task, source policy.Source, facts policy.Facts) ([]policy.Finding, error) {
	judging, cancel := context.WithTimeout(ctx, withinGate)
	defer cancel()
	o := order{Task: what, Source: source, Memory: memory}
	if facts.Active != nil {
		o.Active = facts.Active.Source()
	}
	var err error
	if o.Facts, err = json.Marshal(facts); err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	a, err := j.run(judging, o, nil, nil)
	costs, ok := errors.AsType[*excess](err)
	if late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; late {
		costs, ok = &excess{fmt.Sprintf("takes longer than %s", withinGate)}, true
	}
	if ok && what == toGate && ctx.Err() == nil {
		merchants := 0
		for _, n := range facts.Merchants {
			merchants += n
		}
		return []policy.Finding{{Check: policy.CheckCost, File: "data.json", Line: 1, Reason: costs.Error(), Merchants: merchants}}, nil
	}
	if err != nil {
		return nil, err
	}
	return a.Findings, a.err()
}

// Compile is policy.Compile: the set is compiled here once the process has compiled it, run its tests and asked it.
func (j *Judge) Compile(ctx context.Context, source policy.Source) (*policy.Set, error) {
	if j == nil {
		return policy.Compile(ctx, source)
	}
	a, err := j.run(ctx, order{Task: toCompile, Source: source, Memory: memory}, nil, nil)
	if err == nil {
		err = a.err()
	}
	if err != nil {
		return nil, ofSet(err)
	}
	return policy.CompileAgain(ctx, source)
}

// Check says what is wrong with a set that is to be compiled.
func (j *Judge) Check(ctx context.Context, source policy.Source) error {
	a, err := j.run(ctx, order{Task: toCompile, Source: source, Memory: memory}, nil, nil)
	if err == nil {
		err = a.err()
	}
	return ofSet(err)
}

// ofSet lays an excess to the set.
func ofSet(err error) error {
	if costs, ok := errors.AsType[*excess](err); ok {
		return &policy.Error{Problems: []policy.Problem{{File: "data.json", Line: 1, Col: 1, Message: costs.Error()}}}
	}
	return err
}

// Try is what a set says about a case, and whether it names the operation.
func (j *Judge) Try(ctx context.Context, source policy.Source, in policy.AdmitInput) (policy.Trial, bool, error) {
	var got tried
	o := order{Task: toTry, Source: source, Memory: memory}
	var err error
	if o.Input, err = json.Marshal(in); err != nil {
		return got.Trial, false, fmt.Errorf("judge: %w", err)
	}
	a, err := j.run(ctx, o, nil, nil)
	if err == nil {
		err = a.err()
	}
	if err == nil {
		err = unmarshal(a.Result, &got)
	}
	return got.Trial, got.Named, ofSet(err)
}

type tried struct {
	Trial policy.Trial
	Named bool
}

// excess says that the process took more than it may.
type excess struct{ what string }

// Error says what it took.
func (e *excess) Error() string { return "judging this policy " + e.what }

func tooMuch(memory int64) *excess {
	return &excess{fmt.Sprintf("takes more than %d MiB of memory, or never ends: it was given up", memory>>20)}
}

// run has an order carried out. Feed writes what follows the order; progress is told.
func (j *Judge) run(ctx context.Context, o order, feed func(*gob.Encoder) error, progress func(answer)) (answer, error) {
	most := within
	if o.Task == toImpact {
		most = withinPast
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if j == nil {
		return here(ctx, o, feed, progress)
	}
	slot := j.slots[o.Task]
	select {
	case slot <- struct{}{}:
		defer func() { <-slot }()
	case <-ctx.Done():
		return answer{}, fmt.Errorf("judge: %w", ctx.Err())
	}
	a, err := process(ctx, o, feed, progress)
	switch unstarted, failed := errors.AsType[*unstartedError](err); {
	case !failed && err == nil && a.TooMuch:
		return a, tooMuch(o.Memory)
	case !failed:
		return a, err
	case o.Task != toCompile: // what has passed nothing yet can't be let into this process
		return a, fmt.Errorf("judge: no process can be started: %w", unstarted.error)
	default:
		j.log.WarnContext(ctx, "no process can be started, so a policy version is compiled without one: its memory is not bounded", "error", unstarted.error)
		return here(ctx, o, feed, progress)
	}
}

// envJudge keeps a process from starting another one.
const envJudge = "GERBANG_POLICY_JUDGE"

// unstartedError says that there is no process.
type unstartedError struct{ error }

// process has an order carried out by a process.
func process(ctx context.Context, o order, feed func(*gob.Encoder) error, progress func(answer)) (answer, error) {
	path, err := os.Executable()
	if err == nil && os.Getenv(envJudge) != "" {
		err = errors.New("this process is one itself")
	}
	if err != nil {
		return answer{}, &unstartedError{err}
	}
	if runtime.GOOS == "linux" {
		path = "/proc/self/exe" // also where its file was replaced meanwhile
	}
	end, _ := ctx.Deadline()
	o.Within = time.Until(end)
	cmd := exec.CommandContext(ctx, path, Command)
	cmd.Args[0] = os.Args[0]
	cmd.Env = []string{envJudge + "=yes", "GOMAXPROCS=1", fmt.Sprintf("GOMEMLIMIT=%d", o.Memory/4*3), "GOTRACEBACK=none"}
	for _, name := range []string{"ZONEINFO", "TZ"} { // an empty one is another zone than none
		if value, set := os.LookupEnv(name); set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.WaitDelay = time.Second
	var said tail
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return answer{}, &unstartedError{err}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return answer{}, &unstartedError{err}
	}
	if err := cmd.Start(); err != nil {
		return answer{}, &unstartedError{err}
	}
	a, talked := talk(o, in, out, feed, progress)
	if talked != nil {
		_ = cmd.Process.Kill() // it may wait for what never comes
	}
	ended := cmd.Wait()
	switch {
	case talked == nil:
		return a, nil
	case ctx.Err() != nil:
		return a, fmt.Errorf("judge: %w", ctx.Err())
	case !errors.Is(talked, errEnded):
		return a, talked
	}
	if bytes.Contains(said.kept, []byte("out of memory")) { // the kernel's bound, as Go tells it
		return answer{TooMuch: true}, nil
	}
	switch code := cmd.ProcessState.ExitCode(); code {
	case exitUnbounded:
		return a, &unstartedError{fmt.Errorf("%w: %s", ended, said.kept)}
	case exitTooMuch:
		return answer{TooMuch: true}, nil
	}
	return a, fmt.Errorf("judge: the process has ended without an answer, by somebody else: %w: %s", ended, said.kept)
}

var (
	errFed   = errors.New("judge: the process takes no more")
	errEnded = errors.New("judge: the process has ended without an answer")
)

// here has an order carried out in this process.
func here(ctx context.Context, o order, feed func(*gob.Encoder) error, progress func(answer)) (answer, error) {
	end, _ := ctx.Deadline()
	o.Within = time.Until(end)
	toIt, ofUs := io.Pipe()
	toUs, ofIt := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = toUs.CloseWithError(ctx.Err()) })
	defer stop()
	go func() {
		_ = ofIt.CloseWithError(serve(ctx, gob.NewDecoder(toIt), gob.NewEncoder(ofIt)))
		_ = toIt.Close()
	}()
	a, err := talk(o, ofUs, toUs, feed, progress)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("judge: %w", ctx.Err())
	}
	return a, err
}

// talk tells an order and what follows it, and reads answers until the last. What fails in following it is the error.
func talk(o order, to io.WriteCloser, from io.ReadCloser, feed func(*gob.Encoder) error, progress func(answer)) (a answer, err error) {
	fed := make(chan error, 1)
	go func() {
		defer to.Close()
		encoder := gob.NewEncoder(to)
		err := encoder.Encode(o)
		if err != nil {
			err = errors.Join(errFed, err)
		} else if feed != nil {
			err = feed(encoder)
		}
		fed <- err
	}()
	for answers := gob.NewDecoder(from); err == nil && !a.Last; {
		a = answer{}
		if err = answers.Decode(&a); err == nil && !a.Last && progress != nil {
			progress(a)
		}
	}
	if err != nil {
		err = errors.Join(errEnded, err)
	}
	_, _ = to.Close(), from.Close() // whatever it was still told
	if failed := <-fed; failed != nil && !errors.Is(failed, errFed) {
		return a, failed
	}
	return a, err
}

// tail keeps the beginning of what a process says as it fails.
type tail struct{ kept []byte }

// Write keeps what fits.
func (t *tail) Write(p []byte) (int, error) {
	const most = 4 << 10
	t.kept = append(t.kept, p[:min(len(p), most-len(t.kept))]...)
	return len(p), nil
}

// unmarshal reads JSON with its numbers as they are.
func unmarshal(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}
