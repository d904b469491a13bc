# May this request be made? The gateway asks for every request.
#
# `input` is the request, `data` is what data.json says. A rule `name contains x if { ... }` adds x to the set `name` if all
# of its lines hold. So each rule here is one reason to refuse, and an operator's own file can add more of them.
package gerbang

# The answer. A request is allowed if there is no reason to refuse it. The merchant is shown every reason.
admit := {"allow": count(refusals) == 0, "reasons": refusals}

# The first three say what must hold, in the form `not this == that`. It refuses a request without the field, too.

# Suspended merchants do nothing.
refusals contains "This merchant is not active." if not input.merchant.status == "active"

# There are two modes.
refusals contains "This mode is not known." if {
	not input.mode == "live"
	not input.mode == "test"
}

# Without its tier, a merchant would have no rate.
refusals contains "This merchant's tier has no limits." if not tier_has_limits

# Lists are kept beside the policy: `gerbang list add blocked_destinations 014/2460888509 --reason WHY`. A request that is on one
# has its name in `input.lists`.
refusals contains "This destination is blocked." if input.lists.blocked_destinations

refusals contains "This payer is blocked." if input.lists.blocked_payers

refusals contains "This product is not sold at present." if input.lists.blocked_products

refusals contains "Requests from this address are refused." if input.lists.blocked_addresses

# data.json bounds amounts by an operation's path and by its kind. Both bounds hold.
refusals contains outside(data.amounts[input.operation.path])

refusals contains outside(data.amounts[input.operation.kind])

# The tier is in data.json. This is a rule of its own because `not data.tiers[input.merchant.tier]` would not hold, and so
# refuse nobody, if the request had no tier.
tier_has_limits if data.tiers[input.merchant.tier]

# Why the amount is outside of the bounds. There is no answer, and so no refusal, if it is within, or if there is no amount.
outside(bounds) := sprintf("The amount must be at least %d.", [bounds.min]) if input.amount < bounds.min

else := sprintf("The amount must be at most %d.", [bounds.max]) if input.amount > bounds.max
