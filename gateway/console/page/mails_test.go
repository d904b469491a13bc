package page_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// post lets people be mailed, and reads the mails as the outbox does: each is sent once it
// was read.
type post struct {
	*testing.T

	s *setting
}

func (s *setting) post(t *testing.T) *post {
	t.Helper()
	s.signin = s.replica(t, links, func() {})
	return &post{t, s}
}

// read returns what was mailed since, after everything that waits was done.
func (p *post) read() []mail.Message {
	p.Helper()
	p.s.work(p.T)
	return p.send(p.s.store)
}

// work has the replica do what waits.
func (s *setting) work(t *testing.T) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.signin.Run(ended); err != nil {
		t.Fatal(err)
	}
}

// send has an outbox send what is due, each mail once.
func (p *post) send(of mail.Queue) []mail.Message {
	p.Helper()
	buckets := make([]int, movement.Buckets)
	for i := range buckets {
		buckets[i] = i
	}
	due, err := p.s.store.DueMails(p.Context(), buckets, time.Time{}, p.s.now(), 100)
	if err != nil {
		p.Fatal(err)
	}
	for _, m := range due {
		if m.To != "" || m.Subject != "" || strings.Contains(m.Text, "http") {
			p.Errorf("who reads the database reads the mail %+v", m)
		}
	}
	if len(due) == 0 {
		return nil
	}
	sent := make(chan mail.Message, len(due))
	running, stop := context.WithCancel(p.Context())
	outbox := mail.NewOutbox(of, func(_ context.Context, m mail.Message) error {
		sent <- m
		return nil
	}, p.s.vault, queue.NewLeases(p.s.store, "mails", "one", movement.Buckets, p.s.now), slog.New(slog.DiscardHandler))
	done := make(chan error, 1)
	go func() { done <- outbox.Run(running) }()
	var all []mail.Message
	for range due {
		all = append(all, <-sent)
	}
	stop()
	if err := <-done; err != nil {
		p.Fatal(err)
	}
	return all
}

// one is the only mail since, which goes to an address.
func (p *post) one(to, subject string) mail.Message {
	p.Helper()
	all := p.read()
	if len(all) != 1 || all[0].To != to || all[0].Subject != subject {
		p.Fatalf("mailed %+v, want one to %s: %s", all, to, subject)
	}
	return all[0]
}

// linkIn is the path of the only link of a mail.
func linkIn(t *testing.T, m mail.Message) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^https://console\.example(/\S+)$`).FindAllStringSubmatch(m.Text, -1)
	if len(found) != 1 {
		t.Fatalf("the mail has no link of its own: %s", m.Text)
	}
	return found[0][1]
}

// visitor is a browser.
type visitor struct {
	*testing.T

	url, referer string
	client       *http.Client
}

func (s *setting) visitor(t *testing.T) *visitor {
	t.Helper()
	return visitorOf(t, s.site(t, false))
}

func visitorOf(t *testing.T, site http.Handler) *visitor {
	t.Helper()
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, server.URL, "", &http.Client{Jar: jar}}
}

