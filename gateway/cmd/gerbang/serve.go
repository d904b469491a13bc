package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/seed-f006e74d/gerbang/gateway/app"
	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/dev"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

type serveCommand struct {
	Config   string `required:"" placeholder:"FILE" help:"Configuration, in YAML."`
	Recovery bool   `help:"The database was restored: move no money until an operator opens the gateway, gerbang recovery open."`
}

// Run serves until a signal comes. SIGHUP reads the configuration again.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	hangups := make(chan os.Signal, 1) // from the start on: it must not end a gateway that starts
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	config, err := app.LoadConfig(c.Config, p.getenv)
	if err != nil {
		return err
	}
	if c.Recovery {
		config.Recover()
	}
	p.tuneGC()
	log, flush := p.requestLogger()
	defer flush()
	gateway, err := app.New(ctx, config, log)
	if err != nil {
		return stopped(ctx, err)
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-hangups:
				c.reload(gateway, p.getenv, log)
			}
		}
	}()
	return stopped(ctx, gateway.Run(ctx))
}

// reload keeps what stands where the new configuration is wrong.
func (c *serveCommand) reload(gateway *app.App, getenv func(string) string, log *slog.Logger) {
	config, err := app.LoadConfig(c.Config, getenv)
	if err == nil {
		err = gateway.Reload(config)
	}
	if err != nil {
		log.Error("the configuration was not reloaded, what it was before stays", "error", err)
		return
	}
	log.Info("operators, console_allow, approval_above and trusted_proxies are reloaded; all else changes with a restart")
}

type devCommand struct {
	Data        string   `default:".gerbang" placeholder:"DIR" help:"Directory of all data (${default})."`
	Listen      string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Merchants' listener (${default})."`
	Console     string   `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Operators' listener (${default})."`
	Sandbox     string   `default:"127.0.0.1:8082" placeholder:"HOST:PORT" help:"Simulators' page and API, for paying and injecting faults (${default})."`
	People      string   `name:"merchants-console" default:"127.0.0.1:8083" placeholder:"HOST:PORT" help:"Merchants' console, for their people (${default})."`
	DatabaseURL string   `name:"database-url" placeholder:"URL" help:"An empty database of a running CockroachDB or PostgreSQL, or one that gerbang dev made; also GERBANG_DATABASE_URL."`
	PolicyDir   string   `name:"policy-dir" placeholder:"DIR" help:"Directory of a policy that replaces the default one; edits are live at once."`
	PluginPort  []uint16 `name:"plugin-port" placeholder:"PORT" help:"A TCP port that plugins may connect to, beside 443 and their simulators'; repeatable."`
	PluginRead  []string `name:"plugin-read" placeholder:"DIR" help:"A directory that plugins may read, such as one of settlement reports; repeatable."`
	Plugin      []string `name:"plugin" placeholder:"FILE" help:"A plugin of your own, before the others; a rebuilt file is swapped in. Repeatable."`
	ReadyFile   string   `name:"ready-file" placeholder:"FILE" help:"Written with URLs and keys once everything answers."`
}

// Run keeps the development tree until a signal comes.
func (c *devCommand) Run(ctx context.Context, p *program) error {
	p.tuneGC()
	log, flush := p.requestLogger()
	defer flush()
	return stopped(ctx, dev.Run(ctx, dev.Options{
		Data: c.Data, Listen: c.Listen, Console: c.Console, Sandbox: c.Sandbox, MerchantsConsole: c.People,
		DatabaseURL: c.DatabaseURL, PolicyDir: c.PolicyDir, ReadyFile: c.ReadyFile, PluginRead: c.PluginRead, PluginPorts: c.PluginPort, Plugins: c.Plugin,
		Out: p.out, JSON: p.json, Log: log,
		Install: database.InstallOptions{In: p.in, Out: p.err, Terminal: p.inTerminal},
	}))
}

type migrateCommand struct {
	DatabaseURL string `name:"database-url" placeholder:"URL" help:"Database to migrate; also GERBANG_DATABASE_URL, which keeps a password out of the list of processes."`
}

// Run migrates and says so.
func (c *migrateCommand) Run(ctx context.Context, p *program) error {
	url, err := p.databaseURL(c.DatabaseURL)
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx, url, p.logger()); err != nil {
		return err
	}
	return p.show(map[string]string{"migrations": store.MigrationsDigest()}, []string{"The database has this version's tables."})
}

// databaseURL is the one that is given, or the environment's. A variable that was made of a file has its last line break.
func (p *program) databaseURL(given string) (string, error) {
	url := strings.TrimSpace(cmp.Or(given, p.getenv(database.URLVariable)))
	if url == "" {
		return "", usage(errors.New("--database-url or " + database.URLVariable + " must be given"))
	}
	return url, nil
}

// stopped makes a start that a signal cut short no failure.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// readFile reads a file, or standard input for "-".
func (p *program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return readAll(p.in)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := readAll(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return content, nil
}
