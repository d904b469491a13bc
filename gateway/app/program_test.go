package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// binVariable names a directory with binaries to test, laid out as make build
// leaves them; without it the tests build their own.
const binVariable = "GERBANG_TEST_BIN"

// sideBySide is how many tests run at once on a small machine.
const sideBySide = 6

func TestMain(m *testing.M) {
	if path := os.Getenv(roleVariable); path != "" {
		fmt.Fprintln(os.Stderr, serveBare(path)) // ends only by a fault, or killed
		os.Exit(1)
	}
	// These tests wait far more than they compute.
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue && runtime.GOMAXPROCS(0) < sideBySide {
		_ = parallel.Value.Set(strconv.Itoa(sideBySide))
	}
	code := dbtest.Run(m)
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// builtIn is the directory that build made, for TestMain to remove.
var builtIn string

// build makes the binaries as make build does, once for the test process.
var build = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(binVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.MkdirTemp("", "gerbang-bin")
	if err != nil {
		return "", err
	}
	builtIn = dir
	plugins, err := filepath.Glob(filepath.Join(root, "plugins", "*", "main.go"))
	if err != nil || len(plugins) == 0 {
		return "", fmt.Errorf("no plugins to build: %w", err)
	}
	arguments := []string{"build", "-trimpath", "-o", filepath.Join(dir, "plugins") + "/"}
	for _, main := range plugins {
		arguments = append(arguments, "./plugins/"+filepath.Base(filepath.Dir(main)))
	}
	for _, a := range [][]string{arguments, {"build", "-trimpath", "-o", filepath.Join(dir, "gerbang"), "./gateway/cmd/gerbang"}} {
		command := exec.Command("go", a...)
		command.Dir = root
		if out, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(a, " "), err, out)
		}
	}
	return dir, nil
})

func binary(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "gerbang")
}

// document is the ready file.
type document struct {
	APIURL      string     `json:"api_url"`
	ConsoleURL  string     `json:"console_url"`
	SandboxURL  string     `json:"sandbox_url"`
	DatabaseURL string     `json:"database_url"`
	Engine      string     `json:"engine"`
	AdminToken  string     `json:"admin_token"`
	Merchants   []merchant `json:"merchants"`
}

// merchant is a merchant with its secrets, as they are told once.
type merchant struct {
	MerchantID         string `json:"merchant_id"`
	Tier               string `json:"tier"`
	LiveKey            string `json:"live_key"`
	TestKey            string `json:"test_key"`
	CallbackSecret     string `json:"callback_secret"`
	TestCallbackSecret string `json:"test_callback_secret"`
}

// settings are how a program is started. The zero value has a data directory
// and a database of its own.
type settings struct {
	data        string
	databaseURL string // noURL leaves the flag out
	listen      string
	flags       []string
}

const noURL = "none"

// program is `gerbang dev`, or one replica of `gerbang serve`, as a process.
type program struct {
	document
	data      string
	readyFile string
	command   *exec.Cmd
	out, log  *recording
	exited    chan struct{} // closed once it has ended
	code      int           // its exit code, once it has

	known  sync.Mutex
	guests []merchant // merchants that tests made
}

const (
	readyWithin = 60 * time.Second
	stopsWithin = 15 * time.Second
	goneWithin  = 3 * time.Second
)

// start starts a program, waits until it is ready, and stops it after the test.
func start(t testing.TB, s settings) *program {
	t.Helper()
	p := launch(t, s)
	await(t, readyWithin, "the ready file", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("gerbang dev ended with code %d before it was ready:\n%s", p.code, p.log.tail(60))
		default:
		}
		content, err := os.ReadFile(p.readyFile)
		return err == nil && json.Unmarshal(content, &p.document) == nil
	})
	return p
}

// launch starts a program and waits for nothing.
func launch(t testing.TB, s settings) *program {
	t.Helper()
	if s.data == "" {
		s.data = dataDir(t)
	}
	if s.databaseURL == "" {
		s.databaseURL = dbtest.New(t, "", nil)
	}
	if s.listen == "" {
		s.listen = "127.0.0.1:0"
	}
	p := &program{data: s.data, readyFile: filepath.Join(t.TempDir(), "ready.json")}
	arguments := []string{
		"dev", "--data", s.data, "--listen", s.listen, "--console", "127.0.0.1:0", "--sandbox", "127.0.0.1:0", "--ready-file", p.readyFile,
	}
	if s.databaseURL != noURL {
		arguments = append(arguments, "--database-url", s.databaseURL)
	}
	p.begin(t, append(arguments, s.flags...)...)
	return p
}

