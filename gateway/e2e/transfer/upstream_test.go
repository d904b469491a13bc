package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// upstreamProxy stands between plugins and the simulator of wallets. It passes
// calls on, and plays the script of each transfer that it was given one for,
// which it knows by its amount.
type upstreamProxy struct {
	url    string
	client *http.Client

	mu      sync.Mutex
	target  string // the simulator's URL
	scripts map[int64]*script
	tokens  chan struct{} // nobody gets a token before it is closed, unless it is nil
}

// script is what becomes of a transfer's call on its way, and how far it has come.
type script struct {
	act       string        // of the acts; "" passes it on
	expire    func()        // ends the account's tokens, for the act that is about them
	arrived   chan struct{} // closed when the call is here
	onward    chan struct{} // it waits for this to be closed, before it goes on to the upstream
	acted     chan struct{} // closed when the upstream has done what it does, if anything
	back      chan struct{} // and for this, before anything comes back
	mu        sync.Mutex
	calls     int
	reference string // as the upstream is asked
	number    string // the upstream's own
}

// The acts, beside the simulator's own plans. Those that begin with "never" keep
// the call from the upstream.
const (
	actCut         = "cut after moving"
	act500         = "500 after moving"
	actGarbage     = "garbage after moving"
	actSilent      = "silence after moving"
	actOther       = "another reference in the answer"
	actTwice       = "answered twice"
	actToken       = "token expired in between"
	actNever       = "never"
	actNeverCut    = actNever + " arrived: cut"
	actNever500    = actNever + " arrived: 500"
	actNeverSilent = actNever + " arrived: silence"
	actNeverOther  = actNever + " arrived: another's answer"
)

// silentFor is longer than any caller waits.
const silentFor = 30 * time.Second

func newUpstreamProxy(t testing.TB) *upstreamProxy {
	t.Helper()
	g := &upstreamProxy{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}, scripts: map[int64]*script{}}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		g.mu.Lock()
		for _, sc := range g.scripts { // of a test that has failed
			sc.letGo()
		}
		g.mu.Unlock()
		server.CloseClientConnections() // some are silent
		server.Close()
		g.client.CloseIdleConnections()
	})
	g.url = server.URL
	return g
}

// pause says where scripts stop until they are let go.
type pause int

const (
	nowhere pause = iota
	before        // the upstream has done anything
	after         // it has, and nothing has come back
)

// give gives a transfer of an amount its script.
func (g *upstreamProxy) give(amount int64, act string, at pause) *script {
	sc := &script{act: act, arrived: make(chan struct{}), acted: make(chan struct{}), onward: make(chan struct{}), back: make(chan struct{}), expire: func() {}}
	if at != before {
		close(sc.onward)
	}
	if at != after {
		close(sc.back)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scripts[amount] = sc
	return sc
}

// noTokens keeps all tokens back until release is called.
func (g *upstreamProxy) noTokens() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := make(chan struct{})
	g.tokens = held
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.tokens = nil
		close(held)
	}
}

// letGo lets a script go on from wherever it stops.
func (sc *script) letGo() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for _, c := range []chan struct{}{sc.onward, sc.back} {
		select {
		case <-c:
		default:
			close(c)
		}
	}
}

// names are what our side and the upstream call a transfer, as far as is known.
func (sc *script) names() []string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	id := sc.reference[:min(len(sc.reference), 32)] // the rest is of its request
	return slices.DeleteFunc([]string{id, sc.number}, func(name string) bool { return name == "" })
}

// began counts the calls of a transfer, and notes under which name.
func (sc *script) began(reference string) (first bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.calls++
	sc.reference = reference
	return sc.calls == 1
}

func (sc *script) called() int {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.calls
}

func (g *upstreamProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var asked struct {
		Reference string `json:"partnerReferenceNo"`
		Amount    struct{ Value string }
	}
	_ = json.Unmarshal(body, &asked) // what is no transfer has no amount
	whole, _ := strconv.ParseInt(strings.TrimSuffix(asked.Amount.Value, ".00"), 10, 64)
	g.mu.Lock()
	sc, tokens := g.scripts[whole], g.tokens
	g.mu.Unlock()
	if tokens != nil && strings.HasSuffix(r.URL.Path, "/access-token/b2b") {
		<-tokens
	}
	if transfers := strings.HasSuffix(r.URL.Path, "/topup") || strings.HasSuffix(r.URL.Path, "/transfer-bank"); sc == nil || !transfers {
		g.pass(w, r, body)
		return
	}
	if !sc.began(asked.Reference) {
		g.pass(w, r, body) // asked again, on purpose
		return
	}
	close(sc.arrived)
	<-sc.onward
	g.act(w, r, body, sc)
}

