package app

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/console"
)

const goodToken = "0123456789abcdef0123456789abcdef"

// goodConfig is a configuration with everything in it.
const goodConfig = `
listen: 127.0.0.1:9000
console: 127.0.0.1:9001
public_url: https://api.example.com/
service_name: Pay
database_url: postgres://gerbang@db/gerbang
database_connections: 12
migrate: false
keyset_file: secrets/keyset.json
first_policy_dir: policy
policy_second_operator: true
time_zone: UTC
console_allow: [127.0.0.0/8, 192.0.2.0/24]
trusted_proxies: [192.0.2.1/32]
allow_http_callbacks: true
smtp:
  host: smtp.example.com
  port: 2525
  from: Toko <receipts@example.com>
  user: gerbang
  password_file: secrets/smtp
plugins:
  - name: payments
    path: plugins/payments
    sha256: aa
    manifest_digest: bb
  - {name: bank, path: /opt/bank, sha256: cc, manifest_digest: dd, ports: [443, 8443], read: [/srv/reports, reports], memory_mb: 256, user: bank}
operators:
  - name: ayu
    token_file: secrets/ayu
`

// configFile writes a configuration, beside its operator's token, and returns its path.
func configFile(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"gerbang.yaml": content, "secrets/ayu": goodToken + "\n", "secrets/short": "short",
		"secrets/smtp":     "hidden\n",
		"secrets/database": "postgres://gerbang:hidden@db/from-file\n",
		"secrets/open":     goodToken + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "secrets/open"), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "gerbang.yaml")
}

