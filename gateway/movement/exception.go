package movement

import "time"

// Exception is what needs a person. Owner, subject, reason and fact name it.
type Exception struct {
	Owner    Owner
	Subject  string // the movement's id, or what the provider called it
	Reason   string
	FactID   string // the upstream's id of the fact, or ""
	Provider string
	Detail   string // for people; no secrets
	At       time.Time
	// Lasting says that it goes on until somebody mends it. Said again after it was
	// resolved, it stands on the list again, numbered behind the fact.
	Lasting bool

	ResolvedAt time.Time // zero while it is open
	ResolvedBy string
	Resolution string
}
