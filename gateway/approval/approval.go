package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Configured stands in a head for what each replica's own configuration names.
var Configured = uuid.Max

// Store is what this package needs of the database.
type Store interface {
	ApprovePlugin(ctx context.Context, audit store.Audit, a store.PluginApproval, m *manifest.Manifest) error
	ConfirmPlugin(ctx context.Context, audit store.Audit, a store.PluginApproval) error
	PluginApprovals(ctx context.Context) ([]store.PluginApproval, error)
	PluginApproval(ctx context.Context, id uuid.UUID) (store.PluginApproval, error)
	PluginHeads(ctx context.Context) ([]store.PluginHead, error)
	MovePluginHead(ctx context.Context, audit store.Audit, was, next store.PluginHead) error
	PluginUse(ctx context.Context, provider string) (store.PluginUse, error)
	Manifest(ctx context.Context, digest string) (*manifest.Manifest, error)
	LiveReplicas(ctx context.Context, now time.Time) ([]store.Replica, error)
	AddException(ctx context.Context, x movement.Exception) (bool, error)
	ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
}

// Vault makes and checks MACs.
type Vault interface {
	SealPolicy(digest []byte) ([]byte, error)
	VerifyPolicy(mac, digest []byte) error
}

// Host runs the plugins.
type Host interface {
	Put(ctx context.Context, spec host.Spec, proof host.Proof) error
	Try(ctx context.Context, spec host.Spec, proof host.Proof) error
	Remove(ctx context.Context, name string) error
	Manifests() []*manifest.Manifest
}

// Dependencies is what an [Approvals] works with.
type Dependencies struct {
	Store Store
	Vault Vault
	Files *Files
	Self  store.Replica
	// Configured are the plugins that the configuration names.
	Configured []host.Spec
	// Proof tells whether a version of a plugin works before it is put into use; nil
	// proves nothing.
	Proof func(m *manifest.Manifest) host.Proof
	// Offers is the error of manifests that can't be offered together; nil refuses none.
	Offers func([]*manifest.Manifest) error
	// SecondOperator has each approval confirmed by another operator.
	SecondOperator bool
	// Alone says that no other replica is asked for the file. It is for development.
	Alone bool
	// SetAside names configured plugins that run as the configuration has them, also where
	// an approval was in force. It is for development.
	SetAside []string
	// Report tells other replicas what this one runs.
	Report func(ctx context.Context) error
	Now    func() time.Time
	Log    *slog.Logger
}

var (
	// ErrForged says that a row was not written by a gateway with this keyset.
	ErrForged = errors.New("approval: the MAC of a row is not valid")
	// ErrUnconfirmed says that an approval waits for another operator.
	ErrUnconfirmed = errors.New("approval: another operator has to confirm it")
	// ErrOwn says that the operator who approved it can't confirm it, too.
	ErrOwn = errors.New("approval: another operator than the first has to confirm it")
	// ErrActive says that an approval is in force already.
	ErrActive = errors.New("approval: it is in force already")
	// ErrNothingBack says that there is nothing to go back to.
	ErrNothingBack = errors.New("approval: nothing was in force before")
	// ErrAmbiguous says that several approvals begin with what was given.
	ErrAmbiguous = errors.New("approval: several binaries begin so")
)

// Refusal is why nothing was changed, for an operator.
type Refusal struct{ Why string }

func (r *Refusal) Error() string { return r.Why }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// spec is what a valid approval has the host run.
func (a *Approvals) spec(ctx context.Context, approved store.PluginApproval) host.Spec {
	spec := host.Spec{
		Name: approved.Provider, Path: a.deps.Files.Path(approved.SHA256), SHA256: approved.SHA256, ManifestDigest: approved.ManifestDigest,
		Read: approved.Reach.Read, Ports: approved.Reach.Ports, Memory: approved.Reach.MemoryMB << 20, User: approved.Reach.User,
	}
	var err error
	if spec.Manifest, err = a.deps.Store.Manifest(ctx, approved.ManifestDigest); err != nil {
		a.deps.Log.WarnContext(ctx, "the kept manifest of a plugin can't be read", "plugin", approved.Provider, "error", err)
	}
	if a.deps.Files.Dir() == "" {
		spec.Refused = "it is approved, and runs from plugins_dir, which this gateway's configuration does not name"
	}
	return spec
}

// configured is what this replica's configuration names, false where it does not.
func (a *Approvals) configured(provider string) (host.Spec, bool) {
	for _, spec := range a.deps.Configured {
		if spec.Name == provider {
			return spec, true
		}
	}
	return host.Spec{}, false
}

// invalid says why an approval is not believed, "" where it is.
func (a *Approvals) invalid(approved store.PluginApproval, provider string) string {
	switch {
	case a.deps.Vault.VerifyPolicy(approved.MAC, approved.Digest()) != nil || approved.Damaged:
		return "its approval " + short(approved.SHA256) + " was not written by a gateway with this keyset: its MAC is not valid"
	case approved.Provider != provider:
		return "its approval is of " + approved.Provider
	case a.deps.SecondOperator && approved.ConfirmedBy == "":
		return "its approval " + short(approved.SHA256) + " waits for another operator: plugin_second_operator is set"
	}
	return ""
}

// find reads a plugin's head, the zero one where there is none.
func (a *Approvals) find(ctx context.Context, provider string) (store.PluginHead, error) {
	heads, err := a.deps.Store.PluginHeads(ctx)
	if err != nil {
		return store.PluginHead{}, err
	}
	for _, head := range heads {
		if head.Provider == provider {
			return head, nil
		}
	}
	return store.PluginHead{}, nil
}

// short is how people write a digest.
func short(digest string) string {
	const digits = 12
	return digest[:min(len(digest), digits)]
}

// ofPlugins is whose the exceptions of plugins are.
var ofPlugins = movement.Owner{MerchantID: string(tenants.Platform), Mode: string(tenants.Live)}

// subjectOf is the exceptions' subject of a plugin on this machine: a process that ends
// leaves none that the next one does not find.
func (a *Approvals) subjectOf(provider string) string {
	return "version of plugin " + provider + " on " + cmp.Or(a.deps.Self.Host, "an unnamed machine")
}
