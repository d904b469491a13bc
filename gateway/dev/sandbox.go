package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// plugin is a binary of the plugin directory or a developer's own, approved because its
// owner has just built it.
type plugin struct {
	name, path, sha256 string
	own                bool
}

func findPlugins(dir string) ([]plugin, error) {
	if dir == "" {
		executable, err := os.Executable()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(filepath.Dir(executable), "plugins")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("plugins: %w; make build makes them", err)
	}
	var plugins []plugin
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		sum, err := host.SHA256File(path)
		if err != nil {
			return nil, err
		}
		plugins = append(plugins, plugin{name: entry.Name(), path: path, sha256: sum})
	}
	if len(plugins) == 0 {
		return nil, fmt.Errorf("plugins: there are none in %s; make build makes them", dir)
	}
	return plugins, nil
}

// sandbox is the process that plays one plugin's upstream.
type sandbox struct {
	plugin plugin
	dir    string // where it keeps its state
	token  string
	log    *slog.Logger

	mu      sync.Mutex
	address string // the same again after a restart, so that its links stay valid
	process *exec.Cmd
	exited  chan struct{}

	renewed chan struct{} // holds something while it is to go on from another file
}

const (
	sandboxStart = 10 * time.Second
	sandboxStop  = 2 * time.Second
)

// startSandboxes starts every plugin's simulator and waits until all answer.
func (t *tree) startSandboxes(ctx, running context.Context, plugins []plugin) ([]*sandbox, error) {
	sandboxes := make([]*sandbox, 0, len(plugins))
	for _, p := range plugins {
		s := &sandbox{
			plugin: p, dir: filepath.Join(t.Data, "sandbox", p.name), token: t.state.SandboxToken,
			address: t.state.Addresses[p.name], log: t.Log.With("sandbox", p.name), renewed: make(chan struct{}, 1),
		}
		if s.address == "" {
			s.address = anyPort
		}
		if err := s.start(ctx, running); err != nil && s.address != anyPort {
			// Somebody else has the port now; the links of before are lost, the state is not.
			s.log.Warn("the simulator can't have its address back and takes another", "address", s.address, "error", err)
			s.address = anyPort
			err = s.start(ctx, running)
			if err != nil {
				return sandboxes, err
			}
		} else if err != nil {
			return sandboxes, err
		}
		t.state.Addresses[p.name] = s.address
		sandboxes = append(sandboxes, s)
	}
	return sandboxes, t.state.save()
}

const anyPort = "127.0.0.1:0"

// start runs the process and waits until it answers.
func (s *sandbox) start(ctx, running context.Context) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	ready := filepath.Join(s.dir, "ready.json")
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	command := exec.CommandContext(running, s.plugin.path, "sandbox", "--listen", s.address, "--state", filepath.Join(s.dir, "state"), "--ready-file", ready) // a plugin its owner has built
	command.Args[0] = filepath.Join("plugins", s.plugin.name)
	command.Env = []string{"GERBANG_SANDBOX_TOKEN=" + s.token, sdk.EnvHostPID + "=" + strconv.Itoa(os.Getpid())}
	command.Stderr = host.LogLines(s.log)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is ours to pass on
	if err := command.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = command.Wait() // that it ended is what matters
		close(exited)
	}()
	s.mu.Lock()
	s.process, s.exited = command, exited
	s.mu.Unlock()
	return s.await(ctx, ready, exited)
}

// await waits for the file that the simulator writes once it answers.
func (s *sandbox) await(ctx context.Context, file string, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, sandboxStart)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var ready struct{ URL string }
		if content, err := os.ReadFile(file); err == nil && json.Unmarshal(content, &ready) == nil {
			s.mu.Lock()
			s.address = ready.URL[len("http://"):]
			s.mu.Unlock()
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("the simulator of %s ended at its start", s.plugin.name)
		case <-ctx.Done():
			return fmt.Errorf("the simulator of %s did not answer: %w", s.plugin.name, ctx.Err())
		case <-tick.C:
		}
	}
}

// supervise starts the process again whenever it ends, until the context ends.
func (s *sandbox) supervise(ctx context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 10*time.Second
	for {
		s.mu.Lock()
		exited, begun := s.exited, time.Now()
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-exited:
		}
		s.log.Warn("the simulator ended and is started again")
		if time.Since(begun) > pause.MaxInterval {
			pause.Reset()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.renewed:
			pause.Reset()
		case <-time.After(pause.NextBackOff()):
		}
		if err := s.start(ctx, context.WithoutCancel(ctx)); err != nil && ctx.Err() == nil {
			s.log.Warn("the simulator did not start", "error", err)
		}
	}
}

// end asks the process to end, and makes it.
func (s *sandbox) end() {
	s.mu.Lock()
	process, exited := s.process, s.exited
	s.mu.Unlock()
	if process == nil {
		return
	}
	_ = process.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-exited:
	case <-time.After(sandboxStop):
		_ = process.Process.Kill() // likewise
		<-exited
	}
}

// client asks the simulators and the gateway's own pages, which are all on this
// machine; a fault may make them wait.
var client = &http.Client{Timeout: 30 * time.Second}

const httpsPort = 443

// port is the one at which the simulator answers.
func (s *sandbox) port() (uint16, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	address, err := netip.ParseAddrPort(s.address)
	return address.Port(), err
}

func (s *sandbox) url() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.address
}

// control calls the simulator's control API. A nil body is a GET; answer may
// be nil.
func (s *sandbox) control(ctx context.Context, path string, body, answer any) (int, error) {
	method, payload := http.MethodGet, io.Reader(http.NoBody)
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		method, payload = http.MethodPost, bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url()+"/_sandbox/"+path, payload)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() // read to its end below
	content, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return response.StatusCode, err
	}
	if response.StatusCode != http.StatusOK {
		var refusal struct{ Error string }
		if json.Unmarshal(content, &refusal) != nil || refusal.Error == "" {
			refusal.Error = response.Status
		}
		return response.StatusCode, errors.New(refusal.Error)
	}
	if answer == nil {
		return response.StatusCode, nil
	}
	return response.StatusCode, json.Unmarshal(content, answer)
}
