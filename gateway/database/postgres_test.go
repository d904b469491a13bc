package database

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestClusterKeepsItsDataAndItsPassword(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	dir := filepath.Join(reachable(t), "database")
	junk := filepath.Join(dir, "postgresql.new", "data", "PG_VERSION") // what an interrupted initdb left
	if err := errors.Join(os.MkdirAll(filepath.Dir(junk), 0o700), os.WriteFile(junk, []byte("15\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, Engine: PostgreSQL, Getenv: environment{"PATH": os.Getenv("PATH")}.get}

	first := open(t, o)
	execute(t, first.URL(), "CREATE TABLE kept AS SELECT 'still here' AS word")
	if got := query(t, first.URL(), "SELECT current_database()"); got != databaseName {
		t.Errorf("database = %q, want %q", got, databaseName)
	}
	for name, want := range map[string]string{
		"fsync": "on", "max_connections": "200", "shared_buffers": "256MB", "TimeZone": "UTC",
		"max_pred_locks_per_transaction": "1024", "default_transaction_isolation": "read committed",
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "server_encoding": "UTF8",
	} {
		if got := query(t, first.URL(), "SHOW "+name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second Open on the directory: %v, want a refusal", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	await(t, "the end of the first server", first.Done())
	if err := first.Err(); err != nil {
		t.Errorf("Err after Close = %v", err)
	}

	second := open(t, o)
	if got := query(t, second.URL(), "SELECT word FROM kept"); got != "still here" {
		t.Errorf("after a restart the table has %q", got)
	}
	checkSecrecy(t, second, dir)
}

// checkSecrecy proves that a user of the machine without the password gets nothing.
func checkSecrecy(t *testing.T, s *Server, dir string) {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "postgresql.password"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("password file: %v, %v; want mode 0600", info, err)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	if strings.Contains(s.Source(), password) {
		t.Error("Source shows the password")
	}
	u.User = url.UserPassword("gerbang", "guess")
	if conn, err := pgx.Connect(t.Context(), u.String()); err == nil {
		_ = conn.Close(context.Background())
		t.Error("a wrong password was accepted")
	}
}

func TestPostgresNeverRunsAsRoot(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	if os.Geteuid() != 0 {
		t.Skip("only root has to become somebody else")
	}
	// t.TempDir lies below a directory of root's own with mode 0700: PostgreSQL's user can't reach it.
	if err := os.Chmod(filepath.Dir(t.TempDir()), 0o700); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: filepath.Join(t.TempDir(), "database"), Engine: PostgreSQL}
	s := open(t, o)
	target, err := os.Readlink(filepath.Join(o.Dir, "postgresql"))
	if err != nil {
		t.Fatalf("no link to the data: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(target)) })
	if !below(target, os.TempDir()) {
		t.Errorf("data of a temporary directory is in %s", target)
	}
	if ownedBy(target, 0) {
		t.Errorf("%s belongs to root", target)
	}
	execute(t, s.URL(), "CREATE TABLE kept AS SELECT 'still here' AS word")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, open(t, o).URL(), "SELECT word FROM kept"); got != "still here" {
		t.Errorf("after a restart the table has %q", got)
	}
}

func TestOrphanIsStoppedByTheNextStart(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	o := Options{Dir: reachable(t), Engine: PostgreSQL}
	orphan := open(t, o)
	execute(t, orphan.URL(), "CREATE TABLE kept AS SELECT 'still here' AS word")
	if err := unlock(orphan.home.lock); err != nil { // as the kernel does when a gateway is killed
		t.Fatal(err)
	}
	if err := orphan.Err(); err != nil {
		t.Errorf("Err of a running server = %v", err)
	}
	next := open(t, o)
	await(t, "the end of the orphan", orphan.Done())
	if orphan.Err() == nil {
		t.Error("a server that ended without Close has no error")
	}
	if got := query(t, next.URL(), "SELECT word FROM kept"); got != "still here" {
		t.Errorf("the next server has %q", got)
	}
}

func TestServerDiesWithAKilledGateway(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux signals a child when its parent dies")
	}
	dir := reachable(t)
	gateway := exec.CommandContext(t.Context(), os.Args[0])
	gateway.Env = append(os.Environ(), gatewayVariable+"="+dir)
	out, err := gateway.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "postgres://") {
		t.Fatalf("the gateway says %q, %v", line, err)
	}
	execute(t, strings.TrimSpace(line), "CREATE TABLE kept AS SELECT 'still here' AS word")
	if err := gateway.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gateway.Wait()
	awaitGone(t, filepath.Join(dir, "postgresql", "postmaster.pid"))
	s := open(t, Options{Dir: dir, Engine: PostgreSQL})
	if got := query(t, s.URL(), "SELECT word FROM kept"); got != "still here" {
		t.Errorf("after kill -9 the table has %q", got)
	}
}

// awaitGone waits until PostgreSQL has removed its pid file, the last thing it does.
func awaitGone(t *testing.T, file string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the server outlives its killed gateway")
		}
	}
}

func TestEphemeralLeavesNothing(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	s := open(t, Options{
		Ephemeral: true, Engine: PostgreSQL, Dir: "/nonexistent",
		Getenv: environment{"PATH": os.Getenv("PATH"), URLVariable: "postgres://127.0.0.1:1/precious"}.get,
	})
	if got := query(t, s.URL(), "SHOW fsync"); got != "off" {
		t.Errorf("fsync = %s", got)
	}
	durable := open(t, Options{Ephemeral: true, Durable: true, Engine: PostgreSQL})
	if got := query(t, durable.URL(), "SHOW fsync"); got != "on" {
		t.Errorf("for measuring, fsync = %s", got)
	}
	dir := s.home.dir
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestDirectoryOfAnotherVersionIsRefusedAndUntouched(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	dir := reachable(t)
	version := filepath.Join(dir, "postgresql", "PG_VERSION")
	if err := os.MkdirAll(filepath.Dir(version), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(version, []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 9") || errors.Is(err, ErrNoServer) {
		t.Fatalf("Open = %v, want a refusal that names the version", err)
	}
	entries, _ := os.ReadDir(filepath.Dir(version))
	text, _ := os.ReadFile(version)
	if len(entries) != 1 || string(text) != "9\n" {
		t.Errorf("the directory was changed: %v, %q", entries, text)
	}
}

func TestBinariesAreChosenByTheDirectoryThenByAge(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, version := range []string{"14.9", "16.2", "15.1"} {
		bin := filepath.Join(root, version, "bin")
		script(t, bin, "postgres", "echo 'postgres (PostgreSQL) "+version+"'")
		script(t, bin, "initdb", "")
	}
	script(t, filepath.Join(root, "17", "bin"), "postgres", "echo 'postgres (PostgreSQL) 17.0'") // without initdb
	place, onPath := filepath.Join(root, "1[456]*", "bin"), filepath.Join(root, "16.2", "bin")
	all := findPostgres(t.Context(), []string{place}, onPath)
	var majors []int
	for _, i := range all {
		majors = append(majors, i.major)
	}
	if !slices.Equal(majors, []int{16, 15, 14}) {
		t.Fatalf("found %v", majors)
	}
	data := t.TempDir()
	if got, err := choosePostgres(all, filepath.Join(data, "none")); err != nil || got.major != 16 {
		t.Errorf("a new directory gets %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := choosePostgres(all, data); err != nil || got.major != 15 {
		t.Errorf("a directory of 15 gets %v, %v", got, err)
	}
	if _, err := choosePostgres(all[2:], filepath.Join(data, "none")); !errors.As(err, new(absent)) {
		t.Errorf("with only 14: %v", err)
	}
}

func TestPidFileOfSomethingElse(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	data, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(data, "postmaster.pid")
	running := func(path string) int {
		cmd := exec.CommandContext(t.Context(), path, "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for len(commandLine(cmd.Process.Pid)) == 0 { // the kernel is about to write it
			runtime.Gosched()
		}
		return cmd.Process.Pid
	}
	write := func(pid string) {
		if err := os.WriteFile(pidFile, []byte(pid+"\n"+data+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write(itoa(running(sleep))) // the pid was used again: the file is stale
	if err := stopOrphan(t.Context(), data); err != nil {
		t.Errorf("a pid used again: %v", err)
	}
	if _, err := os.Stat(pidFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the stale file is still there: %v", err)
	}

	other := filepath.Join(t.TempDir(), "postgres") // a server, but not shown to be on this directory
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, other, content)
	pid := running(other)
	write(itoa(pid))
	if err := stopOrphan(t.Context(), data); err == nil {
		t.Error("a server of another directory was taken for ours")
	}
	if !alive(pid) {
		t.Error("a server of another directory was stopped")
	}
}
