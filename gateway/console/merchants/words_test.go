package merchants

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/console/page/pagetest"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestWords: everything that these pages say is there in Indonesian, too.
func TestWords(t *testing.T) {
	t.Parallel()
	given := []string{
		// Texts in tables and in data.
		"Live", "Test", "given up", "available", "held", "active", "none", "prepared", "switched", "posted", "refused", "suspended",
		"admitted", "invalid", "denied", "slowed", "over_quota", "unjudged", "pending", "succeeded", "failed", "expired", "credit", "debit", "accepted", "not_sent", "overridden", "errored", "paid_late", "amount_differs", "returned", "return_undone", "operator",
		"Put it where your server reads its secrets.",
		"The old key goes on until its overlap ends. The list of keys tells when and from where each was used last.",
		"Add it to your server now: both secrets sign from this moment on. Switch once your server knows it, and finish when nothing uses the old one any more.",
		"Nothing was mailed: send this link to %s yourself. It is good once, for 7 days.",
		"This merchant is suspended: its keys are refused, and only what was begun goes on.",
	}
	given = append(given, "Numbers", "Today", "Failed in the last 7 days", "Waiting")
	given = append(given, "A rule of the policy. The answer's message says which.", "rate", "quota")
	for rule := range refusals {
		given = append(given, rule)
	}
	for _, p := range pages {
		given = append(given, p.text)
	}
	for _, state := range []movement.State{movement.Submitting, movement.Acknowledged, movement.Pending} {
		given = append(given, string(state))
	}
	for _, b := range buttons {
		given = append(given, b.Label, b.Effect)
	}
	for _, state := range []movement.CallbackState{movement.CallbackWaiting, movement.CallbackDelivered, movement.CallbackDead, movement.CallbackGone} {
		given = append(given, string(state))
	}
	for _, kind := range movement.Kinds() {
		given = append(given, string(kind))
	}
	for _, sort := range []movement.ReturnSort{movement.Refund, movement.Void, movement.Chargeback, movement.Reversal} {
		given = append(given, string(sort))
	}
	for _, scope := range scopes {
		given = append(given, string(scope))
	}
	for _, role := range tenants.RolesOf("mer_any") {
		given = append(given, string(role))
	}
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.Hold, ledger.Cost, ledger.Refund, ledger.Capture, ledger.Release, ledger.Reversal, ledger.Credit, ledger.Debit} {
		given = append(given, string(kind))
	}
	pagetest.Words(t, given...)
}
