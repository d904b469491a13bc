package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Process is one of the machine's processes.
type Process struct {
	PID, parent int
	started     string // tells it from a later one with the same pid
	arguments   []string
	used        time.Duration // by itself and by its children that have ended
}

// String is the process as failures quote it.
func (p Process) String() string { return fmt.Sprintf("%d %s", p.PID, strings.Join(p.arguments, " ")) }

// IsPlugin tells the plugin for payments.
func (p Process) IsPlugin() bool { return p.Plays("payments", false) }

// Plays tells a plugin from its simulator, which is the same binary.
func (p Process) Plays(provider string, simulator bool) bool {
	return len(p.arguments) > 0 && strings.HasSuffix(p.arguments[0], "plugins/"+provider) &&
		simulator == (len(p.arguments) > 1 && p.arguments[1] == "sandbox")
}

// processes are those of the machine that have not ended.
func processes(t testing.TB) map[int]Process {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(entries) == 0 {
		t.Skip("this machine has no /proc to see processes in")
	}
	all := map[int]Process{}
	for _, entry := range entries {
		if p, ok := readProcess(entry); ok {
			all[p.PID] = p
		}
	}
	return all
}

// readProcess is false for a process that has ended, also for one that nobody
// has waited for.
func readProcess(dir string) (Process, bool) {
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return Process{}, false
	}
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(line) == 0 {
		return Process{}, false
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, false
	}
	// The second field is the name in parentheses, which may hold anything.
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	values := strings.Fields(string(rest))
	if len(values) < 20 || values[0] == "Z" {
		return Process{}, false
	}
	parent, err := strconv.Atoi(values[1])
	return Process{
		PID: pid, parent: parent, started: values[19], used: ticks(values[11:15]),
		arguments: strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"),
	}, err == nil
}

// Processes are all processes that come from a program.
func (p *Program) Processes(t testing.TB) []Process {
	t.Helper()
	all := processes(t)
	var family []Process
	for _, candidate := range all {
		for at, ok := candidate, true; ok; at, ok = all[at.parent] {
			if at.parent == p.Command.Process.Pid {
				family = append(family, candidate)
				break
			}
		}
	}
	return family
}

// OneProcess is the one process of the program's that is asked for.
func (p *Program) OneProcess(t testing.TB, what string, is func(Process) bool) Process {
	t.Helper()
	var found []Process
	for _, candidate := range p.Processes(t) {
		if is(candidate) {
			found = append(found, candidate)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d processes are %s, want one: %v", len(found), what, found)
	}
	return found[0]
}

// StillAlive are those of the processes that have not ended.
func StillAlive(t testing.TB, family []Process) []Process {
	t.Helper()
	all := processes(t)
	var alive []Process
	for _, member := range family {
		if now, ok := all[member.PID]; ok && now.started == member.started {
			alive = append(alive, member)
		}
	}
	return alive
}

// KillProvider kills a provider's plugin or simulator, unless it has ended just
// now.
func (p *Program) KillProvider(t *testing.T, provider string, simulator bool) bool {
	t.Helper()
	for _, one := range p.Processes(t) {
		if one.Plays(provider, simulator) {
			KillProcess(t, one)
			return true
		}
	}
	return false
}

// KillProcess ends a process as a crash does.
func KillProcess(t testing.TB, p Process) {
	t.Helper()
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %s: %v", p, err)
	}
}

// ticks adds up the kernel's hundredths of a second.
func ticks(values []string) (sum time.Duration) {
	for _, value := range values {
		n, _ := strconv.Atoi(value)
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}

// ProcessorTimes are what a process and all that come from it have used so far, those
// that have ended among them, summed by the names that one gives to each.
func ProcessorTimes(t testing.TB, pid int, name func(Process) string) map[string]time.Duration {
	t.Helper()
	all, used := processes(t), map[string]time.Duration{}
	for _, candidate := range all {
		for at, ok := candidate, true; ok; at, ok = all[at.parent] {
			if at.PID == pid {
				used[name(candidate)] += candidate.used
				break
			}
		}
	}
	return used
}

// Memories are how many bytes of memory a process and all that come from it hold now,
// summed by the names that one gives to each. What processes share is shared out among them.
func Memories(t testing.TB, pid int, name func(Process) string) map[string]int64 {
	t.Helper()
	all, held := processes(t), map[string]int64{}
	for _, candidate := range all {
		for at, ok := candidate, true; ok; at, ok = all[at.parent] {
			if at.PID == pid {
				held[name(candidate)] += candidate.memory()
				break
			}
		}
	}
	return held
}

// memory is zero for a process that has ended.
func (p Process) memory() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID))
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// IsDatabase tells PostgreSQL's processes.
func (p Process) IsDatabase() bool {
	return len(p.arguments) > 0 && (strings.HasPrefix(p.arguments[0], "postgres:") || filepath.Base(p.arguments[0]) == "postgres")
}

// From tells a process and those that it started itself.
func (p Process) From(pid int) bool { return p.PID == pid || p.parent == pid }