// ask follows where it is led, and returns the last page's status, path and text.
func (v *visitor) ask(method, path string, form url.Values) (status int, at, text string) {
	v.Helper()
	request, err := http.NewRequestWithContext(v.Context(), method, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept-Language", "en")
	request.Header.Set("User-Agent", "Firefox")
	request.Header.Set("Referer", v.url+v.referer)
	answer, err := v.client.Do(request)
	if err != nil {
		v.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		v.Fatal(err)
	}
	return answer.StatusCode, answer.Request.URL.Path, string(content)
}

var shownCode = regexp.MustCompile(`[a-z2-7]{4}(?:-[a-z2-7]{4}){3}`)

// TestSomebodyComesInByMail: from an invitation to an owner who is signed in, whose recovery
// codes are shown until they are kept; then the invitation is gone.
func TestSomebodyComesInByMail(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	p, v := s.post(t), s.visitor(t)
	invite := func(email string) string {
		t.Helper()
		link, i, err := s.signin.Invite(t.Context(), "boss@example.com", s.merchant, tenants.RoleOwner, email, mail.English)
		if err != nil || link != "" || i.Mail != "waiting" {
			t.Fatalf("invited %q, %+v, %v", link, i, err)
		}
		return linkIn(t, p.one("ada@example.com", "Invitation to A shop"))
	}
	replaced := invite("ada@example.com")
	if status, _, _ := v.ask(http.MethodGet, replaced, nil); status != http.StatusOK {
		t.Errorf("the link is answered %d", status)
	}
	link := invite(" Ada@example.com")
	if status, _, _ := v.ask(http.MethodGet, replaced, nil); status != http.StatusGone {
		t.Errorf("a link that another replaces: %d", status)
	}
	open, err := s.signin.Invitations(t.Context(), s.merchant)
	if err != nil || len(open) != 1 || open[0].Email != "ada@example.com" || open[0].By != "boss@example.com" || open[0].Mail != "sent" || !open[0].ExpiresAt.Equal(s.now().Add(7*24*time.Hour)) {
		t.Errorf("open invitations: %+v, %v", open, err)
	}
	_, _, text := v.ask(http.MethodGet, link, nil)
	_, rest, _ := strings.Cut(text, "data-factor>")
	secret, _, _ := strings.Cut(rest, "<")
	_, at, text := v.ask(http.MethodPost, link, url.Values{"name": {"Ada"}, "password": {password}, "code": {s.code(secret)}})
	codes := shownCode.FindAllString(text, -1)
	if at != "/profile/codes" || len(codes) != 10 {
		t.Fatalf("joined at %s: %s", at, text)
	}
	if status, _, _ := v.ask(http.MethodGet, link, nil); status != http.StatusGone {
		t.Errorf("the link is good twice: %d", status)
	}
	if open, err := s.signin.Invitations(t.Context(), s.merchant); err != nil || len(open) > 0 {
		t.Errorf("a used invitation is open: %+v, %v", open, err)
	}
	if mails := p.read(); len(mails) > 0 {
		t.Errorf("who has just joined is mailed %+v", mails)
	}

	for _, path := range []string{"/profile/codes", "/profile/codes.txt"} {
		if _, _, again := v.ask(http.MethodGet, path, nil); strings.Join(shownCode.FindAllString(again, -1), " ") != strings.Join(codes, " ") {
			t.Errorf("%s shows other codes after a reload: %s", path, again)
		}
	}
	ada, err := s.store.PersonByEmail(t.Context(), "ada@example.com")
	if err != nil || bytes.Contains(ada.FreshCodes, []byte(codes[0])) || ada.Language != mail.English {
		t.Errorf("the person is %+v, %v", ada, err)
	}
	s.wait(11 * time.Minute)
	if _, at, _ := v.ask(http.MethodGet, "/profile/codes", nil); at != "/confirm" {
		t.Errorf("whoever finds a session open reads the codes at %s", at)
	}
	v.ask(http.MethodPost, "/confirm", url.Values{"code": {codes[9]}})
	if _, at, _ := v.ask(http.MethodPost, "/profile/codes/kept", nil); at != "/" {
		t.Errorf("kept at %s", at)
	}
	if _, at, _ := v.ask(http.MethodGet, "/profile/codes", nil); at != "/profile" {
		t.Errorf("codes that are kept are shown at %s", at)
	}
	if ada, err = s.store.PersonByEmail(t.Context(), "ada@example.com"); err != nil || len(ada.FreshCodes) > 0 {
		t.Errorf("after they are kept: %q, %v", ada.FreshCodes, err)
	}
}

// TestInvitationsAreBounded by inviter and day, whether or not they are revoked.
func TestInvitationsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	var err error
	for i := range 51 {
		s.wait(time.Second)
		email := fmt.Sprintf("somebody%d@example.com", i)
		if _, err = s.invite(t, "boss@example.com", s.merchant, tenants.RoleViewer, email); i < 50 && err != nil {
			t.Fatalf("invitation %d: %v", i+1, err)
		}
		if i == 0 {
			if err := s.signin.Uninvite(t.Context(), "boss@example.com", s.merchant, email); err != nil {
				t.Fatal(err)
			}
		}
	}
	if f := fault.From(err); f.Code != fault.RateLimited {
		t.Errorf("the 51st of a day: %v", err)
	}
	if _, err := s.invite(t, "other@example.com", s.merchant, tenants.RoleViewer, "late@example.com"); err != nil {
		t.Errorf("another inviter: %v", err)
	}
	s.wait(24 * time.Hour)
	if _, err := s.invite(t, "boss@example.com", s.merchant, tenants.RoleViewer, "late@example.com"); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

// TestNoLinkLeadsNowhere: without a console's URL nobody is invited to it, and merchants'
// people are mailed nothing; the refusal names the key.
func TestNoLinkLeadsNowhere(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	p := s.post(t)
	s.signin = s.replica(t, signin.Links{}, func() {})
	_, _, merchants := s.signin.Invite(t.Context(), "test", s.merchant, tenants.RoleViewer, "eve@example.com", mail.English)
	_, _, operators := s.signin.Invite(t.Context(), "test", tenants.Platform, "read", "eve@example.com", mail.English)
	_, _, recovered := s.signin.Recover(t.Context(), "ada@example.com")
	for key, err := range map[string]error{"merchants_console_url": errors.Join(merchants, recovered), "operators_console_url": operators} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: %v", key, err)
		}
	}
	dead := movement.Callback{CallbackKey: movement.CallbackKey{Owner: movement.Owner{MerchantID: string(s.merchant), Mode: "live"}}, MovementID: movement.NewID(), URL: "https://shop.example"}
	if err := s.signin.CallbackDead(t.Context(), dead, "HTTP 500"); err != nil {
		t.Error(err)
	}
	if mails := p.read(); len(mails) > 0 {
		t.Errorf("mailed %+v", mails)
	}
}

