package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// BinaryVariable names the environment variable that points to a cockroach binary.
const BinaryVariable = "COCKROACH_BINARY"

const cockroachPatience = 2 * time.Minute

// CockroachBinary finds cockroach: what COCKROACH_BINARY names, else the first on the PATH. A nil getenv means
// os.Getenv.
func CockroachBinary(getenv func(string) string) (string, error) {
	o := Options{Getenv: getenv}.withDefaults()
	if named := o.Getenv(BinaryVariable); named != "" {
		file, err := filepath.Abs(named)
		if err != nil || !executable(file) {
			return "", absent(fmt.Sprintf("%s names %s, which is not an executable file", BinaryVariable, named))
		}
		return file, nil
	}
	file, err := lookPath(o.path(), "cockroach")
	if err != nil {
		return "", absent(err.Error() + ", and " + BinaryVariable + " is not set")
	}
	return file, nil
}

// openCockroach starts a single node. It is insecure, as CockroachDB calls a node without certificates: any user of
// this machine can connect, through loopback only.
func openCockroach(ctx context.Context, o Options, h *home) (*Server, error) {
	binary, err := CockroachBinary(o.Getenv)
	if err != nil {
		return nil, err
	}
	defer o.awaiting("starting CockroachDB")()
	tag, err := exec.CommandContext(ctx, binary, "version", "--build-tag").Output()
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", binary, err)
	}
	if err := checkCockroach(string(tag)); err != nil {
		return nil, fmt.Errorf("%s: %w", binary, err)
	}
	urlFile := filepath.Join(h.dir, "cockroach.url")
	if err := os.Remove(urlFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), binary, cockroachArgs(o, h.dir, urlFile)...)
	cmd.Dir, cmd.Env = h.dir, serverEnv(o)
	proc, err := startProcess(cmd, syscall.SIGTERM, filepath.Join(h.dir, "cockroach.log"))
	if err != nil {
		return nil, err
	}
	var at endpoint
	err = proc.awaitReady(ctx, probe{pollEvery, cockroachPatience, func(ctx context.Context) (err error) {
		at, err = connectCockroach(ctx, func() (string, error) {
			text, err := os.ReadFile(urlFile)
			return strings.TrimSpace(string(text)), err
		})
		return err
	}})
	if err != nil {
		return nil, err
	}
	source := "CockroachDB " + strings.TrimSpace(string(tag)) + " from " + binary
	return started(proc, h, at, source, nil), nil
}

func cockroachArgs(o Options, dir, urlFile string) []string {
	store := "path=" + filepath.Join(dir, "cockroach")
	if !o.onDisk() {
		store = "type=mem,size=1GiB"
	}
	return []string{
		"start-single-node", "--insecure", "--store=" + store,
		"--listen-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0", "--listening-url-file=" + urlFile,
		// The defaults are shares of the machine's memory, too much beside a gateway.
		"--cache=256MiB", "--max-sql-memory=256MiB", "--external-io-dir=disabled",
	}
}

// connectCockroach connects to our database at the address that the node writes once it listens.
func connectCockroach(ctx context.Context, address func() (string, error)) (endpoint, error) {
	raw, err := address()
	if err != nil {
		return endpoint{}, err
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return endpoint{}, errors.New("the node has not written its address")
	}
	own := url.URL{Scheme: "postgres", User: url.User("root"), Host: u.Host, Path: databaseName, RawQuery: "sslmode=disable"}
	at, err := connect(ctx, own.String())
	if err == nil && at.engine != CockroachDB {
		err = &finalError{fmt.Errorf("what answers at %s is not CockroachDB", u.Host)}
	}
	return at, err
}
