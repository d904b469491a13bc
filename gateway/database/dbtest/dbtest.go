package dbtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database"
)

// The environment that withdb gives to the tests it runs.
const (
	// URLVariable points to a server on which databases may be created and dropped.
	URLVariable = "GERBANG_TEST_DATABASE_URL"
	// EngineVariable names the engine that tests must run on: cockroachdb or postgresql.
	EngineVariable = "GERBANG_TEST_ENGINE"
)

const cleanupPatience = 30 * time.Second

// Prepare brings an empty database to the state that tests begin with, by migrations as a rule. It must have closed
// its connections when it returns.
type Prepare func(ctx context.Context, url string) error

// run is the server of this test process, opened by the first test that needs it.
var run struct {
	sync.Mutex
	open   bool // Main or Run is active
	opened bool
	server *Server
	err    error
	ready  map[string]*template
}

// Main is the body of TestMain in every package whose tests call New: it stops the server after the last test.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain that has more to do around the tests; it returns the exit code.
func Run(m interface{ Run() int }) int {
	run.Lock()
	run.open = true
	run.Unlock()
	defer closeServer()
	return m.Run()
}

func closeServer() {
	run.Lock()
	defer run.Unlock()
	run.open = false
	if run.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanupPatience)
	defer cancel()
	if err := errors.Join(run.server.dropPool(ctx), run.server.Close(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
	}
}

// New returns the URL of a database that only this test uses and that is dropped when it ends. On PostgreSQL prepare
// runs once for each key on the server, into a template that later databases are copied from, so the key must change
// whenever what prepare does changes: a digest of the migrations. On CockroachDB, which has no templates, prepare runs
// for each test. A nil prepare gives an empty database.
func New(tb testing.TB, key string, prepare Prepare) string {
	tb.Helper()
	s := server(tb)
	ctx := tb.Context()
	name := newName()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupPatience)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			tb.Logf("dbtest: %s is left behind: %v", name, err) // the test may have stopped the server
		}
	})
	if err := s.createFor(ctx, name, key, prepare); err != nil {
		tb.Fatalf("dbtest: %v", err)
	}
	return withDatabase(s.URL, name)
}

func newName() string { return "gerbang_test_" + strings.ToLower(rand.Text()[:16]) }

// Engine is the engine that this process's tests run on.
func Engine(tb testing.TB) database.Engine {
	tb.Helper()
	return server(tb).Engine
}

func server(tb testing.TB) *Server {
	tb.Helper()
	run.Lock()
	defer run.Unlock()
	if !run.open {
		tb.Fatal("dbtest: the package's TestMain must call dbtest.Main, which stops the server after the last test")
	}
	if !run.opened {
		run.opened = true
		run.ready = map[string]*template{}
		run.server, run.err = fromEnvironment(context.WithoutCancel(tb.Context()))
	}
	if run.err != nil {
		tb.Fatalf("dbtest: %v", run.err)
	}
	return run.server
}

// fromEnvironment uses the server that the environment names, or starts one for this process.
func fromEnvironment(ctx context.Context) (*Server, error) {
	engine := database.Engine(os.Getenv(EngineVariable))
	raw := os.Getenv(URLVariable)
	if raw == "" {
		return Start(ctx, Wanted{Engine: engine})
	}
	opened, err := database.Open(ctx, database.Options{URL: raw, Engine: engine})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", URLVariable, err)
	}
	return &Server{URL: opened.URL(), Engine: opened.Engine(), Source: URLVariable, stop: opened.Close}, nil
}

// template is one prepared template of this process: the first test makes or finds it, the others wait.
type template struct {
	once sync.Once
	err  error
}

func (s *Server) createFor(ctx context.Context, name, key string, prepare Prepare) error {
	if prepare == nil {
		return s.exec(ctx, "CREATE DATABASE "+name)
	}
	if s.Engine == database.CockroachDB {
		if err := s.exec(ctx, "CREATE DATABASE "+name); err != nil {
			return err
		}
		return prepare(ctx, withDatabase(s.URL, name))
	}
	if key == "" {
		return errors.New("a prepared database needs a key")
	}
	sum := sha256.Sum256([]byte(key))
	from := "gerbang_template_" + hex.EncodeToString(sum[:8])
	run.Lock()
	t := run.ready[from]
	if t == nil {
		t = &template{}
		run.ready[from] = t
	}
	run.Unlock()
	// The first test's context must not decide about the others' template.
	t.once.Do(func() { t.err = s.ensureTemplate(context.WithoutCancel(ctx), from, prepare) })
	if t.err != nil {
		return fmt.Errorf("prepare: %w", t.err)
	}
	// On PostgreSQL 15 the default strategy writes every page into the log; a copy of files takes half the time.
	return s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+from+" STRATEGY file_copy")
}
