package console

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/approval"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const maxEvidence = 4000

var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (c *Console) listPlugins(x *call, _ adminapi.None) ([]adminapi.Plugin, error) {
	ctx := x.request.Context()
	known, err := c.deps.Approvals.Known(ctx)
	if err != nil {
		return nil, err
	}
	live, err := c.deps.Policies.LiveReplicas(ctx, x.now)
	if err != nil {
		return nil, err
	}
	list := []adminapi.Plugin{}
	for _, s := range c.deps.Plugins.Status() {
		p := pluginDocument(s)
		p.Owner = string(c.offered.Load().owners[tenants.Provider(s.Provider)])
		p.WaitsForRoute = c.deps.Catalog.Current().WaitsForRoute(s.Provider) && !c.deps.Policy().RoutesTo(s.Provider)
		sum := s.SHA256
		if k, ok := known[s.Provider]; ok {
			p.Approval = c.knownDocument(k)
			sum = k.Approval.SHA256
		}
		for _, r := range live {
			p.Replicas = append(p.Replicas, adminapi.PluginReplica{
				ReplicaID: r.ID.String(), Name: rollout.Name(r), Runs: r.Plugins[s.Provider], HasFile: slices.Contains(r.Files, sum),
			})
		}
		list = append(list, p)
	}
	return list, nil
}

func (c *Console) showPlugin(x *call, wanted adminapi.ProviderName) (out adminapi.Plugin, err error) {
	list, err := c.listPlugins(x, adminapi.None{})
	if err != nil {
		return out, err
	}
	for _, p := range list {
		if p.Provider != wanted.Provider {
			continue
		}
		if p.Approval == nil {
			p.Approval = &adminapi.PluginApproval{Provider: p.Provider, SHA256: p.SHA256, ManifestDigest: p.ManifestDigest, State: "configured"}
		}
		if p.Approval.State == "configured" {
			p.Approval.Reach = c.reachNow(p.Provider)
		}
		for _, m := range c.deps.Plugins.Manifests() {
			if m.Name == p.Provider {
				p.Approval.Manifest = m.Document()
			}
		}
		return p, nil
	}
	return out, noPlugin()
}

// reachNow is what a plugin may reach on this replica.
func (c *Console) reachNow(provider string) store.PluginReach {
	for _, s := range c.deps.Plugins.Status() {
		if s.Provider == provider {
			return store.PluginReach{Read: s.Read, Ports: s.Ports, MemoryMB: s.MaxMemory >> 20, User: s.User}
		}
	}
	return store.PluginReach{}
}

func noPlugin() error {
	return fault.New(fault.NotFound, "There is no such plugin, or no approval of it that begins so. gerbang plugin list and gerbang plugin approvals show what there is.")
}

func pluginDocument(s host.Status) adminapi.Plugin {
	p := adminapi.Plugin{
		Provider: s.Provider, Version: s.Version, SHA256: s.SHA256, ManifestDigest: s.Digest,
		Running: s.Running, PID: s.PID, Since: given(s.Since), Restarts: s.Restarts, LastFault: s.LastFault,
		InFlight: s.InFlight, MaxInFlight: s.MaxInFlight, Breakers: append([]host.BreakerStatus{}, s.Breakers...),
		Confined: s.Confined, Ports: texts(s.Ports), MemoryMB: s.Memory >> 20, LastErrors: []adminapi.PastFault{}, Replicas: []adminapi.PluginReplica{},
		Latency: adminapi.Latency{Calls: s.Latency.Calls, MedianMS: s.Latency.Median.Milliseconds(), P99MS: s.Latency.P99.Milliseconds()},
	}
	for _, f := range s.Faults {
		p.LastErrors = append(p.LastErrors, adminapi.PastFault{At: f.At, Why: foreign(f.Why)})
	}
	return p
}

