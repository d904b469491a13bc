package page_test

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// invite has two forms of one action, behind a summary.
const invite = `{{define "content"}}<details id="d"><form method="post" action="/ask"><input type="hidden" name="mode" value="live"><input name="email" id="other"></form>
<form method="post" action="/ask"><input type="hidden" name="mode" value="test"><input name="email" id="email" value="old"><input type="password" name="reason" id="hidden"><input name="code" id="code">
<select name="role"><option value="owner" selected>Owner</option><option>viewer</option></select><input type="checkbox" name="scope" value="a" checked><input type="checkbox" name="scope" value="b">
<textarea name="reason">x</textarea></form></details>{{end}}`

// TestAFormComesBackFilled when a fresh code was asked for in between, once, without secrets,
// of which the session keeps none.
func TestAFormComesBackFilled(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	_, secret, codes := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	sessions := &watched{recorded: recorded{SessionStore: s.store.Sessions()}}
	site := s.siteOver(t, "merchants", false, sessions)
	site.Handle("GET /ask", func(v *page.Visit) error { return v.Show("ask.html", "Ask", nil) })
	site.Handle("POST /ask", func(v *page.Visit) error { return v.Go("/", "") }, page.Fresh)
	v := visitorOf(t, site)
	v.ask(http.MethodPost, "/signin", url.Values{"email": {"ada@example.com"}, "password": {password}, "code": {s.code(secret)}})
	v.referer = "/ask"
	typed := url.Values{"mode": {"test"}, "email": {`"new"@example.com`}, "role": {"viewer"}, "scope": {"b"}, "reason": {"<because>"}, "code": {"s3cret-code"}, "password": {"s3cret-password"}}
	send := func() {
		t.Helper()
		if _, at, _ := v.ask(http.MethodPost, "/ask", typed); at != "/confirm" {
			t.Fatalf("the form leads to %s", at)
		}
	}
	send()
	if sessions.has("s3cret") || !sessions.has("because") {
		t.Errorf("the session keeps a secret: %t, and the form: %t", sessions.has("s3cret"), sessions.has("because"))
	}
	_, at, text := v.ask(http.MethodPost, "/confirm", url.Values{"code": {codes[0]}, "next": {"/ask"}})
	if at != "/ask" {
		t.Fatalf("confirmed at %s", at)
	}
	for _, part := range []string{
		`<details id="d" open="">`, `id="other"/>`, `id="email" value="&#34;new&#34;@example.com"/>`, `<input type="password" name="reason" id="hidden"/>`, `id="code"/>`,
		`<option value="owner">`, `<option selected="">viewer`, `value="a"/>`, `value="b" checked=""/>`, `>&lt;because&gt;</textarea>`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the page has no %s:\n%s", part, text)
		}
	}
	if _, _, again := v.ask(http.MethodGet, "/ask", nil); strings.Contains(again, "because") {
		t.Error("the form is filled twice")
	}
	s.wait(11 * time.Minute)
	send()
	s.wait(11 * time.Minute)
	if _, _, late := v.ask(http.MethodGet, "/ask", nil); strings.Contains(late, "because") {
		t.Error("the form is filled after more than ten minutes")
	}
}

// watched are sessions in whose contents a test looks for a text.
type watched struct {
	recorded

	all []byte
}

func (w *watched) CommitCtx(ctx context.Context, token string, content []byte, until time.Time) error {
	w.all = append(w.all, content...)
	return w.recorded.CommitCtx(ctx, token, content, until)
}

func (w *watched) has(text string) bool { return bytes.Contains(w.all, []byte(text)) }
