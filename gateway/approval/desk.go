package approval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Wanted is a plugin that an operator wants approved.
type Wanted struct {
	SHA256   string
	Manifest []byte // the document
	Reach    store.PluginReach
	Evidence string // what was proven of it, "" for nothing
}

// Unproven is how the evidence of an approval begins that has none.
const Unproven = "no conformance run"

// Approve keeps an operator's approval. One of the same binary, manifest and reach stays
// as it is, and another operator confirms it so, unless it lacks what is proven now: then
// that is an approval of its own. It is in force only once it is activated.
func (a *Approvals) Approve(ctx context.Context, operator string, w Wanted) (store.PluginApproval, error) {
	m, err := manifest.Parse(w.Manifest)
	if err != nil {
		return store.PluginApproval{}, refuse("the manifest: %v", err)
	}
	all, err := a.deps.Store.PluginApprovals(ctx)
	if err != nil {
		return store.PluginApproval{}, err
	}
	now := a.deps.Now().UTC().Truncate(time.Microsecond)
	for _, there := range all {
		if there.Provider != m.Name || there.SHA256 != w.SHA256 || there.ManifestDigest != m.Digest() || !alike(there.Reach, w.Reach) ||
			a.deps.Vault.VerifyPolicy(there.MAC, there.Digest()) != nil || !holds(there, w.Evidence, operator) {
			continue
		}
		if there.ApprovedBy == operator || there.ConfirmedBy != "" || !a.deps.SecondOperator {
			return there, nil
		}
		return a.confirm(ctx, operator, there, now)
	}
	approved := store.PluginApproval{
		ID: uuid.New(), Provider: m.Name, SHA256: w.SHA256, ManifestDigest: m.Digest(), Version: m.Version, Reach: w.Reach,
		Evidence: w.Evidence, ApprovedBy: operator, ApprovedAt: now,
	}
	if approved.Evidence == "" {
		approved.Evidence = Unproven
	}
	if approved.MAC, err = a.deps.Vault.SealPolicy(approved.Digest()); err != nil {
		return approved, err
	}
	return approved, a.deps.Store.ApprovePlugin(ctx, audit(operator, "plugin.approve", approved, now), approved, m)
}

// holds tells whether an approval says all that is proven now. The operators of one
// approval may each have a proof, whose words differ where their machines do.
func holds(there store.PluginApproval, evidence, operator string) bool {
	proven := func(text string) bool { return text != "" && !strings.HasPrefix(text, Unproven) }
	return !proven(evidence) || there.Evidence == evidence || proven(there.Evidence) && there.ApprovedBy != operator
}

// Confirm is a second operator's word on what another one has approved. Said again, or where
// no second operator is wanted, the approval stays as it is.
func (a *Approvals) Confirm(ctx context.Context, operator string, id uuid.UUID) (store.PluginApproval, error) {
	there, err := a.deps.Store.PluginApproval(ctx, id)
	switch {
	case err != nil:
		return there, err
	case there.Damaged || !a.Signed(there):
		return there, ErrForged
	case !a.Waits(there):
		return there, nil
	case there.ApprovedBy == operator:
		return there, ErrOwn
	}
	return a.confirm(ctx, operator, there, a.deps.Now().UTC().Truncate(time.Microsecond))
}

func (a *Approvals) confirm(ctx context.Context, operator string, there store.PluginApproval, now time.Time) (store.PluginApproval, error) {
	there.ConfirmedBy = operator
	var err error
	if there.MAC, err = a.deps.Vault.SealPolicy(there.Digest()); err != nil {
		return there, err
	}
	return there, a.deps.Store.ConfirmPlugin(ctx, audit(operator, "plugin.confirm", there, now), there)
}

// Waits tells whether an approval waits for a second operator.
func (a *Approvals) Waits(approved store.PluginApproval) bool {
	return a.deps.SecondOperator && approved.ConfirmedBy == "" && a.Signed(approved)
}

// alike tells whether two plugins may reach the same.
func alike(a, b store.PluginReach) bool {
	return slices.Equal(a.Read, b.Read) && slices.Equal(a.Ports, b.Ports) && a.MemoryMB == b.MemoryMB && a.User == b.User
}

