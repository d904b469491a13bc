package store_test

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// TestAServerThatTakesNoConnectionsIsNotFlooded asks for more than the pools can get
// of a server that ends each connection at once, and then has it come back.
func TestAServerThatTakesNoConnectionsIsNotFlooded(t *testing.T) {
	t.Parallel()
	p, s, _, url := cuttable(t)
	const conns = 4 // of both pools together
	p.refuse(true)
	begun := time.Now()
	var group sync.WaitGroup
	for lane := range 40 {
		group.Go(func() {
			for i := range 25 {
				if _, _, err := s.Reserve(t.Context(), draft(fmt.Sprint(lane, "/", i))); err == nil {
					t.Error("something is reserved without a database")
				}
			}
		})
	}
	group.Wait()
	pauses := int(time.Since(begun)/store.AttemptPause) + 1
	// Both pools may make each of their attempts twice: pgx cancels over another connection what broke.
	if n, most := p.turnedAway(), 2*(conns+2*pauses); n == 0 || n > most {
		t.Errorf("1000 reservations attempted %d connections in %v, want at most %d", n, time.Since(begun), most)
	}
	if n := count(t, url, rows); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
	p.refuse(false)
	for back := time.Now(); ; {
		_, ours, err := s.Reserve(t.Context(), draft("INV/1"))
		if ours {
			break
		}
		if time.Since(back) > 5*time.Second {
			t.Fatalf("%v, 5 s after the server was back", err)
		}
	}
	for i := range 4 * conns { // nothing holds back what succeeds
		group.Go(func() {
			if _, ours, err := s.Reserve(t.Context(), draft(fmt.Sprint("INV/2/", i))); !ours {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestTheNextHostIsConnectedTo: of a URL with several hosts the first is gone, or is there and
// says nothing, as one whose machine has stopped: that is given up after the connect timeout,
// which is shorter than a write waits.
func TestTheNextHostIsConnectedTo(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("silent=%v", silent), func(t *testing.T) {
			t.Parallel()
			if silent {
				tier.Long(t, "a silent host is waited for")
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if silent { // the kernel accepts, and nobody reads
				t.Cleanup(func() { listener.Close() })
			} else if err := listener.Close(); err != nil {
				t.Fatal(err)
			}
			config, err := pgx.ParseConfig(database(t))
			if err != nil {
				t.Fatal(err)
			}
			hosts := url.URL{
				Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Path: "/" + config.Database, RawQuery: "sslmode=disable",
				Host: listener.Addr().String() + "," + net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))),
			}
			begun := time.Now()
			s := open(t, hosts.String(), store.Options{MaxConns: 4})
			if took := time.Since(begun); silent != (took >= store.ConnectTimeout) {
				t.Errorf("it took %v to open, with a connect timeout of %v", took, store.ConnectTimeout)
			}
			if _, ours, err := s.Reserve(t.Context(), draft("INV/1")); !ours {
				t.Fatalf("nothing is reserved after %v: %v", time.Since(begun), err)
			}
		})
	}
}

func TestInClear(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://gerbang@db.example.com/gerbang":                                                   "db.example.com:5432",
		"postgres://db.example.com/gerbang?sslmode=prefer":                                            "db.example.com:5432",
		"postgres://db.example.com/gerbang?sslmode=disable":                                           "db.example.com:5432",
		"postgres://db.example.com/gerbang?sslmode=require":                                           "",
		"postgres://db.example.com/gerbang?sslmode=verify-full":                                       "",
		"postgres://127.0.0.1/gerbang":                                                                "",
		"postgres://localhost/gerbang":                                                                "",
		"postgres:///gerbang?host=/var/run/postgresql":                                                "",
		"postgres://127.0.0.1:1,db.example.com:26257/gerbang?sslmode=disable":                         "db.example.com:26257",
		"postgres://localhost,db.example.com/gerbang?sslmode=prefer":                                  "db.example.com:5432",
		"postgres://a.example.com,b.example.com:26257/gerbang?sslmode=verify-full&sslrootcert=system": "",
		"host=db.example.com dbname=gerbang sslmode=allow":                                            "db.example.com:5432",
		"this is none": "",
	} {
		if got := store.InClear(url); got != want {
			t.Errorf("%s leads to %q in clear, want %q", url, got, want)
		}
	}
}
