package worker

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	netmail "net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/delivery"
	"github.com/seed-f006e74d/gerbang/gateway/letter"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// Mailbag reads the mails that are due and keeps what became of each try. A try
// that is not recorded is made again, under the same id.
type Mailbag interface {
	DueMails(ctx context.Context, buckets []int, since, now time.Time, most int) ([]store.QueuedMail, error)
	RecordMail(ctx context.Context, a store.MailAttempt) (bool, error)
}

// LetterSender hands one letter to a mail server. What it can never deliver is
// letter.ErrNever.
type LetterSender interface {
	Send(ctx context.Context, l letter.Letter) error
}

// Postman sends the mails of the buckets that its replica holds. All go to one
// mail server, so that one after the other and a few at once is enough.
type Postman struct {
	bag    Mailbag
	sender LetterSender
	share  *Share
	log    *slog.Logger
	wake   chan struct{}
}

// NewPostman makes a postman.
func NewPostman(bag Mailbag, sender LetterSender, share *Share, log *slog.Logger) *Postman {
	return &Postman{bag: bag, sender: sender, share: share, log: log, wake: make(chan struct{}, 1)}
}

const (
	mailPage  = 50
	mailsOnce = 4
	// maxFault bounds what is kept of a mail server's words, in bytes.
	maxFault = 500
)

// Wake has the postman look at once: somebody has just committed a mail.
func (p *Postman) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run sends until the context ends. What is under way then is cut, and sent again
// by whoever holds its bucket next.
func (p *Postman) Run(ctx context.Context) error {
	defer p.share.Release(context.WithoutCancel(ctx))
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	behind := false
	for scan := 0; ctx.Err() == nil; scan++ {
		full := scan%fullScan == 0 || behind && scan%2 == 0
		more := p.scan(ctx, full)
		if full {
			behind = more
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-ticker.C:
		}
	}
	return nil
}

// scan sends what is due now, and tells whether more may be.
func (p *Postman) scan(ctx context.Context, full bool) (more bool) {
	buckets, err := p.share.Hold(ctx)
	if err != nil || len(buckets) == 0 {
		p.complain(ctx, "lease buckets", err)
		return false
	}
	now := time.Now()
	since := now.Add(-lookBack)
	if full {
		since = time.Time{}
	}
	reading, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	due, err := p.bag.DueMails(reading, buckets, since, now, mailPage)
	if err != nil {
		p.complain(ctx, "read due mails", err)
		return false
	}
	var group errgroup.Group
	group.SetLimit(mailsOnce)
	for _, mail := range due {
		// A page may take longer than a lease, when the server is slow.
		if buckets, err = p.share.Hold(ctx); err != nil || !slices.Contains(buckets, movement.ID(mail.ID).Bucket()) {
			p.complain(ctx, "renew leases", err)
			_ = group.Wait() // likewise
			return false
		}
		group.Go(func() error {
			p.send(ctx, mail)
			return nil
		})
	}
	_ = group.Wait() // the functions complain themselves
	return len(due) == mailPage
}

// send makes one try and writes it down. What is not written is tried again.
func (p *Postman) send(ctx context.Context, mail store.QueuedMail) {
	err := p.sender.Send(ctx, letter.Letter{ID: mail.ID.String(), At: mail.CreatedAt, To: mail.To, Subject: mail.Subject, Text: mail.Text})
	if err != nil && ctx.Err() != nil {
		return // we stop; nobody knows what became of it
	}
	attempt := store.MailAttempt{Mail: mail, At: time.Now()}
	attempt.Then, attempt.DueAt = followMail(mail, err, attempt.At)
	if err != nil {
		attempt.Fault = faultOf(mail, err)
		p.log.WarnContext(ctx, "postman: a mail was not sent", "mail", mail.ID.String(), "movement", mail.MovementID.String(),
			"try", mail.Attempts+1, "state", string(attempt.Then), "error", attempt.Fault)
	}
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepFor)
	defer cancel()
	_, err = p.bag.RecordMail(keeping, attempt)
	p.complain(ctx, "write a mail's try", err)
}

// anyAddress is what looks like a mail address in a server's words.
var anyAddress = regexp.MustCompile(`[^\s<>()\[\]:;,]*@[^\s<>()\[\]:;,]*`)

// faultOf is what went wrong, without the address, which is the payer's, however
// the server writes it.
func faultOf(mail store.QueuedMail, err error) string {
	written := []string{regexp.QuoteMeta(mail.To)}
	if parsed, err := netmail.ParseAddress(mail.To); err == nil {
		written = append(written, regexp.QuoteMeta(parsed.Address))
	}
	text := err.Error()
	if theirs, err := regexp.Compile("(?i)" + strings.Join(written, "|")); err == nil {
		text = theirs.ReplaceAllLiteralString(text, "the recipient")
	}
	text = anyAddress.ReplaceAllLiteralString(text, "an address")
	return strings.ToValidUTF8(text[:min(maxFault, len(text))], "")
}

// followMail is what a try leads to: an end, or another try.
func followMail(mail store.QueuedMail, err error, now time.Time) (store.MailState, time.Time) {
	switch {
	case err == nil:
		return store.MailSent, time.Time{}
	case errors.Is(err, letter.ErrNever):
		return store.MailDead, time.Time{}
	}
	next, again := delivery.Others.Next(mail.Attempts+1, now, rand.Int64N)
	if !again {
		return store.MailDead, time.Time{}
	}
	return store.MailWaiting, next
}

func (p *Postman) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "postman: "+what, "error", err)
	}
}
