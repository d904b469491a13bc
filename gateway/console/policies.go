package console

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/linediff"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

const (
	maxMessage = 500
	// replicasSince is how long ago a replica that is listed may have been seen.
	replicasSince = 24 * time.Hour
	// versionInForce is how operators call it.
	versionInForce = "active"
)

func (c *Console) pushPolicy(x *call, wanted adminapi.NewPolicy) (out adminapi.PolicyVersion, err error) {
	if !plain(wanted.Message, 1, maxMessage) {
		return out, fault.Invalid("message", "must say why, in 1 to 500 characters without control characters")
	}
	if !plain(wanted.Force, 0, maxReason) {
		return out, fault.Invalid("force", "must have at most 500 characters, without control characters")
	}
	push := rollout.Push{Source: sourceOf(wanted.Files), Author: x.operator.Name, Message: wanted.Message, Force: wanted.Force}
	if wanted.Replaces != "" {
		if push.Replaces, err = c.policyNamed(x, wanted.Replaces); err != nil {
			return out, err
		}
	}
	v, pushed, err := c.deps.Publisher.Push(x.request.Context(), push)
	if err != nil {
		return out, policyFault(err)
	}
	document := c.policyDocument(v, nil)
	document.Existed = !pushed
	return document, nil
}

func sourceOf(files map[string]string) policy.Source {
	source := policy.Source{}
	for name, content := range files {
		source[name] = []byte(content)
	}
	return source
}

// testPolicy judges a set as a push does. Message and force count for nothing.
func (c *Console) testPolicy(x *call, wanted adminapi.NewPolicy) (out adminapi.PolicyTest, err error) {
	version, rules, findings, err := c.deps.Publisher.Test(x.request.Context(), sourceOf(wanted.Files))
	if err != nil {
		return out, policyFault(err)
	}
	return adminapi.PolicyTest{
		Version: string(version), Rules: string(rules), Good: !policy.Refused(findings, false), Findings: append([]policy.Finding{}, findings...),
	}, nil
}

// diffPolicies tells how one version becomes another.
func (c *Console) diffPolicies(x *call, wanted adminapi.PolicyPair) (out adminapi.PolicyDiff, err error) {
	var versions [2]store.PolicyVersion
	names := policy.Source{}
	for i, name := range []string{wanted.A, wanted.B} {
		version, err := c.policyNamed(x, name)
		if err != nil {
			return out, err
		}
		if versions[i], err = c.deps.Policies.PolicyVersion(x.request.Context(), version); err != nil {
			return out, policyFault(err)
		}
		maps.Copy(names, versions[i].Source)
	}
	a, b := versions[0], versions[1]
	out = adminapi.PolicyDiff{A: string(a.Version), B: string(b.Version), Files: map[string]string{}}
	for name := range names {
		if diff := linediff.Of(string(a.Source[name]), string(b.Source[name])); diff != "" {
			out.Files[name] = diff
		}
	}
	return out, nil
}

func (c *Console) listPolicies(x *call, _ adminapi.None) ([]adminapi.PolicyVersion, error) {
	versions, err := c.deps.Policies.PolicyVersions(x.request.Context())
	if err != nil {
		return nil, err
	}
	live, err := c.deps.Policies.LiveReplicas(x.request.Context(), x.now)
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.PolicyVersion, len(versions))
	for i, v := range versions {
		list[i] = c.policyDocument(v, live)
	}
	return list, nil
}

func (c *Console) showPolicy(x *call, wanted adminapi.PolicyName) (out adminapi.PolicyVersion, err error) {
	version, err := c.policyNamed(x, wanted.Version)
	if err != nil {
		return out, err
	}
	v, err := c.deps.Policies.PolicyVersion(x.request.Context(), version)
	if err != nil {
		return out, policyFault(err)
	}
	live, err := c.deps.Policies.LiveReplicas(x.request.Context(), x.now)
	if err != nil {
		return out, err
	}
	document := c.policyDocument(v, live)
	document.Files = map[string]string{}
	for name, content := range v.Source {
		document.Files[name] = string(content)
	}
	return document, nil
}

