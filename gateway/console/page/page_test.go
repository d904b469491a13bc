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
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/pquerna/otp/totp"

	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const password = "a sentence of five words"

var from = netip.MustParseAddr("203.0.113.7")

// setting is a store with a merchant, and a clock that a test turns.
type setting struct {
	store    *store.Store
	signin   *signin.SignIn
	vault    *tenants.Vault
	merchant tenants.MerchantID
	clock    atomic.Int64
}

func (s *setting) now() time.Time       { return time.Unix(s.clock.Load(), 0) }
func (s *setting) wait(d time.Duration) { s.clock.Add(int64(d / time.Second)) }
func (s *setting) code(secret string) string {
	code, _ := totp.GenerateCode(secret, s.now())
	return code
}

func newSetting(t *testing.T) *setting {
	t.Helper()
	url := migrated.Database(t)
	kept := migrated.Open(t, url, store.Options{MaxConns: 4})
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	if err := tenants.CreateKeysetFile(keyset); err != nil {
		t.Fatal(err)
	}
	vault, err := tenants.OpenKeysetFile(keyset)
	if err != nil {
		t.Fatal(err)
	}
	s := &setting{store: kept, vault: vault}
	s.clock.Store(time.Now().Unix())
	s.signin = s.replica(t, links, nil)
	s.merchant = s.shop(t)
	return s
}

var links = signin.Links{Merchants: "https://console.example", Operators: "https://operators.example"}

// replica is what people sign in with on one replica.
func (s *setting) replica(t *testing.T, to signin.Links, mailed func()) *signin.SignIn {
	t.Helper()
	return signin.New(signin.Dependencies{
		Store: s.store, Vault: s.vault, Failures: limit.NewFailures(), Asks: limit.NewFailures(), Links: to, Mailed: mailed, Now: s.now, Log: slog.New(slog.DiscardHandler),
		HashMemory: 64,
	})
}

// invite returns the secret of an invitation that is not mailed.
func (s *setting) invite(t *testing.T, by string, to tenants.MerchantID, role tenants.Role, email string) (string, error) {
	t.Helper()
	url, _, err := s.signin.Invite(t.Context(), by, to, role, email, "")
	_, secret, _ := strings.Cut(url, "/invitations/")
	return secret, err
}