// TestNoMailWithADeadLink: a mail that waits is not sent once its invitation was replaced,
// revoked or used, its inviter was removed, or the password was set otherwise.
func TestNoMailWithADeadLink(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, _, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	bob, _, _ := s.newcomer(t, "bob@example.com", tenants.RoleOwner)
	cleo, _, _ := s.newcomerAt(t, s.shop(t), "cleo@example.com", tenants.RoleOwner)
	p := s.post(t)
	invite := func(by, email string) {
		t.Helper()
		if _, _, err := s.signin.Invite(t.Context(), by, s.merchant, tenants.RoleViewer, email, mail.English); err != nil {
			t.Fatal(err)
		}
	}
	invite(ada.Email, "replaced@example.com")
	invite(ada.Email, "replaced@example.com")
	p.one("replaced@example.com", "Invitation to A shop")

	invite(ada.Email, "revoked@example.com")
	invite(bob.Email, "friend@example.com")
	if err := s.signin.Uninvite(t.Context(), ada.Email, s.merchant, "revoked@example.com"); err != nil {
		t.Fatal(err)
	}
	if err := s.signin.Remove(t.Context(), ada.Email, tenants.Member{PersonID: bob.ID, MerchantID: s.merchant, Email: bob.Email}); err != nil {
		t.Fatal(err)
	}
	invite(ada.Email, cleo.Email)
	for _, m := range p.send(recordless{s.store}) {
		if _, err := s.signin.Join(t.Context(), strings.TrimPrefix(linkIn(t, m), "/invitations/"), cleo); err != nil {
			t.Error(err)
		}
	}
	if mails := p.read(); len(mails) > 0 {
		t.Errorf("mailed %+v", mails)
	}

	if err := s.signin.Forgot(t.Context(), from, "https://console.example", ada.Email); err != nil {
		t.Fatal(err)
	}
	s.work(t)
	if err := s.signin.ChangePassword(t.Context(), ada, "another sentence of words"); err != nil {
		t.Fatal(err)
	}
	p.one(ada.Email, "Kata sandi Anda telah diubah")
}

// recordless is the queue of an outbox that is killed after it has sent a mail and before it
// has recorded that.
type recordless struct{ *store.Store }

func (recordless) RecordMail(context.Context, movement.MailAttempt) (bool, error) {
	return false, errors.New("killed")
}

