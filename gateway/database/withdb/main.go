// Command withdb runs a command, usually go test, beside one ephemeral database server.
//
// It owns the server of a whole test run: it finds, starts or (where that is allowed) installs one, passes it to the
// command through the environment, and stops it. Without -engine it runs the command on PostgreSQL, or on what the
// machine has, and then once more on CockroachDB where a cockroach binary is found. It must not know what it runs.
//
//	go run ./gateway/database/withdb [-engine postgresql|cockroachdb] [-durable] -- go test ./...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

const (
	exitUsage    = 2
	exitNoServer = 3
	exitSignal   = 128 // plus the signal, as shells have it
	stopPatience = 15 * time.Second
)

func main() {
	os.Exit(tool{
		getenv: os.Getenv, environ: os.Environ(), in: os.Stdin, out: os.Stdout, log: os.Stderr,
		start: startOrInstall,
	}.run(context.Background(), os.Args[1:]))
}

// tool is the command with its surroundings.
type tool struct {
	getenv  func(string) string
	environ []string
	in      *os.File
	out     io.Writer
	log     io.Writer
	start   func(context.Context, tool, dbtest.Wanted) (*dbtest.Server, error)
}

// run returns the exit code: the command's own, or one that says why it was not run.
func (t tool) run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("withdb", flag.ContinueOnError)
	flags.SetOutput(t.log)
	engine := flags.String("engine", "", "run on this engine only: postgresql or cockroachdb")
	durable := flags.Bool("durable", false, "make commits as durable, and as slow, as on a real server: for benchmarks")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	known := []string{"", string(database.PostgreSQL), string(database.CockroachDB)}
	if len(flags.Args()) == 0 || !slices.Contains(known, *engine) {
		fmt.Fprintln(t.log, "usage: withdb [-engine postgresql|cockroachdb] [-durable] -- command [argument...]")
		return exitUsage
	}
	// Signals are the command's to answer; the server is stopped after it.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if t.getenv(dbtest.URLVariable) != "" {
		return t.command(flags.Args(), t.environ, signals) // somebody else's server
	}
	wanted := dbtest.Wanted{Engine: database.Engine(*engine), Durable: *durable}
	used, exit := t.runOn(ctx, wanted, flags.Args(), signals)
	if exit != 0 || *engine != "" || used == database.CockroachDB {
		return exit
	}
	if _, err := database.CockroachBinary(t.getenv); err != nil {
		return exit
	}
	wanted.Engine = database.CockroachDB
	_, exit = t.runOn(ctx, wanted, flags.Args(), signals)
	return exit
}

// runOn runs the command on a server of its own.
func (t tool) runOn(ctx context.Context, wanted dbtest.Wanted, command []string, signals <-chan os.Signal) (
	database.Engine, int,
) {
	server, err := t.start(ctx, t, wanted)
	if err != nil {
		fmt.Fprintf(t.log, "withdb: %v\n", err)
		return wanted.Engine, exitNoServer
	}
	fmt.Fprintf(t.log, "withdb: %s on %s (%s)\n", strings.Join(command, " "), server.Engine, server.Source)
	environ := append(slices.Clone(t.environ),
		dbtest.URLVariable+"="+server.URL, dbtest.EngineVariable+"="+string(server.Engine))
	exit := t.command(command, environ, signals)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	if err := server.Close(ctx); err != nil {
		fmt.Fprintf(t.log, "withdb: %v\n", err)
	}
	return server.Engine, exit
}

// command runs the command with our input and output, passes signals on, and returns its exit code.
func (t tool) command(args, environ []string, signals <-chan os.Signal) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, t.in, t.out, t.log
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(t.log, "withdb: %v\n", err)
		return exitUsage
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			_ = cmd.Process.Signal(sig) // fails only when the command ended just now
		case err := <-done:
			return exitCode(err)
		}
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return 1
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return exit.ExitCode()
}

// startOrInstall starts a server and, where the machine has none, installs PostgreSQL when that is allowed.
func startOrInstall(ctx context.Context, t tool, wanted dbtest.Wanted) (*dbtest.Server, error) {
	server, err := dbtest.Start(ctx, wanted)
	if err == nil || !errors.Is(err, database.ErrNoServer) || wanted.Engine == database.CockroachDB {
		return server, err
	}
	install := database.InstallOptions{Getenv: t.getenv, In: t.in, Out: t.log, Terminal: database.IsTerminal(t.in)}
	if refused := database.Install(ctx, install); refused != nil {
		return nil, errors.Join(err, refused)
	}
	return dbtest.Start(ctx, wanted)
}
