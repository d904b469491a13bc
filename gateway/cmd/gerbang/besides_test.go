package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestFlagsThatSayNothing: a flag that would change nothing is refused, and nothing is asked of the gateway. A limit "until tomorrow"
// would hold for ever, and a suspension, too.
func TestFlagsThatSayNothing(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"merchant limit mer_1 --rate 5/s --reason r --until 2030-01-01": "--until says something only with --dry-run",
		"merchant suspend mer_1 --reason r --until 2030-01-01":          "--until says something only with --dry-run",
		"merchant tier mer_1 growth --reason r --until 2030-01-01":      "--until says something only with --dry-run",
		"merchant limit mer_1 --rate 5/s --reason r --since 7d":         "--since says something only with --dry-run",
		"merchant limit mer_1 --reason r":                               "--reason is for a change",
		"policy push " + t.TempDir() + " -m m --wait":                   "--wait says something only with --activate",
	} {
		f := newConsole(t, http.StatusOK, `{"success":true,"data":[]}`)
		if code, p := run(t, f.environment(), "", strings.Fields(line)...); code == exitOK || len(f.requests) > 0 || !strings.Contains(p.errors.String(), want) {
			t.Errorf("%s: exit code %d, asked %d times: %s", line, code, len(f.requests), &p.errors)
		}
	}
}

// TestEveryFlagHasItsOther: the flag without which another says nothing is one of the same command, and its help says so.
func TestEveryFlagHasItsOther(t *testing.T) {
	t.Parallel()
	parser, err := (&program{}).parser(t.Context(), &commands{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, leaf := range parser.Model.Leaves(false) {
		var names []string
		for _, group := range leaf.AllFlags(true) {
			for _, flag := range group {
				names = append(names, flag.Name)
			}
		}
		for _, group := range leaf.AllFlags(true) {
			for _, flag := range group {
				other := flag.Tag.Get(besides)
				if said := strings.HasPrefix(flag.Help, "With --"); said != (other != "") || other != "" && !strings.HasPrefix(flag.Help, "With --"+other+":") {
					t.Errorf("%s --%s is for %q, and its help says %q", leaf.FullPath(), flag.Name, other, flag.Help)
				}
				if other != "" {
					found++
					if !slices.Contains(names, other) {
						t.Errorf("%s --%s needs --%s, which is not there", leaf.FullPath(), flag.Name, other)
					}
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("%d flags were looked at", found)
	}
}
