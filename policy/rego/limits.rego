# How fast, how many, at which markup, and how much money may go out? Asked once for a merchant's
# record, a mode and an operation, and kept until one of them or the policy changes.
package gerbang

# Undefined, and so a refusal, for a tier that has no limits.
limits := {
	"rates": [{
		"name": "default",
		"rate_per_second": object.get(own, ["default", "rate_per_second"], tier.rate_per_second),
		"burst": object.get(own, ["default", "burst"], tier.burst),
	}],
	"quotas": [{"name": name, "limit": limit} |
		some name in counted
		limit := quota_limit(name)
	],
	"markup": markup,
	"transfers": object.remove(outflow, ["repeat_within"]),
	"repeat_within": object.get(outflow, "repeat_within", "0s"),
}

tier := data.tiers[input.merchant.tier]

# The merchant's own limits, by name. They win over the tier's.
own := input.merchant.limits

# The quotas that count this operation: those that list its path.
counted contains name if {
	some name, quota in data.quotas
	input.operation.path in quota.operations
}

# A quota that is declared nowhere counts every operation of the provider whose name it has.
counted contains input.operation.provider if not data.quotas[input.operation.provider]

# The merchant's own, the tier's, the quota's; where none is set nothing is limited.
quota_limit(name) := limit if limit := own[name].limit

else := limit if limit := tier.quotas[name].limit

else := limit if limit := data.quotas[name].limit

# What is added to a provider's price. The most specific wins: what is set for the merchant, then for the product, then for
# the tier; where none is set nothing is added.
markup := {"default": amount} if amount := data.markups.merchants[input.merchant.id]

else := {"default": tier_markup, "products": product_markups}

default tier_markup := 0

tier_markup := data.markups.tiers[input.merchant.tier]

default product_markups := {}

product_markups := data.markups.products

# What bounds the money that goes out, field by field: what is set for the merchant wins over the tier's; where none is set
# nothing is bounded.
outflow := object.union(tier_outflow, merchant_outflow)

default tier_outflow := {}

tier_outflow := data.transfers.tiers[input.merchant.tier]

default merchant_outflow := {}

merchant_outflow := data.transfers.merchants[input.merchant.id]
