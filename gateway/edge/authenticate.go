package edge

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// authFailed is the one text for everything that can be wrong with a key.
func authFailed() *fault.Error {
	return fault.New(fault.AuthFailed, "The secret key is missing or not valid for this merchant.")
}

// authenticate identifies the merchant of a request. The key is verified first and
// only failures are slowed, so nobody can lock a merchant out.
func (x *exchange) authenticate(b body) error {
	// A malformed key is checked too, so that all failures take the same time.
	identity, err := x.edge.Authenticator.Authenticate(
		x.request.Context(), x.started, presented(b.key, x.request.Header), x.address)
	switch {
	case errors.Is(err, tenants.ErrAddress):
		x.identity = identity
		return fault.New(fault.ScopeMissing, "This key may not be used from this address.")
	case errors.Is(err, tenants.ErrAuthFailed):
		if blocked, wait := x.edge.Failures.Record(x.started, x.address); blocked {
			x.ticket.RateLimitPolicy = failuresPolicy
			x.ticket.RateLimit = `"authentication";r=0;t=` + strconv.Itoa(max(1, int(wait/time.Second)))
			return fault.New(fault.RateLimited, "Too many failed authentications from this address.").After(x.started, wait)
		}
		return authFailed()
	case err != nil:
		return fault.New(fault.Internal, "The key could not be checked. Try again later.").Because(err)
	}
	x.identity = identity
	if moves := x.operation.Money() || x.operation.CancelOf != ""; moves && !x.edge.Authenticator.Fresh(x.started) {
		return fault.New(fault.Internal, "Operations that move money are paused for a moment. Try again later.").
			Because(errors.New("revocations of keys can't be learned of"))
	}
	return nil
}

// failuresPolicy is how limit.Failures counts, as the RateLimit-Policy field
// says it.
const failuresPolicy = `"authentication";q=20;w=60`

// presented returns the key to check, from the body or the Authorization header. It
// returns "", which never passes, for a malformed key and for two keys that differ.
func presented(key credential, header http.Header) string {
	bearers, malformed := bearerTokens(header)
	if malformed || key.malformed {
		return ""
	}
	if key.given {
		bearers = append(bearers, key.text)
	}
	if len(bearers) == 0 {
		return ""
	}
	for _, bearer := range bearers[1:] {
		if bearer != bearers[0] {
			return ""
		}
	}
	return bearers[0]
}

// bearerTokens returns the tokens of the Authorization headers. It ignores other
// schemes, which may be a proxy's, but not Bearer without a token.
func bearerTokens(header http.Header) (tokens []string, malformed bool) {
	for _, value := range header["Authorization"] {
		scheme, token, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		if token = strings.TrimSpace(token); token == "" {
			return nil, true
		}
		tokens = append(tokens, token)
	}
	return tokens, false
}

// checkMerchant refuses a merchant_id that is not the key's own. The key was
// right, so this is no failure of the address.
func (x *exchange) checkMerchant(c credential) error {
	if c.given && (c.malformed || c.text != string(x.identity.Account.ID())) {
		return authFailed()
	}
	return nil
}
