package adminapi

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// PluginReach is what a plugin may reach, beside what every program needs.
type PluginReach struct {
	Read     []string `json:"read,omitempty"`      // files and directories
	Ports    []uint16 `json:"ports,omitempty"`     // TCP ports that it may connect to; 443 where there are none
	MemoryMB int64    `json:"memory_mb,omitempty"` // that it may use; 512 where it is 0
	User     string   `json:"user,omitempty"`      // whom it runs as; the gateway's own where it is ""
}

// NewApproval is an operator's word that a binary, which declares a manifest, may run.
type NewApproval struct {
	SHA256   string          `json:"sha256"`
	Manifest json.RawMessage `json:"manifest"`
	Reach    PluginReach     `json:"reach"`
	Evidence string          `json:"evidence,omitempty"` // what was proven of it
}

// PluginApproval is what an operator approved.
type PluginApproval struct {
	ApprovalID     string          `json:"approval_id"`
	Provider       string          `json:"provider"`
	SHA256         string          `json:"sha256"`
	Version        string          `json:"version"`
	ManifestDigest string          `json:"manifest_digest"`
	Manifest       json.RawMessage `json:"manifest,omitempty"` // where one plugin is shown
	Reach          PluginReach     `json:"reach"`
	Evidence       string          `json:"evidence"`
	ApprovedBy     string          `json:"approved_by"`
	ApprovedAt     time.Time       `json:"approved_at"`
	ConfirmedBy    string          `json:"confirmed_by,omitempty"`
	Unsigned       bool            `json:"unsigned,omitempty"` // no gateway with this keyset wrote it: it does not run
	State          string          `json:"state"`              // in force, tried on one replica, before it, removed, approved, or waiting for another operator
	Replica        string          `json:"replica_id,omitempty"`
	PluginsDir     string          `json:"plugins_dir,omitempty"` // where the binary has to lie, under its SHA-256
}

// PluginReplica is a replica that runs, and its part in a plugin.
type PluginReplica struct {
	ReplicaID string `json:"replica_id"`
	Name      string `json:"name"`
	Runs      string `json:"runs"`     // the SHA-256, "" where it is down
	HasFile   bool   `json:"has_file"` // of the approval in force
}

// ActivatePlugin puts an approval in force: the newest one where SHA256 is "", on one
// replica alone where that is given.
type ActivatePlugin struct {
	SHA256    string `json:"sha256,omitempty"`
	ReplicaID string `json:"replica_id,omitempty"`
}

// PluginChange is what is in force since a moment.
type PluginChange struct {
	Provider  string    `json:"provider"`
	SHA256    string    `json:"sha256"` // "" where the plugin was removed, or its configuration's runs
	ReplicaID string    `json:"replica_id,omitempty"`
	Changes   int64     `json:"changes"`
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
}

// ApprovePlugin keeps an approval, or confirms another operator's. It puts nothing in force.
func (c *Client) ApprovePlugin(ctx context.Context, a NewApproval) (PluginApproval, error) {
	return post[PluginApproval](ctx, c, "/admin/plugin-approvals", a)
}

// PluginApprovals lists what operators approved, the newest first.
func (c *Client) PluginApprovals(ctx context.Context) ([]PluginApproval, error) {
	return get[[]PluginApproval](ctx, c, "/admin/plugin-approvals")
}

// Plugin shows one plugin, with the manifest that is in force.
func (c *Client) Plugin(ctx context.Context, provider string) (Plugin, error) {
	return get[Plugin](ctx, c, "/admin/plugins/"+url.PathEscape(provider))
}

// ActivatePlugin puts an approval in force; the replicas follow within seconds.
func (c *Client) ActivatePlugin(ctx context.Context, provider string, a ActivatePlugin) (PluginChange, error) {
	return post[PluginChange](ctx, c, "/admin/plugins/"+url.PathEscape(provider)+"/activate", a)
}

// RollBackPlugin puts in force what was before.
func (c *Client) RollBackPlugin(ctx context.Context, provider string) (PluginChange, error) {
	return post[PluginChange](ctx, c, "/admin/plugins/"+url.PathEscape(provider)+"/rollback", struct{}{})
}

// PluginRemoval says whether a plugin is removed also where movements of it are open. Else
// that is refused, with their number.
type PluginRemoval struct {
	LeaveOpen bool `json:"leave_open,omitempty"`
}

// RemovePlugin ends a plugin that nothing needs.
func (c *Client) RemovePlugin(ctx context.Context, provider string, r PluginRemoval) (PluginChange, error) {
	return post[PluginChange](ctx, c, "/admin/plugins/"+url.PathEscape(provider)+"/remove", r)
}

// RestartPlugin has a plugin go on in a new process, on the replica that is asked.
func (c *Client) RestartPlugin(ctx context.Context, provider string) error {
	_, err := post[struct{}](ctx, c, "/admin/plugins/"+url.PathEscape(provider)+"/restart", struct{}{})
	return err
}
