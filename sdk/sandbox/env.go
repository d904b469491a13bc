package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// defaultLatency is how long FaultLatency takes.
const defaultLatency = 3 * time.Second

// Config is what a simulator needs from outside.
type Config struct {
	// Provider is the plugin's name, part of every payment and movement.
	Provider string
	// StateDir is a directory of this simulator alone; it is created.
	StateDir string
	// Token guards the control API; it must not be empty.
	Token string
	// Clock is the time; nil is the machine's, which the order "clock" moves.
	Clock Clock
	// Log hears of webhooks and faults; nil discards.
	Log *slog.Logger
	// Client sends webhooks; nil is one with the usual 30 s and no redirects.
	Client *http.Client
	// Latency is how long FaultLatency takes; zero is 3 s.
	Latency time.Duration
}

// Env is the world that a simulator runs in.
type Env struct {
	// Provider is the plugin's name.
	Provider string
	// StateDir is the simulator's own directory, for what it leaves in files.
	StateDir string
	// Clock is the only source of time.
	Clock Clock
	// Log is for what a developer wants to see.
	Log *slog.Logger
	// Journal holds everything that must survive a kill.
	Journal *Journal
	// Accounts is who has registered where webhooks go.
	Accounts *Accounts
	// Movements is the witness; the simulator fills it.
	Movements *Movements
	// Faults wraps the handlers of the upstream's operations.
	Faults *Faults
	// Webhooks queues messages to accounts.
	Webhooks *Webhooks
	// Activity is what was called and notified lately, for people.
	Activity *Activity

	clockTopic *Topic[clockMove]

	token  string
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// Open opens the state directory. The simulator's constructor then declares
// its topics and calls Begin.
func Open(c Config) (*Env, error) {
	if c.Provider == "" || c.StateDir == "" || c.Token == "" {
		return nil, errors.New("sandbox: provider, state directory and token are required")
	}
	c = c.withDefaults()
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		return nil, err
	}
	journal, err := OpenJournal(filepath.Join(c.StateDir, "journal.jsonl"))
	if err != nil {
		return nil, err
	}
	env := &Env{
		Provider:  c.Provider,
		StateDir:  c.StateDir,
		Clock:     c.Clock,
		Log:       c.Log,
		Journal:   journal,
		Accounts:  newAccounts(journal),
		Movements: NewMovements(c.Provider),
		Faults:    NewFaults(c.Clock, c.Latency),
		Activity:  newActivity(c.Clock),
		token:     c.Token,
	}
	env.ctx, env.cancel = context.WithCancel(context.Background())
	env.Webhooks = newWebhooks(env.Accounts, journal, env.Activity, c)
	env.clockTopic = NewTopic(journal, "clock", env.applyClock)
	return env, nil
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = &MovableClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Latency == 0 {
		c.Latency = defaultLatency
	}
	if c.Client == nil {
		c.Client = &http.Client{
			Timeout:       30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return c
}

// Begin replays the journal into the topics and starts sending webhooks.
func (e *Env) Begin() error {
	if err := e.Journal.Replay(); err != nil {
		return err
	}
	e.Go(e.Webhooks.run)
	return nil
}

// Go runs work in the background; Close ends its context and waits for it.
func (e *Env) Go(work func(context.Context)) {
	e.tasks.Go(func() { work(e.ctx) })
}

// Close ends the background work and flushes the journal.
func (e *Env) Close() error {
	e.cancel()
	e.tasks.Wait()
	return e.Journal.Close()
}
