package sandbox

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Simulator is the upstream: its state in memory, its journal on disk, and its
// reports beside the journal.
type Simulator struct {
	env     *kit.Env
	options Options
	agenda  *kit.Agenda[task]

	accountTopic  *kit.Topic[accountEvent]
	paymentTopic  *kit.Topic[payment]
	reversalTopic *kit.Topic[reversal]
	reportTopic   *kit.Topic[reported]

	// mu guards the state. The apply functions run under it, or in Replay.
	mu       sync.Mutex
	accounts map[string]*account // by merchant id
	payments map[string]payment  // by settlement id
	reversed map[string]bool     // likewise
}

// task is a report that may be due, once or again and again.
type task struct {
	merchant string
	again    bool
}

// New replays the journal of env and returns the upstream as it was.
func New(env *kit.Env, options Options) (*Simulator, error) {
	s := &Simulator{
		env: env, options: options,
		accounts: map[string]*account{}, payments: map[string]payment{}, reversed: map[string]bool{},
	}
	s.agenda = kit.NewAgenda(env.Clock, func(_ context.Context, t task) { s.due(t) })
	s.accountTopic = kit.NewTopic(env.Journal, "shop", s.applyAccount) // the kit has accounts of its own
	s.paymentTopic = kit.NewTopic(env.Journal, "payment", s.applyPayment)
	s.reversalTopic = kit.NewTopic(env.Journal, "reversal", s.applyReversal)
	s.reportTopic = kit.NewTopic(env.Journal, "report", s.applyReport)
	if err := env.Begin(); err != nil {
		return nil, err
	}
	for merchant := range s.accounts {
		s.agenda.Add(env.Clock.Now().Add(options.Late), task{merchant: merchant, again: true})
	}
	env.Go(s.agenda.Run)
	return s, nil
}

// Handler serves nothing: such a wallet has no API.
func (s *Simulator) Handler() http.Handler { return http.NotFoundHandler() }

// Describe has no payment page and no magic values: only codes are paid.
func (s *Simulator) Describe(string) kit.Description {
	return kit.Description{Magic: []kit.Magic{}, Prefixes: []string{}}
}

// due writes the report of a merchant whose time has come.
func (s *Simulator) due(t task) {
	next := s.now().Add(s.options.Every) // before the work, which takes time
	if err := s.publish(t.merchant, false); err != nil {
		s.env.Log.Warn("a report was not written", "merchant", t.merchant, "err", err)
	}
	if t.again {
		s.agenda.Add(next, t)
	}
}

func (s *Simulator) now() time.Time { return s.env.Clock.Now().UTC().Truncate(time.Microsecond) }

// commit appends, under the lock, and waits without it.
func (s *Simulator) commit(entries ...kit.Entry) error {
	s.mu.Lock()
	commit := s.env.Journal.Append(entries...)
	s.mu.Unlock()
	return commit.Wait()
}

// line is a row that waits for its report.
type line struct {
	payment
	Reversed bool
	Due      time.Time
}

// take gives the rows that are due in the next report of an account.
func (a *account) take(now time.Time) (rows []line) {
	for _, l := range a.waiting {
		if !l.Due.After(now) {
			rows = append(rows, l)
		}
	}
	return rows
}

// drop forgets rows that were reported.
func (a *account) drop(names []string) {
	a.waiting = slices.DeleteFunc(a.waiting, func(l line) bool { return slices.Contains(names, l.name()) })
}

func (l line) name() string {
	if l.Reversed {
		return l.ID + "/reversed"
	}
	return l.ID
}
