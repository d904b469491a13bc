package database

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nowhere is a machine without any server.
func nowhere(t *testing.T) Options {
	t.Helper()
	return Options{
		Dir: t.TempDir(), Getenv: environment{"PATH": t.TempDir()}.get, postgresPlaces: []string{t.TempDir() + "/*"},
	}
}

func TestWithoutAServerTheErrorNamesEveryWay(t *testing.T) {
	t.Parallel()
	o := nowhere(t)
	_, err := Open(t.Context(), o)
	if !errors.Is(err, ErrNoServer) {
		t.Fatalf("Open = %v, want ErrNoServer", err)
	}
	for _, want := range []string{
		"- a URL (--database-url or GERBANG_DATABASE_URL): none was given",
		"- a cockroach binary: no cockroach on the PATH, and COCKROACH_BINARY is not set",
		"- PostgreSQL's server binaries: no postgres and initdb on the PATH or where Debian",
		"- Docker: no docker on the PATH",
		"Install PostgreSQL 15 or later or CockroachDB 24.3 or later",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	o.Getenv = environment{"PATH": machine(t, "brew")["PATH"]}.get
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "brew install") {
		t.Errorf("again: %v; the lock was not given back", err)
	}
}

func TestAServerThatFailsIsNotAbsent(t *testing.T) {
	t.Parallel()
	o := nowhere(t)
	bin := t.TempDir()
	script(t, bin, "cockroach", "echo v23.1.0")
	script(t, bin, "docker", "echo 'daemon is asleep' >&2; exit 1")
	o.Getenv = environment{"PATH": bin}.get
	_, err := Open(t.Context(), o)
	if err == nil || errors.Is(err, ErrNoServer) {
		t.Fatalf("Open = %v; an old cockroach is no reason to install PostgreSQL unasked", err)
	}
	for _, want := range []string{"CockroachDB is v23.1; v24.3 or later is needed", "not running", "daemon is asleep"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}

func TestEngineLeavesOutTheOthers(t *testing.T) {
	t.Parallel()
	o := nowhere(t)
	o.Engine = CockroachDB
	_, err := Open(t.Context(), o)
	for _, want := range []string{"not tried: cockroachdb was asked for", "name it in COCKROACH_BINARY"} {
		if !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v; want it to say %q", err, want)
		}
	}
}

func TestDataIsOpenedByTheWayThatMadeIt(t *testing.T) {
	t.Parallel()
	o := nowhere(t)
	if err := os.WriteFile(filepath.Join(o.Dir, "server"), []byte("cockroach\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.postgresPlaces = nil // PostgreSQL may be there: it must not be used
	_, err := Open(t.Context(), o)
	if err == nil || errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), `made with "cockroach"`) {
		t.Errorf("Open = %v, want a refusal", err)
	}
	if strings.Contains(err.Error(), "PostgreSQL's server binaries") {
		t.Errorf("another way was tried: %v", err)
	}
}

