package app

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections stay in this process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestAStopWaitsForTheLongestOperation: what is under way for 25 s more when the listener
// closes gets its answer, and what takes for ever is cut.
func TestAStopWaitsForTheLongestOperation(t *testing.T) {
	t.Parallel()
	for path, answered := range map[string]bool{"/25s": true, "/1h": false} {
		synctest.Test(t, func(t *testing.T) {
			on := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
			ctx, stop := context.WithCancel(t.Context())
			server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				takes, _ := time.ParseDuration(r.URL.Path[1:])
				select {
				case <-time.After(takes):
				case <-r.Context().Done():
				}
			})}
			ended := make(chan error, 1)
			go func() { ended <- serve(ctx, server, on) }()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				on.conns <- theirs
				return ours, nil
			}}}
			asked := make(chan error, 1)
			go func() {
				answer, err := client.Get("http://gateway" + path)
				if err == nil {
					_ = answer.Body.Close()
				}
				asked <- err
			}()
			synctest.Wait() // it is under way
			begun := time.Now()
			stop()
			if err := <-asked; (err == nil) != answered {
				t.Errorf("%s: %v", path, err)
			}
			<-ended
			if took := time.Since(begun); took > 32*time.Second {
				t.Errorf("%s: the stop took %v", path, took)
			}
		})
	}
}
