package store_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// proxy stands between pgx and the database and can cut a connection at a
// message of the client's. Both engines speak the protocol that it reads.
type proxy struct {
	listener          net.Listener
	network, upstream string

	mu   sync.Mutex
	cut  *cut
	cuts int
	down bool // no connection gets through any more
	away int  // that were made meanwhile
	ways []*connection
}

// cut is where a connection is cut, once.
type cut struct {
	at    func(kind byte, payload string) bool
	after bool   // the database has answered, and the client does not hear it
	part  bool   // the client hears of the statement, and not of its commit
	then  func() // runs before the client learns that it was cut
	stay  bool   // everything is cut from then on
}

// execution is the message that runs a prepared statement: a reservation, a move.
func execution(kind byte, _ string) bool { return kind == 'E' }

// batch is the message that commits several statements at once.
func batch() func(kind byte, _ string) bool {
	executions := 0
	return func(kind byte, _ string) bool {
		switch kind {
		case 'E':
			executions++
		case 'S':
			defer func() { executions = 0 }()
			return executions > 1
		}
		return false
	}
}

// commitment is the message that commits a transaction, on either engine.
func commitment(kind byte, payload string) bool {
	statement := strings.ToLower(payload)
	return kind == 'Q' && (strings.HasPrefix(statement, "commit") || strings.HasPrefix(statement, "release savepoint"))
}

// between starts a proxy to the database at a URL, and returns the URL through
// it.
func between(tb testing.TB, databaseURL string) (*proxy, string) {
	tb.Helper()
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{listener: listener}
	p.network, p.upstream = pgconn.NetworkAddress(config.Host, config.Port)
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	tb.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	through := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: listener.Addr().String(),
		Path: "/" + config.Database, RawQuery: "sslmode=disable",
	}
	return p, through.String()
}

// arm sets the next cut.
func (p *proxy) arm(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.cuts = &c, 0
}

func (p *proxy) happened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

func (p *proxy) isDown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

// turnsAway tells whether a connection gets through, and counts those that do not.
func (p *proxy) turnsAway() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		p.away++
	}
	return p.down
}

func (p *proxy) turnedAway() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away
}

// refuse ends all connections, and has the next turned away, until it is told not to.
func (p *proxy) refuse(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if down {
		for _, c := range p.ways {
			c.close()
		}
	}
}

// take tells whether this is the message to cut at.
func (p *proxy) take(kind byte, payload string) *cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.cut
	if c == nil || !c.at(kind, payload) {
		return nil
	}
	p.cut, p.down = nil, c.stay
	p.cuts++
	return c
}

func (p *proxy) serve(serving *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.turnsAway() {
			client.Close()
			continue
		}
		server, err := net.Dial(p.network, p.upstream)
		if err != nil {
			client.Close()
			continue
		}
		c := &connection{proxy: p, client: client, server: server}
		p.mu.Lock()
		p.ways = append(p.ways, c)
		p.mu.Unlock()
		serving.Go(c.ask)
		serving.Go(c.answer)
	}
}

// connection is one client's way to the database.
type connection struct {
	proxy          *proxy
	client, server net.Conn

	mu   sync.Mutex
	cut  *cut // set: what the database answers now is not relayed
	gone bool // the client is, and the database does not hear of it
}

// vanish ends all clients' connections without a word to the database.
func (p *proxy) vanish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.ways {
		c.mu.Lock()
		c.gone = true
		c.mu.Unlock()
		c.client.Close()
	}
}

func (c *connection) hasGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

func (c *connection) swallow() *cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

func (c *connection) close() {
	c.client.Close()
	c.server.Close()
}

// ask relays the client's messages.
func (c *connection) ask() {
	in := bufio.NewReader(c.client)
	_, startup, err := message(in, false)
	if err == nil {
		_, err = c.server.Write(startup)
	}
	for err == nil {
		var kind byte
		var whole []byte
		if kind, whole, err = message(in, true); err != nil {
			break
		}
		if c.proxy.isDown() && c.swallow() == nil {
			break
		}
		if cut := c.proxy.take(kind, string(whole[5:])); cut != nil && !cut.after {
			if cut.then != nil {
				cut.then()
			}
			break
		} else if cut != nil {
			c.mu.Lock()
			c.cut = cut
			c.mu.Unlock()
		}
		_, err = c.server.Write(whole)
	}
	if c.swallow() == nil && !c.hasGone() {
		c.close() // otherwise the answer does it
	}
}

// answer relays the database's messages. Where the client shall not hear the
// answer, it waits for the whole of it: until the database is ready again.
func (c *connection) answer() {
	defer c.close()
	in := bufio.NewReader(c.server)
	for {
		kind, whole, err := message(in, true)
		if err != nil {
			return
		}
		cut := c.swallow()
		if cut == nil || cut.part && kind != 'E' && kind != 'Z' {
			if _, err := c.client.Write(whole); err != nil {
				return
			}
		} else if kind == 'Z' {
			if cut.then != nil {
				cut.then()
			}
			return
		}
	}
}

// message reads one message whole. The first of a connection has no kind.
func message(in io.Reader, kinded bool) (kind byte, whole []byte, err error) {
	head := make([]byte, 5)
	if !kinded {
		head = head[:4]
	}
	if _, err := io.ReadFull(in, head); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[len(head)-4:])
	if length < 4 || length > 1<<24 {
		return 0, nil, errors.New("not the protocol")
	}
	whole = make([]byte, len(head)+int(length)-4)
	copy(whole, head)
	_, err = io.ReadFull(in, whole[len(head):])
	return head[0], whole, err
}
