package report_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/julienschmidt/httprouter"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// roleVariable makes this test binary serve a floor: echo, or the URL of the database
// that the floor with a key and a read asks.
const (
	roleVariable    = "GERBANG_TEST_FLOOR"
	addressVariable = "GERBANG_TEST_FLOOR_ADDRESS"
	ownersVariable  = "GERBANG_TEST_FLOOR_OWNERS" // JSON: key to merchant
)

// keys is how many keys a floor knows.
const keys = 1000

// served is what a floor answers.
const served = `{"success":true,"data":{"balance":0,"held":0,"currency":"IDR"}}`

type asked struct {
	Key string `json:"secret_key"`
}

// serveFloor is httprouter with the least that any gateway does: it reads JSON and
// writes JSON, and where there is a database it looks the key's digest up and reads one
// row by its index.
func serveFloor(role string) error {
	router, answer := httprouter.New(), func(w http.ResponseWriter, balance, held int64) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"success": true, "data": map[string]any{"balance": balance, "held": held, "currency": "IDR"},
		}) // the caller may be gone
	}
	read := func(context.Context, string) (balance, held int64, err error) { return 0, 0, nil }
	if role != "echo" {
		var err error
		if read, err = balances(role); err != nil {
			return err
		}
	}
	router.POST("/balance", func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		var a asked
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		balance, held, err := read(r.Context(), a.Key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		answer(w, balance, held)
	})
	server := &http.Server{Addr: os.Getenv(addressVariable), Handler: router, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// balances reads the balance of a key's merchant.
func balances(databaseURL string) (func(context.Context, string) (int64, int64, error), error) {
	var owners map[string]string
	if err := json.Unmarshal([]byte(os.Getenv(ownersVariable)), &owners); err != nil {
		return nil, err
	}
	known := map[[sha256.Size]byte]string{}
	for key, merchant := range owners {
		known[sha256.Sum256([]byte(key))] = merchant
	}
	pool, err := pgxpool.New(context.Background(), databaseURL)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, key string) (available, held int64, err error) {
		merchant, ok := known[sha256.Sum256([]byte(key))]
		if !ok {
			return 0, 0, fmt.Errorf("unknown key")
		}
		err = pool.QueryRow(ctx, "SELECT available, held FROM ledger_balances WHERE merchant_id = $1 AND mode = 'live'", merchant).Scan(&available, &held)
		return available, held, err
	}, nil
}

// floor is a program that something is compared with.
type floor struct {
	address string
	pid     int
	missing string // why it is not there
}

// begin starts a floor and waits until it listens.
func begin(t *testing.T, address string, command *exec.Cmd) floor {
	t.Helper()
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	harness.Await(t, harness.ReadyWithin, command.Path, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return floor{address: address, pid: command.Process.Pid}
}

// router starts the floor of our own kind.
func router(t *testing.T, role string, owners map[string]string) floor {
	t.Helper()
	listed, err := json.Marshal(owners)
	if err != nil {
		t.Fatal(err)
	}
	address, command := harness.FreeAddress(t), exec.Command(os.Args[0])
	command.Env = append(os.Environ(), roleVariable+"="+role, addressVariable+"="+address, ownersVariable+"="+string(listed))
	return begin(t, address, command)
}

// installed starts a floor that is somebody else's program, with a configuration.
func installed(t *testing.T, program string, write func(dir, address string) (arguments []string)) floor {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		return floor{missing: program + " is not installed"}
	}
	dir, address := t.TempDir(), harness.FreeAddress(t)
	return begin(t, address, exec.Command(path, write(dir, address)...))
}

// key is the n-th that a floor knows.
func key(n int) string { return fmt.Sprintf("Bearer sk_live_%040d", n) }

func writeFile(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// haproxy checks a key in a map and counts its rate, and answers by itself.
func haproxy(t *testing.T) floor {
	t.Helper()
	return installed(t, "haproxy", func(dir, address string) []string {
		var known strings.Builder
		for n := range keys {
			fmt.Fprintln(&known, strings.ReplaceAll(key(n), "Bearer ", ""), "1")
		}
		file := writeFile(t, dir, "keys.map", []byte(known.String()))
		return []string{"-db", "-f", writeFile(t, dir, "haproxy.cfg", fmt.Appendf(nil, `defaults
  mode http
  timeout connect 1s
  timeout client 60s
  timeout server 60s
frontend merchants
  bind %s
  stick-table type string len 64 size 10k expire 1m store http_req_rate(1s)
  http-request set-var(txn.key) req.hdr(authorization),word(2,' ')
  http-request deny unless { var(txn.key),map_str(%s) -m found }
  http-request track-sc0 var(txn.key)
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 10000000 }
  http-request return status 200 content-type application/json string '%s'
`, address, file, served))}
	})
}

// nginx checks a key in a map and counts its rate, and serves files: a small one, and a
// list that was packed before.
func nginx(t *testing.T, packed []byte) floor {
	t.Helper()
	return installed(t, "nginx", func(dir, address string) []string {
		var known strings.Builder
		for n := range keys {
			fmt.Fprintf(&known, "    %q 1;\n", key(n))
		}
		user := ""
		if os.Getuid() == 0 {
			user = "user root;" // who may read the test's files
		}
		writeFile(t, dir, "balance.json", []byte(served))
		writeFile(t, dir, "products.json.gz", packed)
		return []string{"-e", filepath.Join(dir, "error.log"), "-p", dir, "-c", writeFile(t, dir, "nginx.conf", fmt.Appendf(nil, `%s
daemon off;
pid %s/nginx.pid;
worker_processes auto;
events { worker_connections 1024; }
http {
  access_log off;
  map_hash_bucket_size 128;
  keepalive_requests 1000000000;
  default_type application/json;
  client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy; fastcgi_temp_path %[2]s/fastcgi; uwsgi_temp_path %[2]s/uwsgi; scgi_temp_path %[2]s/scgi;
  map $http_authorization $known {
    default 0;
%s  }
  limit_req_zone $http_authorization zone=rate:10m rate=1000000r/s;
  open_file_cache max=16;
  server {
    listen %s;
    root %[2]s;
    if ($known = 0) { return 401; }
    limit_req zone=rate burst=1000000 nodelay;
    gzip_static on;
  }
}
`, user, dir, known.String(), address))}
	})
}
