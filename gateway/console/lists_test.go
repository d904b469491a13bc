package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/policy"
)

// TestLists puts values on a list in one spelling, finds and removes them in another, and keeps no value in the clear.
func TestLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, until := t.Context(), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	added, err := adminapi.AddToList.Call(ctx, w, adminapi.NewListEntries{List: "blocked_destinations", Reason: "fraud, case 7", Entries: []adminapi.NewListEntry{
		{Value: "014:2460888509"}, {Value: "0811-742-234", Reason: "a mule", Until: &until},
	}})
	if err != nil || len(added.Entries) != 2 {
		t.Fatalf("added %+v, %v", added, err)
	}
	if err := w.lists.Read(ctx); err != nil {
		t.Fatal(err)
	}
	on := func(destination string, at time.Time) bool {
		return len(w.lists.Of(policy.AdmitInput{Parties: policy.Parties{Destination: destination}, Now: at})) == 1
	}
	if !on("014/2460888509", until.Add(time.Hour)) || !on("62811742234", time.Now()) || on("62811742234", until) || on("014/2460888508", time.Now()) {
		t.Error("what is on the list is not what was put on it")
	}
	find := adminapi.ListValues{List: "blocked_destinations", Values: []string{"2460888509", "+62 811 742 234", "bank/014/2460.888.509"}}
	found, err := adminapi.FindInList.Call(ctx, w, find)
	if err != nil || len(found) != 2 {
		t.Fatalf("found %+v, %v", found, err)
	}
	for _, e := range found {
		phone := e.Value == "+62 811 742 234"
		if phone != (e.Until != nil) || phone && (!e.Until.Equal(until) || e.Reason != "a mule" || e.Masked != "***2234") || !phone && (e.Masked != "014/***8509" || e.Reason != "fraud, case 7") || e.By != "ayu" {
			t.Errorf("found %+v", e)
		}
	}
	sizes, err := adminapi.ListLists.Call(ctx, w, adminapi.None{})
	if err != nil || len(sizes) != 1 || sizes[0].Entries != 2 {
		t.Errorf("lists %+v, %v", sizes, err)
	}
	first, err := adminapi.ShowList.Call(ctx, w, adminapi.ListPage{List: "blocked_destinations", Limit: 1})
	if err != nil || len(first) != 1 {
		t.Fatalf("first %+v, %v", first, err)
	}
	if second, err := adminapi.ShowList.Call(ctx, w, adminapi.ListPage{List: "blocked_destinations", Limit: 1, After: first[0].ID}); err != nil || len(second) != 1 || second[0].ID == first[0].ID {
		t.Errorf("second %+v, %v", second, err)
	}

	remove := adminapi.ListRemoval{List: "blocked_destinations", Values: []string{"0811742234", "014/1"}, Reason: "cleared"}
	if _, err := adminapi.RemoveFromList.Call(ctx, w, remove); err == nil || !strings.Contains(err.Error(), "1 of 2") {
		t.Errorf("one that is not on it: %v", err)
	}
	remove.Values, remove.IDs = []string{"0811742234"}, []string{added.Entries[0].ID}
	if gone, err := adminapi.RemoveFromList.Call(ctx, w, remove); err != nil || len(gone.Entries) != 2 {
		t.Errorf("removed %+v, %v", gone, err)
	}
	if err := w.lists.Read(ctx); err != nil || on("014/2460888509", time.Now()) || on("62811742234", time.Now()) {
		t.Errorf("still on it, %v", err)
	}

	for what, wrong := range map[string]adminapi.NewListEntries{
		"list must be small letters":   {List: "blocked", Reason: "x", Entries: []adminapi.NewListEntry{{Value: "x"}}},
		"reason is required":           {List: "blocked_products", Entries: []adminapi.NewListEntry{{Value: "x"}}},
		"entries must be from 1":       {List: "blocked_products", Reason: "x"},
		"entries[1].value must be the": {List: "blocked_payers", Reason: "x", Entries: []adminapi.NewListEntry{{Value: "a@b.example"}, {Value: "x"}}},
		"entries[1].value is there":    {List: "blocked_payers", Reason: "x", Entries: []adminapi.NewListEntry{{Value: "a@b.example"}, {Value: "A@b.example "}}},
		"entries[0].until must lie":    {List: "blocked_products", Reason: "x", Entries: []adminapi.NewListEntry{{Value: "x", Until: new(time.Now().Add(-time.Hour))}}},
	} {
		if _, err := adminapi.AddToList.Call(ctx, w, wrong); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
	audit, err := adminapi.ListAudit.Call(ctx, w, adminapi.AuditFilter{Merchant: "platform"})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range audit {
		text.WriteString(e.Action + " " + e.Detail + "\n")
	}
	if got := text.String(); !strings.Contains(got, "list.add blocked_destinations, 2: 014/***8509 (") || strings.Contains(got, "2460888509") || !strings.Contains(got, ": cleared") {
		t.Errorf("the audit has\n%s", got)
	}
}
