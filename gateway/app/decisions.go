package app

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// replicaNumber is the number of a replica where there is no room for its id.
func replicaNumber(id uuid.UUID) uint16 { return binary.BigEndian.Uint16(id[:2]) }

// explaining is what decisions are explained with.
func (a *App) explaining() console.Decisions {
	sets := &policySets{app: a, sets: map[policy.Version]*policy.Set{}}
	return console.Decisions{
		Key: a.decisions, Policies: sets.ofDigest, Policy: sets.of, Open: a.vault.OpenDecisions, Past: a.store, Judge: a.judge, Replica: a.replicaNamed,
	}
}

// replicaNamed names the replica of a number at a time, by the number where nobody knows
// which it was.
func (a *App) replicaNamed(ctx context.Context, number uint16, at time.Time) (string, error) {
	seen, err := a.store.ReplicasSeen(ctx, at.Add(-time.Minute))
	for _, r := range seen {
		if r.Tag == number && !r.StartedAt.After(at.Add(time.Minute)) {
			return r.ID.String(), nil
		}
	}
	return fmt.Sprintf("%04x", number), err
}

// policySets are the sets of versions that are kept, compiled when they are asked for.
type policySets struct {
	app  *App
	mu   sync.Mutex
	sets map[policy.Version]*policy.Set
}

// mostSets bounds the sets that stay compiled.
const mostSets = 8

// of is the set of a version, nil where it is not kept or no gateway has written it.
func (p *policySets) of(ctx context.Context, version policy.Version) (*policy.Set, error) {
	if active := p.app.policy.Set(); active.Version() == version {
		return active, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := p.sets[version]; set != nil {
		return set, nil
	}
	v, err := p.app.store.PolicyVersion(ctx, version)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrPolicyDamaged) {
		return nil, nil //nolint:nilnil // none
	}
	if err != nil {
		return nil, err
	}
	if p.app.vault.VerifyPolicy(v.MAC, v.Digest()) != nil || v.Source.Version() != version {
		return nil, nil //nolint:nilnil // as above
	}
	set, err := p.app.judge.Compile(ctx, v.Source)
	if err != nil {
		return nil, err
	}
	if len(p.sets) >= mostSets {
		clear(p.sets)
	}
	p.sets[version] = set
	return set, nil
}

// ofDigest are the sets whose versions have a digest.
func (p *policySets) ofDigest(ctx context.Context, digest uint32) ([]*policy.Set, error) {
	versions, err := p.app.store.PolicyVersions(ctx)
	if err != nil {
		return nil, err
	}
	var found []*policy.Set
	for _, v := range versions {
		if decision.VersionDigest(string(v.Version)) != digest || v.State == store.PolicyRefused {
			continue
		}
		set, err := p.of(ctx, v.Version)
		if err != nil {
			return nil, err
		}
		if set != nil {
			found = append(found, set)
		}
	}
	return found, nil
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

// requestWriter writes this replica's log of requests.
func (a *App) requestWriter() *requestlog.Writer {
	add := func(ctx context.Context, parts []requestlog.Part) error {
		return a.store.AddRequests(ctx, a.replica, parts)
	}
	seal := func(of requestlog.Owner, calls []byte) ([]byte, error) {
		return a.vault.SealRequests(tenants.MerchantID(of.Merchant), tenants.Mode(of.Mode), calls)
	}
	return requestlog.NewWriter(a.requests, add, seal, a.clock.Now, a.log)
}