// policyNamed is the version of a name: its beginning, or active.
func (c *Console) policyNamed(x *call, text string) (policy.Version, error) {
	if text == versionInForce {
		head, err := c.deps.Policies.PolicyHead(x.request.Context())
		return head.Version, policyFault(err)
	}
	v, err := c.deps.Publisher.Find(x.request.Context(), text)
	return v.Version, policyFault(err)
}

func (c *Console) activatePolicy(x *call, wanted adminapi.ActivatedPolicy) (out adminapi.PolicyActivation, err error) {
	version, err := c.policyNamed(x, wanted.Version)
	if err != nil {
		return out, err
	}
	replaces, err := c.replaced(x, wanted.Wish)
	if err != nil {
		return out, err
	}
	a, err := c.deps.Publisher.Activate(x.request.Context(), version, wishOf(x, wanted.Wish, replaces))
	if errors.Is(err, store.ErrPolicyActive) { // asked for twice
		head, err := c.deps.Policies.PolicyHead(x.request.Context())
		if err != nil {
			return out, err
		}
		return c.activationDocument(x.request.Context(), x.now, head.Activation)
	}
	if err != nil {
		return out, policyFault(err)
	}
	return c.activationDocument(x.request.Context(), x.now, a.ID)
}

func (c *Console) rollBackPolicy(x *call, wanted adminapi.Wish) (out adminapi.PolicyActivation, err error) {
	if wanted.Replaces == "" {
		return out, fault.Invalid("replaces", "must be the version in force, from which to go back")
	}
	replaces, err := c.replaced(x, wanted)
	if err != nil {
		return out, err
	}
	a, err := c.deps.Publisher.Rollback(x.request.Context(), wishOf(x, wanted, replaces))
	if err != nil {
		return out, policyFault(err)
	}
	return c.activationDocument(x.request.Context(), x.now, a.ID)
}

func wishOf(x *call, wanted adminapi.Wish, replaces policy.Version) rollout.Wish {
	return rollout.Wish{Operator: x.operator.Name, Replaces: replaces, Reason: wanted.Reason, Force: wanted.Force, Yes: wanted.Yes}
}

// replaced is the version that an activation has to replace, "" for the one in force.
func (c *Console) replaced(x *call, wanted adminapi.Wish) (policy.Version, error) {
	if wanted.Force && wanted.Reason == "" {
		return "", fault.Invalid("reason", "must say why what does not fit is overruled")
	}
	if err := checkReason(wanted.Reason); err != nil || wanted.Replaces == "" {
		return "", err
	}
	return c.policyNamed(x, wanted.Replaces)
}

func (c *Console) showActivation(x *call, wanted adminapi.ActivationID) (out adminapi.PolicyActivation, err error) {
	id, err := uuid.Parse(wanted.Activation)
	if err != nil {
		return out, fault.New(fault.NotFound, "There is no such activation.")
	}
	return c.activationDocument(x.request.Context(), x.now, id)
}

func (c *Console) activationDocument(ctx context.Context, now time.Time, id uuid.UUID) (adminapi.PolicyActivation, error) {
	a, err := c.deps.Policies.Activation(ctx, id)
	if err != nil {
		return adminapi.PolicyActivation{}, notFound(err, "activation")
	}
	head, err := c.deps.Policies.PolicyHead(ctx)
	if err != nil {
		return adminapi.PolicyActivation{}, err
	}
	live, err := c.deps.Policies.LiveReplicas(ctx, now)
	if err != nil {
		return adminapi.PolicyActivation{}, err
	}
	return activationOf(a, head, live), nil
}

func activationOf(a store.Activation, head store.PolicyHead, live []store.Replica) adminapi.PolicyActivation {
	document := adminapi.PolicyActivation{
		ActivationID: a.ID.String(), Version: string(a.Version), Replaces: string(a.Replaces), State: string(a.State), Reason: a.Reason,
		RequestedBy: a.RequestedBy, RequestedAt: a.RequestedAt, ConfirmedBy: a.ConfirmedBy, ProposedAt: given(a.ProposedAt),
		DecidedAt: given(a.DecidedAt), Detail: a.Detail, InForce: head.Version == a.Version, Behind: []string{}, Replicas: len(live),
	}
	for _, r := range live {
		if r.Policy != a.Version {
			document.Behind = append(document.Behind, rollout.Name(r))
		}
	}
	return document
}

