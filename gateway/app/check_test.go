package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// TestCheck: everything that a start needs is judged, against a database that is there.
func TestCheck(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t, "empty", func(context.Context, string) error { return nil })
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := func(changes ...string) string {
		dir := t.TempDir()
		keyset, err := os.ReadFile(keysetFile(t))
		if err != nil {
			t.Fatal(err)
		}
		config := strings.NewReplacer(changes...).Replace(fmt.Sprintf(`listen: 127.0.0.1:0
console: 127.0.0.1:0
public_url: https://api.example.com
database_url: %q
keyset_file: keyset
plugins_dir: plugins
plugins: []
`, url))
		for name, text := range map[string]string{"keyset": string(keyset), "gerbang.yaml": config} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(dir, "gerbang.yaml")
	}
	check := func(path, what, state, says string) {
		t.Helper()
		found := Check(t.Context(), path, only(nil), slog.New(slog.DiscardHandler))
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.What == what && f.State == state && strings.Contains(f.Text, says) }) {
			t.Errorf("no %s of %s with %q in %+v", state, what, says, found)
		}
	}
	good := file()
	check(good, "schema", Good, "none yet: the start makes")
	check(good, "plugins_dir", Good, filepath.Dir(good)+"/plugins")
	check(good, "trusted_proxies", Warning, "none")
	check(file("plugins_dir: plugins", "plugins_dir: plugins\nmigrate: false"), "schema", Fault, "has no tables")
	check(file("listen: 127.0.0.1:0", "listen: "+taken.Addr().String()), "listen", Fault, "in use")
	healthy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"alive":true}`) })) // of another program
	defer healthy.Close()
	check(file("listen: 127.0.0.1:0\nconsole: 127.0.0.1:0", "listen: "+taken.Addr().String()+"\nconsole: "+healthy.Listener.Addr().String()), "listen", Fault, "in use")
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message":"`+console.Elsewhere().Message+`"}`)
	}))
	defer closed.Close()
	check(file("console: 127.0.0.1:0", "console: "+closed.Listener.Addr().String()), "console", Good, "by a gateway that runs here")
	check(file("https:", "http:"), "public_url", Warning, "not https")
	check(file("keyset_file: keyset", "keyset_file: none"), "keyset", Fault, "none")
	check(file("plugins_dir: plugins", "plugins_dir: plugins\ntime_zone: Nowhere/None"), "time_zone", Fault, "Nowhere")
	check(file("plugins_dir: plugins", "plugins_dir: plugins\nfirst_policy_dir: none"), "first_policy_dir", Fault, "none")
	check(file("plugins: []", "plugins: [{name: bank, path: bank, sha256: aa, manifest_digest: bb}]"), "plugin bank", Fault, "bank")
	check(file("plugins: []", "smtp: {host: 127.0.0.1, port: 1, from: a@example.com, tls: none}"), "smtp", Warning, "refused")
	check(file("https://api.example.com", "nowhere"), "configuration", Fault, "public_url: must be")
	check(file(url, "postgres://127.0.0.1:1/none"), "database", Fault, "refused")

	if err := store.Migrate(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	check(good, "schema", Good, fmt.Sprint(store.NewestSchema()))
	s, err := store.Open(t.Context(), url, store.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readNameKey(t.Context(), s, vaultOf(t, filepath.Join(filepath.Dir(good), "keyset")), now); err != nil {
		t.Fatal(err)
	}
	check(good, "keyset of the database", Good, "opens")
	check(file(), "keyset of the database", Fault, "start with the keyset that this database was used with")
}
