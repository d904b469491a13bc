# The values here are fixtures: an edit of data.json changes no test.
package gerbang_test

import data.gerbang

metals := {
	"bronze": {"rate_per_second": 3, "burst": 7, "quotas": {"coins": {"limit": 40}}},
	"silver": {"rate_per_second": 0.5, "burst": 1, "per": "operation"},
}

counters := {
	"coins": {"operations": ["/coins/create", "/coins/status"]},
	"names": {"operations": ["/names/find"], "limit": 900},
}

# The limits of a tier's merchant, with limits of its own, at a path of the provider "coins".
limits_of(tier, own, path) := limits if {
	limits := gerbang.limits with input as {
		"merchant": {"id": "m1", "tier": tier, "status": "active", "labels": {}, "limits": own},
		"mode": "live",
		"operation": {"path": path, "kind": "payment", "provider": "coins"},
	}
		with data.tiers as metals
		with data.quotas as counters
}

rate_of(tier, own) := limits_of(tier, own, "/names/find").rates

quotas_of(tier, own, path) := limits_of(tier, own, path).quotas

test_the_rate_is_the_tiers if {
	rate_of("bronze", {}) == [{"name": "default", "rate_per_second": 3, "burst": 7, "per": "merchant"}]
	rate_of("silver", {}) == [{"name": "default", "rate_per_second": 0.5, "burst": 1, "per": "operation"}]
}

test_own_limits_win_field_by_field if {
	rate_of("bronze", {"default": {"rate_per_second": 9}}) == [{"name": "default", "rate_per_second": 9, "burst": 7, "per": "merchant"}]
	rate_of("bronze", {"default": {"burst": 99}}) == [{"name": "default", "rate_per_second": 3, "burst": 99, "per": "merchant"}]
	rate_of("bronze", {"coins": {"limit": 1}}) == [{"name": "default", "rate_per_second": 3, "burst": 7, "per": "merchant"}]
}

test_a_tier_without_limits_has_no_answer if not rate_of("gold", {})

test_a_quota_counts_the_operations_it_lists if {
	quotas_of("bronze", {}, "/coins/create") == [{"name": "coins", "limit": 40}]
	quotas_of("bronze", {}, "/coins/status") == [{"name": "coins", "limit": 40}]
	quotas_of("bronze", {}, "/coins/list") == []
	quotas_of("bronze", {}, "/names/find") == [{"name": "names", "limit": 900}]
}

test_own_quotas_win if {
	quotas_of("bronze", {"coins": {"limit": 41}}, "/coins/create") == [{"name": "coins", "limit": 41}]
	quotas_of("bronze", {"coins": {"limit": 0}}, "/coins/create") == [{"name": "coins", "limit": 0}]
	quotas_of("bronze", {"names": {"limit": 2}}, "/names/find") == [{"name": "names", "limit": 2}]
}

test_a_quota_that_nobody_sizes_limits_nothing if {
	quotas_of("silver", {}, "/coins/create") == []
	quotas_of("silver", {"coins": {"limit": 5}}, "/coins/create") == [{"name": "coins", "limit": 5}]
}

test_an_undeclared_quota_counts_the_provider_of_its_name if {
	limits := gerbang.limits with input as {
		"merchant": {"tier": "bronze", "limits": {}},
		"mode": "live",
		"operation": {"path": "/coins/anything", "kind": "query", "provider": "coins"},
	}
		with data.tiers as metals
		with data.quotas as {}
	limits.quotas == [{"name": "coins", "limit": 40}]
}

some_markups := {"tiers": {"bronze": 500}, "products": {"pulsa5": 250, "token20": 0}}

# The markup of a merchant of a tier; own is what its record says about it.
markup_of(own, tier, markups) := answer.markup if {
	answer := gerbang.limits with input as {
		"merchant": object.union({"id": "m1", "tier": tier, "limits": {}}, own),
		"mode": "test",
		"operation": {"path": "/coins/list", "kind": "query", "provider": "coins"},
	}
		with data.tiers as metals
		with data.quotas as counters
		with data.markups as markups
}

test_the_merchants_markup_wins_over_all if {
	markup_of({"markup": 75}, "bronze", some_markups) == {"default": 75}
	markup_of({"markup": 0}, "bronze", some_markups) == {"default": 0}
}

test_a_products_markup_wins_over_the_tiers if {
	markup_of({}, "bronze", some_markups) == {"default": 500, "products": {"pulsa5": 250, "token20": 0}}
}

test_a_tier_without_markup_adds_nothing if {
	markup_of({}, "silver", some_markups) == {"default": 0, "products": {"pulsa5": 250, "token20": 0}}
}

test_no_markups_add_nothing[note] if {
	some note, markups in {"none": {}, "empty": {"tiers": {}, "products": {}}}
	markup_of({}, "bronze", markups) == {"default": 0, "products": {}}
}

some_transfers := {"tiers": {
	"bronze": {"day": {"amount": 5000, "count": 3}, "destination_day": {"count": 2}},
	"silver": {"repeat_within": "30m"},
}}

# What bounds the transfers of a merchant of a tier, and for how long equal ones are refused; own is what its record says.
outflow_of(own, tier, transfers) := [answer.transfers, answer.repeat_within] if {
	answer := gerbang.limits with input as {
		"merchant": {"id": "m1", "tier": tier, "limits": {}, "transfers": own},
		"mode": "live",
		"operation": {"path": "/bank/transfer", "kind": "transfer", "provider": "bank"},
	}
		with data.tiers as metals
		with data.quotas as counters
		with data.transfers as transfers
}

test_transfers_are_bounded_by_tier if {
	outflow_of({}, "bronze", some_transfers) == [{"day": {"amount": 5000, "count": 3}, "destination_day": {"count": 2}}, "10m"]
	outflow_of({}, "silver", some_transfers) == [{}, "30m"]
}

test_a_merchants_bounds_win_field_by_field if {
	busy := {"day": {"count": 9}, "repeat_within": "1h"}
	outflow_of(busy, "bronze", some_transfers) == [{"day": {"amount": 5000, "count": 9}, "destination_day": {"count": 2}}, "1h"]
	stopped := {"day": {"amount": 0}}
	outflow_of(stopped, "bronze", some_transfers) == [{"day": {"amount": 0, "count": 3}, "destination_day": {"count": 2}}, "10m"]
	outflow_of(stopped, "silver", some_transfers) == [{"day": {"amount": 0}}, "30m"]
}

test_no_bounds_bound_nothing[note] if {
	some note, transfers in {"none": {}, "empty": {"tiers": {}}}
	outflow_of({}, "bronze", transfers) == [{}, "10m"]
}
