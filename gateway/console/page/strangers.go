package page

import (
	"context"
	"crypto/sha256"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
)

// longestTurn is how long a visitor waits for a turn at most.
const longestTurn = 5 * time.Second

// turn waits until something may be read for a visitor whom nobody knows. Done is to be
// called after it.
func (s *Site) turn(r *http.Request) (done func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), longestTurn)
	defer cancel()
	return s.turns.Enter(ctx, limit.ClientAddress(r, s.config.Trusted()))
}

// inSession answers a request once its session is read. That of a token which this replica
// does not know is read in turn.
func (s *Site) inSession(w http.ResponseWriter, r *http.Request) {
	token, done := s.token(r), func() {}
	if token != "" && !s.known.has(token) {
		turn, err := s.turn(r)
		if err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many visitors who have not signed in are waiting. Try again in a moment.", http.StatusTooManyRequests)
			return
		}
		done = sync.OnceFunc(turn)
		defer done()
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done()
		if s.sessions.Exists(r.Context(), keyPerson) {
			s.known.add(token)
		} else {
			s.known.forget(token)
			r.Body = http.MaxBytesReader(w, r.Body, strangersForm)
		}
		s.mux.ServeHTTP(w, r)
	})
	if !renews(r) {
		s.sessions.LoadAndSave(next).ServeHTTP(w, r)
		return
	}
	// The session is read, and no change of it kept. A page that renews itself is no sign of its visitor, does not take the
	// notice of the page that follows, and does not put back what a form has changed meanwhile.
	ctx, err := s.sessions.Load(r.Context(), token)
	if err != nil {
		s.sessions.ErrorFunc(w, r, err)
		return
	}
	next(w, r.WithContext(ctx))
}

// renews tells whether a page asks by itself for a part of it that is newer.
func renews(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("HX-Request") != "" && r.Header.Get("HX-Boosted") == ""
}

// tokenForm is that of the tokens which scs makes.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// token is the session's that a request names. A cookie that no session has had is taken
// off the request, so that nothing is read for it.
func (s *Site) token(r *http.Request) string {
	name := s.sessions.Cookie.Name
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	if tokenForm.MatchString(cookie.Value) {
		return cookie.Value
	}
	all := r.Cookies()
	r.Header.Del("Cookie")
	for _, other := range all {
		if other.Name != name {
			r.AddCookie(other)
		}
	}
	return ""
}

// mostKnown bounds the sessions that are known. Beyond it all are forgotten, and each waits
// for one turn.
const mostKnown = 10_000

// known are the tokens of sessions of people who have signed in, as this replica has seen
// them. Any number of goroutines may use it.
type known struct {
	mu     sync.Mutex
	hashes map[[sha256.Size]byte]struct{}
}

func (k *known) has(token string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.hashes[sha256.Sum256([]byte(token))]
	return ok
}

func (k *known) forget(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.hashes, sha256.Sum256([]byte(token)))
}

func (k *known) add(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hashes == nil || len(k.hashes) >= mostKnown {
		k.hashes = map[[sha256.Size]byte]struct{}{}
	}
	k.hashes[sha256.Sum256([]byte(token))] = struct{}{}
}
