package text_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/text"
)

// known is the whole catalogue, by the section of each text.
func known(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, section := range text.Sections {
		for english, indonesian := range section {
			if other := all[english]; other != "" {
				t.Errorf("%q stands in %s and in %s", english, other, name)
			}
			if strings.Count(english, "%") != strings.Count(indonesian, "%") {
				t.Errorf("%q has other values in Indonesian: %q", english, indonesian)
			}
			all[english] = name
		}
	}
	return all
}

// pages are the folders whose code and templates speak to people.
var pages = []string{"../console/page", "../console/merchants", "../console/operators", "../edge/page", "../docs/page/layout.html", "../docs/docs.go", "../edge/pages.go", "../edge/checkout.go"}

// each calls a function for each file below some places that has an ending, tests left out.
func each(t *testing.T, places []string, ending string, do func(path string, content []byte)) {
	t.Helper()
	found := 0
	for _, place := range places {
		err := filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ending) || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "pagetest") {
				return err
			}
			content, err := os.ReadFile(path)
			found++
			do(path, content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Fatalf("no file ends in %s: look at the places", ending)
	}
}

// literals are the texts in quotes of a Go file, with whose argument each is.
func literals(t *testing.T, path string, content []byte, do func(literal, function string)) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, content, 0)
	if err != nil {
		t.Fatal(err)
	}
	var around []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		around = append(around, n)
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		function := ""
		for _, outer := range slices.Backward(around) {
			if call, is := outer.(*ast.CallExpr); is {
				switch of := call.Fun.(type) {
				case *ast.SelectorExpr:
					function = of.Sel.Name
				case *ast.Ident:
					function = of.Name
				}
				break
			}
		}
		unquoted, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		do(unquoted, function)
		return true
	})
}

var (
	// asked is a text that a template asks for.
	asked = regexp.MustCompile(`\b[tT] ("(?:[^"\\]|\\.)*")`)
	// actions are what a template computes, code what is no text in any language.
	actions = regexp.MustCompile(`(?s)\{\{.*?\}\}|<(code|script|style)\b.*?</(code|script|style)>|<!--.*?-->`)
	tags    = regexp.MustCompile(`(?s)<[^>]*>`)
	// spoken are the attributes that people read or hear.
	spoken = regexp.MustCompile(`\b(?:title|alt|placeholder|aria-label|aria-description)="([^"]*)"`)
	// names are the same in every language, and units.
	names = regexp.MustCompile(`Gerbang|QRIS|CSV|NMID|URL|HTTP|SHA-256|Asia/Jakarta|User-Agent|request_id|\b(?:sent|retry)\b|\b(?:MB|ms|[0-9]*[smhv])\b`)
)

// TestTemplatesSayNothingElse: what stands in a template beside its actions is no text, and all that it asks for is known.
func TestTemplatesSayNothingElse(t *testing.T) {
	t.Parallel()
	catalogue := known(t)
	each(t, pages, ".html", func(path string, content []byte) {
		for _, found := range asked.FindAllSubmatch(content, -1) {
			english, err := strconv.Unquote(string(found[1]))
			if err != nil || catalogue[english] == "" {
				t.Errorf("%s: no Indonesian of %s", path, found[1])
			}
		}
		bare := actions.ReplaceAllString(string(content), " ")
		said := []string{tags.ReplaceAllString(bare, " ")}
		for _, found := range spoken.FindAllStringSubmatch(bare, -1) {
			said = append(said, found[1])
		}
		for _, one := range said {
			if i := strings.IndexFunc(names.ReplaceAllString(one, ""), unicode.IsLetter); i >= 0 {
				t.Errorf("%s says %q itself", path, strings.Join(strings.Fields(names.ReplaceAllString(one, "")[i:]), " "))
			}
		}
	})
}

// sentence is a text for people, by its looks.
var sentence = regexp.MustCompile(`^[A-Z][a-z]*[ ,.].*[a-z]`)

// silent are functions whose texts no visitor of a page reads.
var silent = []string{"Errorf", "New", "ErrorContext", "WarnContext", "InfoContext", "Error", "Warn", "Set", "panic", "MustCompile", "Handle", "Public", "LogAttrs"}

// TestPagesSayWhatIsKnown: each sentence in the code of a page is a text of the catalogue.
func TestPagesSayWhatIsKnown(t *testing.T) {
	t.Parallel()
	catalogue := known(t)
	each(t, pages, ".go", func(path string, content []byte) {
		literals(t, path, content, func(literal, function string) {
			says := slices.Contains([]string{"T", "did"}, function)
			if catalogue[literal] == "" && !strings.HasPrefix(literal, "/") && (says && strings.ContainsFunc(literal, unicode.IsLetter) || sentence.MatchString(literal) && !slices.Contains(silent, function)) {
				t.Errorf("%s: no Indonesian of %q", path, literal)
			}
		})
	})
}

// TestEveryTextIsSaid: nothing is in the catalogue that no code and no template says.
func TestEveryTextIsSaid(t *testing.T) {
	t.Parallel()
	unsaid := known(t)
	maps.DeleteFunc(unsaid, func(_, section string) bool { return section == "faults" }) // pagetest.Faults looks for them
	each(t, []string{".."}, ".html", func(_ string, content []byte) {
		for _, found := range asked.FindAllSubmatch(content, -1) {
			english, _ := strconv.Unquote(string(found[1]))
			delete(unsaid, english)
		}
	})
	each(t, []string{"..", "../../tenants", "../../policy", "../../sdk/manifest"}, ".go", func(path string, content []byte) {
		literals(t, path, content, func(literal, _ string) {
			delete(unsaid, literal)
			if _, told, ok := strings.Cut(literal, ": "); ok && told != "" { // an error of a package, without its name
				delete(unsaid, strings.ToUpper(told[:1])+told[1:]+".")
			}
		})
	})
	for _, english := range slices.Sorted(maps.Keys(unsaid)) {
		t.Errorf("nothing says %q of %s", english, unsaid[english])
	}
}
