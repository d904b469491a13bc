package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// fault is a way in which one request of a plugin goes wrong. What acts is passed
// on to the upstream first, so that it was done and nobody was told.
type fault struct {
	name string
	acts bool
	play func(*proxy, http.ResponseWriter, *http.Request, answer)
	// account says that the answer may be taken for a fault of our account.
	account bool
	// limit says that the answer is about how often our account asks.
	limit bool
}

// blames tells whether this is whose fault it is.
func (f fault) blames(b sdk.Blame) bool {
	if f.limit {
		return b == sdk.BlameLimit
	}
	return f.account || b == sdk.BlameUpstream
}

// answer is the upstream's, as it was before a fault.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func says(status int, contentType, text string) func(*proxy, http.ResponseWriter, *http.Request, answer) {
	return func(_ *proxy, w http.ResponseWriter, _ *http.Request, _ answer) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

const page = "<html><body><h1>%s</h1></body></html>"

// faults are what may happen to any request. None is in the upstream's own format.
var faults = []fault{
	{name: "cut before the upstream acted", play: cut},
	{name: "cut after the upstream acted", acts: true, play: cut},
	{name: "500 after the upstream acted", acts: true, play: says(500, "text/html", fmt.Sprintf(page, "Internal Server Error"))},
	{name: "502 of a proxy after the upstream acted", acts: true, play: says(502, "text/html", fmt.Sprintf(page, "Bad Gateway"))},
	{name: "a page in place of the answer", acts: true, play: says(200, "text/html", fmt.Sprintf(page, "Welcome"))},
	{name: "an empty object in place of the answer", acts: true, play: says(200, "application/json", "{}")},
	{name: "null in place of the answer", acts: true, play: says(200, "application/json", "null")},
	{name: "half of the answer", acts: true, play: half},
	{name: "404 of a proxy", play: says(404, "text/html", fmt.Sprintf(page, "Not Found"))},
	{name: "401 of a proxy", account: true, play: says(401, "text/html", fmt.Sprintf(page, "Authorization Required"))},
	{name: "429 of a proxy", limit: true, play: says(429, "text/html", fmt.Sprintf(page, "Too Many Requests"))},
	{name: "a redirect to another host", play: redirect},
}

// hanging is not among them: each costs the time that a caller has.
var hanging = fault{name: "no answer", acts: true, play: hang}

// endless is an answer without an end.
var endless = fault{name: "an answer without end", play: flood}

// proxy stands between a plugin and the simulator for one account.
type proxy struct {
	server *httptest.Server
	target string
	client *http.Client
	away   *httptest.Server // where a redirect leads

	mu       sync.Mutex
	arrived  int           // requests of any kind
	armed    int           // how many had arrived when the fault was ordered
	at       int           // of those after, which one it hits; 0 for all
	fault    *fault        // nil where all is well
	met      chan struct{} // closed once the fault came about
	hold     time.Time     // the answer to the one that is hit is held until then
	observe  func()        // called before an answer goes back
	strayed  int           // requests that followed a redirect
	released chan struct{} // closed and replaced when faults end
}

func openProxy(target string, doors *doors) (*proxy, error) {
	p := &proxy{target: target, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	}, released: make(chan struct{})}
	var err error
	if p.server, err = doors.serve(p); err != nil {
		return nil, err
	}
	if p.away, err = doors.serve(http.HandlerFunc(p.stray)); err != nil {
		p.server.Close()
		return nil, err
	}
	return p, nil
}

// stray takes a request that followed a redirect.
func (p *proxy) stray(http.ResponseWriter, *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strayed++
}

func (p *proxy) close() {
	p.calm()
	for _, s := range []*httptest.Server{p.server, p.away} {
		s.CloseClientConnections()
		s.Close()
	}
	p.client.CloseIdleConnections()
}

// arm lets the n-th request from now on go wrong, or each where n is 0. What it
// returns is closed once that came about.
func (p *proxy) arm(f fault, n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.armed, p.at, p.met = &f, p.arrived, n, make(chan struct{})
	return p.met
}

// delay holds the answer to the n-th request from now on until a moment.
func (p *proxy) delay(until time.Time, n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold, p.armed, p.at, p.met = until, p.arrived, n, make(chan struct{})
	return p.met
}

// calm ends faults and delays. It reports whether the fault came about.
func (p *proxy) calm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	met := p.met
	close(p.released)
	p.released = make(chan struct{})
	p.fault, p.met, p.hold, p.observe = nil, nil, time.Time{}, nil
	if met == nil {
		return false
	}
	select {
	case <-met:
		return true
	default:
		return false
	}
}

func (p *proxy) watch(observe func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observe = observe
}

func (p *proxy) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.arrived
}

func (p *proxy) followed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.strayed > 0
}

// take counts a request and says what is to become of it.
func (p *proxy) take() (f *fault, hold time.Time, observe func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrived++
	if p.met == nil || p.at != 0 && p.arrived != p.armed+p.at {
		return nil, time.Time{}, p.observe
	}
	select {
	case <-p.met:
	default:
		close(p.met)
	}
	return p.fault, p.hold, p.observe
}

// ServeHTTP passes a request on, or lets it go wrong.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20)) // whole, so that the server notices when the client is gone
	if err != nil {
		return
	}
	f, hold, observe := p.take()
	var a answer
	if f == nil || f.acts {
		if a, err = p.forward(r, body); err != nil {
			panic(http.ErrAbortHandler) // the documented way to drop a connection
		}
	}
	if observe != nil {
		observe()
	}
	if f != nil {
		f.play(p, w, r, a)
		return
	}
	if wait := time.Until(hold); wait > 0 {
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
		}
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// forward asks the upstream, which does what it has received also where the caller
// is gone.
func (p *proxy) forward(r *http.Request, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, p.target+r.RequestURI, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header, request.Host = r.Header.Clone(), r.Host
	request.Header.Del("Connection")
	response, err := p.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	response.Header.Del("Content-Length")
	return answer{response.StatusCode, response.Header, content}, err
}

// cut resets the connection, so that the caller learns nothing.
func cut(_ *proxy, w http.ResponseWriter, _ *http.Request, _ answer) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// half promises the whole answer and cuts the connection in it.
func half(p *proxy, w http.ResponseWriter, r *http.Request, a answer) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(a.body)+1))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush()
	cut(p, w, r, a)
}

func redirect(p *proxy, w http.ResponseWriter, r *http.Request, _ answer) {
	http.Redirect(w, r, p.away.URL+r.URL.Path, http.StatusFound)
}

// hang answers nothing until the caller is gone.
func hang(p *proxy, _ http.ResponseWriter, r *http.Request, _ answer) {
	p.mu.Lock()
	released := p.released
	p.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-released:
	}
	panic(http.ErrAbortHandler) // also then there is no answer
}

// floodSize is what an answer without end comes to at most, so that a plugin that
// reads all of it does not take the machine with it.
const floodSize = 128 << 20

func flood(_ *proxy, w http.ResponseWriter, _ *http.Request, _ answer) {
	w.Header().Set("Content-Type", "application/json")
	chunk := []byte(strings.Repeat("[", 1<<20))
	_, _ = io.WriteString(w, `{"data":"`)
	for range floodSize / len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, `"}`)
}
