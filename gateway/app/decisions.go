package app

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// replicaNumber is the number of a replica where there is no room for its id.
func replicaNumber(id uuid.UUID) uint16 { return binary.BigEndian.Uint16(id[:2]) }

// replicaNamed names the replica of a number by how its id begins.
func replicaNamed(_ context.Context, number uint16, _ time.Time) (string, error) {
	return fmt.Sprintf("%04x", number), nil
}

// decisionWriter writes this replica's log of decisions.
func (a *App) decisionWriter() *decision.Writer {
	return decision.NewWriter(a.decided, decisionPages{a.store, a.replica}, a.vault.SealDecisions, a.clock.Now, a.log)
}

// decisionPages keeps the log of one replica in the store.
type decisionPages struct {
	store   *store.Store
	replica uuid.UUID
}

// Add keeps a part.
func (p decisionPages) Add(ctx context.Context, part decision.Part) error {
	return p.store.AddDecisions(ctx, store.DecisionPart{
		Minute: part.Minute, Replica: p.replica, Part: part.Number, Counts: part.Counts, Inputs: part.Inputs,
	})
}

// Forget removes what is older, of all replicas.
func (p decisionPages) Forget(ctx context.Context, before time.Time) error {
	return p.store.ForgetDecisions(ctx, before)
}