// begin runs gerbang until it ends by itself or the test is over.
func (p *program) begin(t testing.TB, arguments ...string) {
	t.Helper()
	p.out, p.log, p.exited = &recording{}, &recording{}, make(chan struct{})
	p.command = exec.Command(binary(t), arguments...)
	p.command.Stdout, p.command.Stderr = p.out, p.log
	p.command.Env = clean(os.Environ())
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait()
		p.code = p.command.ProcessState.ExitCode()
		close(p.exited)
	}()
	t.Cleanup(func() { p.cleanup(t) })
}

// clean leaves out what would lead a program elsewhere.
func clean(environ []string) []string {
	var kept []string
	for _, pair := range environ {
		if !strings.HasPrefix(pair, "GERBANG_") {
			kept = append(kept, pair)
		}
	}
	return kept
}

// dataDir is a temporary directory that the user who runs a private PostgreSQL
// may pass through: Go's own is closed to others.
func dataDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data")
}

func (p *program) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop ends a program as Ctrl-C does: in time, in order, with nothing left.
func (p *program) stop(t testing.TB) {
	t.Helper()
	family := p.family(t)
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("gerbang had ended already: %v", err)
	}
	await(t, stopsWithin, "the end after SIGTERM", func() bool { return !p.running() })
	if p.code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", p.code)
	}
	for _, left := range stillAlive(t, family) {
		t.Errorf("left behind after SIGTERM: %s", left)
	}
}

// kill ends a program as a crash does, and returns the processes it had.
func (p *program) kill(t testing.TB) []process {
	t.Helper()
	family := p.family(t)
	if err := p.command.Process.Kill(); err != nil {
		<-p.exited
		t.Fatalf("gerbang had ended already, with code %d: %v", p.code, err)
	}
	<-p.exited
	return family
}

// cleanup stops what still runs, and looks at what the log should never hold.
func (p *program) cleanup(t testing.TB) {
	if p.running() {
		_ = p.command.Process.Signal(syscall.SIGTERM)
		if err := until(stopsWithin, func() bool { return !p.running() }); err != nil {
			t.Error("gerbang did not end after the test and is killed")
			_ = p.command.Process.Kill()
			<-p.exited
		}
	}
	log := p.log.String()
	for name, secret := range p.secrets() {
		if secret != "" && strings.Contains(log, secret) {
			t.Errorf("the log holds a secret: %s", name)
		}
	}
	for _, sign := range []string{"panic", "DATA RACE", "goroutine "} {
		if strings.Contains(log, sign) {
			t.Errorf("the log says %q", sign)
		}
	}
	if t.Failed() {
		t.Logf("the end of gerbang's log:\n%s", p.log.tail(80))
	}
}

func (p *program) secrets() map[string]string {
	secrets := map[string]string{"the admin token": p.AdminToken}
	p.known.Lock()
	defer p.known.Unlock()
	for _, m := range slices.Concat(p.Merchants, p.guests) {
		secrets["live key of "+m.MerchantID], secrets["test key of "+m.MerchantID] = m.LiveKey, m.TestKey
		secrets["callback secret of "+m.MerchantID] = m.CallbackSecret
		secrets["test callback secret of "+m.MerchantID] = m.TestCallbackSecret
	}
	return secrets
}

// admin is the program's admin API.
func (p *program) admin() *adminapi.Client { return adminapi.NewClient(p.ConsoleURL, p.AdminToken) }

// run runs another command of gerbang against the program.
func (p *program) run(t testing.TB, arguments ...string) (string, error) {
	t.Helper()
	return p.runWith(t, "", arguments...)
}

// runWith is run with something on standard input.
func (p *program) runWith(t testing.TB, input string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary(t), arguments...)
	command.Env = append(clean(os.Environ()), "GERBANG_ADMIN_URL="+p.ConsoleURL, "GERBANG_ADMIN_TOKEN="+p.AdminToken)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

// recording keeps what a process writes.
type recording struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (r *recording) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.content.Write(p)
}

func (r *recording) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.content.String()
}

// tail is the end of what was written, without the log of ordinary requests.
func (r *recording) tail(most int) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(r.String()), "\n"), func(line string) bool {
		return strings.Contains(line, `"msg":"request"`) && !strings.Contains(line, `"status":5`)
	})
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

var errInVain = errors.New("waited in vain")

// until asks a condition again and again, for those that nothing tells of.
func until(within time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return errInVain
		case <-tick.C:
		}
	}
	return nil
}

// await is until, for the test's own goroutine.
func await(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	if err := until(within, holds); err != nil {
		t.Fatalf("%v for %s, %v", err, what, within)
	}
}

// onPostgreSQL skips a test whose subject is PostgreSQL's.
func onPostgreSQL(t testing.TB) {
	t.Helper()
	if engine := dbtest.Engine(t); engine != database.PostgreSQL {
		t.Skipf("is about PostgreSQL; this run is on %s", engine)
	}
}
