package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lmittmann/tint"
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/mask"
)

// program is the surroundings of a command. Its result goes to out, everything else
// to err.
type program struct {
	in                      io.Reader
	out, err                io.Writer
	getenv                  func(string) string
	inTerminal, errTerminal bool
	json, verbose           bool
}

const (
	adminURLVariable   = "GERBANG_ADMIN_URL"
	adminTokenVariable = "GERBANG_ADMIN_TOKEN"
	adminTokenFile     = "GERBANG_ADMIN_TOKEN_FILE"
	defaultAdminURL    = "http://127.0.0.1:8081"
)

// admin is a client of the running gateway that the environment names. Commands
// get it by naming it as an argument of Run.
func (p *program) admin() (*adminapi.Client, error) {
	token := p.getenv(adminTokenVariable)
	if file := p.getenv(adminTokenFile); token == "" && file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, usage(fmt.Errorf("%s: %w", adminTokenFile, err))
		}
		token = strings.TrimSpace(string(content))
	}
	if token == "" {
		return nil, usage(errors.New(adminTokenVariable + " is not set; export an operator's token, or its file as " + adminTokenFile + ": gerbang dev prints one when it starts, " +
			"gerbang serve knows those in the token_file of its operators, and gerbang operator token create makes others"))
	}
	url := cmp.Or(p.getenv(adminURLVariable), defaultAdminURL)
	if err := adminapi.CheckURL(url); err != nil {
		return nil, usage(fmt.Errorf("%s: %w", adminURLVariable, err))
	}
	return adminapi.NewClient(url, token), nil
}

// logger writes for people at a terminal, and for programs elsewhere.
func (p *program) logger() *slog.Logger {
	level := slog.LevelInfo
	if p.verbose {
		level = slog.LevelDebug
	}
	if p.errTerminal {
		return slog.New(tint.NewTextHandler(p.err, &tint.Options{Level: level, TimeFormat: time.TimeOnly}))
	}
	return slog.New(slog.NewJSONHandler(p.err, &slog.HandlerOptions{Level: level}))
}

// whenVerbose logs only where more is asked for: what matters is in the result.
func (p *program) whenVerbose() *slog.Logger {
	if p.verbose {
		return p.logger()
	}
	return slog.New(slog.DiscardHandler)
}

// requestLogger is a logger for who writes a line for each request. Flush must be called at the end.
func (p *program) requestLogger() (log *slog.Logger, flush func()) {
	if p.errTerminal { // somebody watches
		return p.logger(), func() {}
	}
	lines := &batches{to: p.err}
	batched := *p
	batched.err = lines
	return batched.logger(), lines.flush
}

// show prints a value as JSON with --json, and else as rows of a table, without what would steer a terminal.
func (p *program) show(value any, rows ...[]string) error {
	if p.json {
		encoder := json.NewEncoder(p.out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(table, mask.Clean(strings.Join(row, "\t"), math.MaxInt)); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(p.out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func timeText(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// gcPercent trades memory for speed: with few live objects and much garbage per
// request, the collector's default costs about a tenth of the throughput.
const gcPercent = 400

// tuneGC is for the gateway itself. What the environment says goes first, and
// GOMEMLIMIT, which the runtime reads, bounds the heap either way.
func (p *program) tuneGC() {
	if p.getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
