package page_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/identity"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// issuer is a little identity provider, at which everybody is who a test says.
type issuer struct {
	*httptest.Server

	key    *rsa.PrivateKey
	now    func() time.Time
	down   atomic.Bool
	mu     sync.Mutex
	asked  map[string]url.Values // authorization requests by their codes
	claims map[string]any        // in place of the right ones
}

func newIssuer(t *testing.T, now func() time.Time) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, now: now, asked: map[string]url.Values{}}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, document any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		asked, ok := i.asked[r.FormValue("code")]
		delete(i.asked, r.FormValue("code"))
		id, secret, _ := r.BasicAuth()
		challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if !ok || id != "gerbang" || secret != "secret-of-the-client" || base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]string{"error": "invalid_grant"})
			return
		}
		claims := map[string]any{
			"iss": i.URL, "sub": "17", "aud": "gerbang", "nonce": asked.Get("nonce"), "email": "ada@example.com", "email_verified": true,
			"iat": i.now().Unix(), "exp": i.now().Add(time.Minute).Unix(), "auth_time": i.now().Unix(),
		}
		maps.Copy(claims, i.claims)
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
		if err != nil {
			t.Error(err)
			return
		}
		token, err := jwt.Signed(signer).Claims(claims).Serialize()
		if err != nil {
			t.Error(err)
		}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": token})
	})
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

// authorize is what the provider does once the person has signed in there: the answer with
// which it sends the browser back.
func (i *issuer) authorize(asked url.Values) url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := rand.Text()
	i.asked[code] = asked
	return url.Values{"code": {code}, "state": {asked.Get("state")}}
}

// browser is one visitor of a console with an identity provider.
type browser struct {
	*testing.T

	url    string
	client *http.Client
}

func newBrowser(t *testing.T, base string) browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return browser{t, base, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// open reads a page: its status, where it leads and its text.
func (b browser) open(path string) (status int, to, text string) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.url+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := b.client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Location"), string(content)
}

// leave goes to the provider, and returns what it is asked there.
func (b browser) leave(path string) url.Values {
	b.Helper()
	status, to, text := b.open(path)
	u, err := url.Parse(to)
	if err != nil || status != http.StatusSeeOther || u.Path != "/authorize" {
		b.Fatalf("led to %d %q: %s", status, to, text)
	}
	return u.Query()
}

func (b browser) back(answer url.Values) (status int, to, text string) {
	b.Helper()
	return b.open(page.CallbackPath + "?" + answer.Encode())
}

// post sends a form and returns where it leads.
func (b browser) post(path string, form url.Values) string {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := b.client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.Header.Get("Location")
}

// enter signs in with the password and a recovery code, and gives another one.
func (b browser) enter(email string, codes []string) {
	b.Helper()
	if to := b.post("/signin", url.Values{"email": {email}, "password": {password}, "code": codes[:1]}); to != "/" {
		b.Fatalf("signing in with the password leads to %q", to)
	}
	if to := b.post("/confirm", url.Values{"code": codes[1:2], "next": {"/profile"}}); to != "/profile" {
		b.Fatalf("a fresh code leads to %q", to)
	}
}

// links links an account at the provider on the profile page.
func (b browser) links(i *issuer, email string, codes []string) {
	b.Helper()
	b.enter(email, codes)
	if status, to, text := b.back(i.authorize(b.leave("/profile/link"))); status != http.StatusSeeOther || to != "/profile" {
		b.Fatalf("linking leads to %d %q: %s", status, to, text)
	}
}

