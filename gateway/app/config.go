package app

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Config is a gateway's configuration. Its YAML file is read strictly: an unknown
// key is an error. Secrets are paths of files, never values.
type Config struct {
	Listen  string `koanf:"listen"`  // merchants' listener, host:port
	Console string `koanf:"console"` // operators' listener, host:port
	// The merchants' console, for their people: host:port, none unless given, and the URL
	// under which they reach it. OperatorsConsoleURL is the one of operators' pages, which
	// are on the operators' listener.
	MerchantsConsole    string `koanf:"merchants_console"`
	MerchantsConsoleURL string `koanf:"merchants_console_url"`
	OperatorsConsoleURL string `koanf:"operators_console_url"`

	PublicURL string `koanf:"public_url"` // as merchants, payers and providers reach the merchants' listener

	Service string `koanf:"service_name"` // in header names, X-Svc-... unless given

	DatabaseURL     string `koanf:"database_url"`      // without a password; or
	DatabaseURLFile string `koanf:"database_url_file"` // a file that holds it
	DatabaseConns   int32  `koanf:"database_connections"`
	OwnCommits      bool   `koanf:"own_commits"` // no write of a movement shares its commit with others, no read its round trip
	Migrate         bool   `koanf:"migrate"`     // at the start

	KeysetFile string         `koanf:"keyset_file"` // tink keyset that seals credentials, of mode 0600; or
	KeysetEnv  string         `koanf:"keyset_env"`  // the name of an environment variable that holds one; or
	KeysetURI  string         `koanf:"keyset_uri"`  // exec:PATH of a program that prints one, or file:PATH
	keysetText tenants.Secret // what keyset_env names

	FirstPolicyDir string `koanf:"first_policy_dir"` // the policy that the first start of all begins with; empty: the default one
	Zone           string `koanf:"time_zone"`        // whose day policies see

	PolicySecondOperator bool `koanf:"policy_second_operator"` // confirms what another one activates

	PluginsDir           string `koanf:"plugins_dir"`            // of the binaries that operators approve, each named by its SHA-256
	PluginSecondOperator bool   `koanf:"plugin_second_operator"` // confirms what another one approves

	Plugins     []PluginConfig   `koanf:"plugins"` // those that have no approval
	Operators   []OperatorConfig `koanf:"operators"`
	needPlugins bool
	recovers    bool
	alone       bool
	setAside    []string   // plugins whose approvals do not count
	passedOver  slog.Level // at which it is logged that a provider was passed over
	policyDir   string     // each edit there is a version at once

	SMTP SMTPConfig `koanf:"smtp"` // none: no mails are sent

	IdentityProvider IdentityConfig `koanf:"identity_provider"` // none: operators sign in with passwords alone

	// The simulators on which merchants without an account of their own work in test mode:
	// on unless given otherwise. They keep what they know in SandboxDir, sandbox/ beside the
	// configuration unless given. Of several replicas one runs them, the one that the others
	// name in SandboxURL, where it serves them at SandboxListen.
	Sandbox       bool                          `koanf:"sandbox"`
	SandboxDir    string                        `koanf:"sandbox_dir"`
	SandboxListen string                        `koanf:"sandbox_listen"` // host:port, in a network that only replicas reach
	SandboxURL    string                        `koanf:"sandbox_url"`
	simulators    map[string]*sandbox.Simulator // that run already

	Traces TracesConfig `koanf:"traces"` // none: nothing is traced

	AuditSink AuditSinkConfig `koanf:"audit_sink"` // none: the audit is in the database alone

	StopWait time.Duration `koanf:"stop_wait"` // how long a gateway that stops serves while it says that it is not ready

	ApprovalAbove int64 `koanf:"approval_above"` // whole rupiah that one operator may claim of a merchant alone in 24 hours

	ConsoleAllow       []string `koanf:"console_allow"`   // prefixes; loopback unless given
	TrustedProxies     []string `koanf:"trusted_proxies"` // whose X-Forwarded-For is believed
	CallbackDeny       []string `koanf:"callback_deny"`   // prefixes that callbacks never go to, besides private ones
	AllowHTTPCallbacks bool     `koanf:"allow_http_callbacks"`
}

