package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// How a thing stands that was judged.
const (
	Good    = "ok"
	Warning = "warning" // it would start, and somebody would wonder
	Fault   = "fault"   // it would not start, or could not do its work
)

// Finding is what was found of one thing that a start needs.
type Finding struct {
	What  string `json:"what"`
	State string `json:"state"`
	Text  string `json:"text"`
}

// checkWithin bounds each thing that something else has to answer for.
const (
	checkWithin   = 10 * time.Second
	answersWithin = 2 * time.Second // of each listener
)

// checking judges a configuration before a start.
type checking struct {
	config Config
	log    *slog.Logger
	vault  *tenants.Vault // nil where it can't be opened
	found  []Finding
}

// Check judges everything that a start with this configuration needs, and changes nothing: not the database, not a gateway that runs.
func Check(ctx context.Context, path string, getenv func(string) string, log *slog.Logger) []Finding {
	config, err := LoadConfig(path, getenv)
	if err != nil {
		var found []Finding
		for line := range strings.Lines(strings.TrimPrefix(err.Error(), "config "+path+": ")) {
			found = append(found, Finding{"configuration", Fault, strings.TrimSpace(line)})
		}
		return found
	}
	c := &checking{config: config, log: log}
	c.tell("configuration", Good, "%s", path)
	for _, judge := range []func(context.Context){c.files, c.keyset, c.database, c.listeners, c.urls, c.policy, c.plugins, c.mails, c.provider, c.traces, c.auditSink} {
		within, cancel := context.WithTimeout(ctx, checkWithin*time.Duration(1+len(config.Plugins)))
		judge(within)
		cancel()
	}
	return c.found
}

func (c *checking) tell(what, state, format string, args ...any) {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") // errors of several servers have a line each
	c.found = append(c.found, Finding{what, state, text})
}

// judge tells a fault where there is an error.
func (c *checking) judge(what string, err error, format string, args ...any) {
	if err != nil {
		c.tell(what, Fault, "%v", err)
		return
	}
	c.tell(what, Good, format, args...)
}

// files judges the directories that the gateway writes to, and the time zone.
func (c *checking) files(context.Context) {
	for _, one := range []struct{ key, dir string }{{"plugins_dir", c.config.PluginsDir}, {"sandbox_dir", c.config.SandboxDir}} {
		if one.dir == "" || one.key == "sandbox_dir" && !c.config.Sandbox {
			continue
		}
		c.judge(one.key, writable(one.dir), "%s", one.dir)
	}
	_, err := time.LoadLocation(c.config.Zone)
	c.judge("time_zone", err, "%s", c.config.Zone)
}

