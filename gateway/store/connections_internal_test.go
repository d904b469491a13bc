package store

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// TestAServerThatTakesNoConnectionsIsNotFlooded asks a server that ends every
// connection as soon as it is made for more than any gateway would, and then has it
// come back.
func TestAServerThatTakesNoConnectionsIsNotFlooded(t *testing.T) {
	t.Parallel()
	server := newUnwilling(t, dbtest.New(t, "", nil))
	p, err := connect(t.Context(), server.url, Options{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	begun := time.Now()
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			for range 50 {
				if _, err := p.writes.Exec(t.Context(), "SELECT"); err == nil || ambiguous(err) {
					t.Errorf("%v, want an error that says that nothing was written", err)
				}
			}
		})
	}
	group.Wait()
	most := int64(p.writes.Config().MaxConns) + int64(time.Since(begun)/attemptPause) + 1
	most *= 2 // pgx asks over another to cancel what broke
	if n := server.attempts.Load(); n < int64(p.writes.Config().MaxConns) || n > most {
		t.Errorf("2000 statements made %d connections in %v, want at most %d", n, time.Since(begun), most)
	}
	server.willing.Store(true)
	for begun := time.Now(); ; {
		_, err := p.writes.Exec(t.Context(), "SELECT")
		if err == nil {
			break
		}
		if time.Since(begun) > 5*time.Second {
			t.Fatalf("%v, 5 s after the server was back", err)
		}
	}
	for range 2 { // those of a full pool, which nothing holds back
		var conns sync.WaitGroup
		for range p.writes.Config().MaxConns {
			conns.Go(func() {
				if _, err := p.writes.Exec(t.Context(), "SELECT pg_sleep(0.05)"); err != nil {
					t.Error(err)
				}
			})
		}
		conns.Wait()
		p.writes.Reset()
	}
}

// unwilling is a server that ends each connection that is made to it until it is
// willing.
type unwilling struct {
	url      string
	attempts atomic.Int64
	willing  atomic.Bool
}

func newUnwilling(t *testing.T, databaseURL string) *unwilling {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = listener.Addr().String()
	query := u.Query()
	query.Del("host") // of a Unix socket
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	s := &unwilling{url: u.String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			s.attempts.Add(1)
			if !s.willing.Load() {
				near.Close()
				continue
			}
			network, address := pgconn.NetworkAddress(config.Host, config.Port)
			far, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
			if err != nil {
				near.Close()
				continue
			}
			serving.Go(func() { carry(near, far) })
			serving.Go(func() { carry(far, near) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return s
}

func carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(to, from)
}
