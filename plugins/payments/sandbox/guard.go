package sandbox

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// The keys that open an account by being used begin so, as the upstream's own do in either
// mode.
const (
	testKeyPrefix = "xnd_development_"
	liveKeyPrefix = "xnd_production_"
)

func isKey(key string) bool {
	return len(key) > len(testKeyPrefix) && (strings.HasPrefix(key, testKeyPrefix) || strings.HasPrefix(key, liveKeyPrefix))
}

// unnamed is the name of accounts that nobody has named.
const unnamed = "Sandbox Merchant"

type accountKey struct{}

// accountOf returns who calls; guard has put it there.
func accountOf(r *http.Request) kit.Account {
	account, _ := r.Context().Value(accountKey{}).(kit.Account)
	return account
}

// authenticate reads Basic auth: the key is the user, the password is empty,
// the colon between them is there.
func (s *Simulator) authenticate(r *http.Request) (kit.Account, error) {
	if r.Header.Get("Authorization") == "" {
		return kit.Account{}, validationError(finding("headers", "api_key", "is required", "any.required"))
	}
	key, password, ok := r.BasicAuth()
	if !ok || password != "" {
		return kit.Account{}, errKey
	}
	id := kit.AccountOf(key)
	account, registered := s.env.Accounts.Get(id)
	if account.Revoked {
		return kit.Account{}, errKey
	}
	if !registered {
		if !isKey(key) {
			return kit.Account{}, errKey
		}
		account.ID = id
	}
	if account.Name == "" {
		account.Name = unnamed
	}
	return account, nil
}

// guard puts an operation behind authentication, rate limit and faults.
func (s *Simulator) guard(operation string, movesMoney bool, h func(*http.Request) (int, any, error)) http.Handler {
	inner := s.env.Faults.Wrap(operation, movesMoney, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body, err := h(r)
		if err != nil {
			fail(w, err)
			return
		}
		answer(w, status, body)
	}))
	watched := s.env.Activity.Watch(operation, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Before the faults: a call that is cut is of the payment, too.
		kit.Concern(r.Context(), s.named(r)...)
		inner.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account, err := s.authenticate(r)
		if err != nil {
			fail(w, err)
			return
		}
		if !s.rates.allow(rateKey{account.ID, operation}, s.env.Clock.Now(), w.Header()) {
			fail(w, problem(http.StatusTooManyRequests, "RATE_LIMIT_EXCEEDED", "You have reached your request limit"))
			return
		}
		watched.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, account)))
	})
}

// ratePeriod is the length of the sliding window.
const ratePeriod = time.Minute

type rateKey struct {
	account   kit.AccountID
	operation string
}

// rates counts calls in a sliding window, made of a present and a past minute
// whose share shrinks as the present one goes by.
type rates struct {
	limit int

	mu      sync.Mutex
	windows map[rateKey]*window
}

type window struct {
	start         time.Time
	count, before int
}

// allow counts a call and writes the headers that tell what is left.
func (l *rates) allow(key rateKey, now time.Time, header http.Header) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.windows[key]
	if w == nil {
		w = &window{start: now}
		l.windows[key] = w
	}
	if passed := int64(now.Sub(w.start) / ratePeriod); passed > 0 {
		w.before = 0
		if passed == 1 {
			w.before = w.count
		}
		w.count, w.start = 0, w.start.Add(time.Duration(passed*int64(ratePeriod)))
	}
	left := ratePeriod - now.Sub(w.start)
	used := w.count + int(int64(w.before)*int64(left)/int64(ratePeriod))
	allowed := used < l.limit
	if allowed {
		w.count++
		used++
	}
	header.Set("Rate-Limit-Limit", strconv.Itoa(l.limit))
	header.Set("Rate-Limit-Remaining", strconv.Itoa(max(0, l.limit-used)))
	header.Set("Rate-Limit-Reset", strconv.FormatFloat(left.Seconds(), 'f', 3, 64))
	return allowed
}
