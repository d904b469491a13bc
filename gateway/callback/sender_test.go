package callback

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// localSender is in development mode: it really sends, to this machine.
func localSender(t testing.TB) *Sender {
	t.Helper()
	s, err := New(Config{AllowLocal: true, Version: "9.8"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	type request struct {
		*http.Request
		body string
	}
	requests := make(chan request, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- request{r, string(body)}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		_, _ = io.WriteString(w, "thank you")
	}))
	t.Cleanup(server.Close)
	s, m := localSender(t), messageTo(server.URL+"/hook?shop=1")
	for range 2 {
		a := s.Send(t.Context(), m, onlyA)
		if a.Outcome != Delivered || a.Status != 200 || a.Error != "" || a.Answer != "Content-Type: text/plain; charset=utf-8\n\nthank you" || a.At.IsZero() || a.Duration <= 0 {
			t.Errorf("got %+v", a)
		}
		r := <-requests
		if r.Method != http.MethodPost || r.RequestURI != "/hook?shop=1" || r.body != string(m.Body) || r.ContentLength != int64(len(m.Body)) {
			t.Errorf("got %s %s, %d bytes: %s", r.Method, r.RequestURI, r.ContentLength, r.body)
		}
		if err := verify(t, secretA, []byte(r.body), r.Header); err != nil {
			t.Error(err)
		}
		if got, want := r.Header.Get("X-Svc-Signature"), ownSignature(secretA, m.Body); got != want {
			t.Errorf("signature %s, want %s", got, want)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/json", "User-Agent": "Gerbang/9.8", "Webhook-Id": "evt_1", "X-Svc-Event-Sequence": "2",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		for _, name := range []string{"Cookie", "Accept-Encoding", "Idempotency-Key", "Authorization", "Referer"} {
			if values, ok := r.Header[name]; ok {
				t.Errorf("%s is sent: %q", name, values)
			}
		}
	}
}

func TestStatusDecides(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		for _, digit := range strings.TrimPrefix(r.URL.Path, "/") {
			status = 10*status + int(digit-'0')
		}
		w.Header().Set("Location", "/200")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	s := localSender(t)
	for path, want := range map[string]Outcome{
		"/200": Delivered, "/201": Delivered, "/202": Delivered, "/204": Delivered, "/226": Delivered, "/299": Delivered,
		"/300": Failed, "/301": Failed, "/302": Failed, "/304": Failed, "/307": Failed, "/308": Failed,
		"/400": Failed, "/401": Failed, "/404": Failed, "/409": Failed, "/429": Failed, "/410": Gone, "/500": Failed, "/503": Failed, "/599": Failed,
	} {
		a := s.Send(t.Context(), messageTo(server.URL+path), onlyA)
		if a.Outcome != want || a.Outcome.Ends() != (want == Delivered || want == Gone) {
			t.Errorf("%s: %+v, want %s", path, a, want)
		}
		if want != Delivered && !strings.Contains(a.Error, path[1:]) {
			t.Errorf("%s: the error %q does not name the status", path, a.Error)
		}
	}
}

func TestAnswerIsKeptMasked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("true,", (maxBody-100)/5) + "true"
	for body, want := range map[string]string{ // as far as they are read
		`[{"name":"Budi"}]`: `[{"name":"B***"}]`,
		`{"paid":[` + long + `],"payer":"Budi Santoso","other":{"name":"Budi San`: `{"paid":[` + long + `],"payer":"B*** S***","other":{"name":"***"}}`,
		strings.Repeat("x ", maxBody/2-4) + "sk_live_":                            strings.TrimSpace(strings.Repeat("x ", maxBody/2-4)),
	} {
		if got := answerOf(nil, []byte(body)); got != want {
			t.Errorf("%s is kept as\n%s\nwant\n%s", body, got, want)
		}
	}
	header := http.Header{"Content-Type": {"application/json"}, "Location": {"https://shop.example/login?token=abc"}, "Set-Cookie": {"session=abc"}}
	for body, want := range map[string]string{
		"": "Content-Type: application/json\nLocation: https://shop.example/…\n",
		`{"error":"no shop of ani@example.com","trace_token":"abc","phone":"081234567890"}`: "Content-Type: application/json\nLocation: https://shop.example/…\n\n" +
			`{"error":"no shop of a***@e***.com","trace_token":"[removed]","phone":"***7890"}`,
		"<h1>500</h1> 081234567890": "Content-Type: application/json\nLocation: https://shop.example/…\n\n<h1>500</h1> ***7890",
	} {
		if got := answerOf(header, []byte(body)); got != want {
			t.Errorf("%s is kept as\n%s\nwant\n%s", body, got, want)
		}
	}
}

func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", maxAnswer/2))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s := localSender(t)
	for range 5 {
		if a := s.Send(t.Context(), messageTo(server.URL), onlyA); a.Outcome != Delivered {
			t.Fatalf("got %+v", a)
		}
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections for five callbacks, want 1", got)
	}
}