// shop is a merchant's id.
func (s *setting) shop(t *testing.T) tenants.MerchantID {
	t.Helper()
	m := tenants.Merchant{ID: tenants.NewMerchantID(), Name: "A shop", Tier: "starter", Status: tenants.Active, CreatedAt: s.now()}
	if err := s.store.CreateMerchant(t.Context(), store.Audit{Operator: "test", Action: "merchant.create", At: s.now()}, m, nil, nil); err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// newcomer is somebody who has come in by an invitation, with the factor's secret and the
// recovery codes.
func (s *setting) newcomer(t *testing.T, email string, role tenants.Role) (tenants.Person, string, []string) {
	t.Helper()
	return s.newcomerAt(t, s.merchant, email, role)
}

func (s *setting) newcomerAt(t *testing.T, at tenants.MerchantID, email string, role tenants.Role) (tenants.Person, string, []string) {
	t.Helper()
	link, err := s.invite(t, "test", at, role, email)
	if err != nil {
		t.Fatal(err)
	}
	factor, err := s.signin.NewFactor("Gerbang", email)
	if err != nil {
		t.Fatal(err)
	}
	n := signin.Newcomer{Name: "Somebody", Password: password, Factor: factor.Sealed, Code: s.code(factor.Secret)}
	p, codes, err := s.signin.Accept(t.Context(), link, n)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.signin.Accept(t.Context(), link, n); !errors.Is(err, signin.ErrInvitation) {
		t.Errorf("the invitation is good twice: %v", err)
	}
	s.wait(30 * time.Second) // until the next code
	return p, factor.Secret, codes
}

func TestWhatComesIn(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	p, secret, codes := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	try := func(email, password, code string) error {
		got, err := s.signin.Try(t.Context(), signin.Browser{}, from, email, password, code)
		if err == nil && got.ID != p.ID {
			t.Errorf("it is another person: %s", got.Email)
		}
		return err
	}
	code := s.code(secret)
	for name, err := range map[string]error{
		"another password": try("ada@example.com", "another sentence of words", code), "nobody's address": try("bob@example.com", password, code),
		"no address": try("", password, code), "no code": try("ada@example.com", password, ""), "a wrong code": try("ada@example.com", password, "000000"),
		"a wrong recovery code": try("ada@example.com", password, "aaaa-aaaa-aaaa-aaaa"),
	} {
		if !errors.Is(err, signin.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := try(" Ada@Example.com", password, code[:3]+" "+code[3:]); err != nil {
		t.Errorf("the right ones are refused: %v", err)
	}
	if err := try("ada@example.com", password, code); !errors.Is(err, signin.ErrRefused) {
		t.Errorf("a code counts twice: %v", err)
	}
	if err := try("ada@example.com", password, strings.ToUpper(codes[3])); err != nil {
		t.Errorf("a recovery code is refused: %v", err)
	}
	if err := try("ada@example.com", password, codes[3]); !errors.Is(err, signin.ErrRefused) {
		t.Errorf("a recovery code counts twice: %v", err)
	}
	if left, err := s.signin.RecoveryCodes(t.Context(), p); left != 9 || err != nil {
		t.Errorf("%d recovery codes are left, %v", left, err)
	}
}

func TestWhoGuessesWaits(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	_, secret, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	for i := range 10 {
		if _, err := s.signin.Try(t.Context(), signin.Browser{}, netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), "ada@example.com", password, fmt.Sprintf("00000%d", i)); !errors.Is(err, signin.ErrRefused) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, "ada@example.com", password, s.code(secret)); !errors.Is(err, signin.ErrTooMany) {
		t.Errorf("after ten failures: %v", err)
	}
	s.wait(61 * time.Second)
	if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, "ada@example.com", password, s.code(secret)); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

// TestGuessesAtOnce: of many codes that are tried at the same time no more are judged than
// one after the other, and wrong passwords lock nobody out.
func TestGuessesAtOnce(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	p, secret, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	var refused, waiting atomic.Int32
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			switch err := s.signin.Confirm(t.Context(), netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), p, "000000"); {
			case errors.Is(err, signin.ErrRefused):
				refused.Add(1)
			case errors.Is(err, signin.ErrTooMany):
				waiting.Add(1)
			default:
				t.Errorf("attempt %d: %v", i, err)
			}
		})
	}
	group.Wait()
	if refused.Load() != 10 || waiting.Load() != 30 {
		t.Errorf("%d of 40 codes were judged, %d told to wait; want 10 and 30", refused.Load(), waiting.Load())
	}
	s.wait(61 * time.Second)
	for i := range 12 {
		if _, err := s.signin.Try(t.Context(), signin.Browser{}, netip.AddrFrom4([4]byte{203, 0, 114, byte(i)}), "ada@example.com", "a wrong sentence", "000000"); !errors.Is(err, signin.ErrRefused) {
			t.Errorf("wrong password %d: %v", i, err)
		}
	}
	if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, "ada@example.com", password, s.code(secret)); err != nil {
		t.Errorf("somebody else's wrong passwords lock a person out: %v", err)
	}
}

// TestWhoGoesTakesNobodyAlong: invitations that a removed member has made, or was sent, are
// withdrawn, a member can't be invited into another role, and a suspension ends sessions.
func TestWhoGoesTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, _, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	bob, _, _ := s.newcomer(t, "bob@example.com", tenants.RoleOwner)
	again, err := s.invite(t, "bob@example.com", s.merchant, tenants.RoleOwner, "bob.again@example.com")
	if err != nil {
		t.Fatal(err)
	}
	lower, err := s.invite(t, "bob@example.com", s.merchant, tenants.RoleViewer, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.signin.Join(t.Context(), lower, ada); !errors.Is(err, tenants.ErrMember) {
		t.Errorf("an owner becomes a viewer by an invitation: %v", err)
	}
	if err := s.signin.Remove(t.Context(), "ada@example.com", tenants.Member{PersonID: bob.ID, MerchantID: s.merchant, Email: bob.Email}); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]string{"of a removed member": again, "to another role": lower} {
		if _, _, err := s.signin.Invitation(t.Context(), link); !errors.Is(err, signin.ErrInvitation) {
			t.Errorf("an invitation %s is good: %v", name, err)
		}
	}
	audit := store.Audit{Operator: "test", Action: "merchant.suspend", At: s.now()}
	if err := s.store.SetStatus(t.Context(), audit, s.merchant, tenants.Suspended); err != nil {
		t.Fatal(err)
	}
	if _, err := s.signin.Who(t.Context(), ada.ID, ada.Epoch); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("a session goes on after its merchant is suspended: %v", err)
	}
	elsewhere, err := s.invite(t, "test", tenants.Platform, "read", ada.Email)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.RemovePerson(t.Context(), "test", ada.Email, s.now()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.signin.Invitation(t.Context(), elsewhere); !errors.Is(err, signin.ErrInvitation) {
		t.Errorf("an invitation to somebody who is removed is good: %v", err)
	}
	if _, _, codes := s.newcomer(t, ada.Email, tenants.RoleOwner); len(codes) != 10 {
		t.Error("a person that was removed can't be invited anew")
	}
}

