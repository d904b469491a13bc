// Package simulator plays whole histories of the gateway from a seed: merchants,
// replicas with clocks of their own, providers with every fault, crashes and ambiguous
// commits at every boundary, in virtual time. After each history it checks what must
// always be true. It is for tests; it changes nothing of what it runs.
//
// In the world are the four kinds with two providers of payments, whose order changes
// from request to request; money that arrives short, over or in two parts, that goes back
// in parts or whole and comes again, told by lookups, notifications and statements; somebody
// who forges notifications where a token is all that proves them; polls, notifications, statements, overrides, assignments and
// resolved exceptions; payout limits, balances and quotas, counted by the real batcher;
// the list of events; credentials that change; and, on the store in memory, a database
// that is restored from a backup, after which merchants send the same references again.
//
// Not in it are the edge, the policy and its rates (its answers are drawn), plugins as
// processes and their breakers, the delivery of callbacks and mails, the log of decisions,
// and who leases which bucket: any replica polls what is due. Nor is an account that
// changes in a history whose database is restored, nor a return of a transfer or an order
// that is undone.
package simulator
