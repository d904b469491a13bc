package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// authenticate finds the operator whose token the request carries. All tokens of the
// configuration are compared, each in constant time, so the answer's timing tells nothing;
// those of the database are found by their hash. Only failures are slowed; a right token
// always comes through.
func (c *Console) authenticate(r *http.Request, address netip.Addr) (Identity, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		token = "" // nobody's
	}
	presented := sha256.Sum256([]byte(token))
	var operator Identity
	for _, o := range c.access.Load().Operators {
		if subtle.ConstantTimeCompare(presented[:], o.TokenHash[:]) == 1 {
			operator = Identity{Name: o.Name, Role: o.Role, Inputs: o.Inputs}
		}
	}
	var err error
	if operator.Name == "" {
		operator, err = c.tokenHolder(r.Context(), token, presented)
	}
	if operator.Name != "" || err != nil {
		return operator, err
	}
	c.deps.Metrics.signInFailures.WithLabelValues(tokens).Inc()
	now := c.deps.Now()
	if blocked, wait := c.failures.Record(now, address); blocked {
		return Identity{}, fault.New(fault.RateLimited, "Too many failed attempts from this address.").After(now, wait)
	}
	c.log.WarnContext(r.Context(), "operator token refused", "address", address.String())
	return Identity{}, fault.New(fault.AuthFailed, "The operator token is missing or wrong.")
}

// peer is where the connection comes from. No header is believed: who may come in is not
// for a client to say.
func peer(r *http.Request) netip.Addr {
	address, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // in no prefix
	}
	return address.Addr().Unmap().WithZone("")
}