// TestSignInsAreAudited: who did what from where stands in the audit of the person's
// merchant, and a flood of refusals is one entry an hour.
func TestSignInsAreAudited(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	s.clock.Store(time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC).Unix())
	ada, secret, codes := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	server := httptest.NewServer(s.site(t, false))
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	posted := map[string]bool{
		"/language": true, // changes nothing that is audited
		// These are audited in tests of their own: of the provider, and of who comes in to the merchants' console.
		"/profile/unlink": true, "/invitations/{secret}": true, "/forgot": true, "/reset/{secret}": true,
		"/profile/codes/kept": true, // forgets what was shown
	}
	post := func(path string, values url.Values) {
		t.Helper()
		posted[path] = true
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(values.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("X-Forwarded-For", "198.51.100.9")
		answer, err := (&http.Client{Jar: jar}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	get := func(path string) string { // where it leads, or the page
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Language", "en")
		answer, err := (&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if to := answer.Header.Get("Location"); to != "" {
			return to
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	login := url.Values{"email": {ada.Email}, "password": {password}, "code": {s.code(secret)}}
	post("/signin", login)
	post("/confirm", url.Values{"code": {codes[0]}})
	post("/profile/codes", nil)
	post("/profile/password", url.Values{"password": {"another sentence of words"}})
	shown := get("/profile/authenticator") // which needs another code after a new session
	if !strings.HasPrefix(shown, "/confirm") {
		t.Errorf("a second factor is shown without a fresh code: %s", shown)
	}
	post("/confirm", url.Values{"code": {codes[1]}}) // of those that were replaced
	if shown = get("/profile/authenticator"); !strings.HasPrefix(shown, "/confirm") {
		t.Errorf("a replaced recovery code counts: %s", shown)
	}
	s.wait(time.Minute)
	post("/confirm", url.Values{"code": {s.code(secret)}})
	next := regexp.MustCompile(`data-factor>([A-Z2-7]+)<`).FindStringSubmatch(get("/profile/authenticator"))
	if next == nil {
		t.Fatal("no second factor is shown")
	}
	post("/profile/authenticator", url.Values{"code": {s.code(secret)}}) // the old one's
	s.wait(time.Minute)
	if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, ada.Email, "another sentence of words", s.code(secret)); err != nil {
		t.Errorf("the old app counts until the new one has shown a code: %v", err)
	}
	elsewhere, err := s.store.PersonByID(t.Context(), ada.ID)
	if err != nil {
		t.Fatal(err)
	}
	post("/profile/authenticator", url.Values{"code": {s.code(next[1])}})
	s.wait(time.Minute)
	if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, ada.Email, "another sentence of words", s.code(secret)); !errors.Is(err, signin.ErrRefused) {
		t.Errorf("the old app counts still: %v", err)
	}
	if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, ada.Email, "another sentence of words", s.code(next[1])); err != nil {
		t.Errorf("the new app does not count: %v", err)
	}
	if _, err := s.signin.Who(t.Context(), ada.ID, elsewhere.Epoch); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("another session goes on: %v", err)
	}
	if shown = get("/profile"); !strings.Contains(shown, "<h1>") {
		t.Errorf("this session has ended: %s", shown)
	}
	post("/signout", nil)
	for i := range 15 {
		at := netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})
		ctx := tenants.From(t.Context(), tenants.Origin(at.String()))
		if _, err := s.signin.Try(ctx, signin.Browser{}, at, ada.Email, "a wrong sentence", "000000"); !errors.Is(err, signin.ErrRefused) {
			t.Fatal(err)
		}
		if _, err := s.signin.Try(ctx, signin.Browser{}, at, "nobody@example.com", "a wrong sentence", "000000"); !errors.Is(err, signin.ErrRefused) {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.signin.Run(ended); err != nil {
		t.Fatal(err)
	}
	entries, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: s.merchant, Most: 20})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range entries {
		told = append(told, fmt.Sprintf("%s %s %s ×%d %s", e.Operator, e.Action, e.From, e.Times, e.Detail))
	}
	slices.Sort(told)
	want := []string{
		"ada@example.com member.join gateway ×1 as owner, invited by test",
		"ada@example.com signin.factor 198.51.100.9 ×1 ",
		"ada@example.com signin.in 198.51.100.9 ×1 ",
		"ada@example.com signin.in gateway ×1 ",
		"ada@example.com signin.in gateway ×1 ",
		"ada@example.com signin.out 198.51.100.9 ×1 ",
		"ada@example.com signin.password 198.51.100.9 ×1 ",
		"ada@example.com signin.recovery_code 198.51.100.9 ×1 ",
		"ada@example.com signin.recovery_codes 198.51.100.9 ×1 ",
		"ada@example.com signin.refused 203.0.113.14 ×15 wrong password",
		"ada@example.com signin.refused gateway ×2 wrong code",
		"test member.invite gateway ×1 ada@example.com as owner",
		"test merchant.create gateway ×1 ",
	}
	if !slices.Equal(told, want) {
		t.Errorf("the audit is\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	for _, file := range []string{"signin.go", "provider.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range regexp.MustCompile(`"POST ([^"]+)"`).FindAllSubmatch(source, -1) {
			if !posted[string(form[1])] {
				t.Errorf("whether POST %s is audited is not tested", form[1])
			}
		}
	}
}

