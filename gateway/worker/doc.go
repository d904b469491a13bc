// Package worker runs everything that happens later: it finds the movements
// that are due and has the engine look at them. Any number of replicas share
// the work by leasing its buckets. It must not decide anything about money:
// what a look finds is settled by the engine alone.
package worker
