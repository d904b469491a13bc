package store

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// DueMails reads the mails of some buckets that are due, the oldest first. Since
// is a lower bound that keeps the scan short, zero for none.
func (s *Store) DueMails(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.QueuedMail, error) {
	since = micro(since)
	rows, err := s.queries.DueMails(ctx, dbsqlc.DueMailsParams{
		Buckets: narrow(buckets), Since: &since, Now: optional(now), Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: due mails: %w", err)
	}
	due := make([]movement.QueuedMail, len(rows))
	for i := range rows {
		row := rows[i].Mail
		due[i] = movement.QueuedMail{
			Mail:  movement.Mail{ID: row.MailID, To: row.Recipient, Subject: row.Subject, Text: row.Body},
			Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, MovementID: movement.ID(row.MovementID),
			Attempts: int(row.Attempts), CreatedAt: row.CreatedAt.UTC(),
		}
	}
	return due, nil
}

// RecordMail writes a try. It is false when another replica has written one since
// the mail was read; its recipient then got it twice.
func (s *Store) RecordMail(ctx context.Context, a movement.MailAttempt) (bool, error) {
	rows, err := s.queries.RecordMail(ctx, dbsqlc.RecordMailParams{
		MailID: a.Mail.ID, Attempts: int32(a.Mail.Attempts), State: string(a.Then), Fault: a.Fault, //nolint:gosec // a small count
		TriedAt: optional(a.At), DueAt: optional(a.DueAt),
	})
	if err != nil {
		return false, fmt.Errorf("store: mail: %w", err)
	}
	return rows == 1, nil
}
