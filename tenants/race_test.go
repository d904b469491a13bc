//go:build race

package tenants

// raceEnabled tells that the race detector is on: memory is not what it is in production then.
const raceEnabled = true
