package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// PluginReach is what a plugin may reach, beside what every program needs.
type PluginReach struct {
	Read     []string `json:"read,omitempty"`      // files and directories
	Ports    []uint16 `json:"ports,omitempty"`     // TCP ports that it may connect to; 443 where there are none
	MemoryMB int64    `json:"memory_mb,omitempty"` // 512 where it is 0
	User     string   `json:"user,omitempty"`      // whom it runs as; the gateway's own where it is ""
}

// PluginApproval is an operator's word that a binary, which declares a manifest, may run.
// Nothing of it changes, but that a second operator confirms it.
type PluginApproval struct {
	ID             uuid.UUID
	Provider       string
	SHA256         string // of the binary
	ManifestDigest string
	Version        string // as the manifest says, for people
	Reach          PluginReach
	Evidence       string // what was proven of it
	ApprovedBy     string
	ApprovedAt     time.Time
	ConfirmedBy    string // "" until another operator has
	MAC            []byte
	Damaged        bool // what it may reach can't be read
}

// Digest is what an approval's MAC is over: all of it.
func (a PluginApproval) Digest() []byte {
	reach, _ := json.Marshal(a.Reach) //nolint:errchkjson // texts and numbers
	return digestOf("gerbang.plugin.approval.v1", a.ID.String(), a.Provider, a.SHA256, a.ManifestDigest, a.Version, string(reach), a.Evidence,
		a.ApprovedBy, strconv.FormatInt(a.ApprovedAt.UnixMicro(), 10), a.ConfirmedBy)
}

// PluginHead is which approval of a plugin is in force.
type PluginHead struct {
	Provider  string
	Approval  uuid.UUID // zero where the plugin was removed
	Before    uuid.UUID // what a rollback returns to, zero for none
	Replica   uuid.UUID // that runs it alone, all others the one before; zero where all run it
	Changes   int64     // counts from 1
	ChangedAt time.Time
	ChangedBy string
	MAC       []byte
}

// Digest is what a head's MAC is over.
func (h PluginHead) Digest() []byte {
	return digestOf("gerbang.plugin.head.v1", h.Provider, h.Approval.String(), h.Before.String(), h.Replica.String(), strconv.FormatInt(h.Changes, 10),
		strconv.FormatInt(h.ChangedAt.UnixMicro(), 10), h.ChangedBy)
}

// On is the approval that a replica runs, zero for none.
func (h PluginHead) On(replica uuid.UUID) uuid.UUID {
	if h.Replica != uuid.Nil && h.Replica != replica {
		return h.Before
	}
	return h.Approval
}

var (
	// ErrPluginMoved says that somebody else has changed meanwhile which approval of a
	// plugin is in force.
	ErrPluginMoved = errors.New("store: another approval of this plugin is in force")
	// ErrPluginUsed says that an account has been connected to a plugin that was to be removed.
	ErrPluginUsed = errors.New("store: an account is connected to this plugin")
	// ErrPluginRemoved says that a plugin to which an account was to be connected is removed.
	ErrPluginRemoved = errors.New("store: this plugin was removed")
	// ErrPluginConfirmed says that another operator has confirmed an approval already.
	ErrPluginConfirmed = errors.New("store: this approval is confirmed already")
)

// ApprovePlugin keeps an approval and the manifest that it is of, with an audit entry.
func (s *Store) ApprovePlugin(ctx context.Context, audit Audit, a PluginApproval, m *manifest.Manifest) error {
	reach, err := json.Marshal(a.Reach)
	if err != nil {
		return fmt.Errorf("store: approve plugin: %w", err)
	}
	return s.administer(ctx, "approve plugin", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		if err := q.KeepManifest(ctx, dbsqlc.KeepManifestParams{
			Digest: m.Digest(), Provider: m.Name, Manifest: m.Document(), KeptAt: micro(audit.At),
		}); err != nil {
			return err
		}
		return q.InsertPluginApproval(ctx, dbsqlc.InsertPluginApprovalParams{
			ApprovalID: a.ID, Provider: a.Provider, Sha256: a.SHA256, ManifestDigest: a.ManifestDigest, PluginVersion: a.Version,
			Reach: string(reach), Evidence: a.Evidence, ApprovedBy: a.ApprovedBy, ApprovedAt: micro(a.ApprovedAt), Mac: a.MAC,
		})
	})
}

// ConfirmPlugin keeps the name of the second operator, with the MAC that goes with it.
func (s *Store) ConfirmPlugin(ctx context.Context, audit Audit, a PluginApproval) error {
	return s.administer(ctx, "confirm plugin", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		rows, err := q.ConfirmPluginApproval(ctx, dbsqlc.ConfirmPluginApprovalParams{ConfirmedBy: a.ConfirmedBy, Mac: a.MAC, ApprovalID: a.ID})
		if err == nil && rows == 0 {
			err = ErrPluginConfirmed
		}
		return err
	})
}

// PluginApprovals lists all, the newest first. Whether their MACs are right is for the
// caller to see.
func (s *Store) PluginApprovals(ctx context.Context) ([]PluginApproval, error) {
	rows, err := s.queries.PluginApprovals(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: plugin approvals: %w", err)
	}
	all := make([]PluginApproval, len(rows))
	for i, row := range rows {
		all[i] = approvalFromRow(row)
	}
	return all, nil
}

