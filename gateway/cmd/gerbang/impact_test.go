package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// TestTheSpanOfAnImpact: it begins at a time or so long ago, and ends at a time or where the log does.
func TestTheSpanOfAnImpact(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for flags, want := range map[string]struct {
		ago          time.Duration
		since, until string
		code         int
	}{
		"":           {ago: 24 * time.Hour},
		"--since 2h": {ago: 2 * time.Hour},
		"--since 2h --until 2026-01-02T04:00:00Z":                        {ago: 2 * time.Hour, until: "2026-01-02T04:00:00Z"},
		"--since 2026-01-02T10:04:05+07:00 --until 2026-01-02T04:00:00Z": {since: "2026-01-02T03:04:05Z", until: "2026-01-02T04:00:00Z"},
		"--since yesterday": {code: exitUsage},
		"--until tomorrow":  {code: exitUsage},
		"--since 3d":        {ago: 72 * time.Hour},
	} {
		for _, command := range []string{"policy impact 3f0c", "merchant suspend mer_1 --dry-run"} {
			f := newConsole(t, 200, `{"data":{"version":"3f0c","verdict":"equal","rows":[]}}`)
			begun := time.Now()
			code, p := run(t, f.environment(), "", strings.Fields(command+" "+flags)...)
			if code != want.code || (code == exitOK) != (len(f.requests) == 1) {
				t.Errorf("%s %s: code %d, %s", command, flags, code, &p.errors)
			}
			if code != exitOK {
				continue
			}
			var asked adminapi.NewImpact
			if err := json.Unmarshal([]byte(f.requests[0].body), &asked); err != nil {
				t.Fatal(err)
			}
			switch off := asked.Since.Sub(begun.Add(-want.ago)); {
			case want.since != "" && !asked.Since.Equal(at(want.since)), want.since == "" && (off < 0 || off > time.Since(begun)):
				t.Errorf("%s %s: since %s", command, flags, asked.Since)
			case (want.until == "") != (asked.Until == nil), asked.Until != nil && !asked.Until.Equal(at(want.until)):
				t.Errorf("%s %s: until %v", command, flags, asked.Until)
			}
		}
	}
}
