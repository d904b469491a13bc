package worker

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	netmail "net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	delivery "github.com/seed-f006e74d/gerbang/gateway/callback"
	letter "github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Mailbag reads the mails that are due and keeps what became of each try. A try
// that is not recorded is made again, under the same id.
type Mailbag interface {
	DueMails(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.QueuedMail, error)
	RecordMail(ctx context.Context, a movement.MailAttempt) (bool, error)
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
		more, written := p.scan(ctx, full)
		if full {
			behind = more || !written
		}
		if more {
			continue
		}
		if !written {
			// A look now would find the same mails due, and send them once more.
			select {
			case <-ctx.Done():
			case <-time.After(unwrittenWait):
			}
			ticker.Reset(every) // what it ticked in the meantime is no reason to look
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-ticker.C:
		}
	}
	return nil
}

// scan sends what is due now, and tells whether more may be, and whether every try
// was written.
func (p *Postman) scan(ctx context.Context, full bool) (more, written bool) {
	buckets, err := p.share.Hold(ctx)
	if err != nil || len(buckets) == 0 {
		p.complain(ctx, "lease buckets", err)
		return false, true
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
		return false, true
	}
	more = len(due) == mailPage
	var group errgroup.Group
	group.SetLimit(mailsOnce)
	for _, mail := range due {
		// A page may take longer than a lease, when the server is slow.
		if buckets, err = p.share.Hold(ctx); err != nil || !slices.Contains(buckets, movement.ID(mail.ID).Bucket()) {
			p.complain(ctx, "renew leases", err)
			more = false
			break
		}
		group.Go(func() error { return p.send(ctx, mail) })
	}
	written = group.Wait() == nil // the functions complain themselves
	return more && written, written
}

// send makes one try and writes it down; its error is that it could not. What is
// not written is tried again.
func (p *Postman) send(ctx context.Context, mail movement.QueuedMail) error {
	err := p.sender.Send(ctx, letter.Letter{ID: mail.ID.String(), At: mail.CreatedAt, To: mail.To, Subject: mail.Subject, Text: mail.Text})
	if err != nil && ctx.Err() != nil {
		return nil // we stop; nobody knows what became of it
	}
	attempt := movement.MailAttempt{Mail: mail, At: time.Now()}
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
	return err
}

// anyAddress is what looks like a mail address in a server's words.
var anyAddress = regexp.MustCompile(`(?i)[^\s<>()\[\]:;,]*(@|%40)[^\s<>()\[\]:;,]*`)

// faultOf is what went wrong, without the address, which is the payer's, however
// the server writes it.
func faultOf(mail movement.QueuedMail, err error) string {
	const theirs = "the recipient"
	address := mail.To
	if parsed, err := netmail.ParseAddress(mail.To); err == nil {
		address = parsed.Address
	}
	text := err.Error()
	for _, written := range []string{mail.To, address, url.QueryEscape(address)} {
		if form, err := regexp.Compile("(?i)" + regexp.QuoteMeta(written)); err == nil && written != "" {
			text = form.ReplaceAllLiteralString(text, theirs)
		}
	}
	text = anyAddress.ReplaceAllLiteralString(text, "an address")
	if local := address[:max(0, strings.LastIndex(address, "@"))]; local != "" {
		text = replaceWord(text, local, theirs)
	}
	text = strings.Map(func(r rune) rune { // a NUL is no text to the database
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(maxFault, len(text))], "")
}

// replaceWord replaces a word, however its letters are cased, where it is no part
// of a longer one. A full stop after it ends a sentence.
func replaceWord(text, word, by string) string {
	const rest = `[\pL\pN._-]*`
	longer, err := regexp.Compile("(?i)" + rest + regexp.QuoteMeta(word) + rest)
	if err != nil {
		return text // the word is no text, so that nothing is it
	}
	return longer.ReplaceAllStringFunc(text, func(found string) string {
		if strings.EqualFold(strings.TrimRight(found, "."), word) {
			return by
		}
		return found
	})
}

// followMail is what a try leads to: an end, or another try.
func followMail(mail movement.QueuedMail, err error, now time.Time) (movement.MailState, time.Time) {
	switch {
	case err == nil:
		return movement.MailSent, time.Time{}
	case errors.Is(err, letter.ErrNever):
		return movement.MailDead, time.Time{}
	}
	next, again := delivery.Others.Next(mail.Attempts+1, now, rand.Int64N)
	if !again {
		return movement.MailDead, time.Time{}
	}
	return movement.MailWaiting, next
}

func (p *Postman) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "postman: "+what, "error", err)
	}
}