// TestAFactorIsSealedWhileItIsSetUp: whoever reads the sessions learns no second factor.
func TestAFloodOfRefusalsHidesNoOther(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, _, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	bob, _, _ := s.newcomer(t, "bob@example.com", tenants.RoleOwner)
	tooLong := strings.Repeat("a", 201) // is refused without a hash
	for i := range 2001 {
		address, from := ada.Email, netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i % 250)})
		if i == 2000 {
			address = bob.Email
		}
		if _, err := s.signin.Try(t.Context(), signin.Browser{}, from, address, tooLong, "000000"); !errors.Is(err, signin.ErrRefused) {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.signin.Run(ended); err != nil {
		t.Fatal(err)
	}
	entries, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: s.merchant, Most: 20})
	if err != nil {
		t.Fatal(err)
	}
	for who, times := range map[string]int64{ada.Email: 2000, bob.Email: 1} {
		if !slices.ContainsFunc(entries, func(e store.Audit) bool {
			return e.Operator == who && e.Action == "signin.refused" && e.Times == times
		}) {
			t.Errorf("%s is not refused %d times: %+v", who, times, entries)
		}
	}
}

func TestNoMerchantLearnsWhereItsPeopleWorkForAnother(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, _, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	other := s.shop(t)
	link, err := s.invite(t, "test", other, tenants.RoleOwner, ada.Email)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.signin.Join(t.Context(), link, ada); err != nil {
		t.Fatal(err)
	}
	ctx := tenants.From(t.Context(), "203.0.113.7")
	if err := s.store.NoteSignIn(ctx, ada, "signin.in", "", s.now()); err != nil {
		t.Fatal(err)
	}
	if err := s.store.NoteRefusal(ctx, ada, "wrong password", 3, s.now()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[tenants.MerchantID]tenants.Origin{s.merchant: "", other: "", tenants.Platform: "203.0.113.7"} {
		entries, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: id, Most: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range []string{"signin.in", "signin.refused"} {
			at := slices.IndexFunc(entries, func(e store.Audit) bool { return e.Action == action })
			if at < 0 || entries[at].From != want || action == "signin.refused" && entries[at].Times != 3 {
				t.Errorf("%s at %q: %+v, want it from %q", action, id, entries, want)
			}
		}
	}
}

func TestAFactorIsSealedWhileItIsSetUp(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	link, err := s.invite(t, "test", s.merchant, tenants.RoleOwner, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	kept := recorded{SessionStore: s.store.Sessions()}
	site := s.siteOver(t, "merchants", false, &kept)
	answer := httptest.NewRecorder()
	site.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/invitations/"+link, nil))
	_, rest, _ := strings.Cut(answer.Body.String(), "data-factor>")
	secret, _, _ := strings.Cut(rest, "<")
	if len(secret) < 32 || len(kept.content) == 0 || bytes.Contains(kept.content, []byte(secret)) {
		t.Errorf("the page shows %q, the session holds %q", secret, kept.content)
	}
}

// recorded are sessions whose last content a test reads.
type recorded struct {
	store.SessionStore

	content []byte
}

func (r *recorded) CommitCtx(ctx context.Context, token string, content []byte, until time.Time) error {
	r.content = content
	return r.SessionStore.CommitCtx(ctx, token, content, until)
}

// TestInvitationsEndWithTheirOperator: those to merchants, too, whether the operator gets
// another role, is removed, or was a token that is revoked; each merchant's audit says so.
func TestInvitationsEndWithTheirOperator(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	operator := func(email string) tenants.Member {
		t.Helper()
		p, _, _ := s.newcomerAt(t, tenants.Platform, email, "admin")
		return tenants.Member{PersonID: p.ID, MerchantID: tenants.Platform, Email: email, Role: "read"}
	}
	operator("stays@example.com")
	token := store.OperatorToken{Hash: [32]byte{1}, Name: "deploys", Role: "admin", CreatedBy: "test", CreatedAt: s.now(), MAC: []byte("mac")}
	if err := s.store.CreateOperatorToken(t.Context(), store.Audit{Operator: "test", Action: "operator.token.create", At: s.now()}, token); err != nil {
		t.Fatal(err)
	}
	demoted, removed := operator("demoted@example.com"), operator("removed@example.com")
	kept, err := s.invite(t, demoted.Email, s.shop(t), tenants.RoleOwner, "kept@example.com")
	if err != nil {
		t.Fatal(err)
	}
	same := demoted
	same.Role = "admin" // which may invite, as before
	if err := s.signin.SetRole(t.Context(), "stays@example.com", same); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.signin.Invitation(t.Context(), kept); err != nil {
		t.Errorf("the invitation of who lost no right: %v", err)
	}
	for by, end := range map[string]func() error{
		demoted.Email: func() error { return s.signin.SetRole(t.Context(), "stays@example.com", demoted) },
		removed.Email: func() error { return s.signin.Remove(t.Context(), "stays@example.com", removed) },
		token.Name: func() error {
			gone := token
			gone.RevokedAt = new(s.now())
			audit := store.Audit{Operator: "stays@example.com", Action: "operator.token.revoke", At: s.now()}
			return s.store.EndOperatorTokens(t.Context(), audit, []store.EndedToken{{OperatorToken: gone, Was: token.MAC}})
		},
	} {
		shop := s.shop(t)
		link, err := s.invite(t, by, shop, tenants.RoleOwner, "back@example.com")
		if err != nil {
			t.Fatal(err)
		}
		other, err := s.invite(t, "stays@example.com", shop, tenants.RoleOwner, "other@example.com")
		if err != nil {
			t.Fatal(err)
		}
		s.wait(time.Second)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.signin.Invitation(t.Context(), link); !errors.Is(err, signin.ErrInvitation) {
			t.Errorf("an invitation by %s is good: %v", by, err)
		}
		if _, _, err := s.signin.Invitation(t.Context(), other); err != nil {
			t.Errorf("an invitation by another operator than %s: %v", by, err)
		}
		audit, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: shop, Action: "member.uninvite", Most: 10})
		if err != nil || len(audit) != 1 || audit[0].Operator != "stays@example.com" || !strings.HasPrefix(audit[0].Detail, "back@example.com,") {
			t.Errorf("%s: audited as %+v, %v", by, audit, err)
		}
	}
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, _, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	bob, _, _ := s.newcomer(t, "bob@example.com", tenants.RoleViewer)
	for name, of := range map[string]struct {
		to    tenants.MerchantID
		role  tenants.Role
		email string
	}{
		"no address": {s.merchant, tenants.RoleViewer, "ada"}, "an operator's role": {s.merchant, "admin", "c@example.com"},
		"a merchant's role": {tenants.Platform, tenants.RoleOwner, "c@example.com"}, "no merchant": {tenants.NewMerchantID(), tenants.RoleViewer, "c@example.com"},
	} {
		if _, err := s.invite(t, "test", of.to, of.role, of.email); err == nil {
			t.Errorf("%s is invited", name)
		}
	}
	link, err := s.invite(t, "test", tenants.Platform, "support", ada.Email)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.signin.Accept(t.Context(), link, signin.Newcomer{Name: "Eve", Password: password}); err == nil {
		t.Error("somebody else takes the invitation of a known address")
	}
	if _, err := s.signin.Join(t.Context(), link, bob); !errors.Is(err, signin.ErrInvitation) {
		t.Errorf("another person joins: %v", err)
	}
	if _, err := s.signin.Join(t.Context(), link, ada); err != nil {
		t.Errorf("the one that is invited can't join: %v", err)
	}
	present, err := s.signin.Who(t.Context(), ada.ID, ada.Epoch)
	if m, ok := present.At(tenants.Platform); err != nil || !ok || m.Role != "support" || len(present.Members) != 2 {
		t.Errorf("after joining: %+v, %v", present.Members, err)
	}
	link, err = s.invite(t, "test", s.merchant, tenants.RoleViewer, "late@example.com")
	if err != nil {
		t.Fatal(err)
	}
	s.wait(signin.InvitationLife)
	if _, _, err := s.signin.Invitation(t.Context(), link); !errors.Is(err, signin.ErrInvitation) {
		t.Errorf("after its life: %v", err)
	}
}

