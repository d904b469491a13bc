package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/conformance"
)

// pluginTestTime bounds a whole run; what still runs then is killed.
const pluginTestTime = 5 * time.Minute

type pluginTest struct {
	File      string `arg:"" type:"existingfile" help:"The plugin's binary."`
	Examples  string `type:"existingfile" help:"The examples; examples.json beside the binary unless given. manifest.json lies beside them."`
	Simulator string `help:"Command of the upstream's simulator; the binary with the argument sandbox unless given."`
	Calls     int    `default:"10000" help:"How many calls are made to find what the plugin loses with each."`
}

// Run tests the plugin and says in words what was proven. It fails where a case did.
func (c *pluginTest) Run(ctx context.Context, p *program) error {
	file, err := filepath.Abs(c.File)
	if err != nil {
		return err
	}
	examples := cmp.Or(c.Examples, filepath.Join(filepath.Dir(file), "examples.json"))
	manifestJSON, examplesJSON, err := conformance.Files(filepath.Dir(examples), examples)
	if err != nil {
		return fmt.Errorf("%w; a test needs manifest.json and examples.json, beside the binary or where --examples says", err)
	}
	simulator := strings.Fields(c.Simulator)
	if len(simulator) == 0 {
		simulator = []string{file, "sandbox"}
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
		Simulator: func() *exec.Cmd { return exec.Command(simulator[0], simulator[1:]...) },
	})
	if err != nil {
		return err
	}
	var verdicts []conformance.Verdict
	suite.All(ctx, 4, func(v conformance.Verdict) { verdicts = append(verdicts, v) })
	title := suite.Manifest().Name + " " + suite.Manifest().Version
	if err := suite.Close(); err != nil {
		return err
	}
	return p.proven(title, verdicts)
}

// proven prints what was proven, what was not, and what failed.
func (p *program) proven(title string, verdicts []conformance.Verdict) error {
	slices.SortStableFunc(verdicts, func(a, b conformance.Verdict) int { return cmp.Compare(a.Name, b.Name) })
	passed, words := map[string][]string{}, []string{}
	var skipped, failed [][]string
	for _, v := range verdicts {
		example, _, of := strings.Cut(v.Name, "/")
		switch {
		case v.Failed:
			for i, word := range v.Words {
				failed = append(failed, []string{map[bool]string{true: v.Name}[i == 0], word})
			}
		case v.Skipped:
			skipped = append(skipped, []string{v.Name, strings.Join(v.Words, "; ")})
		default:
			if passed[v.Proves] == nil {
				passed[v.Proves], words = []string{}, append(words, v.Proves)
			}
			if of {
				passed[v.Proves] = append(passed[v.Proves], example)
			}
		}
	}
	rows := [][]string{{"PROVEN OF " + title}}
	for _, word := range words {
		if examples := strings.Join(passed[word], ", "); examples != "" {
			word += " (" + examples + ")"
		}
		rows = append(rows, []string{"  " + word})
	}
	if err := p.show(verdicts, rows...); err != nil || p.json {
		return errors.Join(err, failure(len(failed) > 0, title))
	}
	for _, part := range []struct {
		title string
		rows  [][]string
	}{{"NOT PROVEN", skipped}, {"FAILED", failed}} {
		if len(part.rows) == 0 {
			continue
		}
		for i := range part.rows {
			part.rows[i][0] = "  " + part.rows[i][0]
		}
		if err := p.show(nil, append([][]string{{""}, {part.title}}, part.rows...)...); err != nil {
			return err
		}
	}
	return failure(len(failed) > 0, title)
}

func failure(failed bool, title string) error {
	if failed {
		return errors.New(title + " does not conform: it must not touch money")
	}
	return nil
}
