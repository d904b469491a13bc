// Package ledger owns double entry: the accounts of merchants and of the
// platform, and the balanced transactions that move rupiah between them. There is
// one kind of transaction for each thing that can happen to a movement or that an
// operator can do. It is pure and must not round, guess or correct; it knows no
// database and no provider.
//
// Signs are the platform's: what it owes or has earned is positive, what it owns
// or has paid is negative. A merchant's available and held rupiah are owed to it and
// so positive. Every transaction sums to zero.
package ledger
