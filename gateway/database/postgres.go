package database

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	postgresUser     = "gerbang"
	postgresPatience = 2 * time.Minute // crash recovery of a large cluster takes its time
	portAttempts     = 3
)

// cluster is a private PostgreSQL cluster. Its password and log stay in the home; its data does too, except where
// the account can't reach it: then the home has a symbolic link to it.
type cluster struct {
	Options
	home    *home
	inst    installation
	account *account
	data    string // resolved: what the server is started with, and how an orphan is recognised
}

// openPostgres starts the private cluster, making it when there is none.
func openPostgres(ctx context.Context, o Options, h *home) (*Server, error) {
	link := filepath.Join(h.dir, "postgresql")
	inst, err := choosePostgres(findPostgres(ctx, o.postgresPlaces, o.path()), link)
	if err != nil {
		return nil, err
	}
	defer o.awaiting("starting " + inst.String())()
	runner, err := unprivileged(link)
	if err != nil {
		return nil, err
	}
	c := &cluster{Options: o, home: h, inst: inst, account: runner}
	if err := c.prepare(ctx, link); err != nil {
		return nil, err
	}
	if err := stopOrphan(ctx, c.data); err != nil {
		return nil, err
	}
	password, err := os.ReadFile(c.passwordFile())
	if err != nil {
		return nil, fmt.Errorf("the password of the cluster in %s: %w", c.data, err)
	}
	proc, at, err := c.start(ctx, strings.TrimSpace(string(password)))
	if err != nil {
		return nil, err
	}
	return started(proc, h, at, inst.String()+", data in "+c.data, nil), nil
}

func (c *cluster) passwordFile() string { return filepath.Join(c.home.dir, "postgresql.password") }

// prepare finds the cluster's data, and makes it when there is none.
func (c *cluster) prepare(ctx context.Context, link string) error {
	if _, err := os.Lstat(link); err == nil {
		c.data, err = filepath.EvalSymlinks(link)
		return err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if c.account.enters(c.home.dir) {
		dir, err := filepath.EvalSymlinks(c.home.dir)
		if err != nil {
			return err
		}
		c.data = filepath.Join(dir, "postgresql")
		return c.create(ctx)
	}
	away, err := c.account.awayFrom(c.home.dir)
	if err != nil {
		return err
	}
	c.home.away = away
	c.data = filepath.Join(away, "postgresql")
	c.Log.Warn("the database's own user can't reach the data directory; its data is elsewhere",
		"directory", c.home.dir, "user", c.account.name, "data", c.data)
	if err := c.create(ctx); err != nil {
		return errors.Join(err, os.RemoveAll(away))
	}
	if err := os.Symlink(c.data, link); err != nil {
		return errors.Join(err, os.RemoveAll(away))
	}
	if below(away, os.TempDir()) {
		sweep(ctx, filepath.Dir(away))
	}
	return os.WriteFile(filepath.Join(away, "origin"), []byte(link), 0o600)
}

// create makes the cluster under another name and renames it, so that one cut off half-way is never used.
func (c *cluster) create(ctx context.Context) error {
	staging := c.data + ".new"
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(staging, 0o700), c.account.own(staging)); err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	password := rand.Text()
	file := filepath.Join(staging, "password")
	if err := errors.Join(os.WriteFile(file, []byte(password+"\n"), 0o600), c.account.own(file)); err != nil {
		return err
	}
	made := filepath.Join(staging, "data")
	args := []string{"--pgdata", made, "--username", postgresUser, "--pwfile", file, "--encoding", "UTF8", "--locale", "C", "--no-instructions"}
	if c.Ephemeral { // tests connect thousands of times, and scram hashes 4,096 times for each, on both sides
		args = append(args, "--no-sync", "--auth", "md5")
	} else {
		args = append(args, "--auth", "scram-sha-256")
	}
	cmd := c.account.wear(c.inst.command(ctx, "initdb", args...), staging)
	cmd.Env = serverEnv(c.Options)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	if err := writeFile(c.passwordFile(), password+"\n"); err != nil {
		return err
	}
	return os.Rename(made, c.data)
}

// start runs the server on a free loopback port and waits until it answers. Another process may take the port in
// between, so it tries again.
func (c *cluster) start(ctx context.Context, password string) (*process, endpoint, error) {
	var errs []error
	for range portAttempts {
		port, err := freePort(ctx)
		if err != nil {
			return nil, endpoint{}, err
		}
		// Not CommandContext: the server outlives the call that opened it.
		cmd := c.account.wear(c.inst.command(context.WithoutCancel(ctx), "postgres", c.settings(port)...), c.data)
		cmd.Env = serverEnv(c.Options)
		proc, err := startProcess(cmd, syscall.SIGINT, filepath.Join(c.home.dir, "postgresql.log"))
		if err != nil {
			return nil, endpoint{}, err
		}
		raw := (&url.URL{
			Scheme: "postgres", User: url.UserPassword(postgresUser, password),
			Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: databaseName, RawQuery: "sslmode=disable",
		}).String()
		var at endpoint
		err = proc.awaitReady(ctx, probe{pollEvery, postgresPatience, func(ctx context.Context) (err error) {
			at, err = connect(ctx, raw)
			return err
		}})
		if err == nil {
			return proc, at, nil
		}
		errs = append(errs, err)
		if !strings.Contains(err.Error(), "could not bind") {
			break
		}
	}
	return nil, endpoint{}, errors.Join(errs...)
}

// settings are given on the command line, so that a cluster made by an older gateway gets them too. There is no
// socket file: its path could be too long for the system, and the loopback port has a password.
func (c *cluster) settings(port int) []string {
	set := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "unix_socket_directories=",
		"max_connections=200", "shared_buffers=256MB",
		"max_pred_locks_per_transaction=1024", // at the default SERIALIZABLE runs out of shared memory under load
		"TimeZone=UTC", "log_timezone=UTC", "logging_collector=off", "log_destination=stderr", "log_checkpoints=off",
		// No statements and no row values in the log: they are merchants' data.
		"log_error_verbosity=terse", "log_min_error_statement=panic",
	}
	if !c.onDisk() {
		set = append(set, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")
	}
	args := []string{"-D", c.data}
	for _, s := range set {
		args = append(args, "-c", s)
	}
	return args
}

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// serverEnv is all that a server sees of the environment: the gateway's secrets are none of its business, and PG* or
// COCKROACH_* variables would change what it does.
func serverEnv(o Options) []string {
	env := []string{"PATH=" + o.path(), "LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"HOME", "TMPDIR", "LD_LIBRARY_PATH"} {
		if value := o.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}