func TestCockroachRunsAsASingleNode(t *testing.T) {
	t.Parallel()
	node := newWire(t, map[string]string{"crdb_version": "CockroachDB CCL v24.3.5 (test)"})
	o := nowhere(t)
	bin := t.TempDir()
	binary := script(t, bin, "roach", `
if [ "$1" = version ]; then echo v24.3.5; exit; fi
for a; do echo "$a" >>"`+bin+`/args"; done
for a; do case "$a" in --listening-url-file=*) file=${a#*=};; esac; done
trap 'echo drained >"`+bin+`/end"; exit 0' TERM
echo "postgresql://root@`+node.addr+`/defaultdb?sslmode=disable" >"$file"
while :; do sleep 0.05; done
`)
	o.Getenv = environment{"PATH": os.Getenv("PATH"), BinaryVariable: binary, "SECRET": "x"}.get
	s := open(t, o)
	if want := "postgres://root@" + node.addr + "/gerbang?sslmode=disable"; s.URL() != want {
		t.Errorf("URL = %q, want %q", s.URL(), want)
	}
	if s.Engine() != CockroachDB || s.Source() != "CockroachDB v24.3.5 from "+binary {
		t.Errorf("%s from %q", s.Engine(), s.Source())
	}
	if want := `CREATE DATABASE IF NOT EXISTS "gerbang"`; !slices.Contains(node.seen(), want) {
		t.Errorf("statements %q lack %q", node.seen(), want)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if end, _ := os.ReadFile(filepath.Join(bin, "end")); string(end) != "drained\n" {
		t.Errorf("the node was not asked to stop: %q", end)
	}
	args, _ := os.ReadFile(filepath.Join(bin, "args"))
	want := "start-single-node\n--insecure\n--store=path=" + o.Dir + "/cockroach\n--listen-addr=127.0.0.1:0\n" +
		"--http-addr=127.0.0.1:0\n--listening-url-file=" + o.Dir + "/cockroach.url\n--cache=256MiB\n" +
		"--max-sql-memory=256MiB\n--external-io-dir=disabled\n"
	if string(args) != want {
		t.Errorf("arguments:\n%swant:\n%s", args, want)
	}
	if kept, _ := os.ReadFile(filepath.Join(o.Dir, "server")); string(kept) != "cockroach\n" {
		t.Errorf("the directory remembers %q", kept)
	}
}

func TestDockerRunsTheOfficialImage(t *testing.T) {
	t.Parallel()
	node := newWire(t, map[string]string{"crdb_version": "CockroachDB CCL v24.3.15 (test)"})
	o := nowhere(t)
	bin := t.TempDir()
	script(t, bin, "docker", `
echo "$*" >>"`+bin+`/calls"
case "$1" in
port) [ -f "`+bin+`/running" ] && echo "`+node.addr+`";;
run) trap 'exit 0' TERM; : >"`+bin+`/running"; while :; do sleep 0.05; done;;
esac
`)
	o.Getenv = environment{"PATH": bin}.get
	s := open(t, o)
	if s.Engine() != CockroachDB || s.URL() != "postgres://root@"+node.addr+"/gerbang?sslmode=disable" {
		t.Errorf("%s at %s", s.Engine(), s.URL())
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	text, _ := os.ReadFile(filepath.Join(bin, "calls"))
	calls := strings.Split(strings.TrimSpace(string(text)), "\n")
	name := containerName(o.Dir)
	if calls[0] != "info --format {{.ServerVersion}}" || calls[len(calls)-1] != "rm --force "+name {
		t.Errorf("calls: %q", calls)
	}
	var run string
	for _, call := range calls {
		if strings.HasPrefix(call, "run ") {
			run = call
		}
	}
	for _, want := range []string{
		"run --rm --name " + name + " --publish 127.0.0.1::26257 ",
		" --mount type=bind,source=" + o.Dir + "/cockroach-docker,target=/cockroach/cockroach-data ",
		" " + dockerImage + " start-single-node --insecure --store=path=/cockroach/cockroach-data ",
	} {
		if !strings.Contains(run, want) {
			t.Errorf("docker %s\nlacks %q", run, want)
		}
	}
}

func TestASilentNodeIsStoppedAndExplained(t *testing.T) {
	t.Parallel()
	node := newWire(t, map[string]string{"server_version": "15.2"})
	o := nowhere(t)
	bin := t.TempDir()
	o.Getenv = environment{"PATH": os.Getenv("PATH"), BinaryVariable: script(t, bin, "roach", `
if [ "$1" = version ]; then echo v24.3.5; exit; fi
for a; do case "$a" in --listening-url-file=*) echo "postgres://root@`+node.addr+`/" >"${a#*=}";; esac; done
while :; do sleep 0.05; done
`)}.get
	o.Engine = CockroachDB
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is not CockroachDB") {
		t.Errorf("a PostgreSQL in cockroach's place: %v", err)
	}
	o.Getenv = environment{"PATH": os.Getenv("PATH"), BinaryVariable: script(t, bin, "roach", `
if [ "$1" = version ]; then echo v24.3.5; exit; fi
echo 'no space left' >&2; exit 5
`)}.get
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a node that ends at once: %v", err)
	}
}