// only is an environment of these variables.
func only(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func TestLoadConfig(t *testing.T) {
	t.Parallel()
	path := configFile(t, goodConfig)
	c, err := LoadConfig(path, only(nil))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	if c.Listen != "127.0.0.1:9000" || c.Console != "127.0.0.1:9001" || c.PublicURL != "https://api.example.com" || c.Service != "Pay" ||
		c.DatabaseURL != "postgres://gerbang@db/gerbang" || c.DatabaseConns != 12 || c.Migrate || c.Zone != "UTC" || !c.AllowHTTPCallbacks {
		t.Errorf("read %+v", c)
	}
	if c.KeysetFile != filepath.Join(dir, "secrets/keyset.json") || c.FirstPolicyDir != filepath.Join(dir, "policy") || !c.PolicySecondOperator {
		t.Errorf("paths %s and %s are not beside the file", c.KeysetFile, c.FirstPolicyDir)
	}
	if len(c.Plugins) != 2 || c.Plugins[0].Path != filepath.Join(dir, "plugins/payments") || !reflect.DeepEqual(c.Plugins[1], PluginConfig{
		Name: "bank", Path: "/opt/bank", SHA256: "cc", ManifestDigest: "dd",
		Ports: []uint16{443, 8443}, Read: []string{"/srv/reports", filepath.Join(dir, "reports")}, MemoryMB: 256, User: "bank",
	}) {
		t.Errorf("plugins %+v", c.Plugins)
	}
	if !slices.Equal(c.ConsoleAllow, []string{"127.0.0.0/8", "192.0.2.0/24"}) || !slices.Equal(c.TrustedProxies, []string{"192.0.2.1/32"}) {
		t.Errorf("prefixes %q and %q", c.ConsoleAllow, c.TrustedProxies)
	}
	if c.SMTP.Host != "smtp.example.com" || c.SMTP.Port != 2525 || c.SMTP.password.Reveal() != "hidden" || strings.Contains(fmt.Sprintf("%+v", c), "hidden") {
		t.Errorf("smtp %+v", c.SMTP)
	}
	if role, err := c.Operators[0].role(); err != nil || role != console.RoleAdmin {
		t.Errorf("an operator without a role is %q, %v", role, err)
	}
	if len(c.Operators) != 1 || c.Operators[0].tokenHash != sha256.Sum256([]byte(goodToken)) {
		t.Errorf("operators %+v", c.Operators)
	}
}

// without removes the lines that begin with a key.
func without(config string, keys ...string) string {
	var kept []string
	for line := range strings.Lines(config) {
		if !slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(line, key+":") }) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// TestPolicyDirIsNoSetting: what it meant before this version must not be lost silently.
func TestPolicyDirIsNoSetting(t *testing.T) {
	t.Parallel()
	_, inFile := LoadConfig(configFile(t, goodConfig+"policy_dir: policy\n"), only(nil))
	_, inEnvironment := LoadConfig(configFile(t, goodConfig), only(map[string]string{"GERBANG_POLICY_DIR": "policy"}))
	for where, err := range map[string]error{"file": inFile, "environment": inEnvironment} {
		if err == nil || !strings.Contains(err.Error(), "gerbang policy push") || !strings.Contains(err.Error(), "first_policy_dir") {
			t.Errorf("%s: %v", where, err)
		}
	}
}

func TestLoadConfigDefaults(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(configFile(t, without(goodConfig, "listen", "console", "service_name", "migrate", "time_zone", "first_policy_dir", "policy_second_operator",
		"console_allow", "trusted_proxies", "allow_http_callbacks", "database_connections")), only(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	if c.Listen != want.Listen || c.Console != want.Console || c.Service != want.Service || c.Migrate != want.Migrate || c.Zone != want.Zone ||
		c.FirstPolicyDir != "" || !slices.Equal(c.ConsoleAllow, want.ConsoleAllow) || len(c.TrustedProxies) != 0 || c.AllowHTTPCallbacks || c.DatabaseConns != 0 {
		t.Errorf("read %+v", c)
	}
}

func TestEnvironmentOverridesFile(t *testing.T) {
	t.Parallel()
	file := without(goodConfig, "database_url") + "database_url_file: secrets/database\n"
	for name, c := range map[string]struct {
		config      string
		environment map[string]string
		want        func(Config) bool
	}{
		"values": {goodConfig, map[string]string{
			"GERBANG_LISTEN": ":1", "GERBANG_MIGRATE": "true", "GERBANG_DATABASE_CONNECTIONS": "7", "GERBANG_PUBLIC_URL": "http://localhost:1",
		}, func(c Config) bool {
			return c.Listen == ":1" && c.Migrate && c.DatabaseConns == 7 && c.PublicURL == "http://localhost:1" && c.Console == "127.0.0.1:9001"
		}},
		"traces": {goodConfig, map[string]string{"GERBANG_TRACES_URL": "http://localhost:4318", "GERBANG_TRACES_SHARE": "0.05"}, func(c Config) bool {
			return c.Traces == TracesConfig{URL: "http://localhost:4318/v1/traces", Share: 0.05}
		}},
		"URL over URL":  {goodConfig, map[string]string{"GERBANG_DATABASE_URL": "postgres://env"}, func(c Config) bool { return c.DatabaseURL == "postgres://env" }},
		"URL over file": {file, map[string]string{"GERBANG_DATABASE_URL": "postgres://env"}, func(c Config) bool { return c.DatabaseURL == "postgres://env" }},
		"file over URL": {goodConfig, map[string]string{"GERBANG_DATABASE_URL_FILE": "secrets/database"}, func(c Config) bool {
			return c.DatabaseURL == "postgres://gerbang:hidden@db/from-file"
		}},
		"only the file": {file, nil, func(c Config) bool { return c.DatabaseURL == "postgres://gerbang:hidden@db/from-file" }},
		"keyset over keyset": {goodConfig, map[string]string{"GERBANG_KEYSET_ENV": "KEYSET", "KEYSET": `{"hidden":1}`}, func(c Config) bool {
			return c.KeysetFile == "" && c.KeysetEnv == "KEYSET" && c.keysetText.Reveal() == `{"hidden":1}` && !strings.Contains(fmt.Sprintf("%+v", c), "hidden")
		}},
		"a program's keyset": {goodConfig, map[string]string{"GERBANG_KEYSET_URI": "exec:bin/open-keyset"}, func(c Config) bool {
			path, ok := strings.CutPrefix(c.KeysetURI, "exec:")
			return ok && filepath.IsAbs(path) && strings.HasSuffix(path, "/bin/open-keyset") && c.KeysetFile == ""
		}},
		"nothing else": {goodConfig, map[string]string{"GERBANG_PLUGINS": "x", "GERBANG_ADMIN_TOKEN": "x"}, func(c Config) bool { return len(c.Plugins) == 2 }},
	} {
		got, err := LoadConfig(configFile(t, c.config), only(c.environment))
		if err != nil || !c.want(got) {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
}

func TestLoadConfigNamesEveryFault(t *testing.T) {
	t.Parallel()
	for fault, content := range map[string]string{
		"lissten":                              goodConfig + "lissten: :1\n",
		"Time_zone":                            without(goodConfig, "time_zone") + "Time_zone: UTC\n",
		"shasum":                               strings.Replace(goodConfig, "sha256: aa", "sha256: aa\n    shasum: bb", 1),
		"public_url:":                          without(goodConfig, "public_url"),
		"merchants_console_url: must be given": goodConfig + "\nmerchants_console: 127.0.0.1:0\n",
		"merchants_console_url: must be an https URL":         goodConfig + "\nmerchants_console: 127.0.0.1:0\nmerchants_console_url: http://console.example.com\n",
		"operators_console_url: must be an https URL":         goodConfig + "\noperators_console_url: http://10.0.0.1:8081\n",
		"identity_provider: name, issuer":                     goodConfig + "\noperators_console_url: https://operators.example.com\nidentity_provider: {issuer: https://id.example.com}\n",
		"identity_provider: issuer":                           goodConfig + "\noperators_console_url: https://operators.example.com\nidentity_provider: {name: account, client_id: a, client_secret_file: secrets/ayu, domains: [example.com], issuer: http://id.example.com}\n",
		"identity_provider: operators_console_url":            goodConfig + "\nidentity_provider: {name: account, client_id: a, client_secret_file: secrets/ayu, domains: [example.com], issuer: https://id.example.com}\n",
		"identity_provider: client_secret_file":               goodConfig + "\noperators_console_url: https://operators.example.com\nidentity_provider: {name: account, client_id: a, client_secret_file: secrets/nothing, domains: [example.com], issuer: https://id.example.com}\n",
		"public_url: must":                                    strings.Replace(goodConfig, "https://api", "ftp://api", 1),
		"database_url or":                                     without(goodConfig, "database_url"),
		"database_url_file:":                                  without(goodConfig, "database_url") + "database_url_file: secrets/nothing\n",
		"database_url and":                                    goodConfig + "database_url_file: secrets/database\n",
		"keyset_file, keyset_env or":                          without(goodConfig, "keyset_file"),
		"keyset_uri: one of them":                             goodConfig + "keyset_uri: exec:open-keyset\n",
		"keyset_env: the environment":                         without(goodConfig, "keyset_file") + "keyset_env: NO_KEYSET\n",
		"keyset_uri:":                                         without(goodConfig, "keyset_file") + "keyset_uri: gcp-kms://projects/p\n",
		`"bank": user: is also payments's`:                    strings.Replace(goodConfig, "sha256: aa", "sha256: aa\n    user: bank", 1),
		"plugins: there are none":                             goodConfig[:strings.Index(goodConfig, "plugins:\n")],
		`plugins: "payments"`:                                 strings.Replace(goodConfig, "sha256: aa", `sha256: ""`, 1),
		`operators: "ayu": token_file`:                        strings.Replace(goodConfig, "secrets/ayu", "secrets/nobody", 1),
		`operators: "ayu": role: must be`:                     goodConfig + "    role: owner\n",
		`operators: "ayu": a name, and a`:                     strings.Replace(goodConfig, "secrets/ayu", "secrets/short", 1),
		`"ayu": token_file: /`:                                strings.Replace(goodConfig, "secrets/ayu", "secrets/open", 1),
		"database_url_file: /":                                without(goodConfig, "database_url") + "database_url_file: secrets/open\n",
		"smtp: password_file: /":                              strings.Replace(goodConfig, "secrets/smtp", "secrets/open", 1),
		"trusted_proxies: a prefix":                           strings.Replace(goodConfig, "192.0.2.1/32", "0.0.0.0/0", 1),
		"of less than 7 bits":                                 strings.Replace(goodConfig, "192.0.2.1/32", "0.0.0.0/1, 128.0.0.0/1", 1),
		"believes whatever":                                   strings.Replace(goodConfig, "192.0.2.1/32", `"::/0"`, 1),
		"console_allow:":                                      strings.Replace(goodConfig, "127.0.0.0/8", "localhost", 1),
		"trusted_proxies:":                                    strings.Replace(goodConfig, "192.0.2.1/32", "192.0.2.1", 1),
		"migrate":                                             strings.Replace(goodConfig, "migrate: false", "migrate: perhaps", 1),
		"[0].sha256' must be text":                            strings.Replace(goodConfig, "sha256: aa", "sha256: 12345678901234567890e1", 1),
		"yaml":                                                goodConfig + "\t- x\n",
		"smtp: password_file:":                                strings.Replace(goodConfig, "secrets/smtp", "secrets/nothing", 1),
		"smtp: from:":                                         strings.Replace(goodConfig, "receipts@example.com", "receipts", 1),
		"smtp: tls:":                                          strings.Replace(goodConfig, "port: 2525", "tls: none", 1),
		"smtp: host:":                                         strings.Replace(goodConfig, "host: smtp.example.com", `host: ""`, 1),
		"line 18: smtp.server":                                strings.Replace(goodConfig, "port: 2525", "server: x", 1),
		"line 25: plugins[0].sha; line 27: plugins[1].memory": strings.NewReplacer("sha256: aa", "sha: aa", "memory_mb", "memory").Replace(goodConfig),
		"traces.url: ":                                        goodConfig + "traces: {url: localhost:4318}\n",
		"traces.share: ":                                      goodConfig + "traces: {url: 'http://localhost:4318', share: .nan}\n",
		"stop_wait' must have a unit, such as 5s":             goodConfig + "stop_wait: 5\n",
		"already":                                             goodConfig + "listen: :1\n",
	} {
		_, err := LoadConfig(configFile(t, content), only(nil))
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("want an error with %q, got %v", fault, err)
			continue
		}
		if strings.Contains(err.Error(), goodToken) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "none.yaml"), only(nil)); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("a missing file: %v", err)
	}
}

// TestAPasswordInTheFile is refused where others can read the file, as it is in files of secrets.
func TestAPasswordInTheFile(t *testing.T) {
	t.Parallel()
	for _, database := range []string{
		"postgres://gerbang@db/gerbang", "postgres://gerbang:hidden@db/gerbang", "postgres://db/gerbang?user=gerbang&password=hidden", "host=db user=gerbang password = hidden",
	} {
		path := configFile(t, strings.Replace(goodConfig, "postgres://gerbang@db/gerbang", database, 1))
		if _, err := LoadConfig(path, only(nil)); err != nil {
			t.Errorf("%s in a file of its owner and group: %v", database, err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := LoadConfig(path, only(nil))
		if secret := strings.Contains(database, "hidden"); (err != nil) != secret || secret && (!strings.Contains(err.Error(), "chmod o=") || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%s in a file that everybody can read: %v", database, err)
		}
	}
}

func TestLoadConfigReportsAllFaults(t *testing.T) {
	t.Parallel()
	_, err := LoadConfig(configFile(t, without(goodConfig, "public_url", "keyset_file", "database_url")), only(nil))
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, fault := range []string{"public_url", "keyset_file", "database_url"} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("%s is not named in %v", fault, err)
		}
	}
}
