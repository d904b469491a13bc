package sandbox

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
)

// domain ends the names by which simulators know themselves. Nothing outside can have one.
const domain = ".sandbox.invalid"

// named finds the names of simulators in URLs.
var named = regexp.MustCompile(`http://([a-z0-9_-]+)` + regexp.QuoteMeta(domain))

// Simulated tells whether a URL, or a connection's credentials, are a simulator's.
func Simulated[T string | []byte](text T) bool { return named.MatchString(string(text)) }

var (
	// ErrNone says that a provider has no simulator: its plugin's binary plays none.
	ErrNone = errors.New("sandbox: the provider's plugin has no simulator")
	// ErrElsewhere says that another replica runs the simulators, and nobody said where.
	ErrElsewhere = errors.New("sandbox: the simulators of test mode run on another replica: sandbox_url has to name it")
)

// Config is what a [Sandbox] works with.
type Config struct {
	Dir      string // of what the simulators know
	Secret   []byte // all replicas' own
	Away     string // URL of the replica that runs the simulators, "" where this one may
	Approved func(provider string) (host.Spec, bool)
	// Leases tell whether this replica is the one that runs simulators; nil where it is.
	Leases   Leases
	Callback func() string // URL under which simulators reach this gateway
	Public   func() string // likewise, where other replicas have told theirs
	// Own are simulators that somebody else keeps running, by provider.
	Own map[string]*Simulator

	Store     Store
	Vault     Vault
	Directory Directory
	Now       func() time.Time
	Log       *slog.Logger
}

// Leases are held by one replica at a time.
type Leases interface {
	Hold(ctx context.Context) ([]int, error)
	Release(ctx context.Context)
}

// Sandbox is a replica's part in test mode.
type Sandbox struct {
	config Config
	token  string // with which simulators are given orders
	pass   string // with which another replica's calls come in
	needed chan struct{}

	mu      sync.Mutex
	inlets  map[string]*inlet
	running map[string]*Simulator
	starts  map[string]chan struct{} // full while a provider's simulator begins
	failed  map[string]failure       // what did not start lately, by provider
	told    map[told]<-chan struct{} // whose notifications go where they should, by the end of the process that knows it
	holds   bool                     // this replica runs the simulators
	held    chan struct{}            // closed when it is known whether it does, for the first time
	forget  string                   // a directory that ends with this process
}

// New makes a replica's sandbox. Nothing runs yet.
func New(c Config) *Sandbox {
	s := &Sandbox{
		config: c, token: derive(c.Secret, "simulators"), pass: derive(c.Secret, "replicas"), needed: make(chan struct{}, 1),
		inlets: map[string]*inlet{}, running: map[string]*Simulator{}, starts: map[string]chan struct{}{}, failed: map[string]failure{}, told: map[told]<-chan struct{}{},
		holds: c.Leases == nil, held: make(chan struct{}),
	}
	if s.holds {
		close(s.held)
	}
	return s
}

// failure is a binary whose simulator did not start, and for how long nobody tries again: no
// merchant's call waits for what another one's has found out.
type failure struct {
	sha256 string
	err    error
	until  time.Time
}

// A binary that ends at the start is taken for one without a simulator, and one that does not
// answer for a busy one.
const (
	noneFor = time.Minute
	busyFor = 5 * time.Second
)

func derive(secret []byte, purpose string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("sandbox " + purpose))
	return hex.EncodeToString(mac.Sum(nil))
}

// Run holds the lease while it is needed, and ends the simulators when this replica has it
// no more, or ends.
func (s *Sandbox) Run(ctx context.Context) error {
	defer s.end()
	if s.config.Leases == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.needed:
	}
	defer s.config.Leases.Release(context.WithoutCancel(ctx))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for first := true; ; first = false {
		buckets, err := s.config.Leases.Hold(ctx)
		if err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "who runs the simulators of test mode can't be agreed on", "error", err)
		}
		s.mu.Lock()
		lost := s.holds && len(buckets) == 0
		s.holds = len(buckets) > 0
		s.mu.Unlock()
		if first {
			close(s.held)
		}
		if lost {
			s.end()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// end ends what was started.
func (s *Sandbox) end() {
	s.mu.Lock()
	running := s.running
	s.running = map[string]*Simulator{}
	s.mu.Unlock()
	for _, simulator := range running {
		simulator.End()
	}
}

// firstPort and ports are where inlets listen, if nobody else does there: some providers
// know what was asked of them by the address, which has to stay through a restart.
const firstPort, ports = 20_000, 10_000

// listen opens the inlet of a provider.
func listen(provider string) (net.Listener, error) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(provider)) // a hash takes all
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+int(sum.Sum32()%ports))))
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	return listener, err
}

