package docs_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	verifycallback "github.com/seed-f006e74d/gerbang/deploy/examples/verify-callback"
	"github.com/seed-f006e74d/gerbang/gateway/docs"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/text"
)

func site(t *testing.T) *docs.Site {
	t.Helper()
	s, err := docs.New(docs.Config{Svc: "Kasir", PublicURL: "https://pay.example", Version: "1.2.0"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// link finds what a page leads to or loads.
var link = regexp.MustCompile(` (?:href|src)="([^"]*)"`)

// everyPage calls a function with each page in each language, by what stands below /docs; "" is /docs itself.
func everyPage(t *testing.T, do func(name, code string, page docs.File)) {
	t.Helper()
	s := site(t)
	for _, l := range text.Languages {
		for _, name := range append([]string{""}, docs.Names()...) {
			page, ok := s.File(name, l.Code)
			if !ok || !strings.HasPrefix(page.Type, "text/html") || !bytes.Contains(page.Plain, []byte(`<html lang="`+l.Code+`">`)) {
				t.Errorf("page %q in %s is %q", name, l.Name, page.Type)
			}
			do(name, l.Code, page)
		}
	}
}

func TestPagesLoadAndLeadToWhatThereIs(t *testing.T) {
	t.Parallel()
	s := site(t)
	everyPage(t, func(name, code string, page docs.File) {
		for _, found := range link.FindAllSubmatch(page.Plain, -1) {
			to := string(found[1])
			switch to {
			case "#content", "https://www.standardwebhooks.com", "?lang=id", "?lang=en":
				continue
			case "openapi.json", "../openapi.json":
				if (to == "openapi.json") != (name == "") {
					t.Errorf("page %q leads to %s", name, to)
				}
				continue
			}
			below, nested := strings.CutPrefix(to, "docs/")
			below, asked, leads := strings.Cut(below, "?lang=")
			if _, there := s.File(below, asked); !there || leads && asked != code || nested != (name == "") {
				t.Errorf("page %q in %s names %s, which is not there", name, code, to)
			}
		}
	})
}

// TestPagesSayTheSame in both languages: their programs, links and tables are the same.
func TestPagesSayTheSame(t *testing.T) {
	t.Parallel()
	parts := regexp.MustCompile(`(?s)<code>(.*?)</code>|<(h[12]|li|tr|form|details|pre|p)\b|href="([^"?]*)`)
	same := strings.NewReplacer("Two coffees", "Dua kopi")
	of := map[string][]string{}
	everyPage(t, func(name, code string, page docs.File) {
		var found []string
		for _, match := range parts.FindAllString(string(page.Plain), -1) {
			found = append(found, same.Replace(match))
		}
		slices.Sort(found) // a sentence may name them in another order
		switch other, seen := of[name]; {
		case len(found) < 10:
			t.Errorf("page %q has %d parts", name, len(found))
		case seen && !slices.Equal(found, other):
			t.Errorf("page %q differs in %s: %q", name, code, difference(found, other))
		default:
			of[name] = found
		}
	})
}

// difference is what only one of two sorted lists has.
func difference(a, b []string) (alone []string) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			a, b = a[1:], b[1:]
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			alone, a = append(alone, a[0]), a[1:]
		default:
			alone, b = append(alone, b[0]), b[1:]
		}
	}
	return alone
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	everyPage(t, func(name, _ string, page docs.File) {
		if strings.Contains(page.Policy, "unsafe") || !strings.Contains(page.Policy, "default-src 'none'") {
			t.Errorf("page %q: %s", name, page.Policy)
		}
		if (name == "api") != strings.Contains(page.Policy, "script-src") || (name == "api") != strings.Contains(page.Policy, "data:") {
			t.Errorf("page %q: %s; scripts and images of its own are for the API page alone", name, page.Policy)
		}
		if bytes.Contains(page.Plain, []byte(" style=")) || bytes.Contains(page.Plain, []byte(" onclick=")) || bytes.Contains(page.Plain, []byte("<style")) {
			t.Errorf("page %q has what its policy forbids", name)
		}
	})
}

func TestPackedIsTheSame(t *testing.T) {
	t.Parallel()
	s := site(t)
	api, _ := s.File("api")
	names := docs.Names()
	for _, found := range link.FindAllSubmatch(api.Plain, -1) {
		if name := string(found[1]); strings.Contains(name, ".") && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	for _, name := range names {
		f, _ := s.File(name)
		reader, err := gzip.NewReader(bytes.NewReader(f.Packed))
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(reader); err != nil || !bytes.Equal(content, f.Plain) || len(content) == 0 {
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
	errors, _ := s.File("errors", "en")
	for _, row := range fault.Table {
		if !bytes.Contains(errors.Plain, []byte("<code>"+string(row.Code)+"</code>")) {
			t.Errorf("%s is not explained", row.Code)
		}
	}
	callbacks, _ := s.File("callbacks", "en")
	said := strings.NewReplacer("&#34;", `"`, "&#39;", "'", "&lt;", "<", "&gt;", ">", "&#43;", "+", "&amp;", "&").Replace(string(callbacks.Plain))
	for _, name := range []string{"verify.go", "verify.mjs", "verify.php", "verify.py"} {
		program, err := verifycallback.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		whole := strings.TrimSpace(strings.TrimPrefix(string(program), "//go:build ignore\n"))
		if !strings.Contains(said, whole) {
			t.Errorf("%s is not shown as it is", name)
		}
	}
	if !strings.Contains(said, "X-Kasir-Signature") || !strings.Contains(said, "https://pay.example/events") {
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
		if page, _ := s.File("quick-start", "en"); !strings.Contains(string(page.Plain), want) {
			t.Errorf("with the console's URL %q, the quick start has no %q", url, want)
		}
	}
}
