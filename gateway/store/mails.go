package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Mail is a mail about a movement: it is written in the commit of what it tells,
// or not at all.
type Mail struct {
	ID      uuid.UUID // the same on every try
	To      string
	Subject string
	Text    string
}

func (m *Mail) bucket() int32 { return int32(movement.ID(m.ID).Bucket()) } //nolint:gosec // below movement.Buckets

// orNoMail is what a change without a mail writes: nothing.
func orNoMail(m *Mail) *Mail {
	if m == nil {
		return &Mail{}
	}
	return m
}

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

	Owner      movement.Owner
	MovementID movement.ID
	Attempts   int
	CreatedAt  time.Time
}

// DueMails reads the mails of some buckets that are due, the oldest first. Since
// is a lower bound that keeps the scan short, zero for none.
func (s *Store) DueMails(ctx context.Context, buckets []int, since, now time.Time, most int) ([]QueuedMail, error) {
	since = micro(since)
	rows, err := s.queries.DueMails(ctx, dbsqlc.DueMailsParams{
		Buckets: narrow(buckets), Since: &since, Now: optional(now), Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: due mails: %w", err)
	}
	due := make([]QueuedMail, len(rows))
	for i, row := range rows {
		due[i] = QueuedMail{
			Mail:  Mail{ID: row.MailID, To: row.Recipient, Subject: row.Subject, Text: row.Body},
			Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, MovementID: movement.ID(row.MovementID),
			Attempts: int(row.Attempts), CreatedAt: row.CreatedAt.UTC(),
		}
	}
	return due, nil
}

// MailAttempt is one try of a mail, and what follows from it.
type MailAttempt struct {
	Mail  QueuedMail // as it was read: its count of tries is the guard
	At    time.Time
	Fault string
	Then  MailState
	DueAt time.Time // of the next try, zero for none
}

// RecordMail writes a try. It is false when another replica has written one since
// the mail was read; its recipient then got it twice.
func (s *Store) RecordMail(ctx context.Context, a MailAttempt) (bool, error) {
	rows, err := s.queries.RecordMail(ctx, dbsqlc.RecordMailParams{
		MailID: a.Mail.ID, Attempts: int32(a.Mail.Attempts), State: string(a.Then), Fault: a.Fault, //nolint:gosec // a small count
		TriedAt: optional(a.At), DueAt: optional(a.DueAt),
	})
	if err != nil {
		return false, fmt.Errorf("store: mail: %w", err)
	}
	return rows == 1, nil
}
