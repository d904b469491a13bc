package sandbox

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Movement is one thing that an upstream accepted and did, as it knows it.
type Movement struct {
	Provider string `json:"provider"`
	// Account is whose credentials it was asked for with.
	Account     AccountID    `json:"account,omitempty"`
	Reference   string       `json:"reference"`
	Destination string       `json:"destination"`
	Amount      money.Amount `json:"amount"`
	State       string       `json:"state"`
	At          time.Time    `json:"at"`
	// Page is the path of the simulator's page about it, where there is one; the
	// control API answers with the whole URL.
	Page string `json:"page,omitempty"`
}

// Movements is the witness against double sends: it counts what happened
// upstream and knows nothing of what anybody intended. A simulator fills it in
// the apply functions of its topics, so that it is replayed with them.
type Movements struct {
	provider string

	mu   sync.Mutex
	byID map[string]int
	all  []Movement
}

// NewMovements returns an empty witness for a provider.
func NewMovements(provider string) *Movements {
	return &Movements{provider: provider, byID: map[string]int{}}
}

// Record adds what was accepted. The id is the upstream's own, unlike the
// reference it is never used twice.
func (m *Movements) Record(id string, movement Movement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	movement.Provider = m.provider
	m.byID[id] = len(m.all)
	m.all = append(m.all, movement)
}

// SetState says what became of a recorded movement.
func (m *Movements) SetState(id, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, ok := m.byID[id]; ok {
		m.all[i].State = state
	}
}

// All returns a copy of every movement, the oldest first.
func (m *Movements) All() []Movement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}