// PluginConfig is a plugin that an operator has approved: its binary and its
// manifest are pinned by their digests, as `gerbang plugin digest` prints them.
type PluginConfig struct {
	Name           string `koanf:"name"`
	Path           string `koanf:"path"`
	SHA256         string `koanf:"sha256"`
	ManifestDigest string `koanf:"manifest_digest"`

	Ports    []uint16 `koanf:"ports"`     // TCP ports that it may connect to; 443 unless given
	Read     []string `koanf:"read"`      // files and directories that it may read
	MemoryMB int64    `koanf:"memory_mb"` // that it may use; 512 unless given
	User     string   `koanf:"user"`      // whom it runs as; the gateway's own unless given
}

// SMTPConfig is the server that takes mails, such as receipts for payers.
type SMTPConfig struct {
	Host         string `koanf:"host"` // "" for no mails
	Port         int    `koanf:"port"` // the usual port of the tls setting unless given
	From         string `koanf:"from"`
	User         string `koanf:"user"` // "" for a server without authentication
	PasswordFile string `koanf:"password_file"`
	TLS          string `koanf:"tls"` // starttls unless given, implicit or none
	password     tenants.Secret
}

// TracesConfig is where traces go.
type TracesConfig struct {
	URL   string  `koanf:"url"`   // of a collector that takes OTLP over HTTP, "" for none
	Share float64 `koanf:"share"` // of all requests, from 0 to 1; all of them unless given
}

func (t *TracesConfig) check() error {
	if t.URL == "" {
		return nil
	}
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("traces.url: %q must be the URL of a collector, such as http://localhost:4318/v1/traces", t.URL)
	}
	if u.Path == "" || u.Path == "/" { // as OTLP's own variable has it
		t.URL = u.JoinPath("v1/traces").String()
	}
	if !(t.Share >= 0 && t.Share <= 1) { // nor is it no number
		return fmt.Errorf("traces.share: %v must be from 0, for none, to 1, for all", t.Share)
	}
	return nil
}

// AuditSinkConfig is where each entry of the audit is sent: one of the two.
type AuditSinkConfig struct {
	File   string `koanf:"file"`   // each replica has one: all together have all entries
	Syslog string `koanf:"syslog"` // tls://host:6514, tcp://host:port or unix:///dev/log
}

// sink is what they are sent to, nil for none.
func (s AuditSinkConfig) sink() audit.Sink {
	switch {
	case s.File != "":
		return audit.File(s.File)
	case s.Syslog != "":
		return audit.NewSyslog(s.Syslog)
	}
	return nil
}

func (s AuditSinkConfig) check() error {
	if s.File != "" && s.Syslog != "" {
		return errors.New("audit_sink: file and syslog: only one can be given")
	}
	if s.Syslog == "" {
		return nil
	}
	if _, err := audit.SyslogAddress(s.Syslog); err != nil {
		return fmt.Errorf("audit_sink: syslog: %w", err)
	}
	return nil
}

// OperatorConfig is a person or program that may use the admin API.
type OperatorConfig struct {
	Name      string `koanf:"name"`
	TokenFile string `koanf:"token_file"`
	Role      string `koanf:"role"`   // admin unless given
	Inputs    bool   `koanf:"inputs"` // may read what refused requests asked for
	tokenHash [sha256.Size]byte
}

// Defaults returns the settings that a configuration begins with.
func Defaults() Config {
	return Config{
		Listen: ":8080", Console: "127.0.0.1:8081", Service: "Svc", Migrate: true, Zone: "Asia/Jakarta",
		ApprovalAbove: int64(console.DefaultApprovalAbove), StopWait: 5 * time.Second, Sandbox: true, Traces: TracesConfig{Share: 1},
		ConsoleAllow: []string{"127.0.0.0/8", "::1/128"},
	}
}

// envPrefix marks the environment variables that override top-level keys of
// the file, as in GERBANG_DATABASE_URL.
const envPrefix = "GERBANG_"

// Of each of these groups of keys exactly one must be given.
var (
	databaseWays = []string{"database_url", "database_url_file"}
	keysetWays   = []string{"keyset_file", "keyset_env", "keyset_uri"}
)

