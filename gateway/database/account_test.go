package database

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestTheGatewaysOwnUserNeedsNoAccount(t *testing.T) {
	t.Parallel()
	var own *account
	if !own.enters(t.TempDir()) {
		t.Error("the gateway's own user is kept out")
	}
	if err := own.own(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("own = %v, although there is nobody to give it to", err)
	}
	runner, err := unprivileged(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	if (runner != nil) != (os.Geteuid() == 0) {
		t.Errorf("account = %v for uid %d", runner, os.Geteuid())
	}
	if runner != nil && runner.uid == 0 {
		t.Error("root was chosen to spare root")
	}
}

func TestTheOwnerOfAClusterRunsIt(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has to become somebody else")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	data := t.TempDir()
	if _, err := unprivileged(data); err == nil || !strings.Contains(err.Error(), "belongs to root") {
		t.Errorf("a cluster of root's: %v", err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, uid, -1); err != nil {
		t.Fatal(err)
	}
	if a, err := unprivileged(data); err != nil || a.uid != uid || a.name != "nobody" {
		t.Errorf("account = %v, %v; want the owner", a, err)
	}
}

func TestAClusterMovesOnlyAsFarAsItMust(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has to become somebody else")
	}
	runner, err := unprivileged(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	open := reachable(t)
	shut := filepath.Join(open, "shut")
	if err := os.MkdirAll(filepath.Join(shut, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if !runner.enters(open) || runner.enters(shut) || runner.enters(filepath.Join(shut, "inside")) {
		t.Error("enters does not report what the account can reach")
	}
	away, err := runner.awayFrom(shut)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(away) })
	if !below(away, os.TempDir()) || !ownedBy(away, runner.uid) {
		t.Errorf("%s is no temporary directory of the account's", away)
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/tmp/a/b": true, "/tmp": true, "/tmpx": false, "/var": false, "/tmp/../etc": false, "/tmp/..a": true,
	} {
		if got := below(path, "/tmp"); got != want {
			t.Errorf("below(%q, /tmp) = %v", path, got)
		}
	}
}