func TestAChangedRoleEndsSessions(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	ada, _, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	bob, _, _ := s.newcomer(t, "bob@example.com", tenants.RoleDeveloper)
	member := func(p tenants.Person, role tenants.Role) tenants.Member {
		return tenants.Member{PersonID: p.ID, MerchantID: s.merchant, Role: role, Email: p.Email}
	}
	if err := s.signin.SetRole(t.Context(), "ada@example.com", member(ada, tenants.RoleViewer)); !errors.Is(err, tenants.ErrLastOwner) {
		t.Errorf("the last owner becomes a viewer: %v", err)
	}
	if err := s.signin.Remove(t.Context(), "ada@example.com", member(ada, tenants.RoleOwner)); !errors.Is(err, tenants.ErrLastOwner) {
		t.Errorf("the last owner is removed: %v", err)
	}
	if _, err := s.signin.Who(t.Context(), ada.ID, ada.Epoch); err != nil {
		t.Errorf("a refused change ended the sessions: %v", err)
	}
	if err := s.signin.SetRole(t.Context(), "ada@example.com", member(bob, tenants.RoleViewer)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.signin.Who(t.Context(), bob.ID, bob.Epoch); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("a session of before the change goes on: %v", err)
	}
	audit, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: s.merchant, Most: 10})
	if err != nil || audit[0].Action != "member.role" || audit[0].Operator != "ada@example.com" {
		t.Errorf("the audit begins with %+v, %v", audit[0], err)
	}
	if err := s.signin.ChangePassword(t.Context(), ada, "short"); err == nil {
		t.Error("a password of five characters is taken")
	}
	if err := s.signin.ChangePassword(t.Context(), ada, "another sentence of words"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.signin.Who(t.Context(), ada.ID, ada.Epoch); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("a session of before the new password goes on: %v", err)
	}
}

