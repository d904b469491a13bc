// Package cache owns the answers of queries that all replicas share. A fresh answer
// comes from memory. An old one is refreshed by one replica at a time, and served by
// all until then. Where there is none, callers wait for the replica that fetches it.
// The package must not know SQL, plugins or what an answer means. Nothing that costs
// money may be decided by a cached answer.
package cache
