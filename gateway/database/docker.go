package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// dockerImage is the official image, at a fixed version so that the same gateway meets the same database.
	dockerImage        = "cockroachdb/cockroach:v24.3.15"
	dockerInfoPatience = 3 * time.Second
	dockerPatience     = 10 * time.Minute       // the image may have to be downloaded
	dockerPoll         = 200 * time.Millisecond // each poll is a process of its own
	dockerStore        = "/cockroach/cockroach-data"
)

// docker is the command line of a running Docker.
type docker struct {
	binary    string
	container string
}

// openDocker runs the official CockroachDB image. `docker run` stays in the foreground as our child: it passes
// signals on, so the container ends as any other server of ours does.
func openDocker(ctx context.Context, o Options, h *home) (*Server, error) {
	binary, err := lookPath(o.path(), "docker")
	if err != nil {
		return nil, absent(err.Error())
	}
	d := docker{binary, containerName(h.dir)}
	if err := d.answers(ctx); err != nil {
		return nil, absent("docker is installed but not running: " + err.Error())
	}
	defer o.awaiting("starting CockroachDB in Docker (" + dockerImage + ", downloaded the first time)")()
	d.remove() // what a killed gateway left; the home's lock says that nobody uses it
	store := filepath.Join(h.dir, "cockroach-docker")
	if o.onDisk() {
		if err := os.MkdirAll(store, 0o700); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), binary, d.runArgs(o, store)...)
	proc, err := startProcess(cmd, syscall.SIGTERM, filepath.Join(h.dir, "docker.log"))
	if err != nil {
		return nil, err
	}
	var at endpoint
	err = proc.awaitReady(ctx, probe{dockerPoll, dockerPatience, func(ctx context.Context) (err error) {
		at, err = connectCockroach(ctx, func() (string, error) { return d.address(ctx) })
		return err
	}})
	if err != nil {
		d.remove()
		return nil, err
	}
	return started(proc, h, at, dockerImage+" in Docker", d.remove), nil
}

func (d docker) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dockerInfoPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, d.binary, "info", "--format", "{{.ServerVersion}}").CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("docker info: %w: %s", err, lines[len(lines)-1])
	}
	return nil
}

// runArgs runs the binary itself, not the image's start script, which writes where only root may.
func (d docker) runArgs(o Options, store string) []string {
	args := []string{
		"run", "--rm", "--name", d.container, "--publish", "127.0.0.1::26257", "--entrypoint", "/cockroach/cockroach",
	}
	location := "type=mem,size=1GiB"
	if o.onDisk() {
		location = "path=" + dockerStore
		// Without the label option SELinux forbids the container our directory.
		args = append(args, "--mount", "type=bind,source="+store+",target="+dockerStore, "--security-opt", "label=disable")
		if runtime.GOOS == "linux" {
			args = append(args, "--user", strconv.Itoa(os.Getuid())+":"+strconv.Itoa(os.Getgid()))
		}
	}
	return append(args, dockerImage, "start-single-node", "--insecure", "--store="+location,
		"--listen-addr=0.0.0.0:26257", "--advertise-addr=localhost:26257", "--http-addr=localhost:8080",
		"--cache=256MiB", "--max-sql-memory=256MiB", "--external-io-dir=disabled")
}

// address is where the container's SQL port is published.
func (d docker) address(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, d.binary, "port", d.container, "26257/tcp").Output()
	if err != nil {
		return "", fmt.Errorf("docker port: %w", err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return "postgres://" + line, nil
}

// remove makes sure that no container of our name is left; that there is none is the usual case.
func (d docker) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	_ = exec.CommandContext(ctx, d.binary, "rm", "--force", d.container).Run()
}

// containerName is the same for the same data directory, so that the next start finds what a killed one left.
func containerName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "gerbang-db-" + hex.EncodeToString(sum[:6])
}