// site is a console with one page, and one that needs a fresh code.
func (s *setting) site(t *testing.T, secure bool) *page.Site {
	t.Helper()
	return s.siteOf(t, "merchants", secure)
}

func (s *setting) siteOf(t *testing.T, name string, secure bool) *page.Site {
	t.Helper()
	return s.siteOver(t, name, secure, s.store.Sessions())
}

func (s *setting) siteOver(t *testing.T, name string, secure bool, sessions scs.Store) *page.Site {
	t.Helper()
	site, err := page.New(page.Config{
		Name: name, Title: "Gerbang", URL: "https://console.example", Secure: secure, Trusted: func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} },
		Templates: fstest.MapFS{"own.html": {Data: []byte(`{{define "content"}}<p>{{.Data}}</p>{{end}}`)}, "ask.html": {Data: []byte(invite)}},
		Belongs:   func(p signin.Present) bool { _, ok := p.At(s.merchant); return ok },
	}, page.Dependencies{SignIn: s.signin, Sessions: sessions, Now: s.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	site.Handle("GET /{$}", func(v *page.Visit) error { return v.Show("own.html", "Own", "<script>own</script>") })
	site.Handle("POST /secret", func(v *page.Visit) error { return v.Show("own.html", "Own", "the secret") }, page.Fresh)
	return site
}