// LoadConfig reads a YAML file strictly, lets the environment override its
// top-level values, and checks the whole. Relative paths in it are relative to
// the file.
func LoadConfig(path string, getenv func(string) string) (Config, error) {
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		return Config{}, fmt.Errorf("config %s: %w", path, err)
	}
	if hasPassword(k.String("database_url")) {
		if err := ofFew(path); err != nil {
			return Config{}, fmt.Errorf("config %s: database_url has a password, and %w; or have the URL in a file of its own, database_url_file", path, err)
		}
	}
	if err := k.Load(env.Provider(".", env.Opt{
		EnvironFunc: func() []string { return overrides(getenv) },
	}), nil); err != nil {
		return Config{}, fmt.Errorf("config: environment: %w", err)
	}
	for _, ways := range [][]string{databaseWays, keysetWays} {
		given := func(way string) bool { return getenv(envPrefix+strings.ToUpper(way)) != "" }
		for _, way := range ways {
			if slices.ContainsFunc(ways, given) && !given(way) {
				k.Delete(way) // the file's way, where the environment has another
			}
		}
	}
	if k.Exists("policy_dir") {
		return Config{}, fmt.Errorf("config %s: policy_dir: policies are versions in the database: take it out, and gerbang policy push DIR --message WHY --activate. "+
			"Where the database has no version yet, name the directory first_policy_dir: the first start begins with it", path)
	}
	config, read := Defaults(), mapstructure.Metadata{}
	err := k.UnmarshalWithConf("", &config, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Metadata: &read, Result: &config, TagName: "koanf", WeaklyTypedInput: true, ZeroFields: true,
		MatchName:  func(key, field string) bool { return key == field }, // not in another case
		DecodeHook: mapstructure.ComposeDecodeHookFunc(durationHasUnit, textIsText),
	}})
	if len(read.Unused) > 0 {
		err = errors.Join(unknown(path, read.Unused), err)
	}
	if err != nil {
		return Config{}, fmt.Errorf("config %s: %w", path, err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Config{}, fmt.Errorf("config %s: %w", path, err)
	}
	config.resolve(filepath.Dir(absolute))
	if config.KeysetEnv != "" {
		config.keysetText = tenants.NewSecret(getenv(config.KeysetEnv))
	}
	if err := config.check(); err != nil {
		return Config{}, fmt.Errorf("config %s: %w", path, err)
	}
	return config, nil
}

var passwordWord = regexp.MustCompile(`password\s*=`)

// hasPassword tells whether a database's URL, or words in its place, have a password.
func hasPassword(database string) bool {
	if u, err := url.Parse(database); err == nil {
		if _, set := u.User.Password(); set {
			return true
		}
	}
	return passwordWord.MatchString(database)
}

// textIsText refuses a value that YAML does not read as text where text is expected:
// a digest without quotes may read as a number, and would come out different. Texts
// from the environment may still become numbers and truth values.
func textIsText(from, to reflect.Kind, value any) (any, error) {
	if to == reflect.String && from != reflect.String {
		return nil, errors.New("must be text; put it into quotes")
	}
	return value, nil
}

// overrides returns the environment's values for top-level keys.
func overrides(getenv func(string) string) []string {
	var pairs []string
	for _, key := range []string{
		"listen", "console", "merchants_console", "merchants_console_url", "operators_console_url", "public_url", "service_name", "database_url", "database_url_file",
		"database_connections", "migrate", "keyset_file", "keyset_env", "keyset_uri", "policy_dir", "first_policy_dir", "time_zone", "sandbox_listen", "sandbox_url",
	} {
		if value := getenv(envPrefix + strings.ToUpper(key)); value != "" {
			pairs = append(pairs, key+"="+value)
		}
	}
	for _, key := range []string{"traces.url", "traces.share"} {
		if value := getenv(envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))); value != "" {
			pairs = append(pairs, key+"="+value)
		}
	}
	return pairs
}

func (c *Config) resolve(dir string) {
	c.SandboxDir = cmp.Or(c.SandboxDir, "sandbox")
	for _, p := range []*string{&c.DatabaseURLFile, &c.KeysetFile, &c.FirstPolicyDir, &c.PluginsDir, &c.SandboxDir, &c.AuditSink.File} {
		*p = within(dir, *p)
	}
	if scheme, path, ok := strings.Cut(c.KeysetURI, ":"); ok {
		c.KeysetURI = scheme + ":" + within(dir, strings.TrimPrefix(path, "//"))
	}
	c.IdentityProvider.ClientSecretFile = within(dir, c.IdentityProvider.ClientSecretFile)
	c.SMTP.PasswordFile = within(dir, c.SMTP.PasswordFile)
	for i := range c.Plugins {
		c.Plugins[i].Path = within(dir, c.Plugins[i].Path)
		for j, path := range c.Plugins[i].Read {
			c.Plugins[i].Read[j] = within(dir, path)
		}
	}
	for i := range c.Operators {
		c.Operators[i].TokenFile = within(dir, c.Operators[i].TokenFile)
	}
}

