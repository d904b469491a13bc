package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Config is what a suite is made of.
type Config struct {
	// Manifest is the document as the plugin serves it, Examples the document
	// examples.json.
	Manifest, Examples []byte
	// Plugin and Simulator give commands, for each process a new one. Nothing of this
	// process's environment reaches the plugin unless the command's Env has it.
	Plugin, Simulator func() *exec.Cmd
	// Confinement starts both so that they reach only what the test needs, in place of
	// Plugin and of a plain start of Simulator; nil lets them reach what this process does.
	Confinement Confinement
	// Calls is how many calls are made to find what a plugin loses with each; 10,000
	// unless given.
	Calls int
	// Log gets what the plugin and the simulator write on standard error; nil discards.
	Log io.Writer
}

// Confinement starts what is tested so that it reaches nothing but its part in the test.
type Confinement interface {
	// Plugin is how go-plugin runs the plugin. It may read the directories and connect to
	// the TCP ports.
	Plugin(read []string, ports []uint16) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error)
	// Simulator gives the process that a command describes. It may listen on one port of
	// this machine, write the directory and connect to the TCP ports. Nil runs the command
	// as any program, which is told the port.
	Simulator(command *exec.Cmd, dir string, listen uint16, ports []uint16) (Process, error)
}

// Process is one that runs beside the test. Kill ends its children, too.
type Process = interface {
	Start(ctx context.Context) error
	Wait(ctx context.Context) error
	Kill(ctx context.Context) error
}

// allCalls is how many calls show a leak that matters.
const allCalls = 10_000

// Suite is a plugin and the simulator of its upstream, running. Its methods may be
// called from any goroutine.
type Suite struct {
	config    Config
	manifest  *manifest.Manifest
	examples  Examples
	simulator *simulator
	post      *post
	secrets   *secrets
	stderr    *listener
	shared    *process
	doors     *doors
	dir       string

	mu       sync.Mutex
	accounts map[string]*sync.Mutex
	opened   map[string]opened
}

