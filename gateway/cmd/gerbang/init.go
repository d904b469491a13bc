package main

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // of the configuration's template
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"

	"github.com/seed-f006e74d/gerbang/gateway/app"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/tenants"
)

//go:embed gerbang.yaml.tmpl
var configText string

var configTemplate = template.Must(template.New("gerbang.yaml").Parse(configText))

type initCommand struct {
	Dir string `arg:"" placeholder:"DIR" help:"Where everything is written; what is there is never overwritten."`

	DatabaseURL         string   `name:"database-url" placeholder:"URL" help:"An empty database; also GERBANG_DATABASE_URL, which keeps a password out of the list of processes."`
	PublicURL           string   `name:"public-url" required:"" placeholder:"URL" help:"How merchants, payers and providers will reach the API: https, through what ends TLS."`
	OperatorsConsoleURL string   `name:"operators-console-url" placeholder:"URL" help:"How operators will reach their pages, which are served on the console's listener."`
	MerchantsConsoleURL string   `name:"merchants-console-url" placeholder:"URL" help:"How merchants' people will reach their console; none unless given."`
	Listen              string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Merchants' listener (${default})."`
	Console             string   `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Operators' listener (${default})."`
	MerchantsConsole    string   `name:"merchants-console" default:"127.0.0.1:8082" placeholder:"HOST:PORT" help:"Listener of the merchants' console (${default})."`
	ConsoleAllow        []string `name:"console-allow" placeholder:"PREFIX" help:"Who may come to the operators' listener beside this machine, such as 10.0.0.0/24; repeatable."`
	TrustedProxies      []string `name:"trusted-proxy" placeholder:"PREFIX" help:"Who ends TLS before this gateway, beside this machine; repeatable."`
	From                string   `placeholder:"DIR" help:"Directory of the plugins' binaries; plugins beside this program unless given."`
}

// Run writes the directory and says what comes next.
func (c *initCommand) Run(ctx context.Context, p *program) error {
	var err error
	if c.DatabaseURL, err = p.databaseURL(c.DatabaseURL); err != nil {
		return err
	}
	config := filepath.Join(c.Dir, "gerbang.yaml")
	if _, err := os.Stat(config); err == nil {
		return fmt.Errorf("%s exists and is left as it is, with all beside it", config)
	}
	for dir, mode := range map[string]fs.FileMode{c.Dir: 0o755, filepath.Join(c.Dir, "secrets"): 0o700, filepath.Join(c.Dir, "plugins"): 0o755} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
	}
	plugins, err := c.plugins(ctx, p)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := configTemplate.Execute(&text, struct {
		*initCommand
		Plugins []pinned
	}{c, plugins}); err != nil {
		return err
	}
	if err := c.secrets(); err != nil {
		return err
	}
	judge := func(written string) error {
		_, err := app.LoadConfig(written, func(string) string { return "" })
		return err
	}
	if err := writeNew(config, text.Bytes(), 0o644, judge); err != nil { // the last: what failed before can be done again
		return err
	}
	return p.show(map[string]any{"config": config, "plugins": plugins},
		[]string{config + " is written, with secrets and " + fmt.Sprint(len(plugins)) + " plugins beside it. Keep secrets/keyset.json where no backup of the database is. Next:"},
		[]string{"  gerbang check --config " + shellWord(config)},
		[]string{"  gerbang serve --config " + shellWord(config)},
		[]string{"  export GERBANG_ADMIN_TOKEN_FILE=" + shellWord(filepath.Join(c.Dir, "secrets/operator-admin.token"))},
		[]string{"  gerbang merchant create NAME --tier starter"})
}

// plugins copies each binary to where approved ones run from, and pins it.
func (c *initCommand) plugins(ctx context.Context, p *program) ([]pinned, error) {
	from := c.From
	if from == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		from = filepath.Join(filepath.Dir(program), "plugins")
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return nil, fmt.Errorf("the plugins that came with this program are not there, name their directory with --from: %w", err)
	}
	var all []pinned
	for _, file := range files {
		path := filepath.Join(from, file.Name())
		one, err := pin(ctx, p.whenVerbose(), host.Spec{Name: file.Name(), Path: path})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		one.Path = filepath.Join(c.Dir, "plugins", one.SHA256)
		if err := writeNew(one.Path, content, 0o755, nil); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// secrets makes what only this gateway may know. Of an attempt before, keyset and token stay; its database may have been what was wrong.
func (c *initCommand) secrets() error {
	dir := filepath.Join(c.Dir, "secrets")
	if err := os.Remove(filepath.Join(dir, "database-url")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, err := range []error{
		tenants.CreateKeysetFile(filepath.Join(dir, "keyset.json")),
		writeNew(filepath.Join(dir, "operator-admin.token"), []byte(rand.Text()+rand.Text()+"\n"), 0o600, nil),
		writeNew(filepath.Join(dir, "database-url"), []byte(c.DatabaseURL+"\n"), 0o600, nil),
	} {
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// writeNew writes a file that must not be there, wholly or not at all: not where judge, unless it is nil, finds a fault in what is written.
func writeNew(path string, content []byte, mode fs.FileMode, judge func(written string) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".gerbang-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	if err := errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	if judge != nil {
		if err := judge(file.Name()); err != nil {
			return err
		}
	}
	return os.Link(file.Name(), path) // fails where the name is taken
}
