package policy

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestListsAreLookedUp for each request, also where the answer for those on no list is kept, and again once there is a quote.
func TestListsAreLookedUp(t *testing.T) {
	t.Parallel()
	set, asked := must(t, listing("input.lists.blocked_destinations")), 0
	in := request()
	in.Listed = func(in AdmitInput) []string {
		if asked++; in.Destination == "014/1" {
			return []string{"blocked_destinations"}
		}
		return nil
	}
	admit := func(in AdmitInput) bool {
		t.Helper()
		if answer, kept := set.KeptAdmission(in); kept {
			return answer.Allow
		}
		answer, err := set.AdmitAndKeep(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Allow
	}
	for range 100 { // studied, and kept
		if !admit(in) {
			t.Fatal("refused what is on no list")
		}
		if admit(in.Quoted(map[string]any{"destination": "014/1"})) {
			t.Fatal("allowed what is on a list")
		}
	}
	if _, kept := set.KeptAdmission(in); !kept {
		t.Error("the answer for what is on no list is not kept")
	}
	if !set.ReadsList("blocked_destinations") || set.ReadsList("blocked_payers") {
		t.Error("which lists it reads is not told")
	}
	if any := must(t, listing("count(input.lists) > 0")); !any.ReadsList("blocked_payers") {
		t.Error("it reads all lists")
	}
	unread := must(t, listing("input.amount < 0"))
	before := asked
	if _, err := unread.Admit(context.Background(), in); err != nil || asked != before {
		t.Errorf("lists were looked up that no rule reads: %v", err)
	}
}

// listing is a set without the default rules that refuses under a condition.
func listing(condition string) Source {
	return rulesOnly("package gerbang\n" + limitsRule + "\nadmit := {\"allow\": count(refusals) == 0, \"reasons\": refusals}\n\nrefusals contains \"listed\" if " + condition + "\n")
}

func TestListsThatCantBe(t *testing.T) {
	t.Parallel()
	told := found(t, rule(`refusals contains "listed" if input.lists.blocked_destination`), someFacts())
	if !slices.ContainsFunc(told, func(text string) bool {
		return strings.Contains(text, `warning: meaning: there can be no list "blocked_destination"`)
	}) {
		t.Errorf("findings are %q", told)
	}
	if told := found(t, rule(`refusals contains "listed" if input.lists.blocked_destinations`), someFacts()); len(told) != 0 {
		t.Errorf("findings are %q", told)
	}
}
