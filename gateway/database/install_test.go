package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine has these programs on its PATH, all of which fail.
func machine(t *testing.T, programs ...string) environment {
	t.Helper()
	bin := t.TempDir()
	for _, name := range programs {
		script(t, bin, name, "exit 1")
	}
	return environment{"PATH": bin}
}

func TestPlanOfEachPackageManager(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		programs []string
		uid      int
		want     string // the first command; empty when there is no plan
	}{
		{[]string{"apt-get", "dnf", "brew"}, 0, "apt-get update"},
		{[]string{"apt-get", "sudo"}, 1000, "sudo apt-get update"},
		{[]string{"apt-get"}, 1000, ""},
		{[]string{"dnf"}, 0, "dnf install -y postgresql-server"},
		{[]string{"apk", "sudo"}, 1000, "sudo apk add --no-cache postgresql"},
		{[]string{"brew", "sudo"}, 501, "env HOMEBREW_GITHUB_ACTIONS=1 brew install postgresql@17"},
		{nil, 0, ""},
	} {
		plan, err := planFor(Options{Getenv: machine(t, test.programs...).get}, test.uid)
		if (err == nil) != (test.want != "") {
			t.Errorf("%v as %d: %v", test.programs, test.uid, err)
		}
		if err == nil && strings.Join(plan.Commands[0], " ") != test.want {
			t.Errorf("%v as %d: %q, want %q", test.programs, test.uid, plan.Commands[0], test.want)
		}
	}
}

func TestDebianMakesNoSystemCluster(t *testing.T) {
	t.Parallel()
	plan, err := planFor(Options{Getenv: machine(t, "apt-get").get}, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := plan.String()
	forbid := strings.Index(text, "create_main_cluster = false >"+debianDropIn)
	install := strings.Index(text, "apt-get install -y --no-install-recommends postgresql")
	tidy := strings.Index(text, "rm -f "+debianDropIn)
	if forbid < 0 || install < forbid || tidy < install {
		t.Errorf("the cluster is not forbidden before the installation, or for ever:\n%s", text)
	}
	if !strings.Contains(text, "sh -c 'mkdir -p") {
		t.Errorf("not pasteable:\n%s", text)
	}
}

func TestInstallNeedsAYes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		variable, value string
		terminal        bool
		answer          string
		want            bool
	}{
		"YES=1":               {"YES", "1", false, "", true},
		"CI":                  {"CI", "true", false, "", true},
		"CI=false":            {"CI", "false", false, "y\n", false},
		"nobody to ask":       {"", "", false, "y\n", false},
		"yes":                 {"", "", true, "Yes\n", true},
		"no":                  {"", "", true, "n\n", false},
		"just the return key": {"", "", true, "\n", false},
		"end of input":        {"", "", true, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := machine(t, "brew")
			env[test.variable] = test.value
			var ran [][]string
			var out strings.Builder
			err := Install(t.Context(), InstallOptions{
				Getenv: env.get, In: strings.NewReader(test.answer), Out: &out, Terminal: test.terminal,
				run: func(_ context.Context, command []string) error { ran = append(ran, command); return nil },
			})
			if (err == nil) != test.want || (len(ran) == 1) != test.want {
				t.Errorf("Install = %v, ran %q", err, ran)
			}
			if err != nil && (!errors.Is(err, errNotInstalled) || !strings.Contains(err.Error(), "brew install")) {
				t.Errorf("the error does not say how: %v", err)
			}
			if asked := strings.Contains(out.String(), "[y/N]"); asked != test.terminal {
				t.Errorf("asked = %v", asked)
			}
		})
	}
}

func TestInstallStopsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	env := machine(t, "apt-get", "sudo")
	env["YES"] = "1"
	failed := errors.New("no network")
	var ran int
	err := Install(t.Context(), InstallOptions{
		Getenv: env.get, Out: new(strings.Builder),
		run: func(context.Context, []string) error { ran++; return failed },
	})
	if !errors.Is(err, failed) || errors.Is(err, errNotInstalled) || ran != 1 {
		t.Errorf("Install = %v after %d commands", err, ran)
	}
}

func TestOpenOrInstall(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	env := machine(t, "brew")
	env["CI"] = "1"
	o := Options{Dir: t.TempDir(), Getenv: env.get, postgresPlaces: []string{filepath.Join(root, "*")}}
	i := InstallOptions{Getenv: env.get, Out: new(strings.Builder), run: func(context.Context, []string) error {
		script(t, filepath.Join(root, "bin"), "postgres", "echo 'postgres (PostgreSQL) 16.1'")
		script(t, filepath.Join(root, "bin"), "initdb", "echo out of luck; exit 1")
		return os.Chmod(root, 0o755)
	}}
	_, err := OpenOrInstall(t.Context(), o, i)
	if err == nil || errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), "initdb") {
		t.Errorf("OpenOrInstall = %v; want the installed binaries to have been tried", err)
	}
	delete(env, "CI")
	o.postgresPlaces = []string{filepath.Join(root, "empty", "*")}
	_, err = OpenOrInstall(t.Context(), o, i)
	if !errors.Is(err, ErrNoServer) || !errors.Is(err, errNotInstalled) {
		t.Errorf("OpenOrInstall = %v; want what was looked for and why nothing was installed", err)
	}
}

func TestInstallRunsTheCommand(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	var out strings.Builder
	o := InstallOptions{Out: &out}
	if err := o.execute(t.Context(), []string{script(t, bin, "tool", `echo "got $1"`), "a b"}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "got a b\n" {
		t.Errorf("output = %q", out.String())
	}
	null, err := os.Open(script(t, bin, "file", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(null) {
		t.Error("a file is taken for a terminal")
	}
	if slices.Contains([]bool{agreed(environment{}.get), yes(strings.NewReader("yess\n"))}, true) {
		t.Error("agreed to nothing")
	}
}
