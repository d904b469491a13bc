package movement

import (
	"bytes"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// DueScan says which polls a poller wants to read: of each place in the queue the first
// ones that are due by Now, so many.
type DueScan struct {
	From []QueuePlace
	Now  time.Time
	Most int // of each place

	Behind bool // a scan of before read what comes first, and carried over what was to be
}

// QueuePlace is a place in a bucket's queue: behind what is due at a time and has an id.
type QueuePlace struct {
	Bucket int
	DueAt  time.Time
	ID     ID
}

// DuePoll is a poll that is due.
type DuePoll struct {
	ID      ID // of its movement
	Account string
	DueAt   time.Time
}

// Place is the place in the queue behind a poll.
func (p DuePoll) Place() QueuePlace {
	return QueuePlace{Bucket: p.ID.Bucket(), DueAt: p.DueAt, ID: p.ID}
}

// Behind tells whether what is due at a time, of a movement, lies behind a place.
func (q QueuePlace) Behind(due time.Time, id ID) bool {
	return due.After(q.DueAt) || due.Equal(q.DueAt) && bytes.Compare(id[:], q.ID[:]) > 0
}

// QueueAccount names the account that a movement is polled on: its upstream, which is a
// provider in a mode, and whose account there, unless all share the platform's.
func (m *Movement) QueueAccount() string {
	upstream := m.Provider + "/" + m.Owner.Mode
	if m.ConnectionOwner == manifest.OwnerPlatform {
		return upstream
	}
	return upstream + "/" + m.Owner.MerchantID
}

// UpstreamOf is the upstream that an account of the queue belongs to, which is itself
// where that is the platform's.
func UpstreamOf(account string) string {
	if parts := strings.SplitN(account, "/", 3); len(parts) == 3 {
		return parts[0] + "/" + parts[1]
	}
	return account
}

// versionsEach lies above how often one row of polls is written.
const versionsEach = 1_000_000

// FirstVersion is the version with which a movement's row of polls begins: above those
// of every earlier row of the movement.
func FirstVersion(sequence int) int64 { return int64(sequence) * versionsEach }
