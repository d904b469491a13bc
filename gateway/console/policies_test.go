package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// withPolicy is a world in which the default policy is in force.
func withPolicy(t *testing.T, changes ...func(*console.Config, *console.Dependencies)) *world {
	t.Helper()
	w := newWorld(t, changes...)
	v := store.PolicyVersion{Version: policy.Default().Version(), Source: policy.Default(), Author: "gerbang", Message: "first", PushedAt: time.Now().Truncate(time.Microsecond)}
	done := store.Activation{ID: uuid.New(), Version: v.Version, RequestedBy: "gerbang", State: store.ActivationDone}
	head := store.PolicyHead{Activation: done.ID, Version: v.Version, Changes: 1}
	var err error
	if done.MAC, err = w.vault.SealPolicy(done.Digest()); err != nil {
		t.Fatal(err)
	}
	if v.MAC, err = w.vault.SealPolicy(v.Digest()); err != nil {
		t.Fatal(err)
	}
	if head.MAC, err = w.vault.SealPolicy(head.Digest()); err != nil {
		t.Fatal(err)
	}
	if err := w.store.FirstPolicy(t.Context(), store.Audit{Operator: "gerbang", Action: "policy.first", At: time.Now()}, v, head, done); err != nil {
		t.Fatal(err)
	}
	return w
}

