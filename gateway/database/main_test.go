package database

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// gatewayVariable makes this test binary stand for a gateway that opens a server in the directory it names and then
// does nothing until it is killed.
const gatewayVariable = "DATABASE_TEST_GATEWAY_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(gatewayVariable); dir != "" {
		s, err := Open(context.Background(), Options{Dir: dir, Engine: PostgreSQL})
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(s.URL())
		select {}
	}
	os.Exit(m.Run())
}

// environment is a Getenv of exactly these variables.
type environment map[string]string

func (e environment) get(name string) string { return e[name] }

// needsPostgres skips where PostgreSQL's server binaries are not installed.
func needsPostgres(t *testing.T) {
	t.Helper()
	if len(findPostgres(t.Context(), knownPlaces, os.Getenv("PATH"))) == 0 {
		t.Skip("no PostgreSQL server binaries here")
	}
}

// reachable is a temporary directory that an unprivileged user can get to, which t.TempDir is not when root tests.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gerbang-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	var text string
	if err := conn.QueryRow(t.Context(), sql).Scan(&text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not happen", what)
	}
}

// script writes an executable shell script.
func script(t *testing.T, dir, name, body string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	writeProgram(t, file, []byte("#!/bin/sh\n"+body))
	return file
}

// writeProgram writes a file to be executed. No child may be forked meanwhile: it would hold the file open for
// writing until it executes something itself, and the kernel refuses to run such a file.
func writeProgram(t *testing.T, file string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// wire answers PostgreSQL's protocol with the given parameters, accepts every statement and remembers it.
type wire struct {
	addr       string
	parameters map[string]string

	mu         sync.Mutex
	statements []string
}

func newWire(t *testing.T, parameters map[string]string) *wire {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{addr: l.Addr().String(), parameters: parameters}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return w
}

func (w *wire) serve(conn net.Conn) {
	defer conn.Close()
	backend := pgproto3.NewBackend(conn, conn)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	for name, value := range w.parameters {
		backend.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	for {
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if backend.Flush() != nil {
			return
		}
		message, err := backend.Receive()
		if err != nil {
			return
		}
		q, ok := message.(*pgproto3.Query)
		if !ok {
			return
		}
		w.mu.Lock()
		w.statements = append(w.statements, q.String)
		w.mu.Unlock()
		backend.Send(&pgproto3.CommandComplete{CommandTag: []byte("OK")})
	}
}

func (w *wire) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.statements...)
}
