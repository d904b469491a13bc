package merchants

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// TestEveryFormFitsItsSchema: what the page offers to set up can be set up there, for all
// providers that are shipped; and no form asks where the gateway connects to.
func TestEveryFormFitsItsSchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../plugins/*/manifest.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("manifests: %v, %v", files, err)
	}
	offered := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		fields, operators, err := credentialsOf(m)
		if err != nil {
			t.Fatal(err)
		}
		offered[m.Name] = !operators
		form := map[string]string{}
		for _, f := range fields {
			form["credential."+f.Name] = map[string]string{"integer": "1", "number": "1", "boolean": "true", "string": cmp.Or(strings.Trim(f.Example, `"`), "x")}[f.Type]
			if len(f.Choices) > 0 {
				form["credential."+f.Name] = f.Choices[0]
			}
			if strings.HasSuffix(f.Name, "url") || strings.Contains(f.Name, "reports") && f.Type != "string" {
				t.Errorf("%s asks for %s", m.Name, f.Name)
			}
			if secret := slices.Contains([]string{"secret_key", "callback_token", "server_key", "api_key", "webhook_secret"}, f.Name); !operators && f.Masked != secret {
				t.Errorf("%s: %s is masked: %t", m.Name, f.Name, f.Masked)
			}
		}
		credentials, err := given(fields, func(name string) string { return form[name] })
		if err != nil {
			t.Fatal(err)
		}
		schema, err := catalog.NewConnectionSchema(m)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := schema.Check(credentials); !operators && len(wrong) > 0 {
			t.Errorf("%s: the form can't be filled: %v", m.Name, wrong)
		}
	}
	if !offered["payments"] || !offered["midtrans"] || offered["wallet1"] || offered["wallet2"] {
		t.Errorf("merchants set up %v", offered)
	}
}
