# How fast, how often, at which markup, and how much money out? The gateway keeps the answer for a merchant's record, a mode
# and an operation until one of them or the policy changes. So these rules see neither amount nor time.
#
# A merchant's own limits are on its record: `gerbang merchant limit` sets them, and data.json does not.
package gerbang

# The answer. A tier that is not in data.json has none, and then the request is refused.
limits := {
	"rates": [rate],
	"quotas": [{"name": name, "limit": limit} |
		some name in counted
		limit := quota_limit(name)
	],
	"markup": markup,
	"transfers": object.remove(outflow, ["repeat_within", "higher_fees"]),
	"repeat_within": object.get(outflow, "repeat_within", "10m"),
	"higher_fees": object.get(outflow, "higher_fees", false),
	"log_successes": object.get(tier, ["request_log", "successes"], 1),
}

# What data.json says about the merchant's tier.
tier := data.tiers[input.merchant.tier]

# The merchant's own rates and quotas, by name. They go before the tier's.
own := input.merchant.limits

# How fast: the merchant's own pace and burst, each if it has one, else the tier's. All of a merchant's requests share a rate,
# unless the tier says that each "operation" or each "key" has its own.
rate := {
	"name": "default",
	"rate_per_second": object.get(own, ["default", "rate_per_second"], tier.rate_per_second),
	"burst": object.get(own, ["default", "burst"], tier.burst),
	"per": object.get(tier, "per", "merchant"),
}

# How often: the names of the quotas that count this operation. A quota counts the paths that it lists.
counted contains name if {
	some name, quota in data.quotas
	input.operation.path in quota.operations
}

# A tier may also limit a quota that data.json does not list. Such a quota has a provider's name and counts all of its
# operations.
counted contains input.operation.provider if not data.quotas[input.operation.provider]

# How many calls of a quota: the merchant's own number, else the tier's, else the quota's. Without any, the quota limits
# nothing.
quota_limit(name) := limit if limit := own[name].limit

else := limit if limit := tier.quotas[name].limit

else := limit if limit := data.quotas[name].limit

# What is added to a provider's price. The merchant's own markup holds for all products. Else a product's goes before the
# tier's.
markup := {"default": amount} if amount := input.merchant.markup

else := {"default": tier_markup, "products": product_markups}

default tier_markup := 0

tier_markup := data.markups.tiers[input.merchant.tier]

default product_markups := {}

product_markups := data.markups.products

# How much money out, for how long a transfer without a reference is refused that equals an earlier one ("0s" for never), and
# whether one is sent although the provider takes a higher fee than was told: the tier's bounds, and over them the merchant's
# own, bound by bound.
outflow := object.union(tier_outflow, own_outflow)

default tier_outflow := {}

tier_outflow := data.transfers.tiers[input.merchant.tier]

default own_outflow := {}

own_outflow := input.merchant.transfers
