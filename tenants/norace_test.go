//go:build !race

package tenants

// raceEnabled tells that the race detector is off.
const raceEnabled = false
