package movement

import (
	"time"
)

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