// act plays a script.
func (g *upstreamProxy) act(w http.ResponseWriter, r *http.Request, body []byte, sc *script) {
	var came reply
	if sc.act == actToken {
		sc.expire()
	}
	if !strings.HasPrefix(sc.act, actNever) {
		came = g.forward(r, body)
		var told struct{ ReferenceNo string }
		_ = json.Unmarshal(came.body, &told) // a refusal names none
		sc.mu.Lock()
		sc.number = told.ReferenceNo
		sc.mu.Unlock()
	}
	close(sc.acted)
	<-sc.back
	switch sc.act {
	case actCut, actNeverCut:
		cut(w)
	case act500, actNever500:
		reply{status: http.StatusInternalServerError, body: []byte("upstream connect error")}.write(w)
	case actGarbage:
		reply{status: http.StatusOK, body: []byte("{\"\x00%%% garbage ]")}.write(w)
	case actSilent, actNeverSilent:
		select {
		case <-r.Context().Done():
		case <-time.After(silentFor):
		}
		cut(w)
	case actOther:
		came.body = bytes.ReplaceAll(came.body, []byte(sc.names()[0]), []byte(strings.Repeat("0", 32)))
		came.write(w)
	case actTwice:
		came.writeTwice(w)
	case actNeverOther:
		othersAnswer(r.URL.Path, body).write(w)
	default:
		came.write(w)
	}
}

// othersAnswer is a success that only the reference shows to be another's.
func othersAnswer(path string, asked []byte) reply {
	code := "2003800"
	if strings.HasSuffix(path, "/transfer-bank") {
		code = "2004300"
	}
	answer := map[string]json.RawMessage{}
	_ = json.Unmarshal(asked, &answer)
	other := strings.Repeat("0", 40)
	body, _ := json.Marshal(harness.Fields{ // texts, and what was read
		"responseCode": code, "responseMessage": "Successful", "referenceNo": other, "partnerReferenceNo": other, "amount": answer["amount"],
	})
	return reply{status: http.StatusOK, body: body}
}

func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}

// reply is what the upstream answered.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (a reply) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Del("Content-Length")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the caller may be gone
}

// writeTwice answers a second time where the next call on the connection would
// look for its own answer.
func (a reply) writeTwice(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	once := fmt.Appendf(nil, "HTTP/1.1 %d .\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", a.status, len(a.body), a.body)
	_, _ = conn.Write(slices.Concat(once, once))
}

func (g *upstreamProxy) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	g.forward(r, body).write(w)
}

// forward asks the upstream, also for a caller that is gone meanwhile.
func (g *upstreamProxy) forward(r *http.Request, body []byte) reply {
	g.mu.Lock()
	target := g.target
	g.mu.Unlock()
	request, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return reply{status: http.StatusBadGateway}
	}
	request.Header = r.Header.Clone()
	response, err := g.client.Do(request)
	if err != nil {
		return reply{status: http.StatusBadGateway}
	}
	defer response.Body.Close()
	answered, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{status: http.StatusBadGateway}
	}
	return reply{response.StatusCode, response.Header, answered}
}

// databaseTap is the way to a database. It stops what has certain words in it:
// before it arrives, or what the database says to it.
type databaseTap struct {
	url, target string

	mu     sync.Mutex
	marks  [][]byte
	unsent bool          // stops before the database has it
	seen   chan struct{} // closed when something was stopped
	free   chan struct{} // closed when it may go on
	drop   bool          // where it may, it goes nowhere
}

func newDatabaseTap(t testing.TB, databaseURL string) *databaseTap {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &databaseTap{target: u.Host}
	u.Host = listener.Addr().String()
	p.url = u.String()
	t.Cleanup(func() {
		listener.Close()
		p.disarm(true)
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go p.connect(near)
		}
	}()
	return p
}

// arm stops the next thing with one of these words in it, on its way to the
// database or else the answer to it. Seen is closed when that has happened.
func (p *databaseTap) arm(unsent bool, words ...string) (seen <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks, p.unsent, p.drop = nil, unsent, false
	for _, word := range words {
		p.marks = append(p.marks, []byte(word))
	}
	p.seen, p.free = make(chan struct{}), make(chan struct{})
	return p.seen
}

// again lets go what is stopped, and stops the next.
func (p *databaseTap) again() (seen <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.free)
	p.seen, p.free = make(chan struct{}), make(chan struct{})
	return p.seen
}

// disarm lets go what is stopped, or drops it, and stops nothing more.
func (p *databaseTap) disarm(drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks, p.drop = nil, drop
	if p.free != nil {
		close(p.free)
		p.free = nil
	}
}

// stops tells whether a chunk is to be stopped, and how, and until when.
func (p *databaseTap) stops(chunk []byte) (until <-chan struct{}, unsent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil || !slices.ContainsFunc(p.marks, func(mark []byte) bool { return bytes.Contains(chunk, mark) }) {
		return nil, false
	}
	select {
	case <-p.seen:
	default:
		close(p.seen)
	}
	return p.free, p.unsent
}

func (p *databaseTap) drops() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drop
}

func (p *databaseTap) connect(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	var answers sync.Mutex
	var waits <-chan struct{} // until when nothing is said
	go func() {
		defer near.Close()
		defer far.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := far.Read(buffer)
			answers.Lock()
			until := waits
			answers.Unlock()
			if until != nil {
				<-until
			}
			if n > 0 {
				if _, err := near.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := near.Read(buffer)
		if until, unsent := p.stops(buffer[:n]); until != nil && unsent {
			if <-until; p.drops() {
				return
			}
		} else if until != nil {
			answers.Lock()
			waits = until
			answers.Unlock()
		}
		if n > 0 {
			if _, err := far.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
