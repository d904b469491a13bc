package adminapi

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// NewApproval is an operator's word that a binary, which declares a manifest, may run.
type NewApproval struct {
	SHA256   string            `json:"sha256"`
	Manifest json.RawMessage   `json:"manifest"`
	Reach    store.PluginReach `json:"reach"`
	Evidence string            `json:"evidence,omitempty"` // what was proven of it
}

// PluginApproval is what an operator approved.
type PluginApproval struct {
	ApprovalID     string            `json:"approval_id"`
	Provider       string            `json:"provider"`
	SHA256         string            `json:"sha256"`
	Version        string            `json:"version"`
	ManifestDigest string            `json:"manifest_digest"`
	Manifest       json.RawMessage   `json:"manifest,omitempty"` // where one plugin is shown
	Reach          store.PluginReach `json:"reach"`
	Evidence       string            `json:"evidence"`
	ApprovedBy     string            `json:"approved_by"`
	ApprovedAt     time.Time         `json:"approved_at"`
	ConfirmedBy    string            `json:"confirmed_by,omitempty"`
	Unsigned       bool              `json:"unsigned,omitempty"` // no gateway with this keyset wrote it: it does not run
	State          string            `json:"state"`              // in force, tried on one replica, before it, removed, approved, or waiting for another operator
	Replica        string            `json:"replica_id,omitempty"`
	PluginsDir     string            `json:"plugins_dir,omitempty"` // where the binary has to lie, under its SHA-256
}

// PluginReplica is a replica that runs, and its part in a plugin.
type PluginReplica struct {
	ReplicaID string `json:"replica_id"`
	Name      string `json:"name"`
	Runs      string `json:"runs"`     // the SHA-256, "" where it is down
	HasFile   bool   `json:"has_file"` // of the approval in force
}

// ApprovalID names an approval.
type ApprovalID struct {
	Approval string `path:"approval" json:"-" arg:"" help:"The approval's id, as gerbang waiting shows it."`
}

// PluginActivation puts an approval in force: the newest one where SHA256 is "", on one
// replica alone where that is given.
type PluginActivation struct {
	Provider  string `path:"provider" json:"-" arg:"" name:"name" help:"The provider."`
	SHA256    string `json:"sha256,omitempty" arg:"" optional:"" name:"sha256" help:"The binary's digest, or its beginning; the newest approval unless given."`
	ReplicaID string `json:"replica_id,omitempty" name:"replica" placeholder:"ID" help:"Only on this replica, which tries it first. Without it, later, all follow."`
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

// PluginRemoval says whether a plugin is removed also where movements of it are open. Else
// that is refused, with their number.
type PluginRemoval struct {
	Provider  string `path:"provider" json:"-" arg:"" name:"name" help:"The provider."`
	LeaveOpen bool   `json:"leave_open,omitempty" help:"Remove it also where movements of it are open: nobody can ask the provider about them any more."`
}

// The acts on plugins. What comes into force is followed by the replicas within seconds.
var (
	ListPlugins   = Endpoint[None, []Plugin]{Act{Route: "GET /admin/plugins", Takes: Read, Text: "List the plugins with their condition."}}
	ShowPlugin    = Endpoint[ProviderName, Plugin]{Act{Route: "GET /admin/plugins/{provider}", Takes: Read, Text: "Show one plugin, with the manifest that is in force."}}
	ListApprovals = Endpoint[None, []PluginApproval]{Act{Route: "GET /admin/plugin-approvals", Takes: Read, Text: "List what operators approved, the newest first."}}
	ApprovePlugin = Endpoint[NewApproval, PluginApproval]{Act{
		Route: "POST /admin/plugin-approvals", Takes: Administer, Large: true, Text: "Keep an approval, or confirm another operator's. It puts nothing in force.",
	}}
	ConfirmPlugin  = Endpoint[ApprovalID, PluginApproval]{Act{Route: "POST /admin/plugin-approvals/{approval}/confirm", Takes: Administer, Text: "Confirm another operator's approval."}}
	ActivatePlugin = Endpoint[PluginActivation, PluginChange]{Act{Route: "POST /admin/plugins/{provider}/activate", Takes: Administer, Text: "Put an approval in force."}}
	RollBackPlugin = Endpoint[ProviderName, PluginChange]{Act{Route: "POST /admin/plugins/{provider}/rollback", Takes: Administer, Text: "Put in force what was before."}}
	RemovePlugin   = Endpoint[PluginRemoval, PluginChange]{Act{Route: "POST /admin/plugins/{provider}/remove", Takes: Administer, Text: "End a plugin that nothing needs."}}
	RestartPlugin  = Endpoint[ProviderName, None]{Act{Route: "POST /admin/plugins/{provider}/restart", Takes: Administer, Text: "Have a plugin go on in a new process, on the replica that is asked."}}
)
