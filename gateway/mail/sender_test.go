package mail_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
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

var thanks = mail.Message{
	ID: "id-1", At: time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC), To: "payer@example.net", Subject: "Receipt of Rp1 — café", Text: ".\nThank you.\n",
}

func TestAMailIsHandedOver(t *testing.T) {
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
	if got := forms(t, message); !strings.HasPrefix(got["text/plain"], "..\nThank you.\n") || !strings.Contains(got["text/html"], "Thank you.</p>") {
		t.Errorf("the forms are %q", got)
	}
}

// forms are the texts of a mail in two forms, by their type.
func forms(t *testing.T, message *netmail.Message) map[string]string {
	t.Helper()
	_, of, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	texts, reader := map[string]string{}, multipart.NewReader(message.Body, of["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		text, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		texts[kind] = string(text)
	}
}

// TestTheHTMLSaysWhatTheTextSays, as text, whatever others wrote; and it loads nothing.
func TestTheHTMLSaysWhatTheTextSays(t *testing.T) {
	t.Parallel()
	r := paid
	r.Merchant, r.Description = `<script>alert(1)</script>`, `<img src="https://shop.example/x">: "a"`
	s := serve(t, nil)
	l := thanks
	l.Subject, l.Text = r.Render()
	if err := s.sender(t).Send(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(<-s.heard, "DATA\n")
	message, err := netmail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	page := forms(t, message)["text/html"]
	for _, want := range []string{
		`<html lang="en">`, "&lt;script&gt;alert(1)&lt;/script&gt; has received your payment.", ">Amount</th>", ">Rp25.017</td>", ">21 November 2026, 03:30:00 WIB</td>",
		"&lt;img src=&#34;https://shop.example/x&#34;&gt;: &#34;a&#34;</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, unwanted := range []string{"<script", "<img", "src=\"", "href="} {
		if strings.Contains(page, unwanted) {
			t.Errorf("the page has %s:\n%s", unwanted, page)
		}
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
			if (err == nil) != c.sent || permanent(err) != c.never {
				t.Errorf("got %v", err)
			}
		})
	}
}

// permanent tells whether an error is a fault that stays.
func permanent(err error) bool {
	fault, ok := errors.AsType[*mail.Fault](err)
	return ok && fault.Permanent
}

// TestNothingOfAServersWordsIsInAFault, whatever a server says and when: only the
// codes of its reply and a phrase of ours.
func TestNothingOfAServersWordsIsInAFault(t *testing.T) {
	t.Parallel()
	for at, phrase := range map[string]string{
		"MAIL": "the mail server did not accept the sender",
		"RCPT": "the mail server did not accept the recipient",
		"DATA": "the mail server did not accept the mail",
		".":    "the mail server did not accept the mail",
	} {
		for said, codes := range map[string]string{
			"550 5.1.1 payer@example.net: no such user":                   "(SMTP 550, 5.1.1)",
			"550-5.7.1 <Payer@EXAMPLE.net>\r\n550 5.7.1 payer is unknown": "(SMTP 550, 5.7.1)",
			`550 "payer" unknown`:                                         "(SMTP 550)",
			"450 payer%40example.net, try again":                          "(SMTP 450)",
			"554 postmaster@example.com told payer: 9.9":                  "(SMTP 554)",
		} {
			t.Run(at+" "+said, func(t *testing.T) {
				t.Parallel()
				s := serve(t, map[string]string{"EHLO": "250-test\r\n250 ENHANCEDSTATUSCODES", at: said})
				if err := s.sender(t).Send(t.Context(), thanks); err == nil || err.Error() != phrase+" "+codes {
					t.Errorf("the fault is %v, want %s %s", err, phrase, codes)
				}
			})
		}
	}
}

// TestAFaultWithoutAReply has a phrase alone, and what a server says before it
// knows the recipient is not kept either.
func TestAFaultWithoutAReply(t *testing.T) {
	t.Parallel()
	closed := &server{port: 1}
	if err := closed.sender(t).Send(t.Context(), thanks); err == nil || err.Error() != "the mail server could not be reached" {
		t.Errorf("nobody is there: %v", err)
	}
	for want, answers := range map[string]map[string]string{
		"the mail server did not accept the session or the login (SMTP 554)":                 {"EHLO": "554 go away, payer", "HELO": "554 go away, payer"},
		"the mail server hung up, or does not offer the TLS or the login that is configured": {"EHLO": "", "HELO": ""},
		"the connection to the mail server was cut":                                          {"RCPT": ""},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if err := serve(t, answers).sender(t).Send(t.Context(), thanks); err == nil || err.Error() != want {
				t.Errorf("the fault is %v", err)
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
		if err := s.sender(t).Send(t.Context(), l); !permanent(err) || strings.Contains(err.Error(), "payer") {
			t.Errorf("%q: %v", to, err)
		}
	}
}

// TestAMailEndsWithItsContext: a server that says nothing holds nobody.
func TestAMailEndsWithItsContext(t *testing.T) {
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
	if err := s.sender(t).Send(ctx, thanks); err == nil || err.Error() != "the mail server did not answer in time" || time.Since(begun) > 10*time.Second {
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