// PluginApproval reads one, or is ErrNotFound.
func (s *Store) PluginApproval(ctx context.Context, id uuid.UUID) (PluginApproval, error) {
	row, err := s.queries.PluginApproval(ctx, id)
	if err != nil {
		return PluginApproval{}, fmt.Errorf("store: plugin approval: %w", notFound(err))
	}
	return approvalFromRow(row), nil
}

func approvalFromRow(row dbsqlc.PluginApproval) PluginApproval {
	a := PluginApproval{
		ID: row.ApprovalID, Provider: row.Provider, SHA256: row.Sha256, ManifestDigest: row.ManifestDigest, Version: row.PluginVersion,
		Evidence: row.Evidence, ApprovedBy: row.ApprovedBy, ApprovedAt: row.ApprovedAt.UTC(), ConfirmedBy: row.ConfirmedBy, MAC: row.Mac,
	}
	a.Damaged = json.Unmarshal([]byte(row.Reach), &a.Reach) != nil
	return a
}

// PluginHeads lists which approval of each plugin is in force.
func (s *Store) PluginHeads(ctx context.Context) ([]PluginHead, error) {
	rows, err := s.queries.PluginHeads(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: plugin heads: %w", err)
	}
	heads := make([]PluginHead, len(rows))
	for i, row := range rows {
		heads[i] = PluginHead{
			Provider: row.Provider, Approval: idOrZero(row.ApprovalID), Before: idOrZero(row.BeforeID), Replica: idOrZero(row.ReplicaID),
			Changes: row.Changes, ChangedAt: row.ChangedAt.UTC(), ChangedBy: row.ChangedBy, MAC: row.Mac,
		}
	}
	return heads, nil
}

// MovePluginHead changes which approval of a plugin is in force, with an audit entry. It
// is ErrPluginMoved where was, zero for none, is not what there is. No plugin is removed to
// which an account is connected: ErrPluginUsed. Of a removal and a connection at once, one
// sees the other, since both are serializable.
func (s *Store) MovePluginHead(ctx context.Context, audit Audit, was, next PluginHead) error {
	return s.administer(ctx, "move plugin", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		if next.Approval == uuid.Nil {
			connections, err := q.ConnectionsOfProvider(ctx, next.Provider)
			if err == nil && connections > 0 {
				err = ErrPluginUsed
			}
			if err != nil {
				return err
			}
		}
		row := dbsqlc.InsertPluginHeadParams{
			Provider: next.Provider, ApprovalID: orNoID(next.Approval), BeforeID: orNoID(next.Before), ReplicaID: orNoID(next.Replica),
			Changes: next.Changes, ChangedAt: micro(next.ChangedAt), ChangedBy: next.ChangedBy, Mac: next.MAC,
		}
		var rows int64
		var err error
		if was.MAC == nil {
			rows, err = q.InsertPluginHead(ctx, row)
		} else {
			rows, err = q.MovePluginHead(ctx, dbsqlc.MovePluginHeadParams{
				ApprovalID: row.ApprovalID, BeforeID: row.BeforeID, ReplicaID: row.ReplicaID, Changes: row.Changes, ChangedAt: row.ChangedAt,
				ChangedBy: row.ChangedBy, Mac: row.Mac, Provider: row.Provider, Was: was.Changes, WasMac: was.MAC,
			})
		}
		if err == nil && rows == 0 {
			err = ErrPluginMoved
		}
		return err
	})
}

// keepsPlugin is the error of a plugin that was removed.
func keepsPlugin(ctx context.Context, q *dbsqlc.Queries, provider string) error {
	heads, err := q.PluginHeads(ctx)
	if err == nil && slices.ContainsFunc(heads, func(h dbsqlc.PluginHead) bool { return h.Provider == provider && h.ApprovalID == nil }) {
		err = ErrPluginRemoved
	}
	return err
}

// PluginUse is what needs a plugin: connections, and movements of which there is
// something left to ask, by operation.
type PluginUse struct {
	Connections int64
	Open        map[string]int64
}

// PluginUse reads what needs a plugin.
func (s *Store) PluginUse(ctx context.Context, provider string) (PluginUse, error) {
	connections, err := s.queries.ConnectionsOfProvider(ctx, provider)
	if err != nil {
		return PluginUse{}, fmt.Errorf("store: use of plugin: %w", err)
	}
	open, err := s.queries.OpenMovementsOfProvider(ctx, provider)
	if err != nil {
		return PluginUse{}, fmt.Errorf("store: use of plugin: %w", err)
	}
	use := PluginUse{Connections: connections, Open: map[string]int64{}}
	for _, row := range open {
		use.Open[row.Operation] = row.Open
	}
	return use, nil
}

// TestConnections are merchants with a connection of a provider in test mode.
func (s *Store) TestConnections(ctx context.Context, provider string, most int) ([]tenants.MerchantID, error) {
	rows, err := s.queries.TestConnectionsOf(ctx, dbsqlc.TestConnectionsOfParams{Provider: provider, Most: int32(most)}) //nolint:gosec // a few
	if err != nil {
		return nil, fmt.Errorf("store: test connections: %w", err)
	}
	merchants := make([]tenants.MerchantID, len(rows))
	for i, id := range rows {
		merchants[i] = tenants.MerchantID(id)
	}
	return merchants, nil
}

func idOrZero(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}
	return *id
}

func orNoID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