// withProvider is an operators' console with an identity provider, the operator ada and her
// recovery codes.
func withProvider(t *testing.T) (*setting, *issuer, string, tenants.Person, []string) {
	t.Helper()
	s := newSetting(t)
	s.merchant = tenants.Platform
	i := newIssuer(t, s.now)
	ada, _, codes := s.newcomer(t, "ada@example.com", "admin")
	server := httptest.NewUnstartedServer(nil)
	base := "http://" + server.Listener.Addr().String()
	site, err := page.New(page.Config{
		Name: "operators", Title: "Gerbang",
		Templates: fstest.MapFS{"own.html": {Data: []byte(`{{define "content"}}<p>{{.Data}}</p>{{end}}`)}},
		Belongs:   func(p signin.Present) bool { _, ok := p.At(tenants.Platform); return ok },
		Provider: identity.New(identity.Config{
			Name: "the account", Issuer: i.URL, ClientID: "gerbang", ClientSecret: tenants.NewSecret("secret-of-the-client"),
			RedirectURL: base + page.CallbackPath, Domains: []string{"example.com"},
		}, s.now),
	}, page.Dependencies{SignIn: s.signin, Sessions: s.store.Sessions(), Now: s.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	site.Handle("GET /{$}", func(v *page.Visit) error { return v.Show("own.html", "Own", "inside") })
	site.Handle("GET /secret", func(v *page.Visit) error { return v.Show("own.html", "Own", "the secret") }, page.Fresh)
	server.Config.Handler = site
	server.Start()
	t.Cleanup(server.Close)
	return s, i, base, ada, codes
}

func TestTheProviderProvesAnOperator(t *testing.T) {
	t.Parallel()
	s, i, base, ada, codes := withProvider(t)
	b := newBrowser(t, base)
	i.down.Store(true)
	if status, _, text := b.open("/signin"); status != http.StatusOK || !strings.Contains(text, "the account") {
		t.Errorf("while the provider is down: %d %s", status, text)
	}
	if status, _, text := b.open("/signin/provider"); status != http.StatusServiceUnavailable || !strings.Contains(text, "kata sandi") && !strings.Contains(text, "with your password") {
		t.Errorf("while the provider is down: %d %s", status, text)
	}
	i.down.Store(false)
	s.wait(time.Minute)
	newBrowser(t, base).links(i, ada.Email, codes)
	asked := b.leave("/signin/provider?next=%2Fsecret")
	for name, want := range map[string]string{"client_id": "gerbang", "response_type": "code", "code_challenge_method": "S256", "redirect_uri": base + page.CallbackPath} {
		if asked.Get(name) != want {
			t.Errorf("%s is %q", name, asked.Get(name))
		}
	}
	answer := i.authorize(asked)
	if status, to, text := b.back(answer); status != http.StatusSeeOther || to != "/secret" {
		t.Fatalf("signed in: %d %q %s", status, to, text)
	}
	if _, _, text := b.open("/"); !strings.Contains(text, "inside") {
		t.Errorf("the page is %s", text)
	}
	if status, _, _ := b.back(answer); status != http.StatusBadRequest {
		t.Errorf("the same answer again: %d", status)
	}

	// What needs a fresh code needs a fresh proof.
	if _, to, _ := b.open("/secret"); !strings.HasPrefix(to, "/confirm") {
		t.Errorf("without a fresh proof: %q", to)
	}
	asked = b.leave("/confirm/provider?next=%2Fsecret")
	if asked.Get("prompt") != "login" || asked.Get("max_age") != "0" {
		t.Errorf("a fresh proof is asked for by %v", asked)
	}
	i.claims = map[string]any{"auth_time": s.now().Add(-time.Hour).Unix()}
	if status, _, _ := b.back(i.authorize(asked)); status != http.StatusForbidden {
		t.Errorf("a proof of an hour ago: %d", status)
	}
	i.claims = map[string]any{"email": "bob@example.com"}
	if status, _, _ := b.back(i.authorize(b.leave("/confirm/provider"))); status != http.StatusForbidden {
		t.Errorf("another person's proof: %d", status)
	}
	i.claims = nil
	if _, to, _ := b.open("/secret"); !strings.HasPrefix(to, "/confirm") {
		t.Errorf("after what was no proof: %q", to)
	}
	if status, to, _ := b.back(i.authorize(b.leave("/confirm/provider?next=%2Fsecret"))); status != http.StatusSeeOther || to != "/secret" {
		t.Errorf("a fresh proof: %d %q", status, to)
	}
	if _, _, text := b.open("/secret"); !strings.Contains(text, "the secret") {
		t.Errorf("after a fresh proof: %s", text)
	}

	// Passwords go on while the provider is down, and a session ends as ever.
	i.down.Store(true)
	if _, _, text := b.open("/"); !strings.Contains(text, "inside") {
		t.Error("a session ends with the provider")
	}
	if err := s.signin.ChangePassword(t.Context(), ada, "another sentence of words"); err != nil {
		t.Fatal(err)
	}
	if _, to, _ := b.open("/"); !strings.HasPrefix(to, "/signin") {
		t.Errorf("a session of before the new password leads to %q", to)
	}
	entries, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: tenants.Platform, Most: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"signin.in", "signin.confirm"} {
		at := slices.IndexFunc(entries, func(e store.Audit) bool { return e.Action == action })
		if at < 0 || entries[at].Operator != ada.Email || entries[at].From != "127.0.0.1" {
			t.Errorf("%s is not in the audit: %+v", action, entries)
		}
	}
}

func TestTheProviderProvesNobodyElse(t *testing.T) {
	t.Parallel()
	s, i, base, ada, codes := withProvider(t)
	newBrowser(t, base).links(i, ada.Email, codes)
	refused := func(name string, want int, claims map[string]any, change func(url.Values)) {
		t.Helper()
		b := newBrowser(t, base)
		i.claims = claims
		answer := i.authorize(b.leave("/signin/provider"))
		i.claims = claims
		change(answer)
		if status, _, _ := b.back(answer); status != want {
			t.Errorf("%s: %d, want %d", name, status, want)
		}
		if _, to, _ := b.open("/"); !strings.HasPrefix(to, "/signin") {
			t.Errorf("%s is inside", name)
		}
		i.claims = nil
		s.wait(5 * time.Second) // visits to the provider are limited by the minute
	}
	none := func(url.Values) {}
	refused("another nonce", http.StatusForbidden, map[string]any{"nonce": "another"}, none)
	refused("another audience", http.StatusForbidden, map[string]any{"aud": "another"}, none)
	refused("another party", http.StatusForbidden, map[string]any{"azp": "another"}, none)
	refused("another issuer", http.StatusForbidden, map[string]any{"iss": "https://another.example"}, none)
	refused("an expired token", http.StatusForbidden, map[string]any{"exp": s.now().Add(-time.Minute).Unix()}, none)
	refused("an unverified address", http.StatusForbidden, map[string]any{"email_verified": false}, none)
	refused("a foreign domain", http.StatusForbidden, map[string]any{"email": "ada@example.org"}, none)
	refused("somebody unknown", http.StatusForbidden, map[string]any{"email": "nobody@example.com"}, none)
	refused("another state", http.StatusBadRequest, nil, func(v url.Values) { v.Set("state", "another") })
	refused("another issuer's answer", http.StatusForbidden, nil, func(v url.Values) { v.Set("iss", "https://another.example") })
	refused("another code", http.StatusForbidden, nil, func(v url.Values) { v.Set("code", "another") })
	refused("a refusal", http.StatusForbidden, nil, func(v url.Values) { v.Set("error", "access_denied") })
	refused("a late answer", http.StatusBadRequest, nil, func(url.Values) { s.wait(11 * time.Minute) })
	kelvin := newBrowser(t, base) // whose small letter is k
	i.claims = map[string]any{"email": "\u212aim@example.com"}
	if _, _, text := kelvin.back(i.authorize(kelvin.leave("/signin/provider"))); !strings.Contains(text, "Jawaban penyedia identitas tidak sah") {
		t.Errorf("an address of other characters: %s", text)
	}
	if got, err := signin.Email("\u212aim@example.com"); !errors.Is(err, signin.ErrRefused) {
		t.Errorf("an address of other characters is %q", got)
	}
	i.claims = nil
	s.wait(time.Minute)

	// Somebody else's answer signs nobody in: the state is of the browser that began.
	mallory, victim := newBrowser(t, base), newBrowser(t, base)
	answer := i.authorize(mallory.leave("/signin/provider"))
	if status, _, _ := victim.back(answer); status != http.StatusBadRequest {
		t.Errorf("another browser's answer: %d", status)
	}
	victim.leave("/signin/provider")
	if status, _, _ := victim.back(answer); status != http.StatusBadRequest {
		t.Errorf("another browser's answer while one is awaited: %d", status)
	}

	// No other account is theirs, and a person who is removed is nobody.
	if status, _, _ := mallory.back(answer); status != http.StatusSeeOther {
		t.Fatalf("the right answer: %d", status)
	}
	refused("another account of the same address", http.StatusForbidden, map[string]any{"sub": "18"}, none)
	if err := s.store.RemovePerson(t.Context(), "test", "ada@example.com", s.now()); err != nil {
		t.Fatal(err)
	}
	refused("somebody who is removed", http.StatusForbidden, nil, none)
	if _, to, _ := mallory.open("/"); !strings.HasPrefix(to, "/signin") {
		t.Error("the session of a removed person goes on")
	}

	// A person of merchants alone is no operator.
	link, err := s.invite(t, "test", s.shop(t), tenants.RoleOwner, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	factor, err := s.signin.NewFactor("Gerbang", "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.signin.Accept(t.Context(), link, signin.Newcomer{Name: "Ada", Password: password, Factor: factor.Sealed, Code: s.code(factor.Secret)}); err != nil {
		t.Fatal(err)
	}
	refused("no operator", http.StatusForbidden, nil, none)
}

func TestAnAccountIsLinkedAfterACode(t *testing.T) {
	t.Parallel()
	s, i, base, ada, codes := withProvider(t)
	bob, _, bobs := s.newcomer(t, "bob@example.com", "admin")
	outside := func(when string) {
		t.Helper()
		b := newBrowser(t, base)
		status, _, text := b.back(i.authorize(b.leave("/signin/provider")))
		if status != http.StatusForbidden || !strings.Contains(text, "lalu tautkan di halaman profil") {
			t.Errorf("%s: %d %s", when, status, text)
		}
		if _, to, _ := b.open("/"); !strings.HasPrefix(to, "/signin") {
			t.Errorf("%s: inside", when)
		}
		s.wait(time.Minute) // visits to the provider are limited
	}
	outside("an account that nobody has linked")
	b := newBrowser(t, base)
	if _, to, _ := b.open("/profile/link"); !strings.HasPrefix(to, "/signin") {
		t.Errorf("a stranger's link leads to %q", to)
	}
	b.post("/signin", url.Values{"email": {ada.Email}, "password": {password}, "code": codes[:1]})
	if _, to, _ := b.open("/profile/link"); to != "/confirm?next=%2Fprofile" {
		t.Errorf("without a fresh code a link leads to %q", to)
	}
	if _, _, text := b.open("/confirm"); strings.Contains(text, "/confirm/provider") {
		t.Error("an account that is not linked is offered as a fresh proof")
	}
	b.post("/confirm", url.Values{"code": codes[1:2]})
	elsewhere, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/profile/link", nil)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := b.client.Do(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("another site's link: %d", answer.StatusCode)
	}
	i.claims = map[string]any{"email": bob.Email}
	if status, _, _ := b.back(i.authorize(b.leave("/profile/link"))); status != http.StatusForbidden {
		t.Errorf("an account of another address: %d", status)
	}
	i.claims = nil
	begun := i.authorize(b.leave("/profile/link"))
	b.enter(bob.Email, bobs)
	if status, _, _ := b.back(begun); status != http.StatusBadRequest {
		t.Errorf("what another person has begun: %d", status)
	}
	begun = i.authorize(b.leave("/profile/link"))
	b.post("/signout", nil)
	if status, _, _ := b.back(begun); status != http.StatusBadRequest {
		t.Errorf("after the sign-out: %d", status)
	}
	begun = i.authorize(newBrowser(t, base).leave("/signin/provider"))
	b.enter(ada.Email, codes[2:])
	b.leave("/profile/link")
	if status, _, _ := b.back(begun); status != http.StatusBadRequest {
		t.Errorf("another browser's answer: %d", status)
	}
	outside("what was refused has linked the account")

	if _, to, _ := b.back(i.authorize(b.leave("/profile/link"))); to != "/profile" {
		t.Fatalf("the right account leads to %q", to)
	}
	if _, _, text := b.open("/profile"); !strings.Contains(text, "/profile/unlink") || strings.Contains(text, "/profile/link\"") {
		t.Errorf("the profile is %s", text)
	}
	i.claims = map[string]any{"sub": "18"}
	if status, _, _ := b.back(i.authorize(b.leave("/profile/link"))); status != http.StatusForbidden {
		t.Errorf("a second account: %d", status)
	}
	i.claims = nil
	s.wait(time.Minute)

	// What an account proves unlinks it, and links no other one.
	vouched := newBrowser(t, base)
	if _, to, _ := vouched.back(i.authorize(vouched.leave("/signin/provider"))); to != "/" {
		t.Fatalf("the linked account leads to %q", to)
	}
	if to := vouched.post("/profile/unlink", nil); !strings.HasPrefix(to, "/confirm") {
		t.Errorf("without a fresh proof unlinking leads to %q", to)
	}
	vouched.back(i.authorize(vouched.leave("/confirm/provider")))
	if to := vouched.post("/profile/unlink", nil); to != "/profile" {
		t.Errorf("unlinking leads to %q", to)
	}
	if _, to, _ := vouched.open("/profile/link"); !strings.HasPrefix(to, "/confirm") {
		t.Errorf("after a proof that is no code a link leads to %q", to)
	}
	outside("an account that was unlinked")
	entries, err := s.store.AuditOf(t.Context(), store.AuditRange{MerchantID: tenants.Platform, Most: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"signin.linked", "signin.unlinked"} {
		at := slices.IndexFunc(entries, func(e store.Audit) bool { return e.Action == action })
		if at < 0 || entries[at].Operator != ada.Email || entries[at].Detail != i.URL+" 17" {
			t.Errorf("%s is not in the audit: %+v", action, entries)
		}
	}

	// A link goes with the person.
	newBrowser(t, base).links(i, ada.Email, codes[4:])
	if err := s.store.RemovePerson(t.Context(), "test", ada.Email, s.now()); err != nil {
		t.Fatal(err)
	}
	s.newcomer(t, ada.Email, "admin")
	outside("an account that somebody has linked who was removed since")
}