func (c *Console) listReplicas(x *call, _ adminapi.None) ([]adminapi.Replica, error) {
	seen, err := c.deps.Policies.ReplicasSeen(x.request.Context(), x.now.Add(-replicasSince))
	if err != nil {
		return nil, err
	}
	head, err := c.deps.Policies.PolicyHead(x.request.Context())
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.Replica, len(seen))
	for i, r := range seen {
		list[i] = adminapi.Replica{
			ReplicaID: r.ID.String(), Name: rollout.Name(r), Tag: r.Tag, State: replicaState(r, x.now), Policy: string(r.Policy), Binary: r.Binary,
			Schema: adminapi.SchemaRange{From: r.SchemaFrom, Below: r.SchemaBelow}, Plugins: r.Plugins,
			StartedAt: r.StartedAt, SeenAt: r.SeenAt, EndedAt: given(r.EndedAt), HeadIsHere: r.Policy == head.Version,
		}
	}
	return list, nil
}

func replicaState(r store.Replica, now time.Time) string {
	switch {
	case !r.EndedAt.IsZero():
		return "ended"
	case r.Live(now):
		return "live"
	}
	return "silent"
}

func (c *Console) policyDocument(v store.PolicyVersion, live []store.Replica) adminapi.PolicyVersion {
	running := 0
	for _, r := range live {
		if r.Policy == v.Version {
			running++
		}
	}
	return adminapi.PolicyVersion{
		Version: string(v.Version), Number: v.Number, State: string(v.State), StateAt: v.StateAt, Author: v.Author, Message: v.Message,
		Replicas: running, Forced: v.Forced, Predecessor: string(v.Predecessor), PushedAt: v.PushedAt, Findings: append([]policy.Finding{}, v.Findings...),
		Unsigned: c.deps.Publisher.Vault.VerifyPolicy(v.MAC, v.Digest()) != nil,
	}
}

// policyFault says what an operator can do about it.
func policyFault(err error) error {
	if unfit, ok := errors.AsType[*rollout.Unfit](err); ok {
		return fault.New(fault.InvalidRequest, "Version "+rollout.Short(unfit.Version)+" does not fit the merchants and operations there are now. Nothing was changed: "+
			"mend that first, or overrule it with force and a reason. "+unfit.Error())
	}
	if u, ok := errors.AsType[*rollout.Unconfirmed](err); ok {
		return fault.New(fault.InvalidRequest, "Nothing was changed: "+u.Error()+". If that is meant, activate version "+rollout.Short(u.Version)+" with yes (--yes).")
	}
	if o, ok := errors.AsType[*rollout.Overtaken](err); ok {
		return fault.New(fault.DuplicateReference, "Nothing was changed: "+o.Error()+"\nTake that into your edit, or name the version that it is to replace: --replaces "+rollout.Short(o.Head)+".")
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fault.New(fault.NotFound, "There is no such policy version. gerbang policy list shows those that are kept.")
	case errors.Is(err, rollout.ErrAmbiguous):
		return fault.Invalid("version", "is the beginning of several versions; give more of it")
	case errors.Is(err, store.ErrPolicyRefused):
		return fault.New(fault.InvalidRequest, "This version was refused: gerbang policy show tells why. Push it again once that is mended.")
	case errors.Is(err, store.ErrPolicyMoved):
		return fault.New(fault.DuplicateReference, "Another version is in force than the one to be replaced: somebody else has activated one. Nothing was changed.")
	case errors.Is(err, store.ErrPolicyProposed):
		return fault.New(fault.InProgress, "Another version is being activated at this moment. Nothing was changed; try again in a few seconds.")
	case errors.Is(err, store.ErrPolicyDamaged):
		return fault.New(fault.InvalidRequest, "The row of this version in the database is damaged: its files can't be read. Nothing was changed. Put the row back from a backup, or use another version.")
	case errors.Is(err, rollout.ErrForged):
		return fault.New(fault.InvalidRequest, "The row of an activation in the database was not written by a gateway with this keyset. Nothing was changed. Put the row back, or activate a version that needs no such row.")
	case errors.Is(err, rollout.ErrNothingBack):
		return fault.New(fault.NotFound, "There is no version to roll back to.")
	}
	return err
}
