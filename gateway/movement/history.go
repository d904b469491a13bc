package movement

import "time"

// Note is what a provider said of an attempt of a movement that changed no state,
// and how often it said just that.
type Note struct {
	Attempt int
	Event   string
	Detail  string // JSON, no secrets
	At      time.Time
	LastAt  time.Time
	Times   int
}

// NoteRouted is the event of the note that an earlier attempt was at another provider,
// to which nothing was sent.
const NoteRouted = "routed"

// HistoryEntry is one entry of a movement's history.
type HistoryEntry struct {
	Sequence int
	Event    string
	At       time.Time
	Detail   string
}