// TestPeoplesMailsOutliveAKill: whether a replica is killed before it sends or before it
// records it, each mail is sent, to nobody else, and its link is good or it is not sent.
func TestPeoplesMailsOutliveAKill(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, _, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	p, v := s.post(t), s.visitor(t)
	for _, email := range []string{"bob@example.com", "cleo@example.com"} {
		if _, _, err := s.signin.Invite(t.Context(), ada.Email, s.merchant, tenants.RoleViewer, email, mail.English); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.signin.Forgot(t.Context(), from, "https://console.example", ada.Email); err != nil {
		t.Fatal(err)
	}
	s.work(t)
	check := func(mails []mail.Message, want ...string) (ids []string) {
		t.Helper()
		var to []string
		for _, m := range mails {
			to, ids = append(to, m.To), append(ids, m.ID)
			if status, _, text := v.ask(http.MethodGet, linkIn(t, m), nil); status != http.StatusOK || m.To != ada.Email && !strings.Contains(text, m.To) {
				t.Errorf("the link in the mail to %s: %d %s", m.To, status, text)
			}
		}
		slices.Sort(to)
		slices.Sort(ids)
		if !slices.Equal(to, want) {
			t.Errorf("mailed %q, want %q", to, want)
		}
		return ids
	}
	// The rows are written and nothing is sent: the replica that follows sends all, and is
	// killed before it records any.
	unrecorded := check(p.send(recordless{s.store}), "ada@example.com", "bob@example.com", "cleo@example.com")
	if err := s.signin.Uninvite(t.Context(), ada.Email, s.merchant, "cleo@example.com"); err != nil {
		t.Fatal(err)
	}
	again := check(p.read(), "ada@example.com", "bob@example.com")
	for _, id := range again {
		if !slices.Contains(unrecorded, id) {
			t.Errorf("mail %s is sent again under another id", id)
		}
	}
	check(p.read())
}

// TestNoMerchantReadsAnOperatorsAddress in an invitation, nor in its mail.
func TestNoMerchantReadsAnOperatorsAddress(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	p, v := s.post(t), s.visitor(t)
	for by, want := range map[string]string{"ayu@operators.example": "An operator of the platform", "ada@example.com": "ada@example.com"} {
		if _, _, err := s.signin.Invite(t.Context(), by, s.merchant, tenants.RoleViewer, "eve@example.com", mail.English); err != nil {
			t.Fatal(err)
		}
		m := p.one("eve@example.com", "Invitation to A shop")
		_, _, page := v.ask(http.MethodGet, linkIn(t, m), nil)
		for _, text := range []string{m.Text, page} {
			if strings.Contains(text, "ayu@") || !strings.Contains(text, want+" invites ") {
				t.Errorf("%s invites: %s", by, text)
			}
		}
	}
}

// TestARevokedInvitationIsRefused.
func TestARevokedInvitationIsRefused(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	p, v := s.post(t), s.visitor(t)
	if _, _, err := s.signin.Invite(t.Context(), "test", s.merchant, tenants.RoleViewer, "eve@example.com", mail.Indonesian); err != nil {
		t.Fatal(err)
	}
	m := p.one("eve@example.com", "Undangan ke A shop")
	if !strings.Contains(m.Text, " sebagai pengamat.") {
		t.Errorf("the role is not translated:\n%s", m.Text)
	}
	link := linkIn(t, m)
	s.wait(time.Second)
	if err := s.signin.Uninvite(t.Context(), "test", s.merchant, "eve@example.com"); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := v.ask(http.MethodGet, link, nil); status != http.StatusGone {
		t.Errorf("a revoked link is answered %d", status)
	}
	if err := s.signin.Uninvite(t.Context(), "test", s.merchant, "eve@example.com"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	audit, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: s.merchant, Most: 10})
	// The setting's clock stands at a whole second, which may be before its merchant was made.
	if err != nil || audit[0].Action != "member.uninvite" || !slices.ContainsFunc(audit, func(a store.Audit) bool { return a.Action == "member.invite" }) {
		t.Errorf("audited as %+v, %v", audit, err)
	}
}

