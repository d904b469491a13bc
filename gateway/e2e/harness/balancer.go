package harness

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// balancer stands before the replicas and gives each the next request in turn.
// One that takes no connections is left out from then on.
type balancer struct {
	url string

	mu       sync.Mutex
	targets  []string // hosts
	turn     int
	notified map[string]int // notifications that were accepted, by replica
}

func newBalancer(t testing.TB) *balancer {
	t.Helper()
	b := &balancer{notified: map[string]int{}}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.Host = "http", "" },
		Transport: b,
		ModifyResponse: func(r *http.Response) error {
			if strings.HasPrefix(r.Request.URL.Path, "/notify/") && r.StatusCode == http.StatusOK {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.notified["http://"+r.Request.URL.Host]++
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { // a replica that died of it
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	})
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *balancer) add(t testing.TB, p *Program) {
	t.Helper()
	target, err := url.Parse(p.APIURL)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = append(b.targets, target.Host)
}

// RoundTrip passes a request on.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		target, err := b.next()
		if err != nil {
			return nil, err
		}
		passed := r.Clone(r.Context())
		passed.URL.Host = target
		if r.Body != nil {
			passed.Body = io.NopCloser(r.Body) // nothing is read of it before there is a connection
		}
		response, err := http.DefaultTransport.RoundTrip(passed)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return response, err
		}
		b.leaveOut(target)
	}
}

func (b *balancer) next() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.targets) == 0 {
		return "", errors.New("there is no replica")
	}
	b.turn++
	return b.targets[b.turn%len(b.targets)], nil
}

func (b *balancer) leaveOut(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = slices.DeleteFunc(b.targets, func(t string) bool { return t == target })
}
