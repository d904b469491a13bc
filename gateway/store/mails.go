package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// DueMails reads the mails of some buckets that are due: those with a link first, and of both
// the oldest. Since
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
		m := movement.Mail{ID: row.MailID, To: row.Recipient, Subject: row.Subject, Text: row.Body}
		if row.NotAfter != nil {
			m.Until = row.NotAfter.UTC()
		}
		due[i] = movement.QueuedMail{
			Mail:  m,
			Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, MovementID: movement.ID(row.MovementID),
			Attempts: int(row.Attempts), CreatedAt: row.CreatedAt.UTC(),
		}
	}
	return due, nil
}

// Mail writes mails of no movement, which tell an owner's people of something, once: one of
// an id that was mailed already is left out.
func (s *Store) Mail(ctx context.Context, owner movement.Owner, now time.Time, mails ...movement.Mail) error {
	send := func(tx pgx.Tx) error {
		for i := range mails {
			known, err := dbsqlc.New(tx).CountMails(ctx, mails[i].ID)
			if err == nil && known == 0 {
				err = mailed(ctx, tx, owner, now, mails[i:i+1])
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	err := s.within(ctx, serializable, send)
	if sameAs(err, "mails_pkey") { // another replica was earlier
		err = s.within(ctx, serializable, send)
	}
	return wrap("mail", err)
}

// mailed writes new mails of no movement in a transaction.
func mailed(ctx context.Context, tx pgx.Tx, owner movement.Owner, now time.Time, mails []movement.Mail) error {
	for i := range mails {
		var id uuid.UUID
		if err := only(ctx, tx, ofOwner|queueMail, &write{owner: owner, now: micro(now), mail: &mails[i]}, &id); err != nil {
			return err
		}
	}
	return nil
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
