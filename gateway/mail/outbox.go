package mail

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

// Queue reads the mails that are due and records each attempt. An attempt that is
// not recorded is made again, under the same id.
type Queue interface {
	DueMails(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.QueuedMail, error)
	// RecordMail is false where another replica has recorded an attempt first.
	RecordMail(ctx context.Context, a movement.MailAttempt) (bool, error)
}

// Outbox sends the mails of the buckets that its replica holds. All go to one
// mail server, so a few at once are enough.
type Outbox struct {
	*queue.Runner[movement.QueuedMail]

	queue Queue
	send  func(context.Context, Message) error
	vault Vault
	log   *slog.Logger
}

const (
	readEvery   = time.Second
	outboxPage  = 50
	mailsAtOnce = 4
	// recordWithin bounds the write of an attempt.
	recordWithin = 5 * time.Second
)

// NewOutbox makes an outbox. Send makes one attempt, as [Sender.Send] does; the vault opens
// mails that are sealed.
func NewOutbox(mails Queue, send func(context.Context, Message) error, vault Vault, leases *queue.Leases, log *slog.Logger) *Outbox {
	o := &Outbox{queue: mails, send: send, vault: vault, log: log}
	o.Runner = queue.NewRunner(queue.Work[movement.QueuedMail]{
		Name: "outbox", Every: readEvery, Page: outboxPage, Eager: true, Handle: o.handle,
		Due: func(ctx context.Context, b queue.Batch) ([]movement.QueuedMail, error) {
			return mails.DueMails(ctx, b.Buckets, b.Since, b.Now, b.Most)
		},
	}, leases, log)
	return o
}

func (o *Outbox) handle(ctx context.Context, page []movement.QueuedMail) error {
	return o.Each(ctx, page, mailsAtOnce, func(m movement.QueuedMail) int { return int(m.Bucket()) }, func(m movement.QueuedMail) error {
		return o.attempt(ctx, m)
	})
}

// attempt makes one attempt and records it; its error is that it could not. What
// is not recorded is tried again.
func (o *Outbox) attempt(ctx context.Context, m movement.QueuedMail) error {
	opened, err := open(o.vault, m.Mail)
	switch {
	case err != nil:
		err = &Fault{Reason: "the mail can't be opened with the keyset"}
	case over(m, o.Now()):
		err = &Fault{Reason: "the link in the mail has ended", Permanent: true}
	default:
		err = o.send(ctx, Message{ID: m.ID.String(), At: m.CreatedAt, To: opened.To, Subject: opened.Subject, Text: opened.Text})
	}
	if err != nil && ctx.Err() != nil {
		return nil // we stop; nobody knows what became of it
	}
	attempt := movement.MailAttempt{Mail: m, At: o.Now()}
	attempt.Then, attempt.DueAt = follow(m, err, attempt.At)
	if err != nil {
		attempt.Fault = faultOf(err).Error()
		o.log.WarnContext(ctx, "outbox: a mail was not sent", "mail", m.ID.String(), "movement", m.MovementID.String(),
			"attempt", m.Attempts+1, "state", string(attempt.Then), "error", attempt.Fault)
	}
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	_, err = o.queue.RecordMail(recording, attempt)
	o.Warn(ctx, "record an attempt", err)
	return err
}

// schedule gives a mail up after a day.
var schedule = queue.Schedule{Lasts: 24 * time.Hour}

// follow is what an attempt leads to: an end, or another attempt.
func follow(m movement.QueuedMail, err error, now time.Time) (movement.MailState, time.Time) {
	switch {
	case err == nil:
		return movement.MailSent, time.Time{}
	case faultOf(err).Permanent:
		return movement.MailDead, time.Time{}
	}
	next, again := schedule.Next(m.Attempts+1, m.CreatedAt, now, rand.Int64N)
	if !again || over(m, next) {
		return movement.MailDead, time.Time{}
	}
	return movement.MailWaiting, next
}

// over tells whether the link in a mail has ended at a time.
func over(m movement.QueuedMail, at time.Time) bool { return !m.Until.IsZero() && !at.Before(m.Until) }

// faultOf is the fault of an error. Of any other error it tells nothing, because
// its text may hold a server's words.
func faultOf(err error) *Fault {
	if fault, ok := errors.AsType[*Fault](err); ok {
		return fault
	}
	return &Fault{Reason: "the mail could not be sent"}
}