// TestAForgottenPassword: the page says the same of everybody, the link is good once and with
// a second factor alone, and each session ends.
func TestAForgottenPassword(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, secret, codes := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	p, v := s.post(t), s.visitor(t)
	forget := func(email string) string {
		t.Helper()
		status, _, text := v.ask(http.MethodPost, "/forgot", url.Values{"email": {email}})
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", email, status, text)
		}
		return text
	}
	if known, unknown, none := forget("ada@example.com"), forget("bob@example.com"), forget("nothing"); known != unknown || known != none {
		t.Error("the page tells whose address is known")
	}
	const subject = "Kata sandi baru untuk Gerbang"
	link := linkIn(t, p.one("ada@example.com", subject))
	forget("ada@example.com")
	if mails := p.read(); len(mails) > 0 {
		t.Errorf("mailed again within five minutes: %+v", mails)
	}
	s.wait(5 * time.Minute)
	forget("ada@example.com")
	second := linkIn(t, p.one("ada@example.com", subject))

	const next = "another sentence of words"
	reset := func(path, password, code string) (int, string) {
		t.Helper()
		status, at, _ := v.ask(http.MethodPost, path, url.Values{"password": {password}, "code": {code}})
		return status, at
	}
	for name, of := range map[string]struct {
		link, password, code string
		want                 int
	}{
		"no code":          {link, next, "", http.StatusUnauthorized},
		"a wrong code":     {link, next, "000000", http.StatusUnauthorized},
		"a short password": {link, "short", codes[0], http.StatusBadRequest},
		"a guessed link":   {"/reset/" + strings.Repeat("A", 52), next, codes[0], http.StatusGone},
	} {
		if got, _ := reset(of.link, of.password, of.code); got != of.want {
			t.Errorf("%s: %d", name, got)
		}
	}
	if status, at := reset(link, next, codes[0]); status != http.StatusOK || at != "/signin" {
		t.Errorf("with a recovery code: %d at %s", status, at)
	}
	if m := p.one("ada@example.com", "Kata sandi Anda telah diubah"); !strings.Contains(m.Text, "Dari:  127.0.0.1\n") {
		t.Errorf("the mail does not say from where:\n%s", m.Text)
	}
	for name, of := range map[string]string{"the link": link, "the person's other link": second} {
		if status, _ := reset(of, next, codes[1]); status != http.StatusGone {
			t.Errorf("%s is good after the password was changed: %d", name, status)
		}
	}
	if _, err := s.signin.Who(t.Context(), ada.ID, ada.Epoch); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("a session goes on: %v", err)
	}
	s.wait(time.Minute)
	if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, ada.Email, next, s.code(secret)); err != nil {
		t.Errorf("the new password is refused: %v", err)
	}
	p.read()

	s.wait(10 * time.Minute)
	forget("ada@example.com")
	late := linkIn(t, p.one("ada@example.com", subject))
	s.wait(30 * time.Minute)
	if status, _, _ := v.ask(http.MethodGet, late, nil); status != http.StatusGone {
		t.Errorf("a link of 30 minutes ago: %d", status)
	}
	link, _, err := s.signin.Recover(t.Context(), "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if status, at := reset(strings.TrimPrefix(link, "https://console.example"), password, s.code(secret)); status != http.StatusOK || at != "/signin" {
		t.Errorf("by the command line, with the authenticator: %d at %s", status, at)
	}
}

// TestForgottenPasswordsAreBounded by where they come from, apart from sign-ins: who asks too
// often keeps nobody there from signing in. The audit does not say that the person has asked.
func TestForgottenPasswordsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	_, secret, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	s.post(t)
	for i := range 21 {
		err := s.signin.Forgot(t.Context(), from, "https://console.example", "ada@example.com")
		if want := i == 20; errors.Is(err, signin.ErrTooMany) != want {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, "ada@example.com", password, s.code(secret)); err != nil {
		t.Errorf("a sign-in from the same address: %v", err)
	}
	s.work(t)
	audit, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: s.merchant, Action: "signin.reset", Most: 10})
	if err != nil || len(audit) != 1 || audit[0].Operator != "gateway" || audit[0].Detail != "somebody asked for a link for ada@example.com" {
		t.Errorf("audited as %+v, %v", audit, err)
	}
}

// TestANewBrowserIsToldByMail, and one that its person has used in 30 days is not.
func TestANewBrowserIsToldByMail(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	_, secret, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	_, other, _ := s.newcomer(t, "bob@example.com", tenants.RoleViewer)
	p, v := s.post(t), s.visitor(t)
	enter := func(v *visitor, email, secret string) {
		t.Helper()
		s.wait(time.Minute)
		if status, at, text := v.ask(http.MethodPost, "/signin", url.Values{"email": {email}, "password": {password}, "code": {s.code(secret)}}); at == "/signin" {
			t.Fatalf("%d %s", status, text)
		}
	}
	const subject = "Masuk dari peramban baru"
	enter(v, "ada@example.com", secret)
	if m := p.one("ada@example.com", subject); !strings.Contains(m.Text, "Peramban: Firefox\n") {
		t.Errorf("the mail does not name the browser:\n%s", m.Text)
	}
	enter(v, "bob@example.com", other)
	p.one("bob@example.com", subject)
	s.wait(29 * 24 * time.Hour)
	enter(v, "ada@example.com", secret)
	if mails := p.read(); len(mails) > 0 {
		t.Errorf("a known browser is told: %+v", mails)
	}
	enter(s.visitor(t), "ada@example.com", secret)
	p.one("ada@example.com", subject)
	s.wait(31 * 24 * time.Hour)
	enter(v, "ada@example.com", secret)
	p.one("ada@example.com", subject)
}

