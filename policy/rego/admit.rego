# May this request be done at all? Asked for every request; the answer is never kept.
package gerbang

# The document that the gateway reads. One refusal is enough, and each is a sentence that the merchant is shown.
admit := {"allow": count(refusals) == 0, "reasons": refusals}

# The first three ask for what must hold, so that a field which is missing refuses, too.
refusals contains "This merchant is not active." if not input.merchant.status == "active"

refusals contains "This mode is not known." if {
	not input.mode == "live"
	not input.mode == "test"
}

refusals contains "This merchant's tier has no limits." if not tier_has_limits

# Bounds may stand on a path and on a kind; both hold.
refusals contains outside(data.amounts[input.operation.path])

refusals contains outside(data.amounts[input.operation.kind])

# A rule of its own: in `not data.tiers[input.merchant.tier]` a missing tier would refuse nothing.
tier_has_limits if data.tiers[input.merchant.tier]

outside(bounds) := sprintf("The amount must be at least %d.", [bounds.min]) if input.amount < bounds.min

else := sprintf("The amount must be at most %d.", [bounds.max]) if input.amount > bounds.max
