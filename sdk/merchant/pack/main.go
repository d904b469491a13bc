// Command pack packs the merchants' clients into files that a merchant installs and a
// registry takes. It works on copies, and adds the licence to each. npm and Python build
// their own; it must not know more of them than how they are asked.
//
// Usage, from the project's root:
//
//	go run ./sdk/merchant/pack DIRECTORY [CLIENT...]
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	sources = "sdk/merchant"
	module  = "github.com/seed-f006e74d/gerbang/sdk/merchant"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: pack DIRECTORY [CLIENT...]")
	}
	if err := pack(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

// pack packs the named clients, all where none is named.
func pack(into string, clients []string) error {
	into, err := filepath.Abs(into)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	version, err := versionOf("typescript/package.json", "php/composer.json", "python/pyproject.toml")
	if err != nil {
		return err
	}
	copies, err := os.MkdirTemp("", "gerbang-clients-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(copies)
	builds := map[string]func(dir string) error{
		"go":  func(dir string) error { return packGo(dir, into, "gerbang-merchant-go-"+version) },
		"php": func(dir string) error { return archive(dir, into, "gerbang-merchant-php-"+version) },
		"postman": func(dir string) error {
			const collection = "gerbang.postman_collection.json"
			return copyFile(filepath.Join(dir, collection), filepath.Join(into, collection))
		},
		"typescript": func(dir string) error {
			if err := run(dir, "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"); err != nil {
				return err
			}
			return run(dir, "npm", "pack", "--pack-destination", into)
		},
		"python": func(dir string) error {
			return run(dir, "python3", "-c", "import backend, sys; backend.build_wheel(sys.argv[1]); backend.build_sdist(sys.argv[1])", into)
		},
	}
	if len(clients) == 0 {
		clients = slices.Sorted(maps.Keys(builds))
	}
	for _, name := range clients {
		build, known := builds[name]
		if !known {
			return fmt.Errorf("there is no client %s", name)
		}
		dir := filepath.Join(copies, name)
		if err := copied(name, dir); err != nil {
			return err
		}
		if err := build(dir); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// versionOf is the one version that all these files name.
func versionOf(names ...string) (string, error) {
	named := regexp.MustCompile(`(?m)^\s*"?version"?\s*[:=]\s*"([^"]+)"`)
	version := ""
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(sources, name))
		if err != nil {
			return "", err
		}
		found := named.FindSubmatch(text)
		if found == nil || version != "" && version != string(found[1]) {
			return "", fmt.Errorf("%s does not have the version %s", name, cmp.Or(version, "of a package"))
		}
		version = string(found[1])
	}
	return version, nil
}

// copied copies a client, without what was built of it in place, and the licence.
func copied(name, dir string) error {
	from := filepath.Join(sources, name)
	if name == "go" {
		from = sources
	}
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != from && (name == "go" || slices.Contains([]string{"node_modules", "dist", "__pycache__"}, entry.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return copyFile(path, filepath.Join(dir, relative))
	})
	if err != nil {
		return err
	}
	return copyFile("LICENSE", filepath.Join(dir, "LICENSE"))
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// packGo makes a module of the package. In the project it is none: the project's own would
// have to replace it, and go install refuses a module that replaces.
func packGo(dir, into, name string) error {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	language := regexp.MustCompile(`(?m)^go .*$`).Find(text)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), fmt.Appendf(nil, "module %s\n\n%s\n", module, language), 0o644); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, "scenarios.json")); err != nil {
		return err
	}
	return archive(dir, into, name)
}

// archive writes a directory as NAME.tar.gz. The same files always give the same bytes.
func archive(dir, into, name string) error {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.ToSlash(name + strings.TrimPrefix(path, dir))
		if err := files.WriteHeader(&tar.Header{Name: to, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = files.Write(content)
		return err
	})
	if err := cmp.Or(err, files.Close(), packed.Close()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(into, name+".tar.gz"), out.Bytes(), 0o644)
}

func run(dir, name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}
