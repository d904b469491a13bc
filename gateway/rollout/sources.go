package rollout

import (
	"context"
	"fmt"

	"github.com/seed-f006e74d/gerbang/policy"
)

// Source is a version's files, once it is clear that a gateway wrote them. It is
// store.ErrNotFound where there is no such version.
func (p *Publisher) Source(ctx context.Context, version policy.Version) (policy.Source, error) {
	v, err := p.Record.PolicyVersion(ctx, version)
	if err != nil {
		return nil, err
	}
	if err := p.Vault.VerifyPolicy(v.MAC, v.Digest()); err != nil || v.Source.Version() != version {
		return nil, fmt.Errorf("rollout: version %s: %w", Short(version), errUnsigned)
	}
	return v.Source, nil
}

// Test judges a set as a push does, and keeps nothing. Rules names the version whose rules
// were taken, "" where the set has its own.
func (p *Publisher) Test(ctx context.Context, source policy.Source) (version, rules policy.Version, findings []policy.Finding, err error) {
	head, err := p.Record.PolicyHead(ctx)
	if err != nil {
		return "", "", nil, err
	}
	if !source.HasRules() {
		rules = head.Version
	}
	if source, err = p.whole(ctx, source, head.Version); err != nil {
		return "", "", nil, err
	}
	findings, err = p.judge(ctx, source)
	return source.Version(), rules, findings, err
}

// Whole is a set as a push takes it: without rules of its own, with those of the version
// in force.
func (p *Publisher) Whole(ctx context.Context, source policy.Source) (policy.Source, error) {
	head, err := p.Record.PolicyHead(ctx)
	if err != nil {
		return nil, err
	}
	return p.whole(ctx, source, head.Version)
}
