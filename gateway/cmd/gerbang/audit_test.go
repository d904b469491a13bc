package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAuditCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	// A sink has sent some again, and is writing the last.
	if err := os.WriteFile(file, []byte(`{"sequence":2,"hash":"bb"}`+"\n"+`{"sequence":1,"hash":"aa"}`+"\n"+`{"sequence":3,"ha`), 0o600); err != nil {
		t.Fatal(err)
	}
	testAdminCommands(t, map[string]adminCommand{
		"list": {
			args:   `audit list|--merchant|mer_1|--about|k_7|--limit|1`,
			answer: `[{"id":"0b9a7c7e-0000-4000-8000-000000000001","merchant":"mer_1","operator":"ayu","action":"key.revoke","detail":"key k_7","at":"2026-01-02T03:04:05Z","from":"10.0.0.1","times":2}]`,
			method: "GET", path: "/admin/audit?about=k_7&limit=1&merchant=mer_1", prints: "2026-01-02T03:04:05Z  ayu       10.0.0.1  key.revoke ×2  mer_1     key k_7\n",
		},
		"export": {
			args: `audit export|--after|3|--since|2026-01-02T03:04:05Z`, answer: `[{"sequence":4,"hash":"ab","entry":null}]`,
			method: "GET", path: "/admin/audit/links?after=3&limit=1000&since=2026-01-02T03%3A04%3A05Z", prints: `{"sequence":4,"hash":"ab",`,
		},
		"verify": {
			args: `audit verify`, answer: `{"sequence":9,"hash":"ab","since":"2026-01-02T03:04:05Z","found":4,"breaks":[]}`,
			method: "GET", path: "/admin/audit/verify", prints: "proven since                      2026-01-02T03:04:05Z\nolder entries, not proven before  4\n",
		},
		"verify against an export": {
			args: `audit verify|--against|` + file, answer: `{"breaks":[]}`, method: "GET", path: "/admin/audit/verify?hash=bb&sequence=2",
		},
	})
	f := newConsole(t, http.StatusOK, `{"data":{"sequence":9,"breaks":[{"sequence":3,"at":"2026-01-02T03:04:05Z","what":"entry e is deleted"}]}}`)
	code, p := run(t, f.environment(), "", "audit", "verify")
	if code != exitRefused || !strings.Contains(p.output.String(), "2026-01-02T03:04:05Z  link 3: entry e is deleted\n") || !strings.Contains(p.errors.String(), "breaks: 1") {
		t.Errorf("exit code %d: %s%s", code, &p.output, &p.errors)
	}
	to := filepath.Join(t.TempDir(), "export.jsonl")
	f = newConsole(t, http.StatusOK, `{"data":[{"sequence":1},{"sequence":2}]}`)
	code, p = run(t, f.environment(), "", "audit", "export", "--to", to)
	if content, err := os.ReadFile(to); code != exitOK || err != nil || strings.Count(string(content), "\n") != 2 || p.output.Len() > 0 {
		t.Errorf("exit code %d, %v: %s%s", code, err, content, &p.errors)
	}
	if code, p = run(t, f.environment(), "", "audit", "export", "--to", to); code == exitOK {
		t.Errorf("an export is written over: %s", &p.output)
	}
	for path, says := range map[string]string{to: "", file + "x": "no such file", os.DevNull: "no line of an export"} {
		if code, p = run(t, f.environment(), "", "audit", "verify", "--against", path); says != "" && (code == exitOK || !strings.Contains(p.errors.String(), says)) {
			t.Errorf("%s: exit code %d: %s", path, code, &p.errors)
		}
	}
}
