package movement

import (
	"time"

	"github.com/google/uuid"
)

// Mail is a mail about a movement: it is written in the commit of what it tells,
// or not at all.
type Mail struct {
	ID      uuid.UUID // the same on every try
	To      string
	Subject string
	Text    string
}

// Bucket is the bucket of the outbox that sends it.
func (m *Mail) Bucket() int32 { return int32(ID(m.ID).Bucket()) } //nolint:gosec // below Buckets

// MailState is where a mail stands.
type MailState string

// The states of a mail. Only a waiting one is due.
const (
	MailWaiting MailState = "waiting"
	MailSent    MailState = "sent"
	MailDead    MailState = "dead" // given up, or its recipient can't be
)

// QueuedMail is a mail on its way.
type QueuedMail struct {
	Mail

	Owner      Owner
	MovementID ID
	Attempts   int
	CreatedAt  time.Time
}

// MailAttempt is one try of a mail, and what follows from it.
type MailAttempt struct {
	Mail  QueuedMail // as it was read: its count of tries is the guard
	At    time.Time
	Fault string
	Then  MailState
	DueAt time.Time // of the next try, zero for none
}
