// Package scaffold writes the module of a new provider plugin: manifest, adapter,
// simulator, examples and tests, all of which work before a line is changed. It owns the
// templates. It must not run anything, and knows no gateway.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// sdkModule is the module whose sdk a plugin is written against.
const sdkModule = "github.com/seed-f006e74d/gerbang"

// Plugin is what is to be written.
type Plugin struct {
	Name     string // of the provider
	Module   string // the Go module's path; the name unless given
	Template string // one of [Templates]
	Dir      string // which must be empty, or not there yet
	Checkout string // a directory with the SDK's source, or "" for a published version
	Version  string // of the SDK, where there is no checkout
}

// Templates are the kinds of plugins that can be written.
func Templates() []string {
	entries, err := templates.ReadDir("templates")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.Name() != common {
			names = append(names, e.Name())
		}
	}
	return names
}

// common are the files that all templates have.
const common = "common"

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// Write writes the plugin's files and returns their names, sorted.
func Write(p Plugin) ([]string, error) {
	if !nameForm.MatchString(p.Name) {
		return nil, fmt.Errorf("the name %q must be lower-case letters, digits and hyphens, at most 40", p.Name)
	}
	if !slices.Contains(Templates(), p.Template) {
		return nil, fmt.Errorf("there is no template for %s, only for %s", p.Template, strings.Join(Templates(), " and "))
	}
	if p.Module == "" {
		p.Module = p.Name
	}
	files := map[string][]byte{}
	for _, part := range []string{common, p.Template} {
		if err := p.render(part, files); err != nil {
			return nil, err
		}
	}
	if err := p.addModule(files); err != nil {
		return nil, err
	}
	return write(p.Dir, files)
}

// render makes the files of a template.
func (p Plugin) render(part string, files map[string][]byte) error {
	root := "templates/" + part
	return fs.WalkDir(templates, root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := templates.ReadFile(path)
		if err != nil {
			return err
		}
		parsed, err := template.New(path).Delims("«", "»").Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, p); err != nil {
			return err
		}
		files[strings.TrimSuffix(strings.TrimPrefix(path, root+"/"), ".tmpl")] = out.Bytes()
		return nil
	})
}

// needed are the modules that the SDK is made of. A plugin's own go.mod names them, so
// that it builds without the network wherever the SDK does.
var needed = []string{
	"github.com/fatih/color", "github.com/go-json-experiment/json", "github.com/golang/protobuf", "github.com/google/uuid",
	"github.com/hashicorp/go-hclog", "github.com/hashicorp/go-plugin", "github.com/hashicorp/yamux", "github.com/mattn/go-colorable",
	"github.com/mattn/go-isatty", "github.com/oklog/run", "github.com/santhosh-tekuri/jsonschema/v6", "golang.org/x/net", "golang.org/x/sys",
	"golang.org/x/text", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/grpc", "google.golang.org/protobuf",
}

// addModule adds go.mod. A plugin that is made from a checkout takes the SDK from there,
// with the versions and sums that the checkout has been tested with.
func (p Plugin) addModule(files map[string][]byte) error {
	if p.Checkout == "" {
		files["go.mod"] = fmt.Appendf(nil, "module %s\n\ngo 1.26.0\n\nrequire %s %s\n", p.Module, sdkModule, p.Version)
		return nil
	}
	theirs, err := os.ReadFile(filepath.Join(p.Checkout, "go.mod"))
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(theirs, []byte("module "+sdkModule+"\n")) {
		return fmt.Errorf("%s is no checkout of %s", p.Checkout, sdkModule)
	}
	var requires strings.Builder
	for line := range strings.Lines(string(theirs)) {
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(needed, words[0]) {
			fmt.Fprintf(&requires, "\t%s %s // indirect\n", words[0], words[1])
		}
	}
	if files["go.sum"], err = os.ReadFile(filepath.Join(p.Checkout, "go.sum")); err != nil {
		return err
	}
	files["go.mod"] = fmt.Appendf(nil, "module %s\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nrequire (\n%s)\n\nreplace %s => %s\n",
		p.Module, sdkModule, requires.String(), sdkModule, p.Checkout)
	return nil
}

// write writes files into a directory that has none.
func write(dir string, files map[string][]byte) ([]string, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: name another directory", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// FindCheckout is the nearest directory at or above one of these that has the SDK's
// source, "" for none.
func FindCheckout(from ...string) string {
	for _, dir := range from {
		for ; dir != ""; dir = filepath.Dir(dir) {
			if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && bytes.HasPrefix(text, []byte("module "+sdkModule+"\n")) {
				return dir
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}
