// Command release builds what a release of Gerbang consists of: an archive for each system with the gateway, the plugins, the merchants'
// clients, the default policy and the files of deploy; beside each a list of the modules in it, in CycloneDX's format; and SHA256SUMS over
// all. It builds a commit, not the files that lie about, and the same commit gives the same bytes. It publishes nothing.
//
// Usage, from the project's root:
//
//	go -C deploy/tools/release run . -root ROOT [-out DIRECTORY] [-revision COMMIT] [OS/ARCHITECTURE...]
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// systems are what a release is built for unless it is told.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// files are what an archive has of the commit, as they are there, so that links between them hold.
var files = []string{"LICENSE", "README.md", "CHANGELOG.md", "policy/README.md", "policy/rego", "deploy"}

// unpacked are what they have that nobody needs who runs the gateway.
var unpacked = []string{"deploy/tools", "deploy/bench"}

// apart are plugins of which gerbang dev, which serves all of bin/plugins, needs none: a second provider of payments.
var apart = map[string]string{"midtrans": "more"}

const module = "github.com/seed-f006e74d/gerbang"

func main() {
	log.SetFlags(0)
	root := flag.String("root", "../../..", "the project's root")
	out := flag.String("out", "dist/release", "the directory to write to, below the root unless absolute")
	revision := flag.String("revision", "HEAD", "the commit to release")
	flag.Parse()
	if err := release(*root, *out, *revision, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

// commit is what is released, as files of its own.
type commit struct {
	dir     string
	id      string
	at      time.Time
	version string
}

func release(root, out, revision string, targets []string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(root, out)
	}
	work, err := os.MkdirTemp("", "gerbang-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	c, err := export(root, revision, filepath.Join(work, "tree"))
	if err != nil {
		return err
	}
	clients := filepath.Join(work, "clients")
	if err := run(c.dir, nil, "go", "run", "./sdk/merchant/pack", clients); err != nil {
		return err
	}
	if err := cmp.Or(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return err
	}
	if len(targets) == 0 {
		targets = systems
	}
	for _, target := range targets {
		system, architecture, _ := strings.Cut(target, "/")
		bin := filepath.Join(work, "bin", system+"-"+architecture)
		if err := c.build(bin, system, architecture); err != nil {
			return err
		}
		name := "gerbang-" + c.version + "-" + system + "-" + architecture
		if err := c.pack(filepath.Join(out, name+".tar.gz"), name, bin, clients); err != nil {
			return err
		}
		if err := run(filepath.Join(root, "deploy/tools/release"), nil, "go", "tool", "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp",
			"-version", "v"+c.version, "-output", filepath.Join(out, name+".cdx.json"), filepath.Join(bin, "gerbang")); err != nil {
			return err
		}
		log.Printf("built %s of %s", name, c.id)
	}
	return sums(out)
}

// export takes a commit out of the repository.
func export(root, revision, dir string) (commit, error) {
	told, err := exec.Command("git", "-C", root, "show", "-s", "--format=%H %ct", revision+"^{commit}").Output()
	if err != nil {
		return commit{}, fmt.Errorf("%s is no commit here: %w", revision, err)
	}
	id, at, _ := strings.Cut(strings.TrimSpace(string(told)), " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return commit{}, fmt.Errorf("the time of %s: %w", id, err)
	}
	files, err := exec.Command("git", "-C", root, "archive", "--format=tar", id).Output()
	if err != nil {
		return commit{}, fmt.Errorf("git archive %s: %w", id, err)
	}
	if err := unpack(files, dir); err != nil {
		return commit{}, err
	}
	version, err := os.ReadFile(filepath.Join(dir, "gateway/version/number"))
	if err != nil {
		return commit{}, err
	}
	return commit{dir: dir, id: id, at: time.Unix(seconds, 0).UTC(), version: strings.TrimSpace(string(version))}, nil
}

// unpack writes the files of an archive of git's.
func unpack(archive []byte, dir string) error {
	for files := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(header.Name))
		content, err := io.ReadAll(files)
		if err := cmp.Or(err, os.MkdirAll(filepath.Dir(to), 0o755)); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, fs.FileMode(header.Mode).Perm()); err != nil { //nolint:gosec // nine bits
			return err
		}
	}
}

// build builds gateway and plugins for a system.
func (c commit) build(bin, system, architecture string) error {
	plugins, err := filepath.Glob(filepath.Join(c.dir, "plugins/*/main.go"))
	if err != nil {
		return err
	}
	stamps := "-s -w -X " + module + "/gateway/version.released=true -X " + module + "/gateway/version.revision=" + c.id
	environment := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + architecture}
	build := func(to, ldflags, main string) error {
		return run(c.dir, environment, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", filepath.Join(bin, to), main)
	}
	if err := build("gerbang", stamps, "./gateway/cmd/gerbang"); err != nil {
		return err
	}
	for _, plugin := range plugins {
		name := filepath.Base(filepath.Dir(plugin))
		if err := build(cmp.Or(apart[name], "plugins")+"/"+name, "-s -w", "./plugins/"+name); err != nil {
			return err
		}
	}
	return nil
}

// pack writes the archive of a system.
func (c commit) pack(to, name, bin, clients string) error {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := &writer{tar.NewWriter(packed), name, c.at}
	for _, file := range files {
		if err := archive.tree(filepath.Join(c.dir, file), file); err != nil {
			return err
		}
	}
	if err := cmp.Or(archive.tree(bin, "bin"), archive.tree(clients, "clients"), archive.files.Close(), packed.Close()); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// writer writes files in an order and with times and owners that depend on nothing but the commit.
type writer struct {
	files *tar.Writer
	name  string
	at    time.Time
}

func (w *writer) tree(from, to string) error {
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		as := path.Join(to, filepath.ToSlash(relative))
		if entry.IsDir() {
			if slices.Contains(unpacked, as) {
				return fs.SkipDir
			}
			return nil
		}
		return w.file(file, as)
	})
}

func (w *writer) file(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	if err := w.files.WriteHeader(&tar.Header{Name: path.Join(w.name, to), Mode: mode, Size: int64(len(content)), ModTime: w.at}); err != nil {
		return err
	}
	_, err = w.files.Write(content)
	return err
}

// sums writes what sha256sum --check reads.
func sums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(lines.String()), 0o644)
}

func run(dir string, environment []string, name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, out)
	}
	return nil
}