func within(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// check collects every fault, and reads the secrets from their files.
func (c *Config) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if u, err := url.Parse(c.PublicURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		fault("public_url: must be the URL under which merchants and payers reach this gateway")
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.MerchantsConsole != "" && c.MerchantsConsoleURL == "" {
		fault("merchants_console_url: must be given with merchants_console: the URL under which merchants' people reach it")
	}
	for _, one := range []struct {
		key string
		url *string
	}{{"merchants_console_url", &c.MerchantsConsoleURL}, {"operators_console_url", &c.OperatorsConsoleURL}} {
		*one.url = strings.TrimRight(*one.url, "/")
		if *one.url != "" && !forSessions(*one.url) {
			fault("%s: must be an https URL: passwords and sessions travel there. http is for this machine alone", one.key)
		}
	}
	if err := c.AuditSink.check(); err != nil {
		fault("%w", err)
	}
	if err := c.Traces.check(); err != nil {
		fault("%w", err)
	}
	if c.DatabaseURL != "" && c.DatabaseURLFile != "" {
		fault("database_url and database_url_file: one of them must be given, not both")
	}
	if c.DatabaseURLFile != "" {
		var err error
		if c.DatabaseURL, err = readSecretFile(c.DatabaseURLFile); err != nil {
			fault("database_url_file: %w", err)
		}
	}
	if c.DatabaseURL == "" {
		fault("database_url or database_url_file: must be given")
	}
	if _, err := c.keyset(); err != nil {
		faults = append(faults, err)
	}
	if err := c.IdentityProvider.check(c.OperatorsConsoleURL); err != nil {
		faults = append(faults, err)
	}
	if err := c.SMTP.check(); err != nil {
		faults = append(faults, err)
	}
	if c.StopWait < 0 || c.StopWait > time.Minute {
		fault("stop_wait: must be from 0s to 1m")
	}
	if c.SandboxURL != "" && (!strings.HasPrefix(c.SandboxURL, "http://") && !strings.HasPrefix(c.SandboxURL, "https://") || c.SandboxListen != "") {
		fault("sandbox_url: must be the URL of another replica's sandbox_listen, and this one has none then")
	}
	c.SandboxURL = strings.TrimRight(c.SandboxURL, "/")
	if c.ApprovalAbove < 1 {
		fault("approval_above: must be at least 1, in whole rupiah")
	}
	if len(c.Plugins) == 0 && c.PluginsDir == "" {
		fault("plugins: there are none, and no plugins_dir for those that operators approve, so there would be nothing to call")
	}
	c.checkPlugins(fault)
	if err := c.readTokens(); err != nil {
		faults = append(faults, err)
	}
	for what, list := range map[string][]string{"console_allow": c.ConsoleAllow, "trusted_proxies": c.TrustedProxies, "callback_deny": c.CallbackDeny} {
		if _, err := prefixes(list); err != nil {
			fault("%s: %w", what, err)
		}
	}
	if slices.ContainsFunc(c.TrustedProxies, everywhere) {
		fault("trusted_proxies: a prefix of less than 7 bits believes whatever address anybody claims; name the proxies' own")
	}
	return errors.Join(faults...)
}

func (c *Config) checkPlugins(fault func(string, ...any)) {
	users := map[string]string{}
	for _, p := range c.Plugins {
		if other, taken := users[p.User]; taken && p.User != "" {
			fault("plugins: %q: user: is also %s's; each needs one of its own, because threads are counted by user", p.Name, other)
		}
		users[p.User] = p.Name
		if p.Name == "" || p.Path == "" || p.SHA256 == "" || p.ManifestDigest == "" {
			fault("plugins: %q: name, path, sha256 and manifest_digest must be given; gerbang plugin digest prints the last two", p.Name)
		}
		if p.MemoryMB < 0 || p.MemoryMB > 0 && p.MemoryMB < 64 {
			fault("plugins: %q: memory_mb: must be at least 64", p.Name)
		}
	}
}

// keyset returns the source of the keys that seal credentials.
func (c *Config) keyset() (tenants.KeysetSource, error) {
	none := func(way string) bool { return way == "" }
	if len(slices.DeleteFunc([]string{c.KeysetFile, c.KeysetEnv, c.KeysetURI}, none)) != 1 {
		return tenants.KeysetSource{}, errors.New("keyset_file, keyset_env or keyset_uri: one of them must be given; it seals the providers' credentials")
	}
	switch {
	case c.KeysetFile != "":
		return tenants.KeysetFile(c.KeysetFile), nil
	case c.KeysetEnv != "" && c.keysetText.IsZero():
		return tenants.KeysetSource{}, fmt.Errorf("keyset_env: the environment variable %s is not set", c.KeysetEnv)
	case c.KeysetEnv != "":
		return tenants.KeysetText(c.KeysetEnv, c.keysetText), nil
	}
	source, err := tenants.KeysetURI(c.KeysetURI)
	if err != nil {
		return tenants.KeysetSource{}, fmt.Errorf("keyset_uri: %w", err)
	}
	return source, nil
}

// forSessions tells a URL at which people may sign in.
func forSessions(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Path != "" {
		return false
	}
	ip, _ := netip.ParseAddr(u.Hostname()) // a name is no loopback address
	return u.Scheme == "https" || u.Scheme == "http" && (ip.IsLoopback() || u.Hostname() == "localhost")
}

// NeedPlugins has a gateway not start where one of its plugins can't be started. It is
// for development: whoever writes a plugin wants to know at once.
func (c *Config) NeedPlugins() { c.needPlugins = true }

// FollowPolicyDir makes each edit of a directory a policy version that is in force at
// once. It is for development.
func (c *Config) FollowPolicyDir(dir string) { c.policyDir = dir }

// Alone says that no other gateway runs on this database, so that nobody waits for one
// that was killed. It is for development.
func (c *Config) Alone() { c.alone = true }

// SetAside has what the configuration names of some plugins in force, also where an
// approval is. It is for development.
func (c *Config) SetAside(names []string) { c.setAside = names }

// WarnOfPassedOver has it logged as a warning where a payment does not go to the first of
// several providers. It is for development: whoever writes a plugin expects its calls.
func (c *Config) WarnOfPassedOver() { c.passedOver = slog.LevelWarn }

// Simulators are those that somebody else runs, by provider. It is for development.
func (c *Config) Simulators(running map[string]*sandbox.Simulator) { c.simulators = running }

// Recover has a gateway begin a recovery: its database was restored, and an operator is
// to open it.
func (c *Config) Recover() { c.recovers = true }

func (c *Config) readTokens() error {
	var faults []error
	for i, operator := range c.Operators {
		token, err := readSecretFile(operator.TokenFile)
		if err != nil {
			faults = append(faults, fmt.Errorf("operators: %q: token_file: %w", operator.Name, err))
			continue
		}
		if operator.Name == "" || len(token) < 32 {
			faults = append(faults, fmt.Errorf("operators: %q: a name, and a token of at least 32 characters, must be given", operator.Name))
			continue
		}
		if _, err := operator.role(); err != nil {
			faults = append(faults, fmt.Errorf("operators: %q: role: %w", operator.Name, err))
		}
		c.Operators[i].SetToken(token)
	}
	return errors.Join(faults...)
}

func (o *OperatorConfig) role() (console.Role, error) {
	return console.ParseRole(cmp.Or(o.Role, string(console.RoleAdmin)))
}

// SetToken gives an operator a token without a file. Only its hash is kept.
func (o *OperatorConfig) SetToken(token string) { o.tokenHash = sha256.Sum256([]byte(token)) }

// everywhere tells a prefix that more addresses are in than anybody has: the largest
// that is somebody's own is fc00::/7.
func everywhere(prefix string) bool {
	p, err := netip.ParsePrefix(prefix)
	return err == nil && p.Bits() < 7
}

func prefixes(list []string) ([]netip.Prefix, error) {
	parsed := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}
