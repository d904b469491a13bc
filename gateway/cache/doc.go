// Package cache owns the answers of queries that all replicas share. A fresh one
// is given from memory, an old one is refreshed by one replica at a time while all
// others go on giving it, and who asks first waits for the one who fetches. It must
// not know SQL, plugins or what an answer means, and nothing may be decided by it
// that costs money if it is old.
package cache
