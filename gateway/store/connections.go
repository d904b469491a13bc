package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	defaultMaxConns = 32
	// connectTimeout is for each host of the URL. A write waits a second longer, so that one
	// silent host refuses nothing.
	connectTimeout = 3 * time.Second
	// statementTimeout is the database's own bound of a write.
	statementTimeout = 3 * time.Second
	// deadAfter is when a peer that no longer answers is given up, on either side: the
	// locks of a gateway whose machine is gone are gone then, too.
	deadAfter = 6 * time.Second
)

// pools are the connections to a database: for reads and all else, for the writes of
// movements, which wait for nobody long, and one to tell the time, which must not wait
// for those that read.
type pools struct {
	all, writes, clock *pgxpool.Pool
	outcomes           *outcomes // of all
}

func connect(ctx context.Context, url string, options Options) (p pools, err error) {
	most := options.MaxConns
	if most <= 0 {
		most = defaultMaxConns
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return p, errURL
	}
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.DialFunc = dialer().DialContext
	config.ConnConfig.RuntimeParams["application_name"] = "gerbang"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if options.ReadOnly { // once it is connected: target_session_attrs=read-write looks for a server that writes
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET default_transaction_read_only = on")
			return err
		}
	}
	p.outcomes = new(outcomes)
	config.ConnConfig.Tracer = p.outcomes
	writers, clock := config.Copy(), config.Copy()
	writers.ConnConfig.RuntimeParams["statement_timeout"] = milliseconds(statementTimeout)
	writers.ConnConfig.RuntimeParams["lock_timeout"] = milliseconds(lockTimeout)
	// What administration writes holds readers' connections, so it waits for locks no longer
	// than a write may last. A statement has no other bound here: a full check of the ledger
	// reads an account's whole history in one, however long that is. Whoever asks bounds the
	// rest, and of a caller that is gone the server learns (client_connection_check_interval).
	config.ConnConfig.RuntimeParams["lock_timeout"] = milliseconds(statementTimeout)
	config.MaxConns = max(1, most/2)
	writers.MaxConns = max(2, most-most/2) // one for the shared commits
	clock.MaxConns, clock.MinConns = 1, 0
	for pool, config := range map[**pgxpool.Pool]*pgxpool.Config{&p.all: config, &p.writes: writers, &p.clock: clock} {
		new(attempts).bound(config)
		if *pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
			p.close()
			return p, fmt.Errorf("store: connect: %w", err)
		}
	}
	return p, nil
}

// InClear names the first server to which a URL leads without TLS, or may where the server has none, "" for none. A socket and this machine
// itself need none. What is no URL leads nowhere.
func InClear(url string) (server string) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return ""
	}
	ways := []*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}
	for _, way := range append(ways, config.Fallbacks...) {
		ip, _ := netip.ParseAddr(way.Host) // a name is no loopback address
		if way.TLSConfig == nil && !strings.HasPrefix(way.Host, "/") && !ip.IsLoopback() && way.Host != "localhost" {
			return net.JoinHostPort(way.Host, strconv.Itoa(int(way.Port)))
		}
	}
	return ""
}

// attempts are a pool's to connect. A server that is starting or full answers each at once
// and pays for each with a process. If every request attempted its own, a server that is
// back would work off their queue before it serves anybody.
type attempts struct {
	mu    sync.Mutex
	begun int32     // since the last that succeeded
	next  time.Time // when another may be made, once one of them has failed
}

// attemptPause lies between two attempts while none succeeds.
const attemptPause = 100 * time.Millisecond

var errNoConnections = errors.New("the database takes no connections at the moment")

// bound lets a pool attempt as many connections as it may have, and then one in each pause
// until one succeeds. A pool never attempts more at once, so that one has failed by then.
func (a *attempts) bound(pool *pgxpool.Config) {
	pool.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := time.Now()
		if a.begun >= pool.MaxConns && now.Before(a.next) {
			return notBegun{errNoConnections}
		}
		a.begun, a.next = a.begun+1, now.Add(attemptPause)
		return nil
	}
	also := pool.AfterConnect
	pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if also != nil {
			if err := also(ctx, conn); err != nil {
				return err
			}
		}
		if err := noticeDeadClients(ctx, conn); err != nil {
			return err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.begun = 0
		return nil
	}
}

func (p pools) close() {
	for _, pool := range []*pgxpool.Pool{p.all, p.writes, p.clock} {
		if pool != nil {
			pool.Close()
		}
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dialer notices a server that no longer answers, also one that owes us nothing but
// the acknowledgement of what was sent.
func dialer() *net.Dialer {
	third := deadAfter / 3
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: third, Interval: third / 2, Count: 4},
		ControlContext:  boundUnacknowledged,
	}
}

// offers are what servers know against clients that are gone: each sets those that it
// has. Settings of sockets mean nothing on a Unix socket.
var offers = map[string]string{
	"idle_in_transaction_session_timeout": milliseconds(deadAfter),
	"client_connection_check_interval":    milliseconds(deadAfter / 3),
	"tcp_keepalives_idle":                 "2",
	"tcp_keepalives_interval":             "1",
	"tcp_keepalives_count":                "4",
	"tcp_user_timeout":                    milliseconds(deadAfter),
}

// noticeDeadClients has a server notice when we are gone.
func noticeDeadClients(ctx context.Context, conn *pgx.Conn) error {
	names, values := make([]string, 0, len(offers)), make([]string, 0, len(offers))
	for name, value := range offers {
		names, values = append(names, name), append(values, value)
	}
	_, err := conn.Exec(ctx, `SELECT set_config(s.name, o.value, FALSE)
		FROM (SELECT UNNEST($1::TEXT[]) AS name, UNNEST($2::TEXT[]) AS value) AS o
		JOIN pg_settings AS s ON s.name = o.name`, pgx.QueryExecModeSimpleProtocol, names, values)
	return err
}
