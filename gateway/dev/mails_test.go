package dev

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
)

// newTestCatcher is a door whose mails come over SMTP.
func newTestCatcher(t *testing.T) (*catcher, string) {
	t.Helper()
	c, err := openCatcher(t.Context(), newMails())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- c.serve(t.Context()) }()
	t.Cleanup(func() {
		_ = c.listener.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	d := &door{url: "http://door", inbox: newInbox(), mails: c.mails}
	server := httptest.NewServer(d.routes())
	t.Cleanup(server.Close)
	return c, server.URL
}

func page(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, err)
	}
	return string(content)
}

// TestMailsAreCaught sends as the gateway does, and reads what is shown.
func TestMailsAreCaught(t *testing.T) {
	t.Parallel()
	c, url := newTestCatcher(t)
	if empty := page(t, url+"/mails"); !strings.Contains(empty, "Nothing has come yet") {
		t.Errorf("an empty page:\n%s", empty)
	}
	sender, err := mail.New(mail.Config{Host: "127.0.0.1", Port: c.port(), From: "Gerbang <receipts@gerbang.test>", TLS: mail.NoTLS})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"Thank you.\n.\nBye.\n", "<script>alert(1)</script> café " + strings.Repeat("long ", 100) + "\n"} {
		m := mail.Message{ID: fmt.Sprintf("id-%d", i), At: time.Unix(0, 0), To: "payer@example.com", Subject: fmt.Sprintf("Receipt %d — café", i), Text: text}
		if err := sender.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var got []caught
	if err := json.Unmarshal([]byte(page(t, url+"/mails.json")), &got); err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	newest, first := got[0], got[1]
	if first.Number != 1 || first.From != "receipts@gerbang.test" || strings.Join(first.To, " ") != "payer@example.com" ||
		first.Subject != "Receipt 0 — café" || first.MessageID != "id-0@gerbang.test" || first.Text != "Thank you.\n.\nBye.\n" {
		t.Errorf("the first: %+v", first)
	}
	if newest.Number != 2 || !strings.HasPrefix(newest.Text, "<script>alert(1)</script> café long long") || !strings.Contains(newest.Raw, "quoted-printable") {
		t.Errorf("the newest: %+v", newest)
	}
	shown := page(t, url+"/mails")
	if strings.Contains(shown, "<script>alert") || !strings.Contains(shown, "&lt;script&gt;alert(1)") || strings.Index(shown, "Receipt 1") > strings.Index(shown, "Receipt 0") {
		t.Errorf("the page:\n%s", shown)
	}
	for range mailsKeeps {
		c.mails.keep("a@b", []string{"c@d"}, []byte("no mail"))
	}
	if list := c.mails.list(); len(list) != mailsKeeps || list[0].Text != "no mail" || list[0].Number != mailsKeeps+2 {
		t.Errorf("%d are kept, the newest is %+v", len(list), list[0])
	}
}

// TestTheCatcherEndsWithItsContext, also when that has ended before the mail server
// takes its listener.
func TestTheCatcherEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c, err := openCatcher(t.Context(), newMails())
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.serve(ended); err != nil {
		t.Errorf("serve = %v", err)
	}
}

// TestTheCatcherKeepsToTheOrder of SMTP, and survives what is none.
func TestTheCatcherKeepsToTheOrder(t *testing.T) {
	t.Parallel()
	c, _ := newTestCatcher(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", c.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewScanner(conn)
	for _, step := range [][2]string{
		{"", "220"}, {"HELO x", "250"}, {"RCPT TO:<a@b>", "502"}, {"DATA", "502"}, {"VRFY a", "252"}, {"", "500"},
		{"mail from:<a@b>", "250"}, {"DATA", "502"}, {"RCPT TO:<c@d>", "250"}, {"RSET", "250"}, {"DATA", "502"}, {"NOOP", "250"}, {"QUIT", "221"},
	} {
		if step[1] != "220" {
			fmt.Fprint(conn, step[0]+"\r\n")
		}
		if !answers.Scan() || !strings.HasPrefix(answers.Text(), step[1]) {
			t.Errorf("%q: %q, %v, want %s", step[0], answers.Text(), answers.Err(), step[1])
		}
	}
	if list := c.mails.list(); answers.Scan() || len(list) > 0 {
		t.Errorf("after QUIT %q, caught %+v", answers.Text(), list)
	}
}
