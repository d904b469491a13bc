package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Simulator is the process that plays one provider's upstream.
type Simulator struct {
	provider, dir, token string
	log                  *slog.Logger

	mu      sync.Mutex
	sha256  string // of the binary that runs
	address string // the same again after a restart where it can be, so that its links stay valid
	process host.Process
	exited  chan struct{}
}

// NewSimulator is a simulator that keeps what it knows in a directory, and obeys whoever
// has the token. It has no address before its first start unless one is given.
func NewSimulator(provider, dir, token, address string, log *slog.Logger) *Simulator {
	return &Simulator{provider: provider, dir: dir, token: token, address: address, log: log.With("simulator", provider)}
}

const (
	startWithin = 10 * time.Second
	stopWithin  = 2 * time.Second
)

// Launch makes the process of a command that listens on a port, and writes to a directory.
type Launch func(command *exec.Cmd, dir string, listen uint16) (host.Process, error)

// Start runs the process of a binary, and waits until it answers.
func (s *Simulator) Start(ctx context.Context, sha256 string, launch Launch) error {
	err := s.startAt(ctx, sha256, launch, s.Address())
	if err != nil && s.Address() != "" && ctx.Err() == nil {
		// Somebody else may have the port now; the links of before are lost, the state is not.
		s.log.WarnContext(ctx, "the simulator does not start at its address of before, and takes another", "address", s.Address(), "error", err)
		err = s.startAt(ctx, sha256, launch, "")
	}
	return err
}

func (s *Simulator) startAt(ctx context.Context, sha256 string, launch Launch, address string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	ready := filepath.Join(s.dir, "ready.json")
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if address == "" {
		var err error
		if address, err = freeAddress(ctx); err != nil {
			return err
		}
	}
	listen, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	command := &exec.Cmd{
		Args:   []string{filepath.Join("plugins", s.provider), "sandbox", "--listen", address, "--state", filepath.Join(s.dir, "state"), "--ready-file", ready},
		Env:    []string{kit.EnvToken + "=" + s.token, kit.EnvHostPID + "=" + strconv.Itoa(os.Getpid())},
		Stderr: host.LogLines(s.log),
	}
	process, err := launch(command, s.dir, uint16(listen.Port)) //nolint:gosec // a port
	if err != nil {
		return err
	}
	if err := process.Start(ctx); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = process.Wait(context.Background()) // that it ended is what matters
		close(exited)
	}()
	s.mu.Lock()
	s.process, s.exited, s.sha256 = process, exited, sha256
	s.mu.Unlock()
	return s.await(ctx, ready, exited)
}

// freeAddress is one of this machine's own at which nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// await waits for the file that the simulator writes once it answers.
func (s *Simulator) await(ctx context.Context, file string, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
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
			return fmt.Errorf("the simulator of %s ended at its start", s.provider)
		case <-ctx.Done():
			s.End()
			return fmt.Errorf("the simulator of %s did not answer: %w", s.provider, ctx.Err())
		case <-tick.C:
		}
	}
}

// Exited is closed once the process that runs has ended; nil where none was started.
func (s *Simulator) Exited() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exited
}

// runs tells whether a process of a binary is there.
func (s *Simulator) runs(sha256 string) bool {
	s.mu.Lock()
	of := s.sha256
	s.mu.Unlock()
	return of == sha256 && !s.ended()
}

// ended tells whether the last process that was started has ended.
func (s *Simulator) ended() bool {
	select {
	case <-s.Exited():
		return true
	default:
		return false
	}
}

// End asks the process to end, and makes it.
func (s *Simulator) End() {
	s.mu.Lock()
	process, exited := s.process, s.exited
	s.mu.Unlock()
	if process == nil {
		return
	}
	_ = process.Ask(syscall.SIGTERM) // it may be gone already
	select {
	case <-exited:
	case <-time.After(stopWithin):
		_ = process.Kill(context.Background()) // likewise
		<-exited
	}
}

// Address is where it answers, "" before its first start.
func (s *Simulator) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// URL is where it answers.
func (s *Simulator) URL() string { return "http://" + s.Address() }

// Control gives the simulator an order, as it calls itself by the address where it answers.
func (s *Simulator) Control(ctx context.Context, order string, body, answer any) (int, error) {
	return control(ctx, client, s.URL(), "", s.token, order, body, answer)
}

// client asks simulators, which are on this machine; a fault may make them wait.
var client = &http.Client{Timeout: 30 * time.Second}

// control gives an order to the simulator at a URL, which sees itself called by a name,
// where there is one. A nil body is a GET; answer may be nil. The status is 0 where nobody
// answered.
func control(ctx context.Context, client *http.Client, url, name, token, order string, body, answer any) (int, error) {
	method, payload := http.MethodGet, io.Reader(http.NoBody)
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		method, payload = http.MethodPost, bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, url+"/_sandbox/"+order, payload)
	if err != nil {
		return 0, err
	}
	request.Host = name
	request.Header.Set("Authorization", "Bearer "+token)
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