func audit(operator, action string, approved store.PluginApproval, now time.Time) store.Audit {
	return store.Audit{Operator: operator, Action: action, At: now, Detail: fmt.Sprintf("plugin %s %s, manifest %s", approved.Provider, short(approved.SHA256), short(approved.ManifestDigest))}
}

// Find is the newest approval of a plugin whose binary's digest begins with a text, which
// may be "". It is store.ErrNotFound or ErrAmbiguous where there is none, or several
// binaries begin so.
func (a *Approvals) Find(ctx context.Context, provider, sha256 string) (store.PluginApproval, error) {
	all, err := a.deps.Store.PluginApprovals(ctx)
	if err != nil {
		return store.PluginApproval{}, err
	}
	var found []store.PluginApproval
	for _, approved := range all {
		if approved.Provider == provider && strings.HasPrefix(approved.SHA256, strings.ToLower(sha256)) {
			found = append(found, approved)
		}
	}
	if len(found) == 0 {
		return store.PluginApproval{}, store.ErrNotFound
	}
	if sha256 != "" && slices.ContainsFunc(found, func(other store.PluginApproval) bool { return other.SHA256 != found[0].SHA256 }) {
		return store.PluginApproval{}, ErrAmbiguous
	}
	return found[0], nil
}

// Activate puts an approval in force: on one replica alone, or where that is zero on all.
// It has seen that they have the file, and, unless another replica is to try it, that it
// works here beside the one in use.
func (a *Approvals) Activate(ctx context.Context, operator string, approved store.PluginApproval, replica uuid.UUID) (store.PluginHead, error) {
	if err := a.usable(approved, approved.Provider); err != nil {
		return store.PluginHead{}, err
	}
	was, err := a.find(ctx, approved.Provider)
	if err != nil {
		return was, err
	}
	next := store.PluginHead{Provider: approved.Provider, Approval: approved.ID, Replica: replica, Before: a.before(was, approved, replica)}
	if was.Approval == next.Approval && was.Replica == next.Replica && a.believed(was) {
		return was, ErrActive
	}
	if a.believed(was) && was.Approval == next.Approval && was.Replica == uuid.Nil && a.nothing(was.Provider, next.Before) {
		return was, refuse("it is in force on all replicas already, and nothing was before it that the others could go back to")
	}
	if err := a.haveFile(ctx, approved, replica); err != nil {
		return was, err
	}
	m, err := a.deps.Store.Manifest(ctx, approved.ManifestDigest)
	if err != nil {
		return was, err
	}
	if err := a.keepsOpen(ctx, approved.Provider, m); err != nil {
		return was, err
	}
	if replica == uuid.Nil || replica == a.deps.Self.ID {
		if err := a.try(ctx, approved, !a.nothing(approved.Provider, next.Before)); err != nil {
			return was, refuse("it does not work here beside the one in use, which stays: %v", err)
		}
	}
	return a.move(ctx, store.Audit{Operator: operator, Action: "plugin.activate"}, was, next, short(approved.SHA256))
}

// usable is the error of an approval that can't be put in force.
func (a *Approvals) usable(approved store.PluginApproval, provider string) error {
	switch {
	case a.invalid(approved, provider) == "":
		return nil
	case a.Waits(approved):
		return ErrUnconfirmed
	}
	return ErrForged
}

// before is what a rollback returns to, and what the others run while one replica tries an
// approval. Zero is nothing: a plugin that was removed stays so.
func (a *Approvals) before(was store.PluginHead, approved store.PluginApproval, replica uuid.UUID) uuid.UUID {
	_, configured := a.configured(approved.Provider)
	switch {
	case a.believed(was) && was.Replica != uuid.Nil: // that one was tried on one replica alone
		return was.Before
	case a.believed(was) && was.Approval != approved.ID:
		return was.Approval
	case a.believed(was):
		return was.Before
	case was.MAC == nil && configured, replica != uuid.Nil:
		return Configured
	}
	return uuid.Nil
}

// nothing tells whether a head has nothing before it.
func (a *Approvals) nothing(provider string, before uuid.UUID) bool {
	_, configured := a.configured(provider)
	return before == uuid.Nil || before == Configured && !configured
}

func (a *Approvals) believed(head store.PluginHead) bool {
	return head.MAC != nil && a.deps.Vault.VerifyPolicy(head.MAC, head.Digest()) == nil
}

