package page_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// slow are sessions whose reads a test holds.
type slow struct {
	store.SessionStore

	reads atomic.Int64
	wait  func()
	found []byte
}

func (s *slow) FindCtx(context.Context, string) ([]byte, bool, error) {
	s.reads.Add(1)
	s.wait()
	return s.found, s.found != nil, nil
}

func (s *slow) CommitCtx(context.Context, string, []byte, time.Time) error { return nil }

// made is a token as a session could have it.
func made() string {
	var random [32]byte
	_, _ = rand.Read(random[:])
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// visit asks for the page of signing in with a session's token.
func visit(t *testing.T, site http.Handler, token string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/signin", nil)
	if token != "" {
		request.AddCookie(&http.Cookie{Name: "gerbang_merchants", Value: token})
	}
	answer := httptest.NewRecorder()
	site.ServeHTTP(answer, request)
	return answer
}

// TestMadeUpSessionsAreReadAFewAtATime: whoever sends made-up sessions has four of them read
// at once, and none that no session could have. Who has none waits for nothing.
func TestMadeUpSessionsAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	sessions := &slow{}
	site := newSetting(t).siteOver(t, "merchants", false, sessions)
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan struct{})
		sessions.wait = func() { <-answered }
		for _, token := range []string{"", "made-up", strings.Repeat("a", 44), strings.Repeat("=", 43)} {
			if got := visit(t, site, token); got.Code != http.StatusOK || sessions.reads.Load() != 0 {
				t.Errorf("with the session %q: %d after %d reads", token, got.Code, sessions.reads.Load())
			}
		}
		answers := make(chan *httptest.ResponseRecorder, 10)
		for range 10 {
			go func() { answers <- visit(t, site, made()) }()
		}
		synctest.Wait()
		if got := sessions.reads.Load(); got != 4 {
			t.Errorf("%d reads are under way, want 4", got)
		}
		invitation := httptest.NewRecorder()
		site.ServeHTTP(invitation, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/invitations/"+rand.Text(), nil))
		if invitation.Code != http.StatusTooManyRequests {
			t.Errorf("a guessed invitation does not wait for its turn: %d", invitation.Code)
		}
		for range 6 { // who have waited long enough
			if got := <-answers; got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "1" {
				t.Errorf("who waits too long: %d, Retry-After %q", got.Code, got.Header().Get("Retry-After"))
			}
		}
		close(answered)
		for range 4 {
			if got := <-answers; got.Code != http.StatusOK {
				t.Errorf("a session that nobody has: %d", got.Code)
			}
		}
	})
}

// TestWhoHasSignedInDoesNotWait: a session is read without a turn once this replica has seen it.
func TestWhoHasSignedInDoesNotWait(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	_, secret, _ := s.newcomer(t, "ada@example.com", tenants.RoleOwner)
	kept := recorded{SessionStore: s.store.Sessions()}
	form := url.Values{"email": {"ada@example.com"}, "password": {password}, "code": {s.code(secret)}}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/signin", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.siteOver(t, "merchants", false, &kept).ServeHTTP(httptest.NewRecorder(), request)
	if len(kept.content) == 0 {
		t.Fatal("no session has begun")
	}
	sessions, token := &slow{wait: func() {}, found: kept.content}, made()
	site := s.siteOver(t, "merchants", false, sessions)
	visit(t, site, token)
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan struct{})
		sessions.wait = func() { <-answered }
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() { visit(t, site, token) })
		}
		synctest.Wait()
		if got := sessions.reads.Load(); got != 11 {
			t.Errorf("%d reads, want 11", got)
		}
		close(answered)
		group.Wait()
	})
}

// TestGuessedInvitations: what can be no invitation is not looked for.
func TestGuessedInvitations(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	site := s.site(t, false)
	ask := func(secret string) int {
		answer := httptest.NewRecorder()
		site.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/invitations/"+secret, nil))
		return answer.Code
	}
	if got := ask(rand.Text() + rand.Text()); got != http.StatusGone {
		t.Errorf("a guessed invitation: %d", got)
	}
	s.store.Close() // whatever is read from now on fails
	if got := ask("guessed"); got != http.StatusGone {
		t.Errorf("what can be no invitation: %d", got)
	}
	if got := ask(rand.Text() + rand.Text()); got != http.StatusInternalServerError {
		t.Errorf("without a database: %d", got)
	}
}

// endless counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestStrangersFormsAreSmall: who has not signed in gets no megabyte of memory.
func TestStrangersFormsAreSmall(t *testing.T) {
	t.Parallel()
	s := newSetting(t)
	form := &endless{}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/signin", io.NopCloser(form))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.site(t, false).ServeHTTP(httptest.NewRecorder(), request)
	if form.read > 64<<10 {
		t.Errorf("%d bytes of a stranger's form are read", form.read)
	}
}