// writable tries a directory, or the nearest one above it that is there: what is missing is made at the start.
func writable(dir string) error {
	for {
		_, err := os.Stat(dir)
		if err == nil {
			break
		}
		if parent := filepath.Dir(dir); errors.Is(err, os.ErrNotExist) && parent != dir {
			dir = parent
			continue
		}
		return err
	}
	file, err := os.CreateTemp(dir, ".gerbang-check-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

func (c *checking) keyset(ctx context.Context) {
	source, err := c.config.keyset()
	if err == nil {
		c.vault, err = tenants.OpenVault(ctx, source, c.log)
	}
	c.judge("keyset", err, "%s", cmp.Or(c.config.KeysetFile, c.config.KeysetEnv, c.config.KeysetURI))
}

func (c *checking) database(ctx context.Context) {
	if open := store.InClear(c.config.DatabaseURL); open != "" {
		c.tell("database", Warning, "the way to %s may be without TLS, where whoever listens reads everything: put sslmode=verify-full into the URL", open)
	}
	begun := time.Now()
	s, err := store.Open(ctx, c.config.DatabaseURL, store.Options{MaxConns: c.config.DatabaseConns, ReadOnly: true})
	if err != nil {
		c.tell("database", Fault, "%v", err)
		return
	}
	defer s.Close()
	c.tell("database", Good, "%s answered in %d ms", s.Engine(), time.Since(begun).Milliseconds())
	c.schema(ctx, s)
	if c.vault != nil {
		c.judge("keyset of the database", checkNameKey(ctx, s, c.vault), "opens what the database has sealed, as far as there is any")
	}
	if heads, err := s.PluginHeads(ctx); err == nil && len(heads) > 0 { // there may be no such table yet
		c.tell("approved plugins", Warning, "%d run by an operator's approval, whatever is configured under their names: these are not judged here, gerbang plugin list shows them", len(heads))
	}
	before := time.Now()
	theirs, err := s.Clock(ctx)
	switch off := theirs.Sub(before).Round(time.Millisecond); {
	case err != nil:
		c.tell("clock", Fault, "%v", err)
	case off.Abs() > time.Minute:
		c.tell("clock", Warning, "the database's is %v off this machine's: the gateway goes by the database's, logs by the machine's", off)
	default:
		c.tell("clock", Good, "the database's is %v off this machine's", off)
	}
}

// schema tells what a start would do with the database's tables.
func (c *checking) schema(ctx context.Context, s *store.Store) {
	const what = "schema"
	problem, err := s.Schema(ctx)
	version := s.SchemaVersion()
	switch {
	case err != nil:
		c.tell(what, Fault, "%v", err)
	case problem == "":
		c.tell(what, Good, "%d, this gateway makes %d", version, store.NewestSchema())
	case version >= store.NewestSchema() || !c.config.Migrate:
		c.tell(what, Fault, "the database %s", problem)
	case version == 0:
		c.tell(what, Good, "none yet: the start makes %d", store.NewestSchema())
	default:
		c.tell(what, Good, "%d: the start brings it to %d. Gateways of the version before go on beside it; a backup first is a way back", version, store.NewestSchema())
	}
}

// listeners judges whether the addresses can be taken. A gateway that runs has them, and is known by what it answers there.
func (c *checking) listeners(ctx context.Context) {
	var listening net.ListenConfig
	for _, one := range []struct {
		key, address, path string
		answers            []string
	}{
		{"listen", c.config.Listen, "/openapi.json", []string{`"openapi"`}},
		{"console", c.config.Console, "/healthz", []string{`"alive":true`, console.Elsewhere().Message}}, // also where this machine may not come in
		{"merchants_console", c.config.MerchantsConsole, "/signin", []string{"Gerbang"}},
		{"sandbox_listen", c.config.SandboxListen, "", nil},
	} {
		if one.address == "" {
			continue
		}
		l, err := listening.Listen(ctx, "tcp", one.address)
		switch {
		case err == nil:
			c.judge(one.key, l.Close(), "%s is free", one.address)
		case one.path == "":
			c.tell(one.key, Warning, "%v: it is well if that is the gateway that runs here", err)
		case answers(ctx, one.address, one.path, one.answers...):
			c.tell(one.key, Good, "%s is taken, by a gateway that runs here", one.address)
		default:
			c.tell(one.key, Fault, "%v", err)
		}
	}
}

// answers tells whether something of this machine answers as a gateway does.
func answers(ctx context.Context, address, path string, want ...string) bool {
	machine, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(machine); machine == "" || ip != nil && ip.IsUnspecified() {
		machine = "127.0.0.1"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(machine, port)+path, nil)
	if err != nil {
		return false
	}
	response, err := (&http.Client{Timeout: answersWithin}).Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	return err == nil && slices.ContainsFunc(want, func(text string) bool { return strings.Contains(string(body), text) })
}

// urls judges what others are told of this gateway.
func (c *checking) urls(context.Context) {
	u, err := url.Parse(c.config.PublicURL)
	switch private := err == nil && u.Scheme == "https"; {
	case !private:
		c.tell("public_url", Warning, "%s is not https: keys and payments could be read on the way. That is for trying out alone", c.config.PublicURL)
	default:
		c.tell("public_url", Good, "%s", c.config.PublicURL)
	}
	if len(c.config.TrustedProxies) == 0 {
		c.tell("trusted_proxies", Warning, "none: behind a proxy all clients are one address, which shares its connections and its failed attempts")
	}
	if len(c.config.Operators) == 0 {
		c.tell("operators", Warning, "none: only who was made an operator before comes in, and nobody while the database is away")
	}
}

func (c *checking) policy(context.Context) {
	if dir := c.config.FirstPolicyDir; dir != "" {
		_, err := policy.LoadDir(dir)
		c.judge("first_policy_dir", err, "%s is good", dir)
	}
}

// plugins starts what the configuration pins, and ends it again.
func (c *checking) plugins(ctx context.Context) {
	for _, p := range c.config.Plugins {
		what := "plugin " + p.Name
		started, err := host.Start(ctx, host.Config{Log: c.log, Specs: []host.Spec{p.spec()}})
		if err == nil {
			err = errors.Join(started.Down(), started.Close(context.WithoutCancel(ctx)))
		}
		c.judge(what, err, "%s starts as it was approved", p.Path)
	}
}

// mails and provider judge whether somebody answers there.
func (c *checking) mails(ctx context.Context) {
	if c.config.SMTP.Host == "" {
		c.tell("smtp", Warning, "none: no receipts, invitations or new passwords are mailed")
		return
	}
	c.reach(ctx, "smtp", c.config.SMTP.server().Address())
}

func (c *checking) provider(ctx context.Context) {
	if !c.config.IdentityProvider.given() {
		return
	}
	if u, err := url.Parse(c.config.IdentityProvider.Issuer); err == nil {
		c.reach(ctx, "identity_provider", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	}
}

func (c *checking) traces(ctx context.Context) {
	if u, err := url.Parse(c.config.Traces.URL); err == nil && u.Host != "" {
		c.reach(ctx, "traces", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])))
	}
}

func (c *checking) auditSink(ctx context.Context) {
	switch sink := c.config.AuditSink; {
	case sink.File != "":
		if err := writable(filepath.Dir(sink.File)); err != nil {
			c.tell("audit_sink", Warning, "%v", err)
			return
		}
		c.tell("audit_sink", Good, "%s", sink.File)
	case sink.Syslog != "":
		if err := audit.NewSyslog(sink.Syslog).Send(ctx, nil); err != nil {
			c.tell("audit_sink", Warning, "%v", err)
			return
		}
		c.tell("audit_sink", Good, "%s answers", sink.Syslog)
	}
}

// reach warns of what can't be reached: a gateway starts without it.
func (c *checking) reach(ctx context.Context, what, address string) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		c.tell(what, Warning, "%v", err)
		return
	}
	c.judge(what, conn.Close(), "%s answers", address)
}
