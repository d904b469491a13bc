// Package ledger owns double entry: the accounts of merchants and of the
// platform, and the balanced transactions that move rupiah between them, one
// for each thing that can happen to a movement or be done by an operator. It
// knows no database and no provider, and must not round, guess or correct.
//
// Signs are the platform's: what it owes or has earned is positive, what it owns
// or has spent is negative. A merchant's available and held rupiah are owed and
// so positive; every transaction sums to zero.
package ledger
