package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// Root is the module's directory, seen from a story's package.
const Root = "../../.."

// binVariable names the directory that make build filled. Without it the tests
// bring bin up to date themselves.
const binVariable = "GERBANG_TEST_BIN"

// mostParallel is how many stories run at once. Most wait for the shared gateway; those with programs of their own wait
// for one another (takeSlot).
const mostParallel = 32

// Main is TestMain of a story. After the last test it stops the gateway that the stories share and the database server.
func Main(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(strconv.Itoa(mostParallel)); err != nil {
			panic(err) // it takes every number
		}
	}
	os.Exit(dbtest.Run(stories{m}))
}

// stories are the tests of a package.
type stories struct{ *testing.M }

// Run runs them, and fails if the shared gateway did not end as it should.
func (s stories) Run() int {
	code := s.M.Run()
	if !endShared() {
		code = max(code, 1)
	}
	return code
}

// Binary is the path of gerbang. Its plugins are in the directory plugins beside
// it.
func Binary(t testing.TB) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "gerbang")
}

// build makes the binaries in bin as make build does, once for each test process.
// The first package of a run links them. The others wait for it, and then go
// build finds them up to date and leaves them as they are.
var build = sync.OnceValues(func() (_ string, err error) {
	if dir := os.Getenv(binVariable); dir != "" {
		return filepath.Abs(dir)
	}
	bin, err := filepath.Abs(filepath.Join(Root, "bin"))
	if err != nil {
		return "", err
	}
	unlock, err := lock(bin)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	plugins, err := filepath.Glob(filepath.Join(Root, "plugins", "*", "main.go"))
	if err != nil || len(plugins) == 0 {
		return "", fmt.Errorf("no plugins to build: %w", err)
	}
	// One provider of payments is enough for most stories, and is Xendit's.
	small := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o"}
	arguments, more := append(slices.Clone(small), filepath.Join(bin, "plugins")+"/"), append(slices.Clone(small), filepath.Join(bin, "more")+"/")
	for _, main := range plugins {
		if name := filepath.Base(filepath.Dir(main)); name != "midtrans" {
			arguments = append(arguments, "./plugins/"+name)
		} else {
			more = append(more, "./plugins/"+name)
		}
	}
	for _, a := range [][]string{arguments, more, append(slices.Clone(small), filepath.Join(bin, "gerbang"), "./gateway/cmd/gerbang")} {
		command := exec.Command("go", a...)
		command.Dir = Root
		if out, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(a, " "), err, out)
		}
	}
	return bin, nil
})

// lock makes a directory and holds it against other test processes until unlock.
func lock(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil // which ends the lock
}