// decide puts in force what is proposed, as replicas do.
func (w *world) decide() {
	w.Helper()
	head, err := w.store.PolicyHead(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	next := store.PolicyHead{Activation: head.Proposal, Version: head.Proposed, Changes: head.Changes + 1}
	if next.MAC, err = w.vault.SealPolicy(next.Digest()); err != nil {
		w.Fatal(err)
	}
	done, err := w.store.Activation(w.Context(), head.Proposal)
	if err != nil {
		w.Fatal(err)
	}
	done.State = store.ActivationDone
	if done.MAC, err = w.vault.SealPolicy(done.Digest()); err != nil {
		w.Fatal(err)
	}
	if ok, err := w.store.MovePolicyHead(w.Context(), store.Audit{Operator: "gateway", Action: "policy.active", At: time.Now()}, head, next, done); !ok || err != nil {
		w.Fatal(ok, err)
	}
}

// TestPolicies pushes, activates and rolls back as an operator does.
func TestPolicies(t *testing.T) {
	t.Parallel()
	w := withPolicy(t)
	first := string(policy.Default().Version())
	push := adminapi.NewPolicy{Files: map[string]string{"data.json": "{}" + strings.Repeat(" ", 100_000)}, Message: "more for starters"}
	v, err := adminapi.PushPolicy.Call(t.Context(), w, push)
	if err != nil || v.Number != 2 || v.State != "pushed" || v.Author != "ayu" || v.Predecessor != first || v.Existed {
		t.Fatalf("%+v, %v", v, err)
	}
	if again, err := adminapi.PushPolicy.Call(t.Context(), w, push); err != nil || !again.Existed || again.Version != v.Version {
		t.Errorf("%+v, %v", again, err)
	}
	replica := store.Replica{ID: uuid.New(), Host: "node-1", Policy: policy.Version(first), Binary: "v1.2", StartedAt: time.Now(), SeenAt: time.Now(), Plugins: map[string]string{"bank": "ab"}}
	if err := w.store.ReportReplica(t.Context(), replica); err != nil {
		t.Fatal(err)
	}
	a, err := adminapi.ActivatePolicy.Call(t.Context(), w, adminapi.ActivatedPolicy{Version: v.Version[:8], Wish: adminapi.Wish{Replaces: first[:10], Reason: "asked for"}})
	if err != nil || a.State != "proposed" || a.Version != v.Version || a.InForce || a.RequestedBy != "ayu" || a.Reason != "asked for" {
		t.Fatalf("%+v, %v", a, err)
	}
	_, err = adminapi.ActivatePolicy.Call(t.Context(), w, adminapi.ActivatedPolicy{Version: v.Version, Wish: adminapi.Wish{}})
	w.refused(err, http.StatusConflict, "")
	w.decide()
	if a, err = adminapi.ShowActivation.Call(t.Context(), w, adminapi.ActivationID{Activation: a.ActivationID}); err != nil || a.State != "done" || !a.InForce || fmt.Sprint(a.Behind) != "["+rollout.Name(replica)+"]" {
		t.Errorf("%+v, %v", a, err)
	}
	if again, err := adminapi.ActivatePolicy.Call(t.Context(), w, adminapi.ActivatedPolicy{Version: v.Version, Wish: adminapi.Wish{}}); err != nil || again.ActivationID != a.ActivationID {
		t.Errorf("asked for twice: %+v, %v", again, err)
	}
	_, err = adminapi.ActivatePolicy.Call(t.Context(), w, adminapi.ActivatedPolicy{Version: first, Wish: adminapi.Wish{Replaces: first}})
	w.refused(err, http.StatusConflict, "")

	list, err := adminapi.ListPolicies.Call(t.Context(), w, adminapi.None{})
	if err != nil || len(list) != 2 || list[0].State != "active" || list[1].State != "past" || list[1].Replicas != 1 || list[0].Files != nil {
		t.Errorf("%+v, %v", list, err)
	}
	shown, err := adminapi.ShowPolicy.Call(t.Context(), w, adminapi.PolicyName{Version: "active"})
	if err != nil || shown.Version != v.Version || len(shown.Files) != len(policy.Default()) || shown.Files["data.json"] != push.Files["data.json"] {
		t.Errorf("%d files of %s, %v", len(shown.Files), shown.Version, err)
	}
	if before, err := adminapi.ShowPolicy.Call(t.Context(), w, adminapi.PolicyName{Version: first}); err != nil || before.Replicas != 1 || shown.Replicas != 0 {
		t.Errorf("%d replicas run %s and %d %s, %v", before.Replicas, first, shown.Replicas, shown.Version, err)
	}
	diff, err := adminapi.DiffPolicies.Call(t.Context(), w, adminapi.PolicyPair{A: first[:8], B: "active"})
	if err != nil || diff.A != first || diff.B != v.Version || len(diff.Files) != 1 || !strings.HasPrefix(diff.Files["data.json"], "@@ -1,") {
		t.Errorf("%+v, %v", diff, err)
	}
	tested, err := adminapi.TestPolicy.Call(t.Context(), w, adminapi.NewPolicy{Files: map[string]string{"data.json": "{}"}})
	if err != nil || !tested.Good || tested.Rules != v.Version || tested.Version == v.Version {
		t.Errorf("%+v, %v", tested, err)
	}
	if after, err := adminapi.ListPolicies.Call(t.Context(), w, adminapi.None{}); err != nil || len(after) != len(list) {
		t.Errorf("a test keeps something: %+v, %v", after, err)
	}
	replicas, err := adminapi.ListReplicas.Call(t.Context(), w, adminapi.None{})
	if err != nil || len(replicas) != 1 || replicas[0].State != "live" || replicas[0].HeadIsHere || replicas[0].Binary != "v1.2" || replicas[0].Plugins["bank"] != "ab" || replicas[0].Schema.From == 0 {
		t.Errorf("%+v, %v", replicas, err)
	}
	_, err = adminapi.RollBackPolicy.Call(t.Context(), w, adminapi.Wish{})
	w.refused(err, http.StatusBadRequest, "replaces")
	back, err := adminapi.RollBackPolicy.Call(t.Context(), w, adminapi.Wish{Replaces: v.Version})
	if err != nil || back.Version != first {
		t.Errorf("%+v, %v", back, err)
	}
	w.decide()
	_, err = adminapi.RollBackPolicy.Call(t.Context(), w, adminapi.Wish{Replaces: first})
	w.refused(err, http.StatusNotFound, "")
	want := []string{"gerbang policy.first", "ayu policy.push", "ayu policy.activate", "gateway policy.active", "ayu policy.rollback", "gateway policy.active"}
	forged := store.PolicyVersion{Version: "f0f0f0", Author: "nobody", PushedAt: time.Now(), MAC: []byte("by hand"), State: store.PolicyPushed}
	if _, _, err := w.store.PushPolicy(t.Context(), store.Audit{Operator: "nobody", Action: "by hand", At: time.Now()}, forged); err != nil {
		t.Fatal(err)
	}
	if list, err := adminapi.ListPolicies.Call(t.Context(), w, adminapi.None{}); err != nil || !list[0].Unsigned || list[1].Unsigned {
		t.Errorf("%+v, %v", list, err)
	}
	want = append(want, "nobody by hand")
	if got := w.actions(string(tenants.Platform)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("audit %v, want %v", got, want)
	}
}

func TestPoliciesRefused(t *testing.T) {
	t.Parallel()
	w := withPolicy(t)
	w.publisher.Judge = nil
	files := map[string]string{"data.json": "{\"tiers\": {\"starter\": {\"rate_per_second\": 1, \"burst\": 1}},\n  \"tires\": {}\n}"}
	v, err := adminapi.PushPolicy.Call(t.Context(), w, adminapi.NewPolicy{Files: files, Message: "m", Force: "I know"})
	if err != nil || v.State != "refused" || len(v.Findings) == 0 || v.Findings[0].File != "data.json" || v.Findings[0].Line != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: string(tenants.Platform)})
	if err != nil || len(entries) == 0 || entries[0].Action != "policy.push_refused" || entries[0].Operator != "ayu" ||
		entries[0].Detail != "policy "+v.Version[:12]+": m" || entries[0].From == "" {
		t.Errorf("the audit of a refused push: %+v, %v", entries, err)
	}
	_, err = adminapi.ActivatePolicy.Call(t.Context(), w, adminapi.ActivatedPolicy{Version: v.Version, Wish: adminapi.Wish{}})
	w.refused(err, http.StatusBadRequest, "")
	if _, _, body := w.send(http.MethodGet, "/metrics", "", ""); !strings.Contains(body, `gerbang_policy_refusals_total{when="push"} 1`) {
		t.Error("the refusal is not counted")
	}
	_, err = adminapi.PushPolicy.Call(t.Context(), w, adminapi.NewPolicy{Files: files})
	w.refused(err, http.StatusBadRequest, "message")
	_, err = adminapi.ShowPolicy.Call(t.Context(), w, adminapi.PolicyName{Version: "ffffffffff"})
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.ShowActivation.Call(t.Context(), w, adminapi.ActivationID{Activation: "no-uuid"})
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.PushPolicy.Call(t.Context(), w, adminapi.NewPolicy{Files: map[string]string{"data.json": strings.Repeat("x", adminapi.MaxPolicy)}, Message: "m"})
	if failure := w.refused(err, http.StatusRequestEntityTooLarge, ""); !strings.Contains(failure.Message, "2048 KiB") {
		t.Error(failure)
	}
}

