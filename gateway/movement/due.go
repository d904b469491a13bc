package movement

import (
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// DueMovements says which movements a poller wants to read: those of some buckets that
// became due from Since (zero for ever) until Now, and at most so many.
type DueMovements struct {
	Buckets  []int
	Held     []string // keys of upstreams and accounts that are left out
	UnderWay []ID     // that are left out
	Since    time.Time
	Now      time.Time
	Most     int
}

// LeavesOut tells whether a movement is left out, as far as that is not a matter of
// when it is due.
func (d DueMovements) LeavesOut(m Movement) bool {
	return slices.Contains(d.UnderWay, m.ID) || slices.Contains(d.Held, m.UpstreamKey()) ||
		slices.Contains(d.Held, m.UpstreamKey()+"/"+m.Owner.MerchantID)
}

// UpstreamKey names the upstream of a movement, as DueMovements does: a provider in a
// mode.
func (m *Movement) UpstreamKey() string { return m.Provider + "/" + m.Owner.Mode }

// AccountKey names the account that a movement was made on, as DueMovements does: its
// merchant's at an upstream. It is "" for the platform's, which all share.
func (m *Movement) AccountKey() string {
	if m.ConnectionOwner == manifest.OwnerPlatform {
		return ""
	}
	return m.UpstreamKey() + "/" + m.Owner.MerchantID
}
