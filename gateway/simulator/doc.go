// Package simulator plays whole histories of the gateway from a seed: merchants,
// replicas with clocks of their own, providers with every fault, crashes and ambiguous
// commits at every boundary, in virtual time. After each history it checks what must
// always be true. It is for tests; it changes nothing of what it runs.
package simulator