func (c *Console) knownDocument(k approval.Known) *adminapi.PluginApproval {
	document := c.approvalDocument(k.Approval)
	document.Provider, document.Unsigned, document.State = k.Head.Provider, k.Unsigned, "in force"
	switch {
	case k.Head.Approval == uuid.Nil:
		document.State = "removed"
	case k.Head.Approval == approval.Configured:
		document.State = "configured"
	case k.Head.Replica != uuid.Nil:
		document.State, document.Replica = "tried on one replica", k.Head.Replica.String()
	}
	return &document
}

func (c *Console) approvalDocument(a store.PluginApproval) adminapi.PluginApproval {
	state := "approved"
	if c.deps.Approvals.Waits(a) {
		state = "waiting"
	}
	return adminapi.PluginApproval{
		ApprovalID: a.ID.String(), Provider: a.Provider, SHA256: a.SHA256, Version: a.Version, ManifestDigest: a.ManifestDigest,
		Reach: a.Reach, Evidence: a.Evidence, ApprovedBy: a.ApprovedBy, ApprovedAt: a.ApprovedAt, ConfirmedBy: a.ConfirmedBy,
		Unsigned: !c.deps.Approvals.Signed(a), State: state,
	}
}

func (c *Console) listApprovals(x *call, _ adminapi.None) ([]adminapi.PluginApproval, error) {
	all, err := c.deps.Approvals.List(x.request.Context())
	if err != nil {
		return nil, err
	}
	known, err := c.deps.Approvals.Known(x.request.Context())
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.PluginApproval, len(all))
	for i, a := range all {
		list[i] = c.approvalDocument(a)
		switch k := known[a.Provider]; a.ID {
		case k.Head.Approval:
			list[i].State = c.knownDocument(k).State
		case k.Head.Before:
			list[i].State = "before it"
		}
	}
	return list, nil
}

func (c *Console) approvePlugin(x *call, wanted adminapi.NewApproval) (out adminapi.PluginApproval, err error) {
	if !sha256Form.MatchString(wanted.SHA256) {
		return out, fault.Invalid("sha256", "must be the SHA-256 of the binary, in 64 small hex digits")
	}
	if len(wanted.Evidence) > maxEvidence {
		return out, fault.Invalid("evidence", "must have at most 4000 bytes")
	}
	if wanted.Reach.MemoryMB < 0 || wanted.Reach.MemoryMB > 0 && wanted.Reach.MemoryMB < 64 {
		return out, fault.Invalid("reach.memory_mb", "must be at least 64")
	}
	a, err := c.deps.Approvals.Approve(x.request.Context(), x.operator.Name, approval.Wanted{
		SHA256: wanted.SHA256, Manifest: wanted.Manifest, Reach: wanted.Reach, Evidence: wanted.Evidence,
	})
	if err != nil {
		return out, pluginFault(err)
	}
	document := c.approvalDocument(a)
	document.PluginsDir = c.deps.Approvals.Dir()
	return document, nil
}

func (c *Console) confirmPlugin(x *call, wanted adminapi.ApprovalID) (out adminapi.PluginApproval, err error) {
	id, err := uuid.Parse(wanted.Approval)
	if err != nil {
		return out, noPlugin()
	}
	a, err := c.deps.Approvals.Confirm(x.request.Context(), x.operator.Name, id)
	if errors.Is(err, approval.ErrOwn) {
		return out, fault.New(fault.ScopeMissing, "Another operator than "+x.operator.Name+" must confirm it: "+x.operator.Name+" approved it.")
	}
	if err != nil {
		return out, pluginFault(err)
	}
	return c.approvalDocument(a), nil
}

func (c *Console) activatePlugin(x *call, wanted adminapi.PluginActivation) (out adminapi.PluginChange, err error) {
	replica := uuid.Nil
	if wanted.ReplicaID != "" {
		if replica, err = uuid.Parse(wanted.ReplicaID); err != nil {
			return out, fault.Invalid("replica_id", "must be a replica's whole id, as gerbang replica list --json shows it")
		}
	}
	a, err := c.deps.Approvals.Find(x.request.Context(), wanted.Provider, wanted.SHA256)
	if err != nil {
		return out, pluginFault(err)
	}
	head, err := c.deps.Approvals.Activate(x.request.Context(), x.operator.Name, a, replica)
	if err != nil && !errors.Is(err, approval.ErrActive) { // asked for twice
		return out, pluginFault(err)
	}
	return c.changeDocument(x.request.Context(), head)
}

