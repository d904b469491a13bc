# The values here are fixtures: an edit of data.json changes no test.
package gerbang_test

import data.gerbang

some_tiers := {"bronze": {"rate_per_second": 3, "burst": 7}}

some_amounts := {
	"transfer": {"min": 10, "max": 5000},
	"/bank/transfer": {"min": 200, "max": 9000},
}

some_request := {
	"merchant": {"id": "m1", "tier": "bronze", "status": "active", "labels": {}, "limits": {}},
	"mode": "live",
	"operation": {"path": "/bank/transfer", "kind": "transfer", "provider": "bank"},
	"amount": 1000,
	"now": "2026-01-02T03:04:05Z",
	"fields": {},
}

# What admit says to the request with one value replaced.
answer(path, value) := decision if {
	decision := gerbang.admit with input as changed(path, value)
		with data.tiers as some_tiers
		with data.amounts as some_amounts
}

changed(path, value) := json.patch(some_request, [{"op": "replace", "path": path, "value": value}])

without(path) := json.patch(some_request, [{"op": "remove", "path": path}])

test_an_ordinary_request_is_allowed if {
	answer("/mode", "live") == {"allow": true, "reasons": set()}
	answer("/mode", "test") == {"allow": true, "reasons": set()}
}

test_a_merchant_must_be_active if {
	some status in ["suspended", "closed", "", "Active"]
	answer("/merchant/status", status) == {"allow": false, "reasons": {"This merchant is not active."}}
}

test_a_mode_must_be_known if {
	answer("/mode", "staging") == {"allow": false, "reasons": {"This mode is not known."}}
}

test_a_tier_must_have_limits if {
	answer("/merchant/tier", "brnze") == {"allow": false, "reasons": {"This merchant's tier has no limits."}}
}

test_what_is_missing_refuses[path] if {
	some path in ["/merchant", "/merchant/status", "/merchant/tier", "/mode"]
	decision := gerbang.admit with input as without(path) with data.tiers as some_tiers with data.amounts as some_amounts
	decision.allow == false
}

test_every_reason_is_told if {
	decision := gerbang.admit with input as {} with data.tiers as some_tiers with data.amounts as some_amounts
	count(decision.reasons) == 3
}

test_bounds_of_a_path_and_of_a_kind_hold[note] if {
	some note, want in {
		"below both": {"amount": 9, "reasons": {"The amount must be at least 10.", "The amount must be at least 200."}},
		"below the path's": {"amount": 199, "reasons": {"The amount must be at least 200."}},
		"the smallest": {"amount": 200, "reasons": set()},
		"the greatest": {"amount": 5000, "reasons": set()},
		"above the kind's": {"amount": 5001, "reasons": {"The amount must be at most 5000."}},
		"above both": {"amount": 9001, "reasons": {"The amount must be at most 5000.", "The amount must be at most 9000."}},
	}
	answer("/amount", want.amount) == {"allow": count(want.reasons) == 0, "reasons": want.reasons}
}

test_no_amount_has_no_bounds if {
	decision := gerbang.admit with input as without("/amount")
		with data.tiers as some_tiers
		with data.amounts as some_amounts
	decision.allow
}

test_no_bounds_allow_any_amount if {
	decision := gerbang.admit with input as some_request with data.tiers as some_tiers with data.amounts as {}
	decision.allow
}

test_what_is_on_a_list_is_refused[name] if {
	some name, reason in {
		"blocked_destinations": "This destination is blocked.",
		"blocked_payers": "This payer is blocked.",
		"blocked_products": "This product is not sold at present.",
		"blocked_addresses": "Requests from this address are refused.",
	}
	listed := object.union(some_request, {"lists": {name: true}})
	decision := gerbang.admit with input as listed with data.tiers as some_tiers with data.amounts as {}
	not decision.allow
	reason in decision.reasons
}
