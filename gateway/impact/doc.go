// Package impact says what another policy, or another record of a merchant, would have decided on requests of the past. It
// owns the simulation of rates, quotas and payout limits, and the report. It must not know SQL or HTTP, nor read a clock:
// what happened comes in as an iterator, and the same past gives the same report.
package impact
