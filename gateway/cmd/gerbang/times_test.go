package main

import (
	"strings"
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	t.Parallel()
	jakarta := time.FixedZone("WIB", 7*60*60)
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, jakarta)
	for text, want := range map[string]string{
		"2026-01-02T03:04:05Z":      "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05+09:00": "2026-01-01T18:04:05Z",
		"2026-01-02":                "2026-01-01T17:00:00Z",
		"2026-01-02T07:00":          "2026-01-02T00:00:00Z",
		"2026-01-02 07:00:01":       "2026-01-02T00:00:01Z",
		"7d":                        "2026-02-24T22:06:07Z",
		"1d1h":                      "2026-03-02T21:06:07Z",
		"90m":                       "2026-03-03T20:36:07Z",
		"0s":                        "2026-03-03T22:06:07Z",
	} {
		if got, err := readTime(text, now); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s is %v, want %s; %v", text, got, want, err)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-13-01", "-3h", "7", "d", "7days", "99999999d", "1d-2h", "40000d"} {
		if got, err := readTime(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	if got, err := readDuration("30d"); err != nil || got != 720*time.Hour {
		t.Errorf("30d is %v; %v", got, err)
	}
}

// TestOneRuleForTimes: flags of the admin API, of commands and with defaults read days alike.
func TestOneRuleForTimes(t *testing.T) {
	t.Parallel()
	f := newConsole(t, 200, `{"data":{}}`)
	for _, args := range []string{"operator token create --name sari --role read --expires 30d", "key rotate mer_1 k1 --overlap 1d --yes"} {
		if code, p := run(t, f.environment(), "", strings.Fields(args)...); code != exitOK {
			t.Errorf("%s: exit code %d: %s", args, code, &p.errors)
		}
	}
	if got := f.requests[0].body + f.requests[1].body; !strings.Contains(got, `"720h0m0s"`) || !strings.Contains(got, `"24h0m0s"`) {
		t.Errorf("asked %s", got)
	}
	list := newConsole(t, 200, `{"data":[]}`)
	if code, p := run(t, list.environment(), "", "callback", "list", "mer_1", "--mode", "live", "--since", "2026-01-02T10:04:05+07:00"); code != exitOK ||
		!strings.Contains(list.requests[0].path, "since=2026-01-02T") {
		t.Errorf("exit code %d, asked %+v: %s", code, list.requests, &p.errors)
	}
}
