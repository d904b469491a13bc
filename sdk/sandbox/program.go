package sandbox

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// The environment of a simulator's process.
const (
	// EnvToken is the control API's bearer token.
	EnvToken = "GERBANG_SANDBOX_TOKEN"
	// EnvHostPID is the process that the simulator must not outlive.
	EnvHostPID = "GERBANG_HOST_PID"
)

const (
	parentPoll   = 250 * time.Millisecond
	shutdownTime = time.Second
)

// Program is a simulator as a process: the plugin's binary run with
// "sandbox" as its first argument.
type Program struct {
	// Provider is the plugin's name.
	Provider string
	// Flags declares the simulator's own flags; it may be nil.
	Flags func(*flag.FlagSet)
	// Build makes the simulator; it calls Env.Begin.
	Build func(*Env) (Upstream, error)
}

// settings are the flags that every simulator has.
type settings struct {
	listen    string
	state     string
	readyFile string
	latency   time.Duration
	token     string
	hostPID   int
}

// Main runs until SIGTERM, SIGINT or the end of the parent, and returns the
// exit code: 0 after these, 1 when it could not run.
func (p Program) Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := p.Run(ctx, args, os.Getenv, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s sandbox: %v\n", p.Provider, err)
		return 1
	}
	return 0
}

// Run is Main without the process: it ends with the context.
func (p Program) Run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) error {
	s, err := p.settings(args, getenv, stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.hostPID != 0 {
		go func() {
			defer cancel()
			watchParent(ctx, s.hostPID, os.Getppid)
		}()
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	env, err := Open(Config{Provider: p.Provider, StateDir: s.state, Token: s.token, Log: log, Latency: s.latency})
	if err != nil {
		return err
	}
	upstream, err := p.Build(env)
	if err == nil {
		err = serve(ctx, s, env.Handler(upstream), log)
	}
	return errors.Join(err, env.Close())
}

func (p Program) settings(args []string, getenv func(string) string, stderr io.Writer) (settings, error) {
	s := settings{token: getenv(EnvToken)}
	set := flag.NewFlagSet(p.Provider+" sandbox", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&s.listen, "listen", "127.0.0.1:0", "loopback `host:port` to listen on; port 0 takes a free one")
	set.StringVar(&s.state, "state", "", "`directory` that keeps what the upstream knows")
	set.StringVar(&s.readyFile, "ready-file", "", "`file` to write the URL to, once it answers")
	set.DurationVar(&s.latency, "latency", defaultLatency, "how long the fault \"latency\" takes")
	if p.Flags != nil {
		p.Flags(set)
	}
	if err := set.Parse(args); err != nil {
		return s, err
	}
	if set.NArg() > 0 || s.state == "" || s.latency <= 0 {
		return s, errors.New("--state and a positive --latency are required, and no other arguments")
	}
	if s.token == "" {
		return s, errors.New(EnvToken + " must hold the control API's token")
	}
	if pid := getenv(EnvHostPID); pid != "" {
		var err error
		if s.hostPID, err = strconv.Atoi(pid); err != nil || s.hostPID < 1 {
			return s, errors.New(EnvHostPID + " must be a process id")
		}
	}
	return s, checkLoopback(s.listen)
}

// checkLoopback refuses every address that others could reach: the simulator
// pays whatever it is asked to.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen: %s is not a loopback address", host)
	}
	return nil
}

// watchParent returns when the parent is not the expected one any more.
func watchParent(ctx context.Context, pid int, getppid func() int) {
	ticker := time.NewTicker(parentPoll)
	defer ticker.Stop()
	for getppid() == pid {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// serve listens, prints its address, and stops gracefully when the context ends.
func serve(ctx context.Context, s settings, handler http.Handler, log *slog.Logger) error {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	url := "http://" + listener.Addr().String()
	if err := writeReady(s.readyFile, url); err != nil {
		return errors.Join(err, server.Close())
	}
	log.Info("ready", "url", url)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// writeReady renames the file into place, so that nobody reads half of it.
func writeReady(path, url string) error {
	if path == "" {
		return nil
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, fmt.Appendf(nil, "{\"url\":%q}\n", url), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
