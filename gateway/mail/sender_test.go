package mail_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
)

// server is a mail server that says to one client what a test wants, and OK to
// all else.
type server struct {
	port  int
	heard chan string // all that the client has said, when it has left
}

// serve answers a line that begins with a verb as told; a missing answer hangs up.
func serve(t *testing.T, answers map[string]string) *server {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{port: listener.Addr().(*net.TCPAddr).Port, heard: make(chan string, 1)} //nolint:forcetypeassert // it listens on TCP
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		s.heard <- talk(conn, answers)
	}()
	return s
}

func talk(conn net.Conn, answers map[string]string) string {
	var heard strings.Builder
	lines := bufio.NewScanner(conn)
	fmt.Fprint(conn, "220 test\r\n")
	body := false
	for lines.Scan() {
		line := lines.Text()
		heard.WriteString(line + "\n")
		verb, _, _ := strings.Cut(line, " ")
		said, told := answers[verb]
		switch {
		case body && line != ".":
			continue
		case told && said == "":
			return heard.String()
		case told:
		case verb == "DATA":
			said = "354 go on"
		case verb == "QUIT":
			fmt.Fprint(conn, "221 bye\r\n")
			return heard.String()
		default:
			said = "250 OK"
		}
		body = verb == "DATA" && strings.HasPrefix(said, "354")
		fmt.Fprint(conn, said+"\r\n")
	}
	return heard.String()
}

func (s *server) sender(t *testing.T) *mail.Sender {
	t.Helper()
	sender, err := mail.New(mail.Config{Host: "127.0.0.1", Port: s.port, From: "Toko <receipts@example.com>", TLS: mail.NoTLS})
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

var thanks = mail.Letter{
	ID: "id-1", At: time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC), To: "payer@example.net", Subject: "Receipt of Rp1 — café", Text: ".\nThank you.\n",
}

func TestALetterIsHandedOver(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if err := s.sender(t).Send(t.Context(), thanks); err != nil {
		t.Fatal(err)
	}
	heard := <-s.heard
	for _, want := range []string{"EHLO example.com\n", "MAIL FROM:<receipts@example.com>", "RCPT TO:<payer@example.net>"} {
		if !strings.Contains(heard, want) {
			t.Errorf("said\n%swant %q in it", heard, want)
		}
	}
	_, data, _ := strings.Cut(heard, "DATA\n")
	message, err := netmail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"From": `"Toko" <receipts@example.com>`, "To": "<payer@example.net>", "Message-ID": "<id-1@example.com>",
		"Date": "Fri, 20 Nov 2026 01:02:03 +0000", "Auto-Submitted": "auto-generated", "Subject": "=?UTF-8?q?Receipt_of_Rp1_=E2=80=94_caf=C3=A9?=",
	} {
		if got := message.Header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if body, err := io.ReadAll(message.Body); err != nil || !strings.HasPrefix(string(body), "..\nThank you.\n") {
		t.Errorf("body %q, %v", body, err)
	}
}

// TestWhatAServerSays: only a recipient that is refused for good is never tried
// again, and what was taken is sent, whatever comes after.
func TestWhatAServerSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers     map[string]string
		sent, never bool
	}{
		"the recipient refused":      {map[string]string{"RCPT": "550 5.1.1 no such mailbox"}, false, true},
		"the recipient put off":      {map[string]string{"RCPT": "450 later"}, false, false},
		"cut at the recipient":       {map[string]string{"RCPT": ""}, false, false},
		"we are refused":             {map[string]string{"MAIL": "550 not from you"}, false, false},
		"the content refused":        {map[string]string{"DATA": "554 no"}, false, false},
		"cut before it has the mail": {map[string]string{".": ""}, false, false},
		"refused when it has it":     {map[string]string{".": "552 too much"}, false, false},
		"cut when it has taken it":   {map[string]string{"RSET": ""}, true, false},
		"cut at the greeting":        {map[string]string{"EHLO": ""}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := serve(t, c.answers).sender(t).Send(t.Context(), thanks)
			if (err == nil) != c.sent || errors.Is(err, mail.ErrNever) != c.never {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhatIsNoAddressIsNeverSent(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"", "payer", "payer@example.net\r\nRCPT TO:<other@example.net>", "a@b, c@d"} {
		l := thanks
		l.To = to
		s := &server{port: 1} // nobody is asked
		if err := s.sender(t).Send(t.Context(), l); !errors.Is(err, mail.ErrNever) || strings.Contains(err.Error(), "payer") {
			t.Errorf("%q: %v", to, err)
		}
	}
}

// TestALetterEndsWithItsContext: a server that says nothing holds nobody.
func TestALetterEndsWithItsContext(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := listener.Accept(); err == nil {
			defer conn.Close()
			cancel() // it is connected, and waits for a greeting
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	s := &server{port: listener.Addr().(*net.TCPAddr).Port} //nolint:forcetypeassert // it listens on TCP
	begun := time.Now()
	if err := s.sender(t).Send(ctx, thanks); err == nil || time.Since(begun) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
}

// TestAPasswordIsNotSentInTheClear: a server without STARTTLS gets no word.
func TestAPasswordIsNotSentInTheClear(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"EHLO": "250-test\r\n250 AUTH PLAIN LOGIN"})
	sender, err := mail.New(mail.Config{Host: "127.0.0.1", Port: s.port, From: "receipts@example.com", User: "u", Password: "hidden"})
	if err != nil {
		t.Fatal(err)
	}
	err = sender.Send(t.Context(), thanks)
	if heard := <-s.heard; err == nil || strings.Contains(heard, "AUTH") || strings.Contains(heard, "MAIL") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v, said %s", err, heard)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := mail.Config{Host: "smtp.example.com", From: "receipts@example.com", User: "u", Password: "p"}
	for want, change := range map[string]func(*mail.Config){
		"":          func(*mail.Config) {},
		"host:":     func(c *mail.Config) { c.Host = "smtp://example.com" },
		"port:":     func(c *mail.Config) { c.Port = 70000 },
		"from:":     func(c *mail.Config) { c.From = "receipts" },
		"tls: must": func(c *mail.Config) { c.TLS = "ssl" },
		"user and":  func(c *mail.Config) { c.Password = "" },
		"tls: a":    func(c *mail.Config) { c.TLS = mail.NoTLS },
	} {
		c := good
		change(&c)
		err := c.Check()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if _, made := mail.New(c); (made == nil) != (want == "") {
			t.Errorf("%q: made %v", want, made)
		}
	}
}
