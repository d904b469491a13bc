package judge_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/judge"
	"github.com/seed-f006e74d/gerbang/policy"
)

// TestMain makes the test binary the process, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == judge.Command {
		if err := judge.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bombs are sets that take all there is, by what is wrong with each: as they are compiled, tested or asked.
func bombs() map[string]string {
	var functions, doubled strings.Builder
	functions.WriteString("f0(x) := x\n")
	for i := 1; i < 3000; i++ {
		fmt.Fprintf(&functions, "f%d(x) := [f%d(x), f%d(x)]\n", i, i-1, i-1)
	}
	functions.WriteString("refusals contains \"x\" if f2999(1) == 3\n")
	for i := range 30 {
		fmt.Fprintf(&doubled, "\ts%d := concat(\"\", [s%d, s%d])\n", i+1, i, i)
	}
	return map[string]string{
		"a range":                "refusals contains \"x\" if count(numbers.range(1, 100000000)) == 7\n",
		"a text that doubles":    "refusals contains \"x\" if {\n\ts0 := \"xxxxxxxxxxxxxxxx\"\n" + doubled.String() + "\tcount(s30) == 3\n}\n",
		"a text in a text":       "refusals contains \"x\" if {\n\ts0 := \"" + strings.Repeat("x", 64) + "\"\n\ts1 := replace(s0, \"x\", s0)\n\ts2 := replace(s1, \"x\", s1)\n\ts3 := replace(s2, \"x\", s1)\n\tcount(s3) == 3\n}\n",
		"nested comprehensions":  "refusals contains \"x\" if input.amount == " + strings.Repeat("[y | y := ", 2000) + "1" + strings.Repeat("]", 2000) + "\n",
		"functions of functions": functions.String(),
	}
}

func with(rules string) policy.Source {
	source := policy.Default()
	source["bomb.rego"] = []byte("package gerbang\n\n" + rules)
	return source
}

// TestJudgingTakesNoMoreThanItMay: what would take gigabytes or hours is refused by a finding, or as an error of the set,
// and the process that asked is as large as before.
func TestJudgingTakesNoMoreThanItMay(t *testing.T) { //nolint:paralleltest // it measures this process
	if runtime.GOOS != "linux" {
		t.Skip("the memory of processes is measured on Linux")
	}
	j := judge.New(slog.New(slog.NewTextHandler(t.Output(), nil)))
	before := resident(t)
	for name, rules := range bombs() {
		if testing.Short() && name != "a text that doubles" && name != "functions of functions" {
			continue
		}
		begun := time.Now()
		findings, err := j.Gate(t.Context(), with(rules), policy.Facts{})
		t.Logf("%s: %v after %v", name, findings, time.Since(begun).Round(time.Millisecond))
		if err != nil || !policy.Refused(findings, true) || findings[0].Check != policy.CheckCost && findings[0].Check != policy.CheckTests {
			t.Errorf("%s is not refused: %v, %v", name, findings, err)
		}
	}
	if grown := resident(t) - before; grown > 32<<20 {
		t.Errorf("it has grown by %d MiB", grown>>20)
	}
	var children syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children); err != nil {
		t.Fatal(err)
	}
	t.Logf("the largest process had %d MiB", children.Maxrss>>10)
	if most := int64(512 << 20); children.Maxrss<<10 > most {
		t.Errorf("a process had %d MiB", children.Maxrss>>10)
	}
}

// TestWhatTakesTooMuchLateIsRefused, too: where a bomb goes off as the last requests of a tier are tried, its finding is not
// lost, nor is what those before it have found.
func TestWhatTakesTooMuchLateIsRefused(t *testing.T) {
	t.Parallel()
	source := with(`refusals contains "x" if {
	input.merchant.tier == "starter"
	input.operation.kind == "payment"
	not spared
}

spared if {
	input.amount == 10000
	count(numbers.range(1, 100000000)) == 7
}
`)
	create := policy.Offered{Operation: policy.Operation{Path: "/payments/create", Kind: "payment", Provider: "payments"}, Amount: true}
	findings, err := judge.New(slog.New(slog.DiscardHandler)).Gate(t.Context(), source, policy.Facts{
		Operations: []policy.Offered{create}, Merchants: map[string]int{"starter": 3},
	})
	if err != nil || !policy.Refused(findings, true) {
		t.Errorf("it is not refused: %v, %v", findings, err)
	}
}

// TestAProcessThatIsKilled says nothing about the policy: its end is an error, and what is asked next is answered.
func TestAProcessThatIsKilled(t *testing.T) { //nolint:paralleltest // it kills every process of this one
	if runtime.GOOS != "linux" {
		t.Skip("processes are found in /proc")
	}
	j := judge.New(slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() {
		_, err := j.Gate(t.Context(), with(bombs()["nested comprehensions"]), policy.Facts{})
		ended <- err
	}()
	for {
		threads, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil || len(threads) == 0 {
			t.Skip("this kernel does not list children")
		}
		for _, thread := range threads {
			children, err := os.ReadFile(thread)
			var pid int
			if n, _ := fmt.Sscan(string(children), &pid); err == nil && n == 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		select {
		case err := <-ended:
			if _, ofSet := errors.AsType[*policy.Error](err); err == nil || ofSet || !strings.Contains(err.Error(), "by somebody else") {
				t.Errorf("a process that was killed: %v", err)
			}
			if _, err := j.Compile(t.Context(), policy.Default()); err != nil {
				t.Errorf("the one after it: %v", err)
			}
			return
		default:
			runtime.Gosched()
		}
	}
}

// resident is what this process occupies.
func resident(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
