package callback

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/tracing"
)

const (
	defaultTimeout = 10 * time.Second

	// answerWait is how long a receiver whose status is known may take for the
	// part of its answer that is kept. The status has decided; nobody waits the
	// full time for a text.
	answerWait = 2 * time.Second

	// farewell is how long TLS may take to say that a connection ends. It would
	// take 5 s where the receiver reads nothing, and keep its place meanwhile.
	farewell = 10 * time.Millisecond

	maxResponseHeader = 16 << 10

	idleConnections            = 1024
	idleConnectionsPerReceiver = 4
	idleTime                   = 30 * time.Second
)

// Config says how callbacks are sent. The zero value is what production wants.
type Config struct {
	Service string        // the service's short name in headers; empty means Svc
	Version string        // for the User-Agent; empty means 1
	Timeout time.Duration // of one try in all; zero means 10 s

	// AllowLocal is development mode: http, loopback and any port, too.
	AllowLocal bool
	// Deny are networks that no callback goes to, though they are public: the
	// operator's own.
	Deny []netip.Prefix

	Now      func() time.Time // of signatures and tries; nil means this machine's
	Resolver *net.Resolver    // nil means the system's
	Roots    *x509.CertPool   // nil means the system's
}

// Sender sends callbacks. Any number of goroutines may use it.
type Sender struct {
	service    string
	agent      string
	timeout    time.Duration
	allowLocal bool
	now        func() time.Time
	transport  *http.Transport
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// New makes a sender, or says what is wrong with the configuration.
func New(c Config) (*Sender, error) {
	return build(c, func(d *net.Dialer) dialFunc { return d.DialContext })
}

// build takes what tests may replace: how a dialer that holds the guard dials.
func build(c Config, dial func(*net.Dialer) dialFunc) (*Sender, error) {
	c.Service = cmp.Or(c.Service, defaultService)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	if !serviceForm.MatchString(c.Service) {
		return nil, fmt.Errorf("callback: the short name %q must be letters and digits, at most 32", c.Service)
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("callback: the timeout %s is negative", c.Timeout)
	}
	return &Sender{
		service: c.Service, agent: "Gerbang/" + cmp.Or(c.Version, "1"), timeout: c.Timeout, allowLocal: c.AllowLocal, now: c.Now,
		transport: newTransport(c, dial),
	}, nil
}

func newTransport(c Config, dial func(*net.Dialer) dialFunc) *http.Transport {
	connect := dial(&net.Dialer{
		// The transport lets a dial go on when the try that wanted it has ended.
		Timeout:  c.Timeout,
		Resolver: c.Resolver,
		Control:  newGuard(c.AllowLocal, c.Deny).Safe,
	})
	if !c.AllowLocal {
		connect = rooted(connect)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // a connection of HTTP/2 would tie the deliveries of several merchants together
	return &http.Transport{
		Proxy:                  nil, // it would connect in our place, past the guard
		DialContext:            brief(connect),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		TLSHandshakeTimeout:    c.Timeout,
		DisableCompression:     true, // so that a small answer can't grow here
		MaxResponseHeaderBytes: maxResponseHeader,
		MaxIdleConns:           idleConnections,
		MaxIdleConnsPerHost:    idleConnectionsPerReceiver,
		IdleConnTimeout:        idleTime,
		Protocols:              protocols,
	}
}

// rooted keeps names out of the resolver's search domains, where `shop.prod`
// may be somebody inside.
func rooted(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(host); err != nil {
			host += "."
		}
		return dial(ctx, network, net.JoinHostPort(host, port))
	}
}

// brief bounds the farewell, the only thing for which a write deadline is set.
func brief(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return briefConn{conn}, nil
	}
}

type briefConn struct{ net.Conn }

// SetWriteDeadline takes the earlier of the time given and the farewell's.
func (c briefConn) SetWriteDeadline(t time.Time) error {
	if latest := time.Now().Add(farewell); t.After(latest) {
		t = latest
	}
	return c.Conn.SetWriteDeadline(t)
}

// Send makes one try, which takes no longer than the timeout, and says what
// became of it. A redirect is an answer like any other that is not 2xx.
// When ctx ends, or the message or its secrets can't be signed, it is Aborted.
func (s *Sender) Send(ctx context.Context, m Message, secrets Secrets) Attempt {
	a, begun := Attempt{At: s.now()}, time.Now()
	s.try(ctx, m, secrets, &a)
	a.Duration = time.Since(begun)
	return a
}

// Close ends the connections that are kept. Tries under way go on.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

func (s *Sender) try(ctx context.Context, m Message, secrets Secrets, a *Attempt) {
	if err := CheckURL(m.URL, s.allowLocal); err != nil {
		a.end(Refused, "the URL "+err.Error())
		return
	}
	header, err := Sign(s.service, m, secrets, a.At)
	if err != nil {
		a.end(Aborted, err.Error())
		return
	}
	timed, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(timed, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		a.end(Refused, "the URL "+errURLForm.Error())
		return
	}
	request.Header = s.dress(header)
	if parent := tracing.Parent(ctx); parent != "" {
		request.Header.Set(tracing.Header, parent)
	}
	// The transport alone, because a client would follow redirects.
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		s.explain(ctx, err, a)
		return
	}
	defer response.Body.Close()
	byStatus(response.StatusCode, a)
	if response.StatusCode == http.StatusSwitchingProtocols {
		return // the connection is ours then, and no deadline ends a read from it
	}
	answered := time.AfterFunc(answerWait, cancel)
	defer answered.Stop()
	// Cut or not, what came is kept.
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxBody))
	a.Answer = answerOf(response.Header, body)
}

func (s *Sender) dress(h http.Header) http.Header {
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", s.agent)
	// Present but empty, it is not sent and tells the transport that a kept
	// connection that turns out to be dead may be replaced by a new one: the
	// receiver knows a repetition by its webhook-id.
	h["Idempotency-Key"] = nil
	return h
}