// TestDeadKeptConnectionIsReplaced has a receiver that closes each connection
// when the second request comes on it.
func TestDeadKeptConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffered := bufio.NewReader(conn)
				if r, err := http.ReadRequest(buffered); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					_, _ = http.ReadRequest(buffered)
				}
			}()
		}
	}()
	s := localSender(t)
	for n := range 3 {
		if a := s.Send(t.Context(), messageTo("http://"+listener.Addr().String()+"/"), onlyA); a.Outcome != Delivered {
			t.Errorf("callback %d: %+v", n+1, a)
		}
	}
}

func TestFailuresHaveTheirWords(t *testing.T) {
	t.Parallel()
	const closed = "127.0.0.1:1" // a port that no other test is given
	world := newNames()
	world.add("private.example", []netip.Addr{netip.MustParseAddr("10.0.0.1")})
	world.add("shop.example", []netip.Addr{netip.MustParseAddr("1.1.1.1")})
	gate := &turnstile{}
	s := senderBehind(t, Config{Resolver: world.resolver()}, gate.stand)
	for _, c := range []struct {
		sender  *Sender
		url     string
		outcome Outcome
		want    string
	}{
		{localSender(t), "http://" + closed + "/?token=hush", Failed, "the connection was refused"},
		{s, "https://shop.example/?token=hush", Failed, "no connection could be made"},
		{s, "https://missing.example/?token=hush", Failed, "the host name does not exist"},
		{s, "https://private.example/?token=hush", Refused, "the host does not lead to a public address"},
		{s, "https://127.0.0.1/?token=hush", Refused, "the URL must lead to a public address"},
		{s, "http://shop.example/?token=hush", Refused, "the URL must be an absolute https URL with a host, as https://shop.example/callbacks: its scheme is http"},
	} {
		if a := c.sender.Send(t.Context(), messageTo(c.url), onlyA); a.Outcome != c.outcome || a.Error != c.want || a.Status != 0 {
			t.Errorf("%s: %+v, want %q", c.url, a, c.want)
		}
	}
}

func TestResolverThatHangsHoldsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deaf := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours, nil
		}}
		gate := &turnstile{}
		s := senderBehind(t, Config{Resolver: deaf}, gate.stand)
		a := s.Send(t.Context(), messageTo("https://shop.example/"), onlyA)
		if a.Outcome != Failed || a.Duration > defaultTimeout || gate.judged != 0 {
			t.Errorf("got %+v", a)
		}
		time.Sleep(time.Minute) // the resolver gives up
	})
}

func TestStoppingAborts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		world := newPublicWorld(t, "shop.example")
		world.serve = receiver{secure: script("")}
		s := senderBehind(t, Config{Roots: world.roots}, world.dial)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		a := s.Send(ctx, messageTo("https://shop.example/"), onlyA)
		if a.Outcome != Aborted || a.Error == "" || a.Duration > 3*time.Second+farewell {
			t.Errorf("got %+v", a)
		}
		s.Close()
		time.Sleep(time.Second)
	})
}

func TestNothingUnsignedIsSent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("something was sent") }))
	t.Cleanup(server.Close)
	s := localSender(t)
	for _, secrets := range []Secrets{{}, {Current: secretPrefix}, {Current: secretA, Next: "x"}} {
		if a := s.Send(t.Context(), messageTo(server.URL), secrets); a.Outcome != Aborted || a.Error == "" {
			t.Errorf("got %+v", a)
		}
	}
}

// TestGuardAtARealSocket has a listener on this machine, at a port that the guard
// allows, that nobody reaches until the test itself comes.
func TestGuardAtARealSocket(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux takes the whole of 127.0.0.0/8 as its own, so that port 8443 is free there")
	}
	const address = "127.83.71.9"
	listener, err := net.Listen("tcp4", address+":8443")
	if err != nil {
		t.Skipf("somebody has the test's port: %s", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	world := newNames()
	world.add("inside.example", []netip.Addr{netip.MustParseAddr(address)})
	strict, err := New(Config{Resolver: world.resolver()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(strict.Close)
	for _, url := range []string{"https://inside.example:8443/", "https://" + address + ":8443/"} {
		if a := strict.Send(t.Context(), messageTo(url), onlyA); a.Outcome != Refused {
			t.Errorf("%s: %+v", url, a)
		}
	}
	own, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	if first.RemoteAddr().String() != own.LocalAddr().String() {
		t.Error("somebody came through the guard")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{Service: "a-b"}, {Service: "X\r\nY"}, {Service: strings.Repeat("x", 33)}, {Timeout: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	s, err := New(Config{})
	if err != nil || s.timeout != 10*time.Second || s.service != "Svc" || s.transport.Proxy != nil {
		t.Errorf("got %+v, %v", s, err)
	}
}

func BenchmarkSend(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(server.Close)
	s := localSender(b)
	m := messageTo(server.URL)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if a := s.Send(b.Context(), m, onlyA); a.Outcome != Delivered {
				b.Errorf("got %+v", a)
				return
			}
		}
	})
}

func BenchmarkSign(b *testing.B) {
	m := messageTo("https://shop.example/")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Sign("", m, onlyA, start); err != nil {
			b.Fatal(err)
		}
	}
}
