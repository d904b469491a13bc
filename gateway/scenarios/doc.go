// Package scenarios holds lifecycle and kinds to what merchants, providers and
// operators see, case by case: every mishap of a call at every moment, races, restarts,
// wrong clocks. It runs on a store in memory and on the real one. It has nothing but
// tests, and must not be imported.
package scenarios
