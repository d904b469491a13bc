package conformance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	// simulatorWithin is how long a simulator may take until it answers.
	simulatorWithin = 30 * time.Second
	maxReadyFile    = 4 << 10
)

// simulator is the process that plays the upstream, and the client of its door.
type simulator struct {
	url, token string
	port       uint16 // of one that is confined
	client     *http.Client
	void       []string
	process    Process
	exited     chan struct{}
}

// simulatorStart is how one is started.
type simulatorStart struct {
	command   *exec.Cmd
	confined  func(*exec.Cmd) (Process, error) // nil where it runs as any program
	port      uint16                           // 0 where it finds one
	dir       string
	arguments []string
	log       io.Writer
}

// run runs the process as gerbang dev does and waits until it answers.
func (start simulatorStart) run(ctx context.Context) (*simulator, error) {
	// What it answers leads nowhere else, and nothing of this process's environment decides.
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s := &simulator{token: rand.Text(), port: start.port, exited: make(chan struct{}), client: client}
	ready, listen := filepath.Join(start.dir, "ready.json"), "127.0.0.1:"+strconv.Itoa(int(start.port))
	command := start.command
	command.Args = append(command.Args, "--listen", listen, "--state", filepath.Join(start.dir, "state"), "--ready-file", ready)
	command.Args = append(command.Args, start.arguments...)
	command.Env = append(command.Env, "GERBANG_SANDBOX_TOKEN="+s.token, sdk.EnvHostPID+"="+strconv.Itoa(os.Getpid()))
	command.Stderr = start.log
	s.process = ordinary{command}
	if start.confined != nil {
		confined, err := start.confined(command)
		if err != nil {
			return nil, err
		}
		if confined != nil {
			s.process = confined
		}
	}
	if err := s.process.Start(ctx); err != nil {
		return nil, fmt.Errorf("the simulator does not start: %w", err)
	}
	go func() {
		_ = s.process.Wait(context.Background()) // that it ended is what matters
		close(s.exited)
	}()
	if err := s.ready(ctx, ready); err != nil {
		s.end()
		return nil, err
	}
	if start.port != 0 && s.url != "http://"+listen {
		s.end()
		return nil, fmt.Errorf("the simulator says that it listens at %q, and was told to at http://%s", s.url, listen)
	}
	return s, nil
}

// ready waits until the simulator says where it listens.
func (s *simulator) ready(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, simulatorWithin)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var told struct{ URL string }
		if content, err := readAtMost(file, maxReadyFile); err == nil && json.Unmarshal(content, &told) == nil {
			s.url = told.URL
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("the simulator ended at its start; what it wrote is above")
		case <-ctx.Done():
			return fmt.Errorf("the simulator wrote no ready file within %v", simulatorWithin)
		case <-tick.C:
		}
	}
}

func readAtMost(file string, most int64) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return io.ReadAll(io.LimitReader(opened, most))
}

// end kills the process and its children.
func (s *simulator) end() {
	_ = s.process.Kill(context.Background()) // it may be gone already
	<-s.exited
	s.client.CloseIdleConnections()
}

// ordinary is a process like any other, in a group of its own.
type ordinary struct{ command *exec.Cmd }

// Start implements Process.
func (o ordinary) Start(context.Context) error {
	o.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return o.command.Start()
}

// Wait implements Process.
func (o ordinary) Wait(context.Context) error { return o.command.Wait() }

// Kill implements Process.
func (o ordinary) Kill(context.Context) error {
	return syscall.Kill(-o.command.Process.Pid, syscall.SIGKILL)
}

// doorError is a simulator's answer to an order that it does not do.
type doorError struct {
	status int
	text   string
}

func (e *doorError) Error() string {
	return fmt.Sprintf("the simulator's door answers %d: %s", e.status, e.text)
}

// unable reports whether the simulator says that it has no such order, or can't do
// what it was ordered.
func unable(err error) bool {
	refusal, ok := errors.AsType[*doorError](err)
	return ok && (refusal.status == http.StatusNotFound || refusal.status == http.StatusMethodNotAllowed || refusal.status == http.StatusConflict)
}

// order calls the door. A nil body is a GET; answer may be nil.
func (s *simulator) order(ctx context.Context, path string, body, answer any) error {
	method, payload := http.MethodGet, io.Reader(http.NoBody)
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		method, payload = http.MethodPost, bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.url+"/_sandbox/"+path, payload)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("the simulator's door: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var refusal struct{ Error string }
		_ = json.Unmarshal(content, &refusal) // without it the status is what there is to say
		return &doorError{response.StatusCode, cmp.Or(refusal.Error, response.Status)}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(content, answer)
}

// opened is an account that the simulator has opened.
type opened struct {
	Account       string          `json:"account"`
	CallbackToken string          `json:"callback_token"`
	Credentials   json.RawMessage `json:"credentials"`

	id string // the door's name of it in its movements
}

// open opens an account, or finds it again, and registers where its notifications go.
func (s *simulator) open(ctx context.Context, merchant, mode string, version int64, callback string) (opened, error) {
	var o opened
	wanted := map[string]any{"merchant": merchant, "mode": mode}
	if version > 1 {
		wanted["version"] = version
	}
	if err := s.order(ctx, "connect", wanted, &o); err != nil {
		return o, err
	}
	var registered struct {
		ID string `json:"account_id"`
	}
	err := s.order(ctx, "hooks", map[string]string{
		"account": o.Account, "name": merchant + "/" + mode, "callback_url": callback, "callback_token": o.CallbackToken,
	}, &registered)
	o.id = registered.ID
	return o, err
}

// movement is what the upstream did, and in whose account.
type movement struct {
	Reference string       `json:"reference"`
	Account   string       `json:"account"`
	Amount    money.Amount `json:"amount"`
	State     string       `json:"state"`
}

// movements lists what was done under one of our references, in any account.
func (s *simulator) movements(ctx context.Context, reference string) (made []movement, err error) {
	var all []movement
	if err := s.order(ctx, "movements?reference="+reference, nil, &all); err != nil {
		return nil, err
	}
	for _, m := range all {
		void := false
		for _, state := range s.void {
			void = void || m.State == state
		}
		if m.Reference == reference && !void {
			made = append(made, m)
		}
	}
	return made, nil
}