// TestDeadCallbacksAndRefusedKeysAreTold to developers and owners, once a day for all receivers
// and for each key, by however many replicas.
func TestDeadCallbacksAndRefusedKeysAreTold(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.clock.Store(time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC).Unix())
	for name, role := range map[string]tenants.Role{"ada": tenants.RoleOwner, "dev": tenants.RoleDeveloper, "fin": tenants.RoleFinance, "view": tenants.RoleViewer} {
		s.newcomer(t, name+"@example.com", role)
	}
	p := s.post(t)
	owner := movement.Owner{MerchantID: string(s.merchant), Mode: "test"}
	of := func(to string, id movement.ID) movement.Callback {
		return movement.Callback{CallbackKey: movement.CallbackKey{Owner: owner}, MovementID: id, URL: to, Event: "payments.status_update"}
	}
	told := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range p.read() {
			got = append(got, m.To+" "+m.Subject)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	dead := func(in *signin.SignIn, c movement.Callback) {
		t.Helper()
		if err := in.CallbackDead(t.Context(), c, "HTTP 500"); err != nil {
			t.Fatal(err)
		}
	}
	another := s.replica(t, links, func() {})
	one := of("https://shop.example/cb?secret=1", movement.NewID())
	dead(s.signin, one)
	dead(s.signin, of("https://shop.example/other", movement.NewID()))
	dead(another, one)
	dead(s.signin, of("https://shop.example/cb", movement.ID{})) // a test of the receiver
	told("ada@example.com [Test] Callback ke shop.example tidak terkirim", "dev@example.com [Test] Callback ke shop.example tidak terkirim")
	dead(s.signin, of("https://second.example/cb", movement.NewID()))
	told()
	s.wait(24 * time.Hour)
	dead(another, one)
	told("ada@example.com [Test] Callback ke shop.example tidak terkirim", "dev@example.com [Test] Callback ke shop.example tidak terkirim")

	id := tenants.Identity{Key: tenants.Key{MerchantID: s.merchant, Mode: tenants.Live, ID: "k1"}}
	for range 3 {
		s.signin.KeyRefused(id, from, tenants.ErrAddress)
	}
	told("ada@example.com Kunci API ditolak", "dev@example.com Kunci API ditolak")
	s.wait(24 * time.Hour)
	s.signin.KeyRefused(id, from, tenants.ErrAuthFailed)
	again := p.read()
	if len(again) != 2 {
		t.Errorf("mailed %+v, want the owner and the developer", again)
	}
	for _, m := range again {
		if !strings.Contains(m.Text, "sudah dicabut atau berakhir") || !strings.Contains(m.Text, "Dari:  203.0.113.7\n") || !strings.HasSuffix(linkIn(t, m), "/live/keys") {
			t.Errorf("told:\n%s", m.Text)
		}
	}
}

// TestChangesAreToldByMail.
func TestChangesAreToldByMail(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, _, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	p := s.post(t)
	if err := s.signin.ChangePassword(t.Context(), ada, "another sentence of words"); err != nil {
		t.Fatal(err)
	}
	p.one("ada@example.com", "Kata sandi Anda telah diubah")
	ada.Epoch++
	factor, err := s.signin.NewFactor("Gerbang", ada.Email)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.signin.ChangeFactor(t.Context(), ada, factor.Sealed, s.code(factor.Secret)); err != nil {
		t.Fatal(err)
	}
	p.one("ada@example.com", "Autentikator Anda telah diganti")
	if err := s.signin.ChangePassword(t.Context(), ada, "another sentence of words"); err == nil {
		t.Fatal("a password is changed by a session that has ended")
	}
	if mails := p.read(); len(mails) > 0 {
		t.Errorf("what was not done is mailed: %+v", mails)
	}
}
