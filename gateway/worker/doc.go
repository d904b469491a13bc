// Package worker runs everything that happens later: it has the engine look at
// the movements that are due and at the books of quiet accounts, and delivers
// callbacks to merchants. Any number of replicas share the work by leasing its
// buckets, and each compares its clock with the database's. It must not decide
// anything about money: what a look finds is settled by the engine alone, and what
// a callback says was written in the commit that it tells of.
package worker
