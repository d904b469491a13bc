package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/approval"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

func (w *world) waiting() adminapi.Waiting {
	w.Helper()
	all, err := adminapi.ListWaiting.Call(w.Context(), w, adminapi.None{})
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// TestWaitingOverrides: a proposal waits until another operator has said the same, and not
// once its movement has ended.
func TestWaitingOverrides(t *testing.T) {
	t.Parallel()
	w := overriding(t)
	if all := mustJSON(t, w.waiting()); strings.Contains(all, "null") {
		t.Errorf("where nothing waits: %s", all)
	}
	m := w.transfers(25*time.Hour, nil)
	if _, err := adminapi.OverrideMovement.Call(t.Context(), w, adminapi.NewOverride{Movement: m.ID.String(), As: "success", Reason: "seen in their portal"}); err != nil {
		t.Fatal(err)
	}
	all := w.waiting()
	if len(all.Overrides) != 1 || all.Overrides[0].ID != m.ID.String() || all.Overrides[0].Reference != "PAY/1" || all.Overrides[0].State != "pending" ||
		all.Overrides[0].Amount != m.Amount || all.Overrides[0].Override.Operator != "ayu" || all.Overrides[0].Override.Outcome != "success" {
		t.Errorf("waits %+v", all.Overrides)
	}
	if _, err := adminapi.OverrideMovement.Call(t.Context(), adminapi.NewClient(w.url, otherToken), adminapi.NewOverride{Movement: m.ID.String(), As: "success", Reason: "called them"}); err != nil {
		t.Fatal(err)
	}
	ended := w.transfers(25*time.Hour, nil)
	if _, err := adminapi.OverrideMovement.Call(t.Context(), w, adminapi.NewOverride{Movement: ended.ID.String(), As: "failed", Reason: "seen"}); err != nil {
		t.Fatal(err)
	}
	ended, err := w.store.MovementByID(t.Context(), ended.ID)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := w.store.Apply(t.Context(), movement.Change{Movement: ended, At: time.Now(), Transition: movement.Transition{
		Effect: movement.Move, From: []movement.State{movement.Pending}, To: movement.Succeeded, Event: "succeeded", Detail: `{}`,
	}})
	if err != nil || !moved {
		t.Fatal(moved, err)
	}
	if all := w.waiting(); len(all.Overrides) != 0 {
		t.Errorf("still waits %+v", all.Overrides)
	}
}

// TestWaitingActivations: what one operator wants in force waits for another one.
func TestWaitingActivations(t *testing.T) {
	t.Parallel()
	w := withPolicy(t)
	w.publisher.SecondOperator = true
	v, err := adminapi.PushPolicy.Call(t.Context(), w, adminapi.NewPolicy{Files: map[string]string{"data.json": "{}"}, Message: "stricter"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := adminapi.ActivatePolicy.Call(t.Context(), w, adminapi.ActivatedPolicy{Version: v.Version, Wish: adminapi.Wish{Reason: "why"}})
	if err != nil {
		t.Fatal(err)
	}
	if all := w.waiting(); len(all.Activations) != 1 || all.Activations[0].ActivationID != first.ActivationID || all.Activations[0].Reason != "why" || all.Activations[0].RequestedBy != "ayu" {
		t.Errorf("waits %+v", all.Activations)
	}
	if _, err := adminapi.ActivatePolicy.Call(t.Context(), adminapi.NewClient(w.url, otherToken), adminapi.ActivatedPolicy{Version: v.Version, Wish: adminapi.Wish{}}); err != nil {
		t.Fatal(err)
	}
	if all := w.waiting(); len(all.Activations) != 0 {
		t.Errorf("still waits %+v", all.Activations)
	}
}

// TestWaitingApprovals: another operator than the first confirms an approval by its id.
func TestWaitingApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Approvals = secondWanted(t, d) })
	wanted := adminapi.NewApproval{SHA256: strings.Repeat("ab", 32), Manifest: []byte(bank), Evidence: "by hand"}
	made, err := adminapi.ApprovePlugin.Call(t.Context(), w, wanted)
	if err != nil || made.State != "waiting" {
		t.Fatalf("approved %+v, %v", made, err)
	}
	if all := w.waiting(); len(all.Approvals) != 1 || all.Approvals[0].ApprovalID != made.ApprovalID {
		t.Errorf("waits %+v", all.Approvals)
	}
	_, err = adminapi.ConfirmPlugin.Call(t.Context(), w, adminapi.ApprovalID{Approval: made.ApprovalID})
	if failure := w.refused(err, http.StatusForbidden, ""); !strings.Contains(failure.Message, "Another operator than ayu") {
		t.Errorf("the first one: %q", failure.Message)
	}
	peer := adminapi.NewClient(w.url, otherToken)
	for range 2 { // asked for twice it is the same
		confirmed, err := adminapi.ConfirmPlugin.Call(t.Context(), peer, adminapi.ApprovalID{Approval: made.ApprovalID})
		if err != nil || confirmed.ConfirmedBy != "budi" || confirmed.State != "approved" || confirmed.Unsigned {
			t.Errorf("confirmed %+v, %v", confirmed, err)
		}
	}
	if all := w.waiting(); len(all.Approvals) != 0 {
		t.Errorf("still waits %+v", all.Approvals)
	}
	for _, nobody := range []string{"x", uuid.NewString()} {
		_, err = adminapi.ConfirmPlugin.Call(t.Context(), peer, adminapi.ApprovalID{Approval: nobody})
		w.refused(err, http.StatusNotFound, "")
	}
}

// secondWanted are approvals that two operators make.
func secondWanted(t *testing.T, d *console.Dependencies) *approval.Approvals {
	t.Helper()
	s, ok := d.Policies.(approval.Store)
	if !ok {
		t.Fatal("the policies are not the store's")
	}
	of, _, err := approval.Open(t.Context(), approval.Dependencies{Store: s, Vault: d.Vault, Files: approval.NewFiles(t.TempDir()), SecondOperator: true, Now: d.Now, Log: d.Log})
	if err != nil {
		t.Fatal(err)
	}
	return of
}
