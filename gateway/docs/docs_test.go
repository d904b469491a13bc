package docs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"

	verifycallback "github.com/seed-f006e74d/gerbang/deploy/examples/verify-callback"
	"github.com/seed-f006e74d/gerbang/gateway/docs"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

func site(t *testing.T) *docs.Site {
	t.Helper()
	s, err := docs.New(docs.Config{Svc: "Kasir", PublicURL: "https://pay.example"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// link finds what a page leads to or loads.
var link = regexp.MustCompile(` (?:href|src)="([^"]*)"`)

func TestPagesLoadAndLeadToWhatThereIs(t *testing.T) {
	t.Parallel()
	s := site(t)
	for _, name := range docs.Names() {
		page, ok := s.File(name)
		if !ok || !strings.HasPrefix(page.Type, "text/html") {
			t.Errorf("page %q is %q", name, page.Type)
			continue
		}
		for _, found := range link.FindAllSubmatch(page.Plain, -1) {
			to := string(found[1])
			switch to {
			case "#content", "openapi.json", "https://www.standardwebhooks.com":
				continue
			case "docs", "../docs":
				if (to == "docs") != (name == "") {
					t.Errorf("page %q leads to %s", name, to)
				}
				continue
			}
			below, nested := strings.CutPrefix(to, "docs/")
			if _, there := s.File(below); !there || nested != (name == "") {
				t.Errorf("page %q names %s, which is not there", name, to)
			}
		}
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	s := site(t)
	for _, name := range docs.Names() {
		page, _ := s.File(name)
		if strings.Contains(page.Policy, "unsafe") || !strings.Contains(page.Policy, "default-src 'none'") {
			t.Errorf("page %q: %s", name, page.Policy)
		}
		if (name == "") != strings.Contains(page.Policy, "script-src") || (name == "") != strings.Contains(page.Policy, "data:") {
			t.Errorf("page %q: %s; scripts and images of its own are for the API page alone", name, page.Policy)
		}
		if bytes.Contains(page.Plain, []byte(" style=")) || bytes.Contains(page.Plain, []byte(" onclick=")) || bytes.Contains(page.Plain, []byte("<style")) {
			t.Errorf("page %q has what its policy forbids", name)
		}
	}
}

func TestPackedIsTheSame(t *testing.T) {
	t.Parallel()
	s := site(t)
	api, _ := s.File("")
	names := docs.Names()
	for _, found := range link.FindAllSubmatch(api.Plain, -1) {
		if name, is := strings.CutPrefix(string(found[1]), "docs/"); is {
			names = append(names, name)
		}
	}
	for _, name := range names {
		f, _ := s.File(name)
		reader, err := gzip.NewReader(bytes.NewReader(f.Packed))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(reader); err != nil || !bytes.Equal(text, f.Plain) || len(text) == 0 {
			t.Errorf("%s: unpacked it is something else: %v", name, err)
		}
		if f.ETag == "" || strings.HasSuffix(name, ".js") && !f.Lasting {
			t.Errorf("%s: ETag %q, lasting %t", name, f.ETag, f.Lasting)
		}
		if strings.HasPrefix(f.Type, "text/html") && len(f.Packed) > 200<<10 {
			t.Errorf("%s is %d bytes", name, len(f.Packed))
		}
	}
}

func TestGuidesTellWhatIsInForce(t *testing.T) {
	t.Parallel()
	s := site(t)
	errors, _ := s.File("errors")
	for _, row := range fault.Table {
		if !bytes.Contains(errors.Plain, []byte("<code>"+string(row.Code)+"</code>")) {
			t.Errorf("%s is not explained", row.Code)
		}
	}
	callbacks, _ := s.File("callbacks")
	text := strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&#43;", "+", "&amp;", "&").Replace(string(callbacks.Plain))
	for _, name := range []string{"verify.go", "verify.mjs", "verify.php", "verify.py"} {
		program, err := verifycallback.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		whole := strings.TrimSpace(strings.TrimPrefix(string(program), "//go:build ignore\n"))
		if !strings.Contains(text, whole) {
			t.Errorf("%s is not shown as it is", name)
		}
	}
	if !strings.Contains(text, "X-Kasir-Signature") || !strings.Contains(text, "https://pay.example/events") {
		t.Error("the service's own names are missing")
	}
}

// TestTheQuickStartLeadsToTheConsole where there is one.
func TestTheQuickStartLeadsToTheConsole(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{"": "in the console, under", "https://console.example": `in <a href="https://console.example">the console</a>, under`} {
		s, err := docs.New(docs.Config{Svc: "Kasir", PublicURL: "https://pay.example", ConsoleURL: url})
		if err != nil {
			t.Fatal(err)
		}
		if page, _ := s.File("quick-start"); !strings.Contains(string(page.Plain), want) {
			t.Errorf("with the console's URL %q, the quick start has no %q", url, want)
		}
	}
}
