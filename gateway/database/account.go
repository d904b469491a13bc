package database

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the unprivileged user that PostgreSQL runs as when the gateway is root, which PostgreSQL refuses. A nil
// account is the gateway's own user.
type account struct {
	name     string
	uid, gid int
}

// unprivileged picks the account: the owner of the cluster that exists already, else postgres, else nobody.
func unprivileged(data string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if resolved, err := filepath.EvalSymlinks(data); err == nil {
		return ownerAccount(resolved)
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		if a, err := accountOf(found); err == nil {
			return a, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}

func ownerAccount(data string) (*account, error) {
	uid, err := ownerOf(data)
	if err != nil {
		return nil, err
	}
	if uid == 0 {
		return nil, fmt.Errorf("%s belongs to root, as which PostgreSQL does not run; give it to another user", data)
	}
	found, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return nil, fmt.Errorf("owner of %s: %w", data, err)
	}
	return accountOf(found)
}

func accountOf(u *user.User) (*account, error) {
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return &account{u.Username, uid, gid}, nil
}

// wear makes cmd run as the account, in a directory that the account can reach.
func (a *account) wear(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)} //nolint:gosec // ids of the system's own file
	}
	return cmd
}

// own gives a path to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// enters reports whether the account can enter dir. A child process tries it, because modes alone do not decide
// (access lists, mounts).
func (a *account) enters(dir string) bool {
	if a == nil {
		return true
	}
	err := a.wear(exec.Command("/bin/sh", "-c", ":"), dir).Run()
	return !errors.Is(err, fs.ErrPermission)
}

// awayFrom makes a directory for a cluster whose home the account can't reach (below /root, say): beside other
// temporary files when the home is temporary, else where the system keeps services' data.
func (a *account) awayFrom(home string) (string, error) {
	parents := []string{"/var/lib", "/var/tmp"}
	if below(home, os.TempDir()) {
		parents = []string{os.TempDir(), "/tmp"}
	}
	for _, parent := range parents {
		if !a.enters(parent) {
			continue
		}
		dir, err := os.MkdirTemp(parent, awayPrefix)
		if err != nil {
			continue
		}
		if err := a.own(dir); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
		return dir, nil
	}
	return "", fmt.Errorf("the user %s, as which PostgreSQL must run, can reach neither %s nor %s",
		a.name, home, strings.Join(parents, " nor "))
}

func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
