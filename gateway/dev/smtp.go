package dev

import (
	"context"
	"errors"
	"io"
	"net"
	"net/textproto"
	"strings"
	"time"
)

// catcher plays the mail server that real mails would be handed to: it takes
// everything over SMTP, on loopback alone, and sends nothing on.
type catcher struct {
	listener net.Listener
	mails    *mails
}

const (
	// smtpPatience is how long a client may say nothing.
	smtpPatience = time.Minute
	maxMail      = 1 << 20
	maxCatching  = 16
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
	defer context.AfterFunc(ctx, func() { _ = c.listener.Close() })()
	free := make(chan struct{}, maxCatching)
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		free <- struct{}{}
		go func() {
			defer func() { <-free }()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			c.talk(conn)
		}()
	}
}

// session is what a client has said so far of the mail that it hands over.
type session struct {
	conn net.Conn
	text *textproto.Conn
	from string
	to   []string
}

// talk answers one client until it leaves.
func (c *catcher) talk(conn net.Conn) {
	s := &session{conn: conn, text: textproto.NewConn(&bounded{conn: conn, left: 2 * maxMail})}
	defer s.text.Close()
	for next := s.say(220, "gerbang dev catches mails and sends none"); next; {
		_ = conn.SetDeadline(time.Now().Add(smtpPatience)) // a connection that is closed says so when it is read
		line, err := s.text.ReadLine()
		if err != nil {
			return
		}
		next = c.obey(s, line)
	}
}

// obey does what one line of a client asks, and tells whether the talk goes on.
func (c *catcher) obey(s *session, line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	switch strings.ToUpper(verb) {
	case "HELO":
		return s.say(250, "gerbang.dev")
	case "EHLO":
		return s.text.PrintfLine("250-gerbang.dev") == nil && s.text.PrintfLine("250-8BITMIME") == nil && s.say(250, "SIZE 1048576")
	case "MAIL":
		s.from, s.to = address(rest), nil
		return s.say(250, "OK")
	case "RCPT":
		if s.from == "" {
			return s.say(503, "MAIL comes first")
		}
		s.to = append(s.to, address(rest))
		return s.say(250, "OK")
	case "DATA":
		return c.take(s)
	case "RSET":
		s.from, s.to = "", nil
		return s.say(250, "OK")
	case "NOOP":
		return s.say(250, "OK")
	case "QUIT":
		s.say(221, "Bye")
		return false
	}
	return s.say(502, "not known here")
}

// take reads a mail and keeps it.
func (c *catcher) take(s *session) bool {
	if len(s.to) == 0 {
		return s.say(503, "RCPT comes first")
	}
	if !s.say(354, "go on, and end with a dot") {
		return false
	}
	content, err := io.ReadAll(io.LimitReader(s.text.DotReader(), maxMail+1))
	if err != nil {
		return false
	}
	if len(content) > maxMail {
		s.say(552, "it takes 1 MiB")
		return false
	}
	c.mails.keep(s.from, s.to, content)
	s.from, s.to = "", nil
	return s.say(250, "caught")
}

func (s *session) say(code int, text string) bool {
	return s.text.PrintfLine("%d %s", code, text) == nil
}

// address is what stands between the angle brackets of MAIL or RCPT.
func address(rest string) string {
	_, rest, _ = strings.Cut(rest, "<")
	found, _, _ := strings.Cut(rest, ">")
	return found
}

// bounded is a connection from which only so much is read.
type bounded struct {
	conn net.Conn
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	n, err := b.conn.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func (b *bounded) Write(p []byte) (int, error) { return b.conn.Write(p) }
func (b *bounded) Close() error                { return b.conn.Close() }
