package report_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// profile is the parts of the gateway's processor time in percent, by name.
type profile struct{ packages, functions map[string]float64 }

// profile is taken of one more turn, which does not count. On a machine so busy that the
// gateway was sampled in none of it there are more.
func (b *bench) profile(c *contestant) profile {
	for range 10 {
		if taken := b.sampled(c); len(taken.packages) > 0 {
			return taken
		}
	}
	b.Fatalf("ten profiles of %s are empty", c.name)
	return profile{}
}

func (b *bench) sampled(c *contestant) profile {
	seconds := max(1, int(b.lasts.Seconds()))
	taken := filepath.Join(b.TempDir(), "profile")
	done := make(chan error, 1)
	go func() { done <- fetch(b.T, fmt.Sprintf("%s/profile?seconds=%d", b.program.SandboxURL, seconds), taken) }()
	_, err := c.loop.run(time.Duration(seconds) * time.Second)
	if err := errors.Join(err, <-done); err != nil {
		b.Fatalf("the profile of %s: %v", c.name, err)
	}
	out, err := exec.CommandContext(b.Context(), "go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", taken).Output()
	if err != nil {
		b.Fatalf("go tool pprof: %v", err)
	}
	return profileOf(string(out))
}

// fetch writes what is answered to a file.
func fetch(t *testing.T, url, file string) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := harness.HTTPClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %d %s", response.StatusCode, text)
	}
	return errors.Join(err, os.WriteFile(file, text, 0o600))
}

// profileOf reads what go tool pprof -top prints: flat, its percent, their sum, cum, its
// percent, and the function.
func profileOf(text string) profile {
	p := profile{map[string]float64{}, map[string]float64{}}
	_, lines, _ := strings.Cut(text, "flat%")
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(fields[1], "%"), 64)
		if err != nil || percent == 0 {
			continue
		}
		function := fields[5]
		for _, known := range []string{"github.com/seed-f006e74d/gerbang/", "google.golang.org/", "github.com/"} {
			function = strings.TrimPrefix(function, known)
		}
		begin := strings.LastIndex(function, "/") + 1
		name, _, _ := strings.Cut(function[begin:], ".")
		p.functions[function] += percent
		p.packages[function[:begin]+name] += percent
	}
	return p
}

// first are the greatest parts.
func first(parts map[string]float64, most int) string {
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int { return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b)) })
	var texts []string
	for _, name := range names[:min(most, len(names))] {
		texts = append(texts, fmt.Sprintf("%s %.1f %%", name, parts[name]))
	}
	return strings.Join(texts, ", ")
}

func TestProfileOf(t *testing.T) {
	t.Parallel()
	p := profileOf(`File: gerbang
Type: cpu
Showing nodes accounting for 2.87s, 100% of 2.87s total
      flat  flat%   sum%        cum   cum%
     0.35s 12.20% 12.20%      0.35s 12.20%  internal/runtime/syscall.Syscall6
     0.10s  3.50% 15.70%      0.60s 20.91%  runtime.mallocgc
     0.05s  1.50% 17.20%      0.05s  1.74%  runtime.nextFreeFast (inline)
     0.02s  0.70% 17.90%      1.20s 41.81%  github.com/seed-f006e74d/gerbang/gateway/edge.(*exchange).send
         0     0% 17.90%      1.20s 41.81%  net/http.(*conn).serve
`)
	if got, want := first(p.packages, 3), "internal/runtime/syscall 12.2 %, runtime 5.0 %, gateway/edge 0.7 %"; got != want {
		t.Errorf("by package: %s, want %s", got, want)
	}
	if got, want := first(p.functions, 2), "internal/runtime/syscall.Syscall6 12.2 %, runtime.mallocgc 3.5 %"; got != want {
		t.Errorf("by function: %s, want %s", got, want)
	}
}