// Open starts both processes. Close ends them.
func Open(ctx context.Context, c Config) (*Suite, error) {
	m, err := manifest.Parse(c.Manifest)
	if err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	x, err := parseExamples(c.Examples, m)
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	if c.Calls == 0 {
		c.Calls = allCalls
	}
	s := &Suite{
		config: c, manifest: m, examples: x, secrets: &secrets{schema: m.Connection, forms: map[string]string{}},
		accounts: map[string]*sync.Mutex{}, opened: map[string]opened{},
	}
	s.stderr = &listener{secrets: s.secrets, out: c.Log}
	if s.dir, err = os.MkdirTemp("", "gerbang-conformance-"); err != nil {
		return nil, err
	}
	s.post = openPost()
	if s.doors, err = openDoors(c.Confinement != nil); err == nil {
		s.simulator, err = s.startSimulator(ctx)
	}
	if err == nil {
		s.simulator.void = x.VoidStates
		s.shared, err = s.start()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close kills the processes and removes what the simulator has kept.
func (s *Suite) Close() error {
	if s.shared != nil {
		s.shared.end()
	}
	if s.simulator != nil {
		s.simulator.end()
	}
	s.post.server.CloseClientConnections()
	s.post.server.Close()
	if s.doors != nil {
		s.doors.close()
	}
	return os.RemoveAll(s.dir)
}

// Manifest is what was tested.
func (s *Suite) Manifest() *manifest.Manifest { return s.manifest }

func (s *Suite) start() (*process, error) {
	if s.config.Confinement == nil {
		return startProcess(&plugin.ClientConfig{Cmd: grouped(s.config.Plugin())}, s.stderr)
	}
	run := s.config.Confinement.Plugin([]string{s.dir}, []uint16{s.doors.port, s.simulator.port})
	return startProcess(&plugin.ClientConfig{RunnerFunc: run}, s.stderr)
}

// startSimulator starts the simulator on a port that it finds for itself. One that is
// confined gets its port, and is believed no other.
func (s *Suite) startSimulator(ctx context.Context) (*simulator, error) {
	start := simulatorStart{command: s.config.Simulator(), dir: s.dir, arguments: s.examples.Simulator, log: s.config.Log}
	if s.config.Confinement == nil {
		return start.run(ctx)
	}
	post, err := portOf(s.post.server.Listener.Addr().String())
	if err == nil {
		start.port, err = freePort()
	}
	if err != nil {
		return nil, err
	}
	start.confined = func(c *exec.Cmd) (Process, error) {
		return s.config.Confinement.Simulator(c, s.dir, start.port, []uint16{post})
	}
	return start.run(ctx)
}

// open opens an account at the simulator once.
func (s *Suite) open(ctx context.Context, merchant, mode string, version int64) (opened, *mailbox, error) {
	name := fmt.Sprintf("%s-%s-%d", merchant, mode, version)
	box, address := s.post.box(name)
	s.mu.Lock()
	one := s.accounts[name]
	if one == nil {
		one = &sync.Mutex{}
		s.accounts[name] = one
	}
	s.mu.Unlock()
	one.Lock()
	defer one.Unlock()
	s.mu.Lock()
	o, known := s.opened[name]
	s.mu.Unlock()
	if known {
		return o, box, nil
	}
	o, err := s.simulator.open(ctx, merchant, mode, version, address)
	if err != nil {
		return o, box, err
	}
	if o.Credentials, err = s.examples.credentials(o.Credentials); err != nil {
		return o, box, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[name] = o
	return o, box, nil
}

// Verdict is what came of a case.
type Verdict struct {
	Name   string `json:"name"`
	Proves string `json:"proves"`
	// Failed says that the plugin must not touch money; Skipped that nothing was
	// proven. What was found, or why nothing was, stands in Words.
	Failed  bool          `json:"failed,omitempty"`
	Skipped bool          `json:"skipped,omitempty"`
	Words   []string      `json:"words,omitempty"`
	Took    time.Duration `json:"-"`
}

// Run runs one case.
func (s *Suite) Run(ctx context.Context, c Case) Verdict {
	begun := time.Now()
	tr := &trial{
		suite: s, manifest: s.manifest, ctx: ctx, accounts: map[string]*account{},
		name: strings.Map(func(r rune) rune {
			if r == ' ' || r == '/' {
				return '-'
			}
			return r
		}, c.Name),
	}
	tr.plugin = client{s.shared, tr}
	defer tr.close()
	tr.guard(func() { c.run(tr) })
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if err := ctx.Err(); err != nil {
		tr.failed, tr.words = true, append(tr.words, "the time was over: "+err.Error())
	}
	return Verdict{Name: c.Name, Proves: c.Proves, Failed: tr.failed, Skipped: tr.skipped && !tr.failed, Words: tr.words, Took: time.Since(begun)}
}

// guard runs a part of a case, and lets it end by [over].
func (tr *trial) guard(part func()) {
	defer func() {
		if p := recover(); p != nil && p != (over{}) {
			panic(p)
		}
	}()
	part()
}

// Leaks says which credentials stood on the plugin's standard error, so far.
func (s *Suite) Leaks() []string {
	return slices.Compact(slices.Sorted(slices.Values(s.stderr.leaked())))
}

// All runs every case, so many at once, tells each verdict as it comes, and ends the
// plugin.
func (s *Suite) All(ctx context.Context, atOnce int, tell func(Verdict)) {
	var told sync.Mutex
	run := func(c Case) {
		v := s.Run(ctx, c)
		told.Lock()
		defer told.Unlock()
		tell(v)
	}
	cases := s.Cases()
	for _, c := range cases {
		if c.Alone {
			run(c)
		}
	}
	var running sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, c := range cases {
		if c.Alone {
			continue
		}
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			run(c)
		})
	}
	running.Wait()
	s.shared.end() // so that its standard error comes to an end
	if leaks := s.Leaks(); len(leaks) > 0 {
		tell(Verdict{Name: "standard error", Proves: "No credential stands on the plugin's standard error.", Failed: true, Words: leaks})
	}
}

// Files reads the manifest and the examples that lie in a directory.
func Files(dir, examples string) (manifestJSON, examplesJSON []byte, err error) {
	manifestJSON, err = os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return nil, nil, err
	}
	if !filepath.IsAbs(examples) && filepath.Base(examples) == examples {
		examples = filepath.Join(dir, examples)
	}
	examplesJSON, err = os.ReadFile(examples)
	return manifestJSON, examplesJSON, err
}

// credentials replaces what the examples want otherwise.
func (x Examples) credentials(given []byte) ([]byte, error) {
	if len(x.Credentials) == 0 {
		return given, nil
	}
	return merged(given, x.Credentials)
}

// acceptedExamples are those that the upstream knows of once they are accepted.
func (tr *trial) acceptedExamples() (examples []Example) {
	for _, e := range tr.suite.examples.Examples {
		if op, _ := tr.manifest.Operation(e.Operation); op.Money() && op.Kind != manifest.Collection && op.Kind != manifest.Refund && accepted(e.want()) && !e.PayerFirst {
			examples = append(examples, e)
		}
	}
	return examples
}