func TestASession(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	_, secret, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	server := httptest.NewServer(s.site(t, false))
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	read := func(answer *http.Response, err error) (at, body string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		content, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Request.URL.RequestURI(), string(content)
	}
	post := func(path string, values url.Values) (at, body string) {
		t.Helper()
		return read(client.PostForm(server.URL+path, values))
	}
	if at, _ := read(client.Get(server.URL + "/")); at != "/signin?next=%2F" {
		t.Errorf("nobody is led to %s", at)
	}
	login := url.Values{"email": {"ada@example.com"}, "password": {password}, "code": {s.code(secret)}, "next": {"//evil.example"}}
	at, body := post("/signin", login)
	if at != "/" || !strings.Contains(body, "&lt;script&gt;own") {
		t.Errorf("after signing in: %s\n%s", at, body)
	}
	if at, _ := post("/secret", nil); !strings.HasPrefix(at, "/confirm") {
		t.Errorf("without a fresh code: %s", at)
	}
	if at, _ := post("/confirm", url.Values{"code": {login.Get("code")}, "next": {"/"}}); at != "/confirm" {
		t.Errorf("the code of signing in confirms: %s", at)
	}
	s.wait(30 * time.Second)
	if at, _ := post("/confirm", url.Values{"code": {s.code(secret)}, "next": {"/"}}); at != "/" {
		t.Errorf("a fresh code does not confirm: %s", at)
	}
	if _, body := post("/secret", nil); !strings.Contains(body, "the secret") {
		t.Errorf("with a fresh code: %s", body)
	}
	s.wait(11 * time.Minute)
	if at, _ := post("/secret", nil); !strings.HasPrefix(at, "/confirm") {
		t.Errorf("eleven minutes later: %s", at)
	}

	// A fresh code is not another person's.
	_, bobs, _ := s.newcomer(t, "bob@example.com", tenants.RoleViewer)
	if at, _ := post("/confirm", url.Values{"code": {s.code(secret)}, "next": {"/"}}); at != "/" {
		t.Errorf("a fresh code does not confirm: %s", at)
	}
	if at, _ := post("/signin", url.Values{"email": {"bob@example.com"}, "password": {password}, "code": {s.code(bobs)}}); at != "/" {
		t.Errorf("bob is led to %s", at)
	}
	if at, _ := post("/secret", nil); !strings.HasPrefix(at, "/confirm") {
		t.Errorf("another person's code confirms: %s", at)
	}

	// Files carry no cookie.
	_, shown := read(client.Get(server.URL + "/"))
	name := regexp.MustCompile(`/assets/console\.[0-9a-f]+\.css`).FindString(shown)
	asset, err := client.Get(server.URL + name)
	if err != nil || asset.StatusCode != http.StatusOK || asset.Header.Get("Set-Cookie") != "" {
		t.Errorf("%q is answered %v, %v", name, asset, err)
	}
	_ = asset.Body.Close()

	// A form of another site changes nothing.
	foreign, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/signout", nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Header.Set("Origin", "https://evil.example")
	if answer, err := client.Do(foreign); err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("another site's form is answered %v, %v", answer.Status, err)
	}
	if at, _ := read(client.Get(server.URL + "/")); at != "/" {
		t.Errorf("another site has signed the visitor out: %s", at)
	}
	stolen := slices.Clone(jar.Cookies(must(t, server.URL)))
	if at, _ := post("/signout", nil); at != "/signin" {
		t.Errorf("signed out at %s", at)
	}
	jar.SetCookies(must(t, server.URL), stolen)
	if at, _ := read(client.Get(server.URL + "/")); at == "/" {
		t.Error("a session goes on after signing out")
	}
}

