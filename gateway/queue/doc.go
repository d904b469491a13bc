// Package queue owns how replicas share work that is due: the leases of a queue's
// buckets, and the one loop that reads a queue and hands its pages on. A queue's
// rows lie in buckets, and each bucket is leased to one replica at a time. The
// package must not know what the rows are, where they are kept, or what is done
// with them: whoever runs a queue gives it that.
package queue
