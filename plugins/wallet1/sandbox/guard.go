package sandbox

import (
	"context"
	"crypto/rsa"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// maxBody is the largest request.
const maxBody = 1 << 20

// call is a request that was let in.
type call struct {
	service    service
	wallet     *wallet
	externalID string
	dana       bool // came on a path of that dialect, which wants more fields
	form       *form
}

type callKey struct{}

func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	return c
}

// handler does what a call asks for.
type handler func(context.Context, *call) (result, fields, error)

// guard puts an operation behind signature, external id and faults.
func (s *Simulator) guard(at service, operation string, movesMoney bool, do handler) http.Handler {
	inner := s.env.Faults.Wrap(operation, movesMoney, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r)
		var err error
		if !movesMoney { // what moves money is first compared with what is known
			err = s.plannedRefusal(operation)
		}
		var res result
		var body fields
		if err == nil {
			res, body, err = do(r.Context(), c)
		}
		// What is answered must not be undone by a crash, the external id included.
		// A transfer that was made has waited for itself.
		if !movesMoney || err != nil {
			if lost := s.env.Journal.Sync(); lost != nil {
				err = lost
			}
		}
		if err != nil {
			fail(w, at, err)
			return
		}
		answer(w, at, res, messages[res], body)
	}))
	return s.admitted(at, inner, func(r *http.Request, body []byte) (*call, error) { return s.admit(at, r, body) })
}

// admitted reads the body and lets in what admit lets in.
func (s *Simulator) admitted(at service, inner http.Handler, admit func(*http.Request, []byte) (*call, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			fail(w, at, refuse(resultBad))
			return
		}
		c, err := admit(r, body)
		if err != nil {
			fail(w, at, err)
			return
		}
		r.Body = http.NoBody // it is read; a fault must not read it again
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	})
}

// The forms of an external id: the standard's, and what DANA takes from its own clients.
var (
	externalForm     = regexp.MustCompile(`^[0-9]{1,36}$`)
	danaExternalForm = regexp.MustCompile(`^[0-9A-Za-z-]{1,36}$`)
)

// admit checks the headers of a transaction and uses up its external id.
func (s *Simulator) admit(at service, r *http.Request, body []byte) (*call, error) {
	if err := require(r, "X-Timestamp", "X-Signature", "X-Partner-Id", "X-External-Id", "Channel-Id"); err != nil {
		return nil, err
	}
	if err := s.checkTime(r.Header.Get("X-Timestamp")); err != nil {
		return nil, err
	}
	external, form := r.Header.Get("X-External-Id"), externalForm
	if ofDANA(r) {
		form = danaExternalForm
	}
	if !form.MatchString(external) {
		return nil, refuseFor(resultFormat, "X-EXTERNAL-ID")
	}
	s.mu.Lock()
	w := s.byPartner[r.Header.Get("X-Partner-Id")]
	s.mu.Unlock()
	if w == nil || s.env.Accounts.Revoked(w.id) {
		return nil, refuseFor(resultUnauthorized, "[Unknown partner]")
	}
	if err := s.checkSignature(w, r, body); err != nil {
		return nil, err
	}
	if err := s.useExternal(w, external); err != nil {
		return nil, err
	}
	f, err := readForm(body)
	return &call{at, w, external, ofDANA(r), f}, err
}

// ofDANA tells requests that came on one of DANA's paths.
func ofDANA(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/rest/") || strings.HasSuffix(r.URL.Path, ".htm")
}

// require refuses a request that lacks a header, or that is not JSON.
func require(r *http.Request, headers ...string) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refuseFor(resultFormat, "Content-Type")
	}
	for _, name := range headers {
		if r.Header.Get(name) == "" {
			return refuseFor(resultMandatory, strings.ToUpper(name))
		}
	}
	return nil
}

func (s *Simulator) checkTime(text string) error {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return refuseFor(resultFormat, "X-TIMESTAMP")
	}
	if off := s.callersNow().Sub(at); off.Abs() > s.options.Drift {
		return refuseFor(resultUnauthorized, "[X-TIMESTAMP is too far from our clock]")
	}
	return nil
}

// checkSignature checks channel, token and signature, as the account's way to
// sign has them.
func (s *Simulator) checkSignature(w *wallet, r *http.Request, body []byte) error {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	account, public := w.Account, w.public
	valid := w.checkToken(token, s.now())
	s.mu.Unlock()
	timestamp, signature := r.Header.Get("X-Timestamp"), r.Header.Get("X-Signature")
	var fits bool
	if account.Signature == Asymmetric {
		fits = asymmetricFits(public, asymmetricText(r.Method, r.RequestURI, body, timestamp), signature)
	} else {
		if !bearer {
			return refuse(resultNoToken)
		}
		if valid != nil {
			return valid
		}
		text := symmetricText(r.Method, r.RequestURI, token, body, timestamp)
		fits = symmetricFits(account.ClientSecret, text, account.Encoding, signature)
	}
	if !fits {
		return refuseFor(resultUnauthorized, "[Signature]")
	}
	channel := r.Header.Get("Channel-Id")
	if channel != account.ChannelID && !(ofDANA(r) && channel == account.PartnerID+"-SERVER") {
		return refuseFor(resultUnauthorized, "[Unknown channel]")
	}
	return nil
}

func (s *Simulator) publicOf(w *wallet) *rsa.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.public
}

// externalKey is an external id on its day.
type externalKey string

// externalID is one that was used.
type externalID struct {
	Account kit.AccountID `json:"account"`
	Day     string        `json:"day"`
	ID      externalKey   `json:"id"`
}

func (s *Simulator) applyExternal(e externalID) {
	w := s.wallets[e.Account]
	if w == nil {
		return
	}
	if w.day != e.Day {
		w.day, w.used = e.Day, map[externalKey]struct{}{}
	}
	w.used[e.ID] = struct{}{}
}

// useExternal refuses an external id that was used today. Whoever answers the
// call waits until its use is on disk.
func (s *Simulator) useExternal(w *wallet, id string) error {
	e := externalID{w.id, s.now().In(jakarta).Format(time.DateOnly), externalKey(id)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, used := w.used[e.ID]; used && w.day == e.Day {
		return refuse(resultExternalID)
	}
	s.env.Journal.Append(s.externalTopic.Entry(e))
	return nil
}
