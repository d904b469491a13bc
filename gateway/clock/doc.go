// Package clock is the one clock of a replica: the database's, which all replicas
// share, measured again and again and advanced in between by one that nobody sets. All
// times that money is judged by are its own. It tells when they can't be relied on. It
// must not know what depends on that.
package clock
