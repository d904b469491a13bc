package callback

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	secretA Secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	secretB Secret = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

var onlyA = Secrets{Current: secretA}

func messageTo(url string) Message {
	return Message{ID: "evt_1", Sequence: 2, URL: url, Body: []byte(`{"event":"payments.status_update","data":{}}`)}
}

// names is a resolver's world: for each name what it leads to, one list for
// each time it is asked; the last one stays.
type names struct {
	mu    sync.Mutex
	lists map[string][][]netip.Addr
	asked map[dnsmessage.Question]int
}

func newNames() *names {
	return &names{lists: map[string][][]netip.Addr{}, asked: map[dnsmessage.Question]int{}}
}

func (n *names) add(host string, lists ...[]netip.Addr) { n.lists[host+"."] = lists }

// questions is how often anybody was asked anything.
func (n *names) questions() (total int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, times := range n.asked {
		total += times
	}
	return total
}

// resolver is Go's own, with the server in memory.
func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go n.serve(theirs)
		return ours, nil
	}}
}

// serve answers in the form that DNS has on a stream.
func (n *names) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answer := n.answer(query)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func (n *names) answer(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	addrs, ok := n.look(q)
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, addr := range addrs {
		header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 0}
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
		case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

func (n *names) look(q dnsmessage.Question) ([]netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	lists, ok := n.lists[strings.ToLower(q.Name.String())]
	if !ok {
		return nil, false
	}
	before := n.asked[q]
	n.asked[q]++
	return lists[min(before, len(lists)-1)], true
}

var errNotReally = errors.New("a test connects to nobody")

// turnstile stands behind the guard at the socket: it counts what the guard lets
// through, and lets nothing through itself, so no test sends anything.
type turnstile struct {
	mu     sync.Mutex
	judged int
	passed []netip.Addr
}

func (g *turnstile) stand(d *net.Dialer) dialFunc {
	guard := d.Control
	d.Control = func(network, address string, raw syscall.RawConn) error {
		err := guard(network, address, raw)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.judged++
		if err != nil {
			return err
		}
		g.passed = append(g.passed, netip.MustParseAddrPort(address).Addr())
		return errNotReally
	}
	return d.DialContext
}

// through is what was let through since it was asked last.
func (g *turnstile) through() []netip.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.passed = nil }()
	return slices.Clone(g.passed)
}

func senderBehind(t testing.TB, c Config, dial func(*net.Dialer) dialFunc) *Sender {
	t.Helper()
	s, err := build(c, dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