func (c *Console) rollBackPlugin(x *call, wanted adminapi.ProviderName) (out adminapi.PluginChange, err error) {
	head, err := c.deps.Approvals.Rollback(x.request.Context(), x.operator.Name, wanted.Provider)
	if err != nil {
		return out, pluginFault(err)
	}
	return c.changeDocument(x.request.Context(), head)
}

func (c *Console) removePlugin(x *call, wanted adminapi.PluginRemoval) (out adminapi.PluginChange, err error) {
	head, err := c.deps.Approvals.Remove(x.request.Context(), x.operator.Name, wanted.Provider, wanted.LeaveOpen)
	if err != nil {
		return out, pluginFault(err)
	}
	return c.changeDocument(x.request.Context(), head)
}

func (c *Console) changeDocument(ctx context.Context, head store.PluginHead) (adminapi.PluginChange, error) {
	document := adminapi.PluginChange{Provider: head.Provider, Changes: head.Changes, ChangedAt: head.ChangedAt, ChangedBy: head.ChangedBy}
	if head.Replica != uuid.Nil {
		document.ReplicaID = head.Replica.String()
	}
	known, err := c.deps.Approvals.Known(ctx)
	if k := known[head.Provider]; err == nil && k.Head.Approval == head.Approval {
		document.SHA256 = k.Approval.SHA256
	}
	return document, err
}

// restartPlugin restarts a plugin on this replica. Its audit entry is written first.
func (c *Console) restartPlugin(x *call, wanted adminapi.ProviderName) (out adminapi.None, err error) {
	provider := wanted.Provider
	if !slices.ContainsFunc(c.deps.Plugins.Status(), func(s host.Status) bool { return s.Provider == provider }) {
		return out, noPlugin()
	}
	audit := store.Audit{Operator: x.operator.Name, Action: "plugin.restart", Detail: "plugin " + provider + " on replica " + c.deps.Replica.String(), At: x.now}
	if err := c.deps.Merchants.NoteAudit(x.request.Context(), audit, tenants.Platform); err != nil {
		return out, err
	}
	if err := c.deps.Plugins.Restart(x.request.Context(), provider); err != nil {
		return out, fault.New(fault.ProviderUnavailable, "The new process does not come up, and the old one stays: "+foreign(err.Error()))
	}
	return out, nil
}

// pluginFault says what an operator can do about it.
func pluginFault(err error) error {
	if refused, ok := errors.AsType[*approval.Refusal](err); ok {
		return fault.New(fault.InvalidRequest, "Nothing was changed: "+foreign(refused.Why)+".")
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noPlugin()
	case errors.Is(err, approval.ErrAmbiguous):
		return fault.Invalid("sha256", "is the beginning of several binaries that are approved; give more of it")
	case errors.Is(err, approval.ErrUnconfirmed), errors.Is(err, store.ErrPluginConfirmed):
		return fault.New(fault.InvalidRequest, "Another operator has to approve the same binary first. Nothing was changed.")
	case errors.Is(err, approval.ErrForged):
		return fault.New(fault.InvalidRequest, "The row of this approval, or of what is in force, was not written by a gateway with this keyset. Nothing was changed. Approve the binary again, and activate that.")
	case errors.Is(err, approval.ErrNothingBack):
		return fault.New(fault.NotFound, "There is nothing to roll back to. gerbang plugin activate NAME SHA256 puts another approval in force.")
	case errors.Is(err, store.ErrPluginUsed):
		return fault.New(fault.InvalidRequest, "An account was connected to it at this moment. Nothing was changed; gerbang connection remove, and remove it again.")
	case errors.Is(err, store.ErrPluginMoved):
		return fault.New(fault.InProgress, "Somebody else has changed this plugin at this moment. Nothing was changed; look at gerbang plugin show, and try again.")
	}
	return err
}