// Close ends the inlets.
func (s *Sandbox) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.inlets {
		_ = in.server.Close() // nobody is left to serve
	}
	if s.forget != "" {
		_ = os.RemoveAll(s.forget) // it is the system's to forget, too
	}
}

// Claim has this replica run the simulators, unless another one does.
func (s *Sandbox) Claim() {
	select {
	case s.needed <- struct{}{}:
	default: // somebody has said so
	}
}

// ours tells whether this replica runs the simulators, and waits a moment until that is
// known.
func (s *Sandbox) ours(ctx context.Context) error {
	s.Claim()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	select {
	case <-s.held:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.holds {
		return ErrElsewhere
	}
	return nil
}

// target is where a provider's simulator answers: the process here, begun if need be, or
// the replica that runs it.
func (s *Sandbox) target(ctx context.Context, provider string) (string, error) {
	if own := s.config.Own[provider]; own != nil {
		return own.URL(), nil
	}
	if s.config.Away != "" {
		return s.config.Away + "/" + provider, nil
	}
	if err := s.ours(ctx); err != nil {
		return "", err
	}
	simulator, err := s.simulator(ctx, provider)
	if err != nil {
		return "", err
	}
	return simulator.URL(), nil
}

// simulator is the process of the binary that is approved now.
func (s *Sandbox) simulator(ctx context.Context, provider string) (*Simulator, error) {
	spec, ok := s.config.Approved(provider)
	if !ok {
		return nil, fmt.Errorf("%w: there is no provider %q", ErrNone, provider)
	}
	s.mu.Lock()
	starts, ok := s.starts[provider]
	if !ok {
		starts = make(chan struct{}, 1)
		s.starts[provider] = starts
	}
	s.mu.Unlock()
	select {
	case starts <- struct{}{}:
		defer func() { <-starts }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	simulator, failed := s.running[provider], s.failed[provider]
	s.mu.Unlock()
	switch {
	case failed.sha256 == spec.SHA256 && time.Now().Before(failed.until):
		return nil, failed.err
	case simulator == nil:
		dir, err := s.dir(provider)
		if err != nil {
			return nil, err
		}
		simulator = NewSimulator(provider, dir, s.token, "", s.config.Log)
	case simulator.runs(spec.SHA256):
		return simulator, nil
	}
	simulator.End()
	// Whoever asked first may give up, and the others wait for this start, too.
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*startWithin)
	defer cancel()
	confined := func(command *exec.Cmd, dir string, listen uint16) (host.Process, error) {
		return host.Simulator(spec, command, dir, listen, s.callbackPorts())
	}
	if err := simulator.Start(starting, spec.SHA256, confined); err != nil {
		failed = failure{spec.SHA256, err, time.Now().Add(busyFor)}
		if simulator.ended() && !errors.Is(err, context.DeadlineExceeded) {
			failed = failure{spec.SHA256, ErrNone, time.Now().Add(noneFor)}
			s.config.Log.InfoContext(ctx, "a plugin plays no simulator: its merchants have no test mode without an account of their own", "plugin", provider, "error", err)
		}
		s.mu.Lock()
		s.failed[provider] = failed
		s.mu.Unlock()
		return nil, failed.err
	}
	s.mu.Lock()
	s.running[provider] = simulator
	s.mu.Unlock()
	return simulator, nil
}

// dir is where a provider's simulator keeps what it knows: where that can't be written, with
// this process alone.
func (s *Sandbox) dir(provider string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := filepath.Join(s.config.Dir, provider), errors.New("none is given")
	if s.config.Dir != "" {
		err = os.MkdirAll(s.config.Dir, 0o711) // a simulator's own user passes through
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil || s.forget != "" {
		return dir, err
	}
	s.config.Log.Warn("what the simulators of test mode know ends with this process: sandbox_dir has to name a directory that can be written", "error", err)
	if s.forget, err = os.MkdirTemp("", "gerbang-sandbox-"); err != nil {
		return "", err
	}
	s.config.Dir = s.forget
	if err := os.Chmod(s.forget, 0o711); err != nil {
		return "", err
	}
	dir = filepath.Join(s.config.Dir, provider)
	return dir, os.Mkdir(dir, 0o700)
}

// callbackPorts are those at which a simulator reaches gateways.
func (s *Sandbox) callbackPorts() (all []uint16) {
	for _, reached := range []string{s.config.Callback(), s.config.Public()} {
		u, err := url.Parse(reached)
		if err != nil {
			continue
		}
		port, err := net.DefaultResolver.LookupPort(context.Background(), "tcp", cmp.Or(u.Port(), u.Scheme))
		if err == nil {
			all = append(all, uint16(port)) //nolint:gosec // a port
		}
	}
	return all
}

// inlet is a port of this machine's own at which a plugin finds its simulator.
type inlet struct {
	port   uint16
	server *http.Server
}

// Port opens the inlet of a provider, and is where it listens.
func (s *Sandbox) Port(provider string) (uint16, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.inlets[provider]; in != nil {
		return in.port, nil
	}
	listener, err := listen(provider)
	if err != nil {
		return 0, fmt.Errorf("sandbox: %w", err)
	}
	in := &inlet{
		port:   uint16(listener.Addr().(*net.TCPAddr).Port), //nolint:gosec // a port
		server: &http.Server{Handler: s.toward(provider), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute},
	}
	go func() { _ = in.server.Serve(listener) }() // it ends when it is closed
	s.inlets[provider] = in
	return in.port, nil
}

// Reach is what a plugin may reach of its simulator: its inlet, and the directory where one
// that writes statements leaves them.
func (s *Sandbox) Reach(provider string) (reach host.Reach) {
	port, err := s.Port(provider)
	if err == nil {
		reach.Ports = []uint16{port}
	}
	dir, wrong := s.dir(provider)
	if wrong == nil {
		reach.Read = []string{dir}
	}
	if err = errors.Join(err, wrong); err != nil {
		s.config.Log.Warn("a plugin can't reach its simulator", "plugin", provider, "error", err)
	}
	return reach
}

// Reached are credentials as this replica reaches the simulator that they name, and whether
// they name one.
func (s *Sandbox) Reached(credentials []byte) (reached []byte, simulated bool, err error) {
	if !named.Match(credentials) {
		return credentials, false, nil
	}
	var failed error
	reached = named.ReplaceAllFunc(credentials, func(found []byte) []byte {
		provider := string(named.FindSubmatch(found)[1])
		if _, ok := s.config.Approved(provider); !ok && s.config.Own[provider] == nil {
			return found // a name that somebody made up opens no port
		}
		port, err := s.Port(provider)
		failed = errors.Join(failed, err)
		return fmt.Appendf(nil, "http://127.0.0.1:%d", port)
	})
	return reached, true, failed
}

// passHeader carries what another replica proves itself with.
const passHeader = "Gerbang-Sandbox"

// toward hands each request to a provider's simulator, wherever it runs.
func (s *Sandbox) toward(provider string) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			target, _ := r.In.Context().Value(targetKey{}).(*url.URL)
			r.SetURL(target)
			r.Out.Host = provider + domain
			r.Out.Header.Del(passHeader)
			if s.config.Away != "" {
				r.Out.Header.Set(passHeader, s.pass)
			}
		},
		ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, err := s.target(r.Context(), provider)
		var parsed *url.URL
		if err == nil {
			parsed, err = url.Parse(target)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), targetKey{}, parsed)))
	})
}

type targetKey struct{}

// Handler serves the simulators of this replica to others.
func (s *Sandbox) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get(passHeader)), []byte(s.pass)) != 1 {
			http.Error(w, "only replicas of this gateway come in here", http.StatusUnauthorized)
			return
		}
		provider, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		http.StripPrefix("/"+provider, s.toward(provider)).ServeHTTP(w, r)
	})
}

// Order gives a provider's simulator an order of its door; see sdk/sandbox. The status is 0
// where nobody answered.
func (s *Sandbox) Order(ctx context.Context, provider, order string, body, answer any) (int, error) {
	target, err := s.target(ctx, provider)
	if err != nil {
		return 0, err
	}
	token := s.token
	if own := s.config.Own[provider]; own != nil {
		token = own.token
	}
	return control(ctx, s.client(), target, provider+domain, token, order, body, answer)
}

// client asks simulators, and the replica that runs them.
func (s *Sandbox) client() *http.Client {
	if s.config.Away == "" {
		return client
	}
	return &http.Client{Timeout: client.Timeout, Transport: passing{s.pass}}
}

// passing proves each request to be a replica's.
type passing struct{ pass string }

func (p passing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(passHeader, p.pass)
	return http.DefaultTransport.RoundTrip(r)
}
