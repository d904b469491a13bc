package movement

import "time"

// Note is what a provider said of an attempt of a movement that changed no state,
// and how often it said just that.
type Note struct {
	Attempt int       `json:"attempt"`
	Event   string    `json:"event"`
	Detail  string    `json:"detail"` // JSON, no secrets
	At      time.Time `json:"at"`
	LastAt  time.Time `json:"last_at"`
	Times   int       `json:"times"`
}

// NoteRouted is the event of the note that an earlier attempt was at another provider,
// to which nothing was sent.
const NoteRouted = "routed"

// HistoryEntry is one entry of a movement's history.
type HistoryEntry struct {
	Sequence int       `json:"sequence,omitempty"` // none of what is kept beside the history
	Event    string    `json:"event"`
	At       time.Time `json:"at"`
	Detail   string    `json:"detail,omitempty"`
}
