package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// File is a sink that appends lines of JSON to a file. It is opened for each page, so that it
// can be moved away at any time.
type File string

// Send appends the lines, and returns when the disk has them.
func (f File) Send(_ context.Context, lines []store.AuditLine) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, l := range lines {
		if err := encoder.Encode(l); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(string(f), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text.Bytes())
	return errors.Join(err, file.Sync(), file.Close())
}

// Syslog is a sink that sends each line as a message of RFC 5424: over TLS (RFC 5425) or TCP
// (RFC 6587) behind its length, to a socket of this machine as a datagram.
type Syslog struct {
	address Address
	host    string
	conn    net.Conn // nil where there is none
	ended   chan struct{}
}

// Address is where syslog is.
type Address struct{ network, at string }

// SyslogAddress reads tls://host:port, tcp://host:port or unix:///path.
func SyslogAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	switch {
	case err == nil && (u.Scheme == "tls" || u.Scheme == "tcp") && u.Port() != "" && u.Path == "":
		return Address{u.Scheme, u.Host}, nil
	case err == nil && u.Scheme == "unix" && u.Host == "" && u.Path != "":
		return Address{"unixgram", u.Path}, nil
	}
	return Address{}, fmt.Errorf("%q must be like tls://logs.example:6514, tcp://127.0.0.1:601 or unix:///dev/log", text)
}

// NewSyslog makes a sink of an address that SyslogAddress reads.
func NewSyslog(text string) *Syslog {
	address, _ := SyslogAddress(text)
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "-"
	}
	return &Syslog{address: address, host: host}
}

// notice is the priority of facility 13, log audit, and severity 5, notice.
const notice = 13<<3 | 5

func (s *Syslog) message(l store.AuditLine) ([]byte, error) {
	content, err := json.Marshal(l)
	message := fmt.Appendf(nil, "<%d>1 %s %s gerbang %d audit - %s", notice, l.SealedAt.Format(time.RFC3339Nano), s.host, os.Getpid(), content)
	if s.address.network != "unixgram" {
		message = append(fmt.Appendf(nil, "%d ", len(message)), message...)
	}
	return message, err
}

// Send sends the lines. Nobody says that they arrived: after an error the ones before are sent
// again, too.
func (s *Syslog) Send(ctx context.Context, lines []store.AuditLine) (err error) {
	if s.conn == nil {
		if err := s.dial(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			_ = s.conn.Close()
			s.conn = nil
		}
	}()
	select {
	case <-s.ended:
		return errors.New("the server has closed the connection, and nobody knows what it has read")
	default:
	}
	deadline, _ := ctx.Deadline()
	if err := s.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	for _, l := range lines {
		message, err := s.message(l)
		if err == nil {
			_, err = s.conn.Write(message)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Syslog) dial(ctx context.Context) (err error) {
	if s.address.network == "tls" {
		s.conn, err = (&tls.Dialer{}).DialContext(ctx, "tcp", s.address.at)
	} else {
		s.conn, err = (&net.Dialer{}).DialContext(ctx, s.address.network, s.address.at)
	}
	if err != nil {
		s.conn = nil
		return err
	}
	conn, ended := s.conn, make(chan struct{})
	s.ended = ended
	go func() { // a server of syslog says nothing but that it has gone
		defer close(ended)
		_, _ = io.Copy(io.Discard, conn)
	}()
	return nil
}