// TestAPageThatRenewsItselfTakesNothing: what a form leaves in a session is there for the page that follows it, whether a
// part of the page before is asked for in between, or was and is answered only then; and that part keeps no session alive.
func TestAPageThatRenewsItselfTakesNothing(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	_, secret, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	kept := recorded{SessionStore: s.store.Sessions()}
	site := s.siteOver(t, "merchants", false, &kept)
	const told = "It is paid."
	meanwhile := func() {}
	site.Handle("POST /pay", func(v *page.Visit) error { return v.Go("/", told) })
	site.Handle("GET /movement", func(v *page.Visit) error {
		meanwhile()
		return v.Show("own.html", "Own", "a movement")
	})
	var session string
	ask := func(method, path, form string, headers ...string) *httptest.ResponseRecorder {
		t.Helper()
		request := httptest.NewRequestWithContext(t.Context(), method, "https://console.example"+path, strings.NewReader(form))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, name := range headers {
			request.Header.Set(name, "true")
		}
		if session != "" {
			request.AddCookie(&http.Cookie{Name: "gerbang_merchants", Value: session})
		}
		answer := httptest.NewRecorder()
		site.ServeHTTP(answer, request)
		return answer
	}
	in := ask(http.MethodPost, "/signin", url.Values{"email": {"ada@example.com"}, "password": {password}, "code": {s.code(secret)}}.Encode())
	cookies := in.Result().Cookies()
	session = cookies[len(cookies)-1].Value // before it, the one by which the browser is known
	for _, c := range []struct {
		name      string
		headers   []string
		meanwhile bool
		shown     bool // the notice, on the page that follows
	}{
		{name: "a part between", headers: []string{"HX-Request"}, shown: true},
		{name: "a part before", headers: []string{"HX-Request"}, meanwhile: true, shown: true},
		{name: "a whole page between"},
		{name: "a link followed between", headers: []string{"HX-Request", "HX-Boosted"}},
	} {
		pay := func() {
			if at := ask(http.MethodPost, "/pay", "", "HX-Request", "HX-Boosted").Header().Get("Location"); at != "/" {
				t.Fatalf("%s: the form leads to %q", c.name, at)
			}
			kept.content = nil
		}
		meanwhile = func() {}
		if c.meanwhile {
			meanwhile = pay
		} else {
			pay()
		}
		part := ask(http.MethodGet, "/movement", "", c.headers...)
		if wrote := kept.content != nil || len(part.Result().Cookies()) > 0; part.Code != http.StatusOK || wrote == c.shown {
			t.Errorf("%s: %d, its session is written: %t", c.name, part.Code, wrote)
		}
		if shown := strings.Contains(ask(http.MethodGet, "/", "", "HX-Request", "HX-Boosted").Body.String(), told); shown != c.shown {
			t.Errorf("%s: the page that follows has the notice: %t", c.name, shown)
		}
	}
}

func must(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestWhatEveryPageSays(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	_, secret, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	site := s.site(t, true)
	form := url.Values{"email": {"ada@example.com"}, "password": {password}, "code": {s.code(secret)}}.Encode()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://console.example/signin", strings.NewReader(form))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	site.ServeHTTP(answer, request)
	cookies := answer.Header().Values("Set-Cookie")
	cookie := cookies[len(cookies)-1] // before it, the one by which the browser is known
	for _, part := range []string{"__Host-gerbang_merchants=", "; Path=/", "; HttpOnly", "; Secure", "; SameSite=Lax"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q has no %s", regexp.MustCompile(`=[^;]{20,}`).ReplaceAllString(cookie, "=..."), part)
		}
	}
	if strings.Contains(cookie, "Domain") {
		t.Error("the cookie is of a domain")
	}
	for header, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"} {
		if got := answer.Header().Get(header); got != want {
			t.Errorf("%s: %q", header, got)
		}
	}
	if policy := answer.Header().Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the policy is %q", policy)
	}

	// A session of one console is none of the other's.
	value, _, _ := strings.Cut(strings.TrimPrefix(cookie, "__Host-gerbang_merchants="), ";")
	elsewhere := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://console.example/", nil)
	elsewhere.AddCookie(&http.Cookie{Name: "__Host-gerbang_operators", Value: value})
	answered := httptest.NewRecorder()
	s.siteOf(t, "operators", true).ServeHTTP(answered, elsewhere)
	if to := answered.Header().Get("Location"); !strings.HasPrefix(to, "/signin") {
		t.Errorf("a session of the merchants' console opens the operators': %d %s", answered.Code, to)
	}
}