// try starts an approved version beside the one in use.
func (a *Approvals) try(ctx context.Context, approved store.PluginApproval, proven bool) error {
	spec := a.spec(ctx, approved)
	var proof host.Proof
	if proven && a.deps.Proof != nil && spec.Manifest != nil {
		proof = a.deps.Proof(spec.Manifest)
	}
	return a.host.Try(ctx, spec, proof)
}

// haveFile sees that each live replica that is to run an approval has its file.
func (a *Approvals) haveFile(ctx context.Context, approved store.PluginApproval, replica uuid.UUID) error {
	live, err := a.deps.Store.LiveReplicas(ctx, a.deps.Now())
	if err != nil {
		return err
	}
	var lacking []string
	found := replica == uuid.Nil || replica == a.deps.Self.ID
	for _, r := range live {
		if replica != uuid.Nil && r.ID != replica || r.ID == a.deps.Self.ID || a.deps.Alone {
			continue
		}
		found = true
		if !slices.Contains(r.Files, approved.SHA256) {
			lacking = append(lacking, rollout.Name(r))
		}
	}
	if (replica == uuid.Nil || replica == a.deps.Self.ID) && !a.deps.Files.Has(approved.SHA256) {
		lacking = append(lacking, rollout.Name(a.deps.Self))
	}
	switch {
	case !found:
		return refuse("no live replica has the id %s; gerbang replica list shows those that are", replica)
	case len(lacking) > 0:
		slices.Sort(lacking)
		return refuse("the binary %s does not lie in plugins_dir of %s, as far as is known. Put it there under that name on each, and activate it again; "+
			"a replica tells of a new file within seconds, and a starting one once it serves",
			approved.SHA256, strings.Join(lacking, ", "))
	}
	return nil
}

// keepsOpen sees that no operation goes of which movements are open. The manifest is nil
// where nobody knows it any more.
func (a *Approvals) keepsOpen(ctx context.Context, provider string, m *manifest.Manifest) error {
	use, err := a.deps.Store.PluginUse(ctx, provider)
	if err != nil || len(use.Open) == 0 {
		return err
	}
	if m == nil {
		return refuse("its manifest is gone from the database, and movements of it are open; approve it again")
	}
	var gone []string
	for _, path := range slices.Sorted(maps.Keys(use.Open)) {
		if !slices.ContainsFunc(m.Operations, func(op manifest.Operation) bool { return op.Path == path }) {
			gone = append(gone, fmt.Sprintf("%s (%d open)", path, use.Open[path]))
		}
	}
	if len(gone) > 0 {
		return refuse("its manifest lacks operations of which movements are open: %s. They must end first", strings.Join(gone, ", "))
	}
	return nil
}

// fits sees that a manifest may come into force again: that it keeps what is open, and that
// it can be offered beside those of the other plugins.
func (a *Approvals) fits(ctx context.Context, provider, digest string) error {
	m, err := a.deps.Store.Manifest(ctx, digest)
	if err != nil {
		return err
	}
	if err := a.keepsOpen(ctx, provider, m); err != nil {
		return err
	}
	if m == nil || a.deps.Offers == nil {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(a.host.Manifests()), func(other *manifest.Manifest) bool { return other.Name == provider })
	if err := a.deps.Offers(append(others, m)); err != nil {
		return refuse("what it declares can't be offered beside the other plugins: %v", err)
	}
	return nil
}

// Rollback puts in force what was before, and tries nothing. It has seen that all that is
// open can be asked about, and that what it declares can be offered beside the others.
func (a *Approvals) Rollback(ctx context.Context, operator, provider string) (store.PluginHead, error) {
	was, err := a.find(ctx, provider)
	switch {
	case err != nil:
		return was, err
	case was.MAC == nil:
		return was, store.ErrNotFound
	case !a.believed(was):
		return was, ErrForged
	case a.nothing(provider, was.Before):
		return was, ErrNothingBack
	}
	spec, _ := a.configured(provider)
	detail, digest := "what the configuration names", spec.ManifestDigest
	if was.Before != Configured {
		approved, err := a.deps.Store.PluginApproval(ctx, was.Before)
		if err != nil {
			return was, err
		}
		if err := a.usable(approved, provider); err != nil {
			return was, err
		}
		if err := a.haveFile(ctx, approved, uuid.Nil); err != nil {
			return was, err
		}
		detail, digest = short(approved.SHA256), approved.ManifestDigest
	}
	if digest != "" { // else it is of a development's configuration, and nobody knows what it declares
		if err := a.fits(ctx, provider, digest); err != nil {
			return was, err
		}
	}
	return a.move(ctx, store.Audit{Operator: operator, Action: "plugin.rollback"}, was, store.PluginHead{Provider: provider, Approval: was.Before}, detail)
}

