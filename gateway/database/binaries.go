package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// knownPlaces are the directories in which packagers put PostgreSQL's server binaries. Many are not on the PATH,
// because several versions may stand side by side.
var knownPlaces = []string{
	"/usr/lib/postgresql/*/bin",                           // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                    // PostgreSQL's own RPMs
	"/usr/libexec/postgresql*",                            // Alpine
	"/opt/homebrew/opt/postgresql*/bin",                   // Homebrew, Apple silicon
	"/usr/local/opt/postgresql*/bin",                      // Homebrew, Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",      // Homebrew, Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin",  // Postgres.app
	"/Library/PostgreSQL/*/bin", "/usr/local/pgsql*/bin/", // EDB's installer, built from source
}

var binaryVersion = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// installation is one set of server binaries.
type installation struct {
	bin   string
	major int
}

func (i installation) String() string { return fmt.Sprintf("PostgreSQL %d in %s", i.major, i.bin) }

// command runs one of the binaries.
func (i installation) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, filepath.Join(i.bin, name), args...)
}

// findPostgres lists the installations in the places and on the path, newest first.
func findPostgres(ctx context.Context, places []string, path string) []installation {
	var bins []string
	for _, place := range places {
		found, _ := filepath.Glob(place)
		bins = append(bins, found...)
	}
	bins = append(bins, filepath.SplitList(path)...)
	var all []installation
	seen := map[string]bool{}
	for _, bin := range bins {
		server, err := filepath.EvalSymlinks(filepath.Join(bin, "postgres"))
		if err != nil || seen[server] || !executable(filepath.Join(bin, "initdb")) || !filepath.IsAbs(bin) {
			continue
		}
		seen[server] = true
		if major := majorOf(ctx, server); major > 0 {
			all = append(all, installation{bin, major})
		}
	}
	slices.SortStableFunc(all, func(a, b installation) int { return cmp.Compare(b.major, a.major) })
	return all
}

func majorOf(ctx context.Context, server string) int {
	out, err := exec.CommandContext(ctx, server, "--version").Output()
	if err != nil {
		return 0
	}
	found := binaryVersion.FindSubmatch(out)
	if found == nil {
		return 0
	}
	major, _ := strconv.Atoi(string(found[1]))
	return major
}

// choosePostgres picks the binaries for a data directory: those of the version that made it, or the newest for a
// new one. A directory of a version that is not installed is refused, and stays as it is.
func choosePostgres(all []installation, data string) (installation, error) {
	made, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	switch {
	case err == nil:
		major, _ := strconv.Atoi(strings.TrimSpace(string(made)))
		for _, i := range all {
			if i.major == major {
				return i, nil
			}
		}
		return installation{}, fmt.Errorf("%s was made by PostgreSQL %s, of which no server binaries are installed "+
			"(found: %s); it is left untouched", data, strings.TrimSpace(string(made)), listed(all))
	case !errors.Is(err, fs.ErrNotExist):
		return installation{}, err
	case len(all) == 0:
		return installation{}, absent("no postgres and initdb on the PATH or where Debian, RPM, Alpine, Homebrew and " +
			"Postgres.app put them")
	case all[0].major < minPostgres:
		return installation{}, absent(fmt.Sprintf("%d or later is needed; found: %s", minPostgres, listed(all)))
	}
	return all[0], nil
}

func listed(all []installation) string {
	if len(all) == 0 {
		return "none"
	}
	names := make([]string, len(all))
	for n, i := range all {
		names[n] = i.String()
	}
	return strings.Join(names, ", ")
}

// lookPath finds an executable on the given PATH rather than on the process's own.
func lookPath(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		// A relative entry would run whatever lies in the current directory.
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(file) {
			return file, nil
		}
	}
	return "", fmt.Errorf("no %s on the PATH", name)
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
