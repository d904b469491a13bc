package sandbox

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// tokenEvent ends the tokens that an account has.
type tokenEvent struct {
	Account kit.AccountID `json:"account"`
}

func (s *Simulator) applyTokens(e tokenEvent) {
	if w := s.wallets[e.Account]; w != nil {
		w.epoch++
	}
}

// issueToken is service 73. A token says itself until when it is valid, so
// that none needs to be kept.
func (s *Simulator) issueToken() http.Handler {
	inner := s.env.Faults.Wrap(opToken, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r)
		err := s.plannedRefusal(opToken)
		if err == nil {
			err = s.env.Journal.Sync() // a token of an epoch that a crash undoes would be valid again
		}
		if err != nil {
			fail(w, serviceToken, err)
			return
		}
		s.mu.Lock()
		token := c.wallet.token(s.now().Add(s.options.TokenLife))
		s.mu.Unlock()
		answer(w, serviceToken, resultOK, messages[resultOK], fields{
			"accessToken": token, "tokenType": "Bearer", "expiresIn": strconv.Itoa(int(s.options.TokenLife / time.Second)),
		})
	}))
	return s.admitted(serviceToken, inner, s.admitToken)
}

// admitToken checks who asks for a token.
func (s *Simulator) admitToken(r *http.Request, body []byte) (*call, error) {
	if err := require(r, "X-Timestamp", "X-Client-Key", "X-Signature"); err != nil {
		return nil, err
	}
	timestamp, client := r.Header.Get("X-Timestamp"), r.Header.Get("X-Client-Key")
	if err := s.checkTime(timestamp); err != nil {
		return nil, err
	}
	s.mu.Lock()
	w := s.wallets[kit.AccountOf(client)]
	s.mu.Unlock()
	if w == nil || s.env.Accounts.Revoked(w.id) {
		return nil, refuseFor(resultUnauthorized, "[Unknown client]")
	}
	if !asymmetricFits(s.publicOf(w), client+"|"+timestamp, r.Header.Get("X-Signature")) {
		return nil, refuseFor(resultUnauthorized, "[Signature]")
	}
	f, err := readForm(body)
	if err != nil {
		return nil, err
	}
	if grant := f.text("grantType", 64, true); grant != "client_credentials" {
		f.wrong(resultFormat, "grantType")
	}
	return &call{service: serviceToken, wallet: w}, f.err()
}

// token makes a token; the simulator's lock is held.
func (w *wallet) token(expires time.Time) string {
	payload := fmt.Sprintf("%d.%d", w.epoch, expires.UnixNano())
	return base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + w.seal("token", payload)
}

// checkToken checks what follows "Bearer "; the simulator's lock is held.
func (w *wallet) checkToken(token string, now time.Time) error {
	encoded, seal, _ := strings.Cut(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || subtle.ConstantTimeCompare([]byte(w.seal("token", string(payload))), []byte(seal)) != 1 {
		return refuse(resultToken)
	}
	var epoch int
	var expires int64
	if _, err := fmt.Sscanf(string(payload), "%d.%d", &epoch, &expires); err != nil || epoch != w.epoch || now.UnixNano() >= expires {
		return refuse(resultToken)
	}
	return nil
}