// Remove ends a plugin that nothing needs: no account is connected to it, and no movement
// of it is open, unless those are to be left so.
func (a *Approvals) Remove(ctx context.Context, operator, provider string, leaveOpen bool) (store.PluginHead, error) {
	was, err := a.find(ctx, provider)
	if err != nil {
		return was, err
	}
	if _, configured := a.configured(provider); was.MAC == nil && !configured {
		return was, store.ErrNotFound
	}
	use, err := a.deps.Store.PluginUse(ctx, provider)
	if err != nil {
		return was, err
	}
	open := int64(0)
	for _, n := range use.Open {
		open += n
	}
	if use.Connections > 0 || open > 0 && !leaveOpen {
		return was, refuse("%s has %d connections and %d open movements: remove the connections (gerbang connection remove), and wait until the movements have ended or leave them open (--leave-open), about which nobody can ask then", provider, use.Connections, open)
	}
	detail := "removed"
	if open > 0 {
		detail = fmt.Sprintf("removed, leaving %d movements open", open)
	}
	before := was.Approval
	switch {
	case was.MAC == nil:
		before = Configured
	case !a.believed(was):
		before = uuid.Nil
	}
	return a.move(ctx, store.Audit{Operator: operator, Action: "plugin.remove"}, was, store.PluginHead{Provider: provider, Before: before}, detail)
}

// move changes the head.
func (a *Approvals) move(ctx context.Context, audit store.Audit, was, next store.PluginHead, detail string) (store.PluginHead, error) {
	known := a.of(next.Provider).changes
	next.Changes, next.ChangedAt, next.ChangedBy = max(was.Changes, known)+1, a.deps.Now().UTC().Truncate(time.Microsecond), audit.Operator
	var err error
	if next.MAC, err = a.deps.Vault.SealPolicy(next.Digest()); err != nil {
		return was, err
	}
	audit.At, audit.Detail = next.ChangedAt, "plugin "+next.Provider+": "+detail
	if next.Replica != uuid.Nil {
		audit.Detail += " on replica " + next.Replica.String() + " alone"
	}
	if err := a.deps.Store.MovePluginHead(ctx, audit, was, next); err != nil {
		return was, err
	}
	a.Wake()
	return next, nil
}

// InForce tells whether an approval of a plugin is in force on this replica, which then runs
// what that says.
func (a *Approvals) InForce(ctx context.Context, provider string) (bool, error) {
	head, err := a.find(ctx, provider)
	id := head.On(a.deps.Self.ID)
	return err == nil && id != uuid.Nil && id != Configured, err
}

// Known is a plugin's head with its approval, for operators.
type Known struct {
	Head     store.PluginHead
	Approval store.PluginApproval // zero for none
	Unsigned bool                 // one of both is not believed
}

// Known lists what is in force.
func (a *Approvals) Known(ctx context.Context) (map[string]Known, error) {
	heads, err := a.deps.Store.PluginHeads(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]Known{}
	for _, head := range heads {
		k := Known{Head: head, Unsigned: !a.believed(head)}
		if head.Approval != uuid.Nil && head.Approval != Configured {
			k.Approval, err = a.deps.Store.PluginApproval(ctx, head.Approval)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			k.Unsigned = k.Unsigned || a.deps.Vault.VerifyPolicy(k.Approval.MAC, k.Approval.Digest()) != nil
		}
		all[head.Provider] = k
	}
	return all, nil
}

// List are all approvals, the newest first.
func (a *Approvals) List(ctx context.Context) ([]store.PluginApproval, error) {
	return a.deps.Store.PluginApprovals(ctx)
}

// Signed tells whether a gateway with this keyset wrote an approval.
func (a *Approvals) Signed(approved store.PluginApproval) bool {
	return a.deps.Vault.VerifyPolicy(approved.MAC, approved.Digest()) == nil
}

// Dir is the directory that binaries run from, "" for none.
func (a *Approvals) Dir() string { return a.deps.Files.Dir() }
