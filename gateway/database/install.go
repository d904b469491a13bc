package database

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// errNotInstalled is Install's error when nobody agreed to an installation. Nothing was changed.
var errNotInstalled = errors.New("PostgreSQL was not installed")

// installPlan is how this machine's package manager installs PostgreSQL's server binaries and nothing more: no system
// cluster is made or started.
type installPlan struct {
	Manager  string
	Commands [][]string
}

// String is the commands as they can be pasted into a shell.
func (p installPlan) String() string {
	lines := make([]string, len(p.Commands))
	for n, command := range p.Commands {
		words := make([]string, len(command))
		for m, word := range command {
			words[m] = word
			if strings.ContainsAny(word, " ;&>$") {
				words[m] = "'" + word + "'" // no word of ours has a quote in it
			}
		}
		lines[n] = "    " + strings.Join(words, " ")
	}
	return strings.Join(lines, "\n")
}

// Debian's package makes and starts a cluster when it is installed, unless its configuration says not to. A drop-in
// file says so for the time of the installation, and what the administrator installs later is unaffected.
const (
	debianDropIn  = "/etc/postgresql-common/createcluster.d/gerbang.conf"
	debianForbid  = "mkdir -p /etc/postgresql-common/createcluster.d && echo create_main_cluster = false >" + debianDropIn
	debianInstall = "apt-get install -y --no-install-recommends postgresql; status=$?; rm -f " + debianDropIn +
		"; exit $status"
)

// managers in the order in which they are looked for. root says whether the commands need root.
var managers = []struct {
	name     string
	root     bool
	commands [][]string
}{
	{"apt-get", true, [][]string{
		{"apt-get", "update"},
		{"sh", "-c", debianForbid},
		{"env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", debianInstall},
	}},
	{"dnf", true, [][]string{{"dnf", "install", "-y", "postgresql-server"}}},
	{"apk", true, [][]string{{"apk", "add", "--no-cache", "postgresql"}}},
	// The formula makes a cluster after installing, except where this variable says that it runs in CI.
	{"brew", false, [][]string{{"env", "HOMEBREW_GITHUB_ACTIONS=1", "brew", "install", "postgresql@17"}}},
}

// planInstall picks the package manager of this machine. A nil getenv means os.Getenv.
func planInstall(getenv func(string) string) (installPlan, error) {
	return planFor(Options{Getenv: getenv}.withDefaults(), os.Geteuid())
}

func planFor(o Options, uid int) (installPlan, error) {
	for _, m := range managers {
		if _, err := lookPath(o.path(), m.name); err != nil {
			continue
		}
		plan := installPlan{Manager: m.name}
		var prefix []string
		if m.root && uid != 0 {
			if _, err := lookPath(o.path(), "sudo"); err != nil {
				return installPlan{}, fmt.Errorf("%s needs root, and there is no sudo", m.name)
			}
			prefix = []string{"sudo"}
		}
		for _, command := range m.commands {
			plan.Commands = append(plan.Commands, append(prefix[:len(prefix):len(prefix)], command...))
		}
		return plan, nil
	}
	return installPlan{}, errors.New("none of apt-get, dnf, apk and brew is on the PATH")
}

// InstallOptions say who may agree to an installation.
type InstallOptions struct {
	// Getenv replaces os.Getenv; nil means os.Getenv. CI and YES=1 agree without a question.
	Getenv func(name string) string
	// In is where a person answers, and Out where the question and the package manager's output go.
	In  io.Reader
	Out io.Writer
	// Terminal says that a person is at In (see IsTerminal); without one there is no question.
	Terminal bool

	run func(ctx context.Context, command []string) error
}

// IsTerminal reports whether a person may be at f.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Install installs PostgreSQL's server binaries with the machine's package manager: without a question in CI or with
// YES=1, after a yes on a terminal, and otherwise not at all (errNotInstalled, with what to do instead).
func Install(ctx context.Context, o InstallOptions) error {
	getenv := Options{Getenv: o.Getenv}.withDefaults().Getenv
	plan, err := planInstall(getenv)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotInstalled, err)
	}
	if !agreed(getenv) {
		if !o.Terminal {
			return fmt.Errorf("%w: nobody is there to ask. Run it again with YES=1, or run\n%s", errNotInstalled, plan)
		}
		fmt.Fprintf(o.Out, "No database server was found. Install PostgreSQL's binaries with %s?\n%s\n"+
			"No system cluster is made or started. [y/N] ", plan.Manager, plan)
		if !yes(o.In) {
			return fmt.Errorf("%w: declined. To do it yourself, run\n%s", errNotInstalled, plan)
		}
	}
	run := o.run
	if run == nil {
		run = o.execute
	}
	for _, command := range plan.Commands {
		fmt.Fprintln(o.Out, "+", strings.Join(command, " "))
		if err := run(ctx, command); err != nil {
			return fmt.Errorf("install PostgreSQL: %s: %w", strings.Join(command, " "), err)
		}
	}
	return nil
}

func (o InstallOptions) execute(ctx context.Context, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = o.Out, o.Out
	if o.Terminal {
		cmd.Stdin = o.In // sudo may ask for a password
	}
	return cmd.Run()
}

func agreed(getenv func(string) string) bool {
	ci := getenv("CI")
	return getenv("YES") == "1" || ci != "" && ci != "0" && ci != "false"
}

func yes(in io.Reader) bool {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && line == "" {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// OpenOrInstall is Open, and where the machine has no server at all, Install and Open again.
func OpenOrInstall(ctx context.Context, o Options, i InstallOptions) (*Server, error) {
	s, err := Open(ctx, o)
	if err == nil || !errors.Is(err, ErrNoServer) || o.Engine == CockroachDB {
		return s, err
	}
	if refused := Install(ctx, i); refused != nil {
		return nil, errors.Join(err, refused)
	}
	return Open(ctx, o)
}
