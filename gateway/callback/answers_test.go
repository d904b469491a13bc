package callback

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// receiver is a scripted one. It gets the bare connection, or with secure the
// one inside TLS.
type receiver struct {
	bare   func(line)
	secure func(line)
	body   int // of the callback, where its size matters
	want   Outcome
	status int
	within time.Duration // zero means the whole timeout
}

// hostileAnswers are the ways to answer that the corpus names.
var hostileAnswers = map[string]receiver{
	"says-nothing": {bare: wait, want: Failed},
	"half-a-handshake": {bare: func(c line) {
		_, _ = c.Read(make([]byte, 16))
		_, _ = c.Write([]byte{22, 3, 3, 0x40, 0})
		wait(c)
	}, want: Failed},
	"plain-text": {bare: func(c line) {
		go func() { _, _ = io.Copy(io.Discard, c) }()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		wait(c)
	}, want: Failed, within: time.Second},
	"certificate-of-another":  {secure: wait, want: Failed, within: time.Second},
	"never-reads":             {secure: wait, want: Failed, body: 1 << 20},
	"reads-and-says-nothing":  {secure: script(""), want: Failed},
	"hangs-up":                {secure: func(c line) { readRequest(c); _ = c.Close() }, want: Failed, within: time.Second},
	"not-http":                {secure: script("SSH-2.0-OpenSSH_9.2\r\n"), want: Failed, within: time.Second},
	"drips-the-status":        {secure: drip("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), want: Failed},
	"drips-the-header":        {secure: repeat("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n", time.Second), want: Failed},
	"endless-header":          {secure: repeat("HTTP/1.1 200 OK\r\n", "X-More: "+strings.Repeat("m", 1000)+"\r\n", 0), want: Failed, within: time.Second},
	"one-long-header":         {secure: repeat("HTTP/1.1 200 OK\r\nX-More: ", "more", 0), want: Failed, within: time.Second},
	"endless-interim-answers": {secure: repeat("", "HTTP/1.1 103 Early Hints\r\n\r\n", 0), want: Failed, within: time.Second},
	"drips-interim-answers":   {secure: repeat("", "HTTP/1.1 102 Processing\r\n\r\n", time.Second), want: Failed},
	"switches-protocols": {secure: repeat("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "x", time.Second),
		want: Failed, status: 101, within: time.Second},
	"drips-the-body":             {secure: repeat("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "x", time.Second), want: Delivered, status: 200, within: answerWait},
	"drips-the-body-of-an-error": {secure: repeat("HTTP/1.1 500 No\r\nContent-Length: 1000\r\n\r\n", "x", time.Second), want: Failed, status: 500, within: answerWait},
	"drips-the-body-of-gone":     {secure: repeat("HTTP/1.1 410 Gone\r\nContent-Length: 1000\r\n\r\n", "x", time.Second), want: Gone, status: 410, within: answerWait},
	"endless-body":               {secure: repeat("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 1000), 0), want: Delivered, status: 200, within: time.Second},
	"endless-chunks":             {secure: repeat("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n", 0), want: Delivered, status: 200, within: time.Second},
	"bad-chunk":                  {secure: script("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n"), want: Delivered, status: 200, within: answerWait},
	"lying-length":               {secure: script("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nx"), want: Delivered, status: 200, within: answerWait},
	"shorter-than-it-says": {secure: func(c line) {
		script("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nx")(c)
	}, want: Delivered, status: 200, within: answerWait},
	"compressed-bomb": {secure: repeat("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00", "\x00", 0), want: Delivered, status: 200, within: time.Second},
	"two-lengths":     {secure: script("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), want: Failed, within: time.Second},
}

func TestHostileAnswersHoldNobody(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, h := range corpus(t, "answer") {
		name := h.rest[0]
		seen[name] = true
		r, ok := hostileAnswers[name]
		if !ok {
			t.Errorf("line %d: nobody answers like %q", h.line, name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r.test(t, h)
				time.Sleep(time.Second) // the connection says farewell
			})
		})
	}
	for name := range hostileAnswers {
		if !seen[name] {
			t.Errorf("the corpus has no receiver that answers like %q", name)
		}
	}
}

func (r receiver) test(t *testing.T, h hostile) {
	host := h.host(t)
	certified := host
	if strings.HasPrefix(host, "wrong-name") {
		certified = "another.example"
	}
	world := newPublicWorld(t, certified)
	world.serve = r
	s := senderBehind(t, Config{Roots: world.roots}, world.dial)
	m := messageTo(h.url)
	if r.body > 0 {
		m.Body = bytes.Repeat([]byte("x"), r.body)
	}
	began := time.Now()
	a := s.Send(t.Context(), m, onlyA)
	took, most := time.Since(began), r.within
	if most == 0 {
		most = defaultTimeout
	}
	if took > most+farewell || a.Duration != took {
		t.Errorf("its place is taken for %s (recorded %s), want at most %s", took, a.Duration, most)
	}
	if a.Outcome != r.want || a.Status != r.status || (a.Error == "") != (r.want == Delivered) || len(a.Answer) > maxAnswer {
		t.Errorf("got %+v", a)
	}
	if n := world.dialled.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	s.Close()
}

func TestRedirectsAreAnAnswerAndNotFollowed(t *testing.T) {
	t.Parallel()
	for _, h := range corpus(t, "redirect") {
		synctest.Test(t, func(t *testing.T) {
			world := newPublicWorld(t, h.host(t))
			world.serve = receiver{secure: script("HTTP/1.1 " + h.rest[0] + " Elsewhere\r\nLocation: " + h.rest[1] + "\r\nContent-Length: 0\r\n\r\n")}
			s := senderBehind(t, Config{Roots: world.roots}, world.dial)
			a := s.Send(t.Context(), messageTo(h.url), onlyA)
			if a.Outcome != Failed || strconv.Itoa(a.Status) != h.rest[0] || !strings.Contains(a.Error, "redirects are not followed") {
				t.Errorf("line %d: got %+v", h.line, a)
			}
			if dialled, requests := world.dialled.Load(), world.requests.Load(); dialled != 1 || requests != 1 {
				t.Errorf("line %d: %d connections and %d requests, want one", h.line, dialled, requests)
			}
			s.Close()
			time.Sleep(time.Second) // the connection says farewell
		})
	}
}

// publicWorld stands in for the internet: every name leads to one public
// address, which is judged by the guard, and behind it is the receiver.
type publicWorld struct {
	t           *testing.T
	certificate tls.Certificate
	roots       *x509.CertPool
	serve       receiver
	dialled     atomic.Int32
	requests    atomic.Int32
}

func newPublicWorld(t *testing.T, host string) *publicWorld {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &publicWorld{t: t, certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots: roots}
}

// dial makes a connection in memory if the guard allows the address.
func (w *publicWorld) dial(d *net.Dialer) dialFunc {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		w.dialled.Add(1)
		host, port, err := net.SplitHostPort(address)
		if err != nil || !strings.HasSuffix(host, ".") {
			return nil, fmt.Errorf("%q is not a rooted name and a port", address)
		}
		if err := d.Control("tcp4", "1.1.1.1:"+port, nil); err != nil {
			return nil, err
		}
		ours, theirs := net.Pipe()
		go w.receive(theirs)
		return ours, nil
	}
}

func (w *publicWorld) receive(conn net.Conn) {
	defer conn.Close()
	if w.serve.bare != nil {
		w.serve.bare(line{conn, w.t.Context().Done()})
		return
	}
	secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{w.certificate}})
	if secure.Handshake() == nil {
		w.requests.Add(1)
		w.serve.secure(line{secure, w.t.Context().Done()})
	}
}

// line is a receiver's end of a connection.
type line struct {
	net.Conn
	over <-chan struct{} // the test is
}

// pause neither reads nor writes.
func (c line) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.over:
	}
}

// wait holds the line for far longer than anybody may be held.
func wait(c line) { c.pause(time.Hour) }

func readRequest(c line) bool {
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, err = io.Copy(io.Discard, request.Body)
	}
	return err == nil
}

// script answers the request with a text, and stays.
func script(text string) func(line) {
	return func(c line) {
		if readRequest(c) {
			_, _ = io.WriteString(c, text)
			wait(c)
		}
	}
}

func drip(text string) func(line) {
	return func(c line) {
		if !readRequest(c) {
			return
		}
		for i := range text {
			if _, err := c.Write([]byte{text[i]}); err != nil {
				return
			}
			c.pause(time.Second)
		}
	}
}

// repeat answers with a text and then with another, again and again.
func repeat(first, then string, pause time.Duration) func(line) {
	return func(c line) {
		if !readRequest(c) {
			return
		}
		text := first
		for {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
			if pause > 0 {
				c.pause(pause)
			}
			text = then
		}
	}
}
