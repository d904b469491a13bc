package dev

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/emersion/go-smtp"
)

// catcher plays the mail server: it takes everything over SMTP, on loopback only, and
// sends nothing on.
type catcher struct {
	listener net.Listener
	mails    *mails
}

const (
	// smtpPatience is how long a client may say nothing.
	smtpPatience = time.Minute
	maxMail      = 1 << 20
	maxTo        = 100
)

// openCatcher takes an address of its own.
func openCatcher(ctx context.Context, kept *mails) (*catcher, error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &catcher{listener: listener, mails: kept}, nil
}

func (c *catcher) port() int { return c.listener.Addr().(*net.TCPAddr).Port } //nolint:forcetypeassert // it listens on TCP

// serve takes mails until the context ends.
func (c *catcher) serve(ctx context.Context) error {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &handover{mails: c.mails}, nil }))
	server.Domain = "gerbang.dev"
	server.MaxMessageBytes, server.MaxRecipients = maxMail, maxTo
	server.ReadTimeout, server.WriteTimeout = smtpPatience, smtpPatience
	defer context.AfterFunc(ctx, func() {
		_ = c.listener.Close() // the server itself closes it only once Serve has begun
		_ = server.Close()
	})()
	if err := server.Serve(c.listener); err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// handover is one client's mail, as far as it has been received.
type handover struct {
	mails *mails
	from  string
	to    []string
}

// Mail implements smtp.Session; so do all others.
func (h *handover) Mail(from string, _ *smtp.MailOptions) error {
	h.from, h.to = from, nil
	return nil
}

// Rcpt takes everybody.
func (h *handover) Rcpt(to string, _ *smtp.RcptOptions) error {
	h.to = append(h.to, to)
	return nil
}

// Data keeps the mail.
func (h *handover) Data(content io.Reader) error {
	raw, err := io.ReadAll(content)
	if err == nil {
		h.mails.keep(h.from, h.to, raw)
	}
	return err
}

// Reset forgets what was not handed over.
func (h *handover) Reset() { h.from, h.to = "", nil }

// Logout has nothing to free.
func (h *handover) Logout() error { return nil }
