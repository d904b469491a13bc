// Package clock compares a replica's clock with the database's, which all replicas
// share. Whoever relies on the time asks it whether the clock is right. It must not
// know what depends on that, and it corrects no time.
package clock
