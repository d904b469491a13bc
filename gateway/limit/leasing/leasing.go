// Package leasing owns what a replica asks of a token bucket that all replicas share, and
// what it is told. It has types and bounds alone, on which the limiter and the store agree.
// It must not know when a replica asks, nor how the buckets are kept.
package leasing

import "time"

// Ask is a replica's question to one bucket.
type Ask struct {
	Merchant, Mode, Name string
	PerSecond            float64
	Burst                int
	Owed                 float64 // admitted without a lease, to be paid first
	Late                 float64 // admitted while the bucket was not asked, to be paid with what did not fit meanwhile
	Want                 int64   // whole tokens
}

// Grant is the answer. The tokens that were granted are taken from the bucket.
type Grant struct {
	Granted int64
	Left    float64 // in the bucket then; below zero where more was owed than it had
}

// MostOwed bounds a bucket's debt: the burst, and what the rate adds in this time.
const MostOwed = 30 * time.Second

// SpareFor is for how long a bucket remembers what did not fit into it. After an outage
// all replicas come back in that time, each with what it admitted meanwhile.
const SpareFor = 10 * time.Second

// Ahead is how far a bucket's time may be ahead of the database's clock: by the clocks of
// several nodes, and by an ask that waited for another. Beyond that the clock was put back.
const Ahead = 10 * time.Second
