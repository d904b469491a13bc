package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk/conformance"
)

// defaultCalls is how many calls a test makes to find what a plugin loses with each.
const defaultCalls = 10_000

// pluginTestTime bounds a whole run; what still runs then is killed.
const pluginTestTime = 5 * time.Minute

type pluginTest struct {
	File       string   `arg:"" type:"existingfile" help:"The plugin's binary."`
	Examples   string   `type:"existingfile" help:"The examples; examples.json beside the binary unless given. manifest.json lies beside them."`
	Simulator  string   `help:"Command of the upstream's simulator; the binary with the argument sandbox unless given. It is never confined."`
	Calls      int      `default:"10000" help:"How many calls are made to find what the plugin loses with each."`
	Unconfined bool     `help:"Run both as you, not confined as a gateway confines a plugin: only for a binary that you trust."`
	Read       []string `type:"existingpath" help:"A file or directory that they may read while confined; may be repeated."`
	MemoryMB   int64    `name:"memory-mb" help:"How much memory the plugin may use while confined; 512 unless given."`
}

// Run tests the plugin and says in words what was proven. It fails where a case did.
func (c *pluginTest) Run(ctx context.Context, p *program) error {
	title, verdicts, err := c.verdicts(ctx, p)
	if err != nil {
		return err
	}
	return p.proven(title, verdicts)
}

// verdicts runs all cases.
func (c *pluginTest) verdicts(ctx context.Context, p *program) (title string, verdicts []conformance.Verdict, err error) {
	file, err := filepath.Abs(c.File)
	if err != nil {
		return "", nil, err
	}
	examples := cmp.Or(c.Examples, filepath.Join(filepath.Dir(file), "examples.json"))
	manifestJSON, examplesJSON, err := conformance.Files(filepath.Dir(examples), examples)
	if err != nil {
		return "", nil, fmt.Errorf("%w; a test needs manifest.json and examples.json, beside the binary or where --examples says", err)
	}
	simulator := strings.Fields(c.Simulator)
	if len(simulator) == 0 {
		simulator = []string{file, "sandbox"}
	}
	var confinement conformance.Confinement
	if !c.Unconfined {
		if confinement, err = c.confinement(file); err != nil {
			return "", nil, err
		}
	}
	log := io.Discard
	if p.verbose {
		log = p.err
	}
	ctx, cancel := context.WithTimeout(ctx, pluginTestTime)
	defer cancel()
	suite, err := conformance.Open(ctx, conformance.Config{
		Manifest: manifestJSON, Examples: examplesJSON, Calls: c.Calls, Log: log,
		Plugin:    func() *exec.Cmd { return exec.Command(file) },
		Simulator: func() *exec.Cmd { return exec.Command(simulator[0], simulator[1:]...) }, Confinement: confinement,
	})
	if err != nil {
		return "", nil, err
	}
	suite.All(ctx, 4, func(v conformance.Verdict) { verdicts = append(verdicts, v) })
	return suite.Manifest().Name + " " + suite.Manifest().Version, verdicts, suite.Close()
}

// confinement is how a gateway would run the file. Elsewhere than on Linux nothing is
// confined.
func (c *pluginTest) confinement(file string) (conformance.Confinement, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	sum, err := host.SHA256File(file)
	if err != nil {
		return nil, err
	}
	return host.Trial{Spec: host.Spec{Name: filepath.Base(file), Path: file, SHA256: sum, Read: c.Read, Memory: c.MemoryMB << 20}, OwnSimulator: c.Simulator != ""}, nil
}

// sorted tells what was proven, what was not and why, and what failed.
func sorted(verdicts []conformance.Verdict) (proven, unproven grouped, failed [][]string) {
	slices.SortStableFunc(verdicts, func(a, b conformance.Verdict) int { return cmp.Compare(a.Name, b.Name) })
	for _, v := range verdicts {
		example, _, of := strings.Cut(v.Name, "/")
		switch {
		case v.Failed:
			for _, word := range v.Words {
				failed = append(failed, []string{"  " + v.Name, word})
			}
		case v.Skipped:
			unproven.add(strings.Join(v.Words, "; "), v.Name)
		case of:
			proven.add(v.Proves, example)
		default:
			proven.add(v.Proves, "")
		}
	}
	return proven, unproven, failed
}

// proven prints what was proven, what was not, and what failed.
func (p *program) proven(title string, verdicts []conformance.Verdict) error {
	proven, unproven, failed := sorted(verdicts)
	rows := proven.rows("PROVEN OF " + title)
	if len(unproven.texts) > 0 {
		rows = slices.Concat(rows, [][]string{{""}}, unproven.rows("NOT PROVEN"))
	}
	err := p.show(verdicts, rows...)
	if len(failed) == 0 {
		return err
	}
	if !p.json {
		err = errors.Join(err, p.show(nil, slices.Concat([][]string{{""}, {"FAILED"}}, failed)...))
	}
	return errors.Join(err, errors.New(title+" does not conform: it must not touch money"))
}

// grouped are texts in the order in which they came, and what each is about.
type grouped struct {
	texts []string
	about map[string][]string
}

func (g *grouped) add(text, about string) {
	if g.about == nil {
		g.about = map[string][]string{}
	}
	if !slices.Contains(g.texts, text) {
		g.texts = append(g.texts, text)
	}
	if about != "" {
		g.about[text] = append(g.about[text], about)
	}
}

func (g *grouped) rows(title string) [][]string {
	rows := [][]string{{title}}
	for _, text := range g.texts {
		if about := strings.Join(g.about[text], ", "); about != "" {
			text += " (" + about + ")"
		}
		rows = append(rows, []string{"  " + text})
	}
	return rows
}
