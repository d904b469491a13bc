package harness

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Document is what the ready file of gerbang dev holds.
type Document struct {
	APIURL      string `json:"api_url"`
	ConsoleURL  string `json:"console_url"`
	SandboxURL  string `json:"sandbox_url"`
	DatabaseURL string `json:"database_url"`
	// Links by which somebody comes into each console, good once.
	MerchantsConsoleURL string     `json:"merchants_console_url"`
	OwnerURL            string     `json:"owner_url"`
	OperatorURL         string     `json:"operator_url"`
	Engine              string     `json:"engine"`
	AdminToken          string     `json:"admin_token"`
	Merchants           []Merchant `json:"merchants"`
}

// Merchant is a merchant with its secrets, which are shown once.
type Merchant struct {
	MerchantID         string `json:"merchant_id"`
	Tier               string `json:"tier"`
	LiveKey            string `json:"live_key"`
	TestKey            string `json:"test_key"`
	CallbackSecret     string `json:"callback_secret"`
	TestCallbackSecret string `json:"test_callback_secret"`
}

// Settings are how a program is started. The zero value has a data directory
// and a database of its own.
type Settings struct {
	Data        string
	DatabaseURL string // of DevDatabase, or of an empty one; NoURL leaves the flag out
	Listen      string
	Flags       []string
}

// NoURL lets gerbang dev find or start its database itself.
const NoURL = "none"

// Program is `gerbang dev`, or one replica of `gerbang serve`, as a process.
type Program struct {
	Document
	Data      string
	ReadyFile string
	Command   *exec.Cmd
	Out, Log  *recording
	binary    string        // another one than Binary's
	exited    chan struct{} // closed once it has ended
	Code      int           // its exit code, once it has

	mu    sync.Mutex
	known []Merchant // whose secrets the log must not hold, beside the demo merchants
}

// Start starts a program, waits until it is ready, and stops it after the test.
func Start(t testing.TB, s Settings) *Program {
	t.Helper()
	takeSlot(t)
	s.complete(t)
	for try := 1; ; try++ {
		p := Launch(t, s)
		Await(t, ReadyWithin, "the ready file", func() bool {
			content, err := os.ReadFile(p.ReadyFile)
			return err == nil && json.Unmarshal(content, &p.Document) == nil || !p.Running()
		})
		if p.Running() {
			return p
		}
		if !strings.Contains(p.Log.String(), startTimeout) || try == mostStarts {
			t.Fatalf("gerbang dev ended with code %d before it was ready:\n%s", p.Code, p.Log.Tail(60))
		}
	}
}

// A plugin has 15 s to start. On a busy machine that may be too few, and whoever started
// the program starts it again.
const (
	startTimeout = "did not start within"
	mostStarts   = 8
)

// complete fills in what is left out.
func (s *Settings) complete(t testing.TB) {
	t.Helper()
	if s.Data == "" {
		s.Data = DataDir(t)
	}
	if s.DatabaseURL == "" {
		s.DatabaseURL = DevDatabase(t)
	}
	if s.Listen == "" {
		s.Listen = "127.0.0.1:0"
	}
}

// Launch starts a program and waits for nothing.
func Launch(t testing.TB, s Settings) *Program {
	t.Helper()
	takeSlot(t)
	s.complete(t)
	p := &Program{Data: s.Data, ReadyFile: filepath.Join(t.TempDir(), "ready.json")}
	arguments := []string{
		"dev", "--data", s.Data, "--listen", s.Listen, "--console", "127.0.0.1:0", "--sandbox", "127.0.0.1:0", "--merchants-console", "127.0.0.1:0", "--ready-file", p.ReadyFile,
		"--plugin-read", os.TempDir(), // tests write settlement reports into directories of their own
	}
	if s.DatabaseURL != NoURL {
		arguments = append(arguments, "--database-url", s.DatabaseURL)
	}
	p.begin(t, append(arguments, s.Flags...)...)
	return p
}

// begin runs gerbang until it ends by itself or the test is over.
func (p *Program) begin(t testing.TB, arguments ...string) {
	t.Helper()
	p.Out, p.Log, p.exited = &recording{}, &recording{}, make(chan struct{})
	p.Command = exec.Command(cmp.Or(p.binary, Binary(t)), arguments...)
	p.Command.Stdout, p.Command.Stderr = p.Out, p.Log
	p.Command.Env = CleanEnvironment(os.Environ())
	if err := p.Command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Command.Wait()
		p.Code = p.Command.ProcessState.ExitCode()
		close(p.exited)
	}()
	t.Cleanup(func() { p.cleanup(t) })
}

// CleanEnvironment leaves out what would lead a program elsewhere.
func CleanEnvironment(environ []string) []string {
	var kept []string
	for _, pair := range environ {
		if !strings.HasPrefix(pair, "GERBANG_") {
			kept = append(kept, pair)
		}
	}
	return kept
}

// DataDir is a temporary directory that the user who runs a private PostgreSQL
// may pass through: Go's own is closed to others.
func DataDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data")
}

// Running tells whether the program has not ended.
func (p *Program) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Stop ends a program as Ctrl-C does: in time, in order, with nothing left.
func (p *Program) Stop(t testing.TB) {
	t.Helper()
	family := p.Processes(t)
	if err := p.Command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("gerbang had ended already: %v", err)
	}
	Await(t, StopsWithin, "the end after SIGTERM", func() bool { return !p.Running() })
	if p.Code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", p.Code)
	}
	for _, left := range StillAlive(t, family) {
		t.Errorf("left behind after SIGTERM: %s", left)
	}
}

// Kill ends a program as a crash does, and returns the processes it had.
func (p *Program) Kill(t testing.TB) []Process {
	t.Helper()
	family := p.Processes(t)
	if err := p.Command.Process.Kill(); err != nil {
		<-p.exited
		t.Fatalf("gerbang had ended already, with code %d: %v", p.Code, err)
	}
	<-p.exited
	return family
}

// cleanup stops what still runs, and looks at what the log should never hold.
func (p *Program) cleanup(t testing.TB) {
	if p.Running() {
		_ = p.Command.Process.Signal(syscall.SIGTERM)
		if err := Until(StopsWithin, func() bool { return !p.Running() }); err != nil {
			t.Error("gerbang did not end after the test and is killed")
			_ = p.Command.Process.Kill()
			<-p.exited
		}
	}
	log := p.Log.String()
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
		t.Logf("the end of gerbang's log:\n%s", p.Log.Tail(80))
	}
}

// KeepSecret adds merchants whose secrets the log must not hold.
func (p *Program) KeepSecret(m ...Merchant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = append(p.known, m...)
}

// Known are the merchants that tests made.
func (p *Program) Known() []Merchant {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.known)
}

func (p *Program) secrets() map[string]string {
	secrets := map[string]string{"the admin token": p.AdminToken}
	for _, m := range slices.Concat(p.Merchants, p.Known()) {
		secrets["live key of "+m.MerchantID], secrets["test key of "+m.MerchantID] = m.LiveKey, m.TestKey
		secrets["callback secret of "+m.MerchantID] = m.CallbackSecret
		secrets["test callback secret of "+m.MerchantID] = m.TestCallbackSecret
	}
	return secrets
}
