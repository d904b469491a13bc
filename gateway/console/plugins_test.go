package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// TestPluginApproval: an operator approves a binary, puts it in force where it lies, goes
// back, and sees each step.
func TestPluginApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	sum := sha256.Sum256([]byte("binary"))
	wanted := adminapi.NewApproval{SHA256: hex.EncodeToString(sum[:]), Manifest: []byte(bank), Evidence: "by hand"}
	for field, change := range map[string]func(*adminapi.NewApproval){
		"sha256":          func(a *adminapi.NewApproval) { a.SHA256 = "AB" },
		"evidence":        func(a *adminapi.NewApproval) { a.Evidence = strings.Repeat("x", 4001) },
		"reach.memory_mb": func(a *adminapi.NewApproval) { a.Reach.MemoryMB = 63 },
		"the manifest":    func(a *adminapi.NewApproval) { a.Manifest = []byte(`{"manifest": 1}`) },
	} {
		bad := wanted
		change(&bad)
		if _, err := adminapi.ApprovePlugin.Call(ctx, w, bad); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	approved, err := adminapi.ApprovePlugin.Call(ctx, w, wanted)
	if err != nil || approved.Provider != "bank" || approved.ApprovedBy != "ayu" || approved.Evidence != "by hand" || approved.PluginsDir != w.files || approved.Unsigned {
		t.Fatalf("approved %+v, %v", approved, err)
	}
	if _, err := adminapi.ActivatePlugin.Call(ctx, w, adminapi.PluginActivation{Provider: "bank"}); err == nil || !strings.Contains(err.Error(), "does not lie in plugins_dir") {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(w.files, wanted.SHA256), []byte("binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []adminapi.PluginActivation{{SHA256: "00"}, {ReplicaID: "node-1"}} {
		wrong.Provider = "bank"
		if _, err := adminapi.ActivatePlugin.Call(ctx, w, wrong); err == nil {
			t.Errorf("activated %+v", wrong)
		}
	}
	for range 2 { // asked for twice it is the same
		change, err := adminapi.ActivatePlugin.Call(ctx, w, adminapi.PluginActivation{Provider: "bank", SHA256: wanted.SHA256[:8]})
		if err != nil || change.SHA256 != wanted.SHA256 || change.Changes != 1 || change.ChangedBy != "ayu" {
			t.Fatalf("activated %+v, %v", change, err)
		}
	}
	shown, err := adminapi.ShowPlugin.Call(ctx, w, adminapi.ProviderName{Provider: "bank"})
	if err != nil || shown.Approval == nil || shown.Approval.State != "in force" || shown.Approval.ApprovalID != approved.ApprovalID || !strings.Contains(string(shown.Approval.Manifest), "A bank") {
		t.Errorf("shown %+v, %v", shown, err)
	}
	if all, err := adminapi.ListApprovals.Call(ctx, w, adminapi.None{}); err != nil || len(all) != 1 || all[0].State != "in force" {
		t.Errorf("approvals %+v, %v", all, err)
	}
	if change, err := adminapi.RollBackPlugin.Call(ctx, w, adminapi.ProviderName{Provider: "bank"}); err != nil || change.SHA256 != "" || change.Changes != 2 {
		t.Errorf("rolled back: %+v, %v", change, err)
	}
	if _, err := adminapi.RollBackPlugin.Call(ctx, w, adminapi.ProviderName{Provider: "bank"}); err == nil || !strings.Contains(err.Error(), "nothing to roll back to") {
		t.Errorf("again: %v", err)
	}
	if _, err := adminapi.RestartPlugin.Call(ctx, w, adminapi.ProviderName{Provider: "bank"}); err != nil || w.plugins.Status()[0].Restarts != 4 {
		t.Errorf("restarted: %v, %+v", err, w.plugins.Status()[0])
	}
	if _, err := adminapi.RemovePlugin.Call(ctx, w, adminapi.PluginRemoval{Provider: "bank"}); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{"show": failed(adminapi.ShowPlugin.Call(ctx, w, adminapi.ProviderName{Provider: "none"})), "restart": failed(adminapi.RestartPlugin.Call(ctx, w, adminapi.ProviderName{Provider: "none"})), "remove": failed(adminapi.RemovePlugin.Call(ctx, w, adminapi.PluginRemoval{Provider: "none"}))} {
		if err == nil || !strings.Contains(err.Error(), "There is no such plugin") {
			t.Errorf("%s nobody: %v", what, err)
		}
	}
	if got := strings.Join(w.actions("platform"), ", "); got != "ayu plugin.approve, ayu plugin.activate, ayu plugin.rollback, ayu plugin.restart, ayu plugin.remove" {
		t.Errorf("audit: %s", got)
	}
}

func failed[T any](_ T, err error) error { return err }