// TestReadyTellsThePolicy: one that does not run here is named, one that can't be
// confirmed takes the replica out.
func TestReadyTellsThePolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.set(0, nil)
	w.runDirectory()
	ready := func() (int, string) {
		status, _, body := w.send(http.MethodGet, "/readyz", "", "")
		return status, body
	}
	for status := 0; status != http.StatusOK; { // until the directory has polled
		status, _ = ready()
	}
	if _, body := ready(); !strings.Contains(body, `"live_replicas":3`) || !strings.Contains(body, `"policy_version":"`+string(policy.Default().Version())) {
		t.Error(body)
	}
	w.following.set(false, &rollout.Lag{Head: "abc", Why: "too new"})
	if status, body := ready(); status != http.StatusOK || !strings.Contains(body, "abc is in force and does not run here: too new") {
		t.Error(status, body)
	}
	w.following.set(true, nil)
	if status, body := ready(); status != http.StatusServiceUnavailable || !strings.Contains(body, "money is paused") {
		t.Error(status, body)
	}
	if _, _, body := w.send(http.MethodGet, "/metrics", "", ""); !strings.Contains(body, "gerbang_policy_head_age_seconds 0.125") || !strings.Contains(body, "gerbang_replicas_live 3") {
		t.Error("the metrics say nothing of policies")
	}
}

// TestPoliciesOfTwoOperators: what one wants in force another one confirms.
func TestPoliciesOfTwoOperators(t *testing.T) {
	t.Parallel()
	w := withPolicy(t)
	w.publisher.SecondOperator = true
	peer := adminapi.NewClient(w.url, otherToken)
	v, err := adminapi.PushPolicy.Call(t.Context(), w, adminapi.NewPolicy{Files: map[string]string{"data.json": "{}"}, Message: "stricter"})
	if err != nil {
		t.Fatal(err)
	}
	var first adminapi.PolicyActivation
	for range 2 { // nobody confirms himself
		if first, err = adminapi.ActivatePolicy.Call(t.Context(), w, adminapi.ActivatedPolicy{Version: v.Version, Wish: adminapi.Wish{}}); err != nil || first.State != "waiting" || first.InForce {
			t.Fatalf("%+v, %v", first, err)
		}
	}
	if shown, err := adminapi.ShowPolicy.Call(t.Context(), w, adminapi.PolicyName{Version: v.Version}); err != nil || shown.State != "waiting" {
		t.Errorf("%+v, %v", shown, err)
	}
	second, err := adminapi.ActivatePolicy.Call(t.Context(), peer, adminapi.ActivatedPolicy{Version: v.Version, Wish: adminapi.Wish{}})
	if err != nil || second.ActivationID != first.ActivationID || second.State != "proposed" || second.RequestedBy != "ayu" || second.ConfirmedBy != "budi" {
		t.Errorf("%+v, %v", second, err)
	}
	w.decide()
	back, err := adminapi.RollBackPolicy.Call(t.Context(), peer, adminapi.Wish{Replaces: v.Version})
	if err != nil || back.State != "waiting" {
		t.Errorf("%+v, %v", back, err)
	}
	if back, err = adminapi.RollBackPolicy.Call(t.Context(), w, adminapi.Wish{Replaces: v.Version}); err != nil || back.State != "proposed" || back.ConfirmedBy != "ayu" {
		t.Errorf("%+v, %v", back, err)
	}
}
