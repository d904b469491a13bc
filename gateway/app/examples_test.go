package app_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/app"
)

var (
	secretFile = regexp.MustCompile(`(?m)^[\s#-]*(\w+_file): (\S+)`)
	inComment  = regexp.MustCompile(`(?m)^# (\w+: \S)`)
	settingKey = regexp.MustCompile(`(?m)^(?:# |[\s-]*)(\w+):`)
)

// TestShippedConfigs loads every configuration that is shipped, as it is and
// with the settings that stand in comments, and wants all settings shown.
func TestShippedConfigs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "deploy", "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		shipped := string(content)
		wantLoads(t, shipped)
		// The URL of the database stands in the file or in one of its own, and the
		// keyset comes one way. Simulators run here or elsewhere.
		all := inComment.ReplaceAllString(shipped, "$1")
		for _, others := range []string{"keyset_env|keyset_uri|sandbox_url", "keyset_env|keyset_file|sandbox_listen"} {
			wantLoads(t, regexp.MustCompile(`(?m)^(database_url_file|`+others+`): .*$`).ReplaceAllString(all, ""))
		}

		shown := map[string]bool{}
		for _, found := range settingKey.FindAllStringSubmatch(shipped, -1) {
			shown[found[1]] = true
		}
		for _, part := range []any{app.Config{}, app.PluginConfig{}, app.OperatorConfig{}, app.IdentityConfig{}} {
			for _, field := range reflect.VisibleFields(reflect.TypeOf(part)) {
				if name := field.Tag.Get("koanf"); field.IsExported() && !shown[name] {
					t.Errorf("%s does not show %q (%T.%s)", file, name, part, field.Name)
				}
			}
		}
	}
}

// wantLoads loads a configuration from a directory of its own, with the secrets that
// it names beside it.
func wantLoads(t *testing.T, content string) {
	t.Helper()
	dir := t.TempDir()
	for _, found := range secretFile.FindAllStringSubmatch(content, -1) {
		path := filepath.Join(dir, found[2])
		secret := "postgres://gerbang@127.0.0.1:5432/gerbang?note=longer-than-a-short-token\n"
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "gerbang.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := app.LoadConfig(file, func(string) string { return "" })
	if err != nil {
		t.Errorf("%v\n%s", err, content)
		return
	}
	if len(config.Plugins) == 0 || len(config.Operators) == 0 || config.DatabaseURL == "" {
		t.Errorf("read %+v", config)
	}
}
