package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/seed-f006e74d/gerbang"

// A room is a package's place in the house: it imports only rooms of lower
// floors. Rooms of test support may be imported by tests of every floor.
type room struct {
	floor   int
	support bool // for tests only
}

// house is the table of the architecture: that of gateway/README.md, where whoever adds
// a package gives it a floor, and what stands beside it.
var house = func() map[string]room {
	text, err := os.ReadFile(filepath.Join(root, "gateway/README.md"))
	if err != nil {
		panic(err)
	}
	rooms := maps.Clone(beside)
	for path, floor := range floors(string(text)) {
		rooms[path] = room{floor: floor}
	}
	return rooms
}()

// tableRow is a row of packages, with the floor or under the one before.
var tableRow = regexp.MustCompile("(?m)^\\| (\\d?) ?\\| (`[^|]*`) \\|")

// floors are the packages of the README's table.
func floors(readme string) map[string]int {
	_, table, _ := strings.Cut(readme, "\n| floor |")
	table, _, _ = strings.Cut(table, "\n\n")
	of, floor := map[string]int{}, 0
	for _, found := range tableRow.FindAllStringSubmatch(table, -1) {
		if found[1] != "" {
			floor = int(found[1][0] - '0')
		}
		for name := range strings.SplitSeq(found[2], ", ") {
			of[path.Join("gateway", strings.Trim(name, "`"))] = floor
		}
	}
	return of
}

func TestFloors(t *testing.T) {
	t.Parallel()
	got := floors("# x\n\n| 9 | `before` | no |\n\n| floor | package | what |\n| --- | --- | --- |\n| 0 | `../sdk/money`, `fault` | a `b` |\n| | `c` | d |\n| 2 | `e/f` | g |\n\n| 3 | `after` | no |\n")
	if want := map[string]int{"sdk/money": 0, "gateway/fault": 0, "gateway/c": 0, "gateway/e/f": 2}; !maps.Equal(got, want) {
		t.Errorf("the floors are %v, want %v", got, want)
	}
}

// beside are the rooms of which no part of the program is made: tests' support, and the
// plugins, which stand on package sdk and what is below it.
var beside = map[string]room{
	"sdk/sdktest":                   {floor: 4, support: true},
	"gateway/console/page/pagetest": {floor: 6, support: true},
	"gateway/database/dbtest":       {floor: 2, support: true},
	"gateway/database/withdb":       {floor: 3, support: true},
	"gateway/limit/limittest":       {floor: 3, support: true},
	"gateway/queue/queuetest":       {floor: 3, support: true},
	"gateway/scenarios":             {floor: 6, support: true},
	"gateway/simulator":             {floor: 6, support: true},
	"gateway/store/memory":          {floor: 3, support: true},
	"gateway/store/migrated":        {floor: 4, support: true},
	"gateway/store/storetest":       {floor: 3, support: true},
	"gateway/tier":                  {floor: 0, support: true},

	// The stories are tests alone.
	"gateway/e2e/browser":            {floor: 3, support: true},
	"gateway/e2e/callback":           {floor: 10, support: true},
	"gateway/e2e/clients":            {floor: 10, support: true},
	"gateway/e2e/collection":         {floor: 10, support: true},
	"gateway/e2e/console":            {floor: 10, support: true},
	"gateway/e2e/faults":             {floor: 10, support: true},
	"gateway/e2e/harness":            {floor: 9, support: true},
	"gateway/e2e/neighbours":         {floor: 10, support: true},
	"gateway/e2e/neighbours/hostile": {floor: 4, support: true},
	"gateway/e2e/node":               {floor: 10, support: true},
	"gateway/e2e/openapi":            {floor: 10, support: true},
	"gateway/e2e/operations":         {floor: 10, support: true},
	"gateway/e2e/order":              {floor: 10, support: true},
	"gateway/e2e/payment":            {floor: 10, support: true},
	"gateway/e2e/policy":             {floor: 10, support: true},
	"gateway/e2e/providers":          {floor: 10, support: true},
	"gateway/e2e/replicas":           {floor: 10, support: true},
	"gateway/e2e/report":             {floor: 10, support: true},
	"gateway/e2e/report/quick":       {floor: 4, support: true},
	"gateway/e2e/restore":            {floor: 10, support: true},
	"gateway/e2e/sandbox":            {floor: 10, support: true},
	"gateway/e2e/transfer":           {floor: 10, support: true},

	"plugins/midtrans":         {},
	"plugins/midtrans/adapter": {},
	"plugins/midtrans/sandbox": {},
	"plugins/payments":         {},
	"plugins/payments/sandbox": {},
	"plugins/payments/xendit":  {},
	"plugins/ppob":             {},
	"plugins/ppob/digiflazz":   {},
	"plugins/ppob/sandbox":     {},
	"plugins/wallet1":          {},
	"plugins/wallet1/sandbox":  {},
	"plugins/wallet1/snap":     {},
	"plugins/wallet2":          {},
	"plugins/wallet2/qrwallet": {},
	"plugins/wallet2/sandbox":  {},
}

// doors names, for each outside library, the packages that may import it; "..."
// at the end stands for everything below, nil for everybody, and an empty list
// for tests alone, which may look behind every door. A library that is not here
// has no door yet.
var doors = map[string][]string{
	"code.dny.dev/ssrf":                          {"gateway/callback"},
	"github.com/alexedwards/argon2id":            {"gateway/signin"},
	"github.com/alexedwards/scs":                 {"gateway/console/page"},
	"github.com/pquerna/otp":                     {"gateway/signin"},
	"github.com/coreos/go-oidc":                  {"gateway/identity"},
	"github.com/go-jose/go-jose":                 {},
	"golang.org/x/oauth2":                        {"gateway/identity"},
	"github.com/alecthomas/kong":                 {"gateway/cmd/gerbang"},
	"github.com/boombuler/barcode":               {"gateway/edge"},
	"github.com/cenkalti/backoff":                nil,
	"github.com/cockroachdb/cockroach-go":        {"gateway/store", "gateway/database/..."},
	"github.com/dunglas/httpsfv":                 {"gateway/edge"},
	"github.com/fsnotify/fsnotify":               {"policy"},
	"github.com/getkin/kin-openapi":              {"gateway/catalog"},
	"github.com/go-json-experiment/json":         nil,
	"github.com/go-viper/mapstructure":           {"gateway/app", "gateway/cmd/gerbang"}, // decodes for koanf
	"github.com/google/uuid":                     nil,
	"github.com/hashicorp/go-hclog":              {"sdk", "sdk/conformance", "gateway/host"},
	"github.com/hashicorp/go-plugin":             {"sdk", "sdk/conformance", "gateway/host"},
	"github.com/jackc/pgx":                       {"gateway/store/...", "gateway/database/...", "gateway/e2e/harness"},
	"github.com/julienschmidt/httprouter":        {"gateway/edge"},
	"github.com/knadh/koanf":                     {"gateway/app", "gateway/cmd/gerbang"},
	"github.com/emersion/go-smtp":                {"gateway/dev"},
	"github.com/landlock-lsm/go-landlock":        {"gateway/confine"},
	"github.com/lmittmann/tint":                  {"gateway/dev", "gateway/cmd/gerbang"},
	"github.com/maypok86/otter":                  nil,
	"github.com/oklog/run":                       {"gateway/app", "gateway/dev"},
	"github.com/open-policy-agent/opa":           {"policy"},
	"github.com/pressly/goose":                   {"gateway/store"},
	"github.com/prometheus":                      {"gateway/console", "gateway/app"},
	"github.com/santhosh-tekuri/jsonschema":      {"sdk/manifest", "gateway/catalog"},
	"github.com/sony/gobreaker":                  {"gateway/host"},
	"github.com/standard-webhooks":               {"gateway/callback", "gateway/e2e/harness"},
	"github.com/tink-crypto/tink-go":             {"tenants"},
	"github.com/wneessen/go-mail":                {"gateway/mail"},
	"golang.org/x/net":                           {"gateway/edge", "gateway/console/page"},
	"golang.org/x/sync":                          nil,
	"golang.org/x/sys":                           {"sdk/uptime", "gateway/confine"},
	"golang.org/x/term":                          nil,
	"golang.org/x/text":                          nil,
	"golang.org/x/time":                          {"gateway/limit"},
	"google.golang.org/grpc":                     {"sdk", "sdk/pluginpb", "gateway/host"},
	"google.golang.org/protobuf":                 {"sdk", "sdk/pluginpb", "gateway/host"},
	"go.opentelemetry.io/otel":                   {"gateway/tracing"},
	"go.opentelemetry.io/proto/otlp":             {},
	"go.yaml.in/yaml":                            {"gateway/app", "gateway/cmd/gerbang"},
	"github.com/mattn/go-isatty":                 {"gateway/database/...", "gateway/dev", "gateway/cmd/gerbang"},
	"github.com/google/go-cmp":                   {},
	"go.uber.org/goleak":                         {},
	"pgregory.net/rapid":                         {"gateway/store/storetest"},
	"github.com/anishathalye/porcupine":          {},
	"github.com/Shopify/toxiproxy":               {},
	"github.com/rogpeppe/go-internal/testscript": {},
}

// goPackage is what go list tells of a package.
type goPackage struct {
	ImportPath, Name, Dir              string
	GoFiles, CgoFiles                  []string
	Imports, TestImports, XTestImports []string
}

func (p goPackage) path() string { return inside(p.ImportPath) }

// inside is a package's path in this module, or empty for one of outside.
func inside(importPath string) string {
	path, ok := strings.CutPrefix(importPath, module+"/")
	if !ok {
		return ""
	}
	return path
}

var listPackages = sync.OnceValues(func() ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,CgoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var packages []goPackage
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
})

// root is the module's directory, seen from this package's.
const root = "../.."

func packages(t *testing.T) []goPackage {
	t.Helper()
	list, err := listPackages()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("go list finds no packages")
	}
	return list
}

func TestEveryPackageHasAFloor(t *testing.T) {
	t.Parallel()
	built := map[string]bool{}
	for _, p := range packages(t) {
		built[p.path()] = true
		if _, ok := house[p.path()]; !ok {
			t.Errorf("package %s has no floor: give it one in the table of gateway/README.md", p.path())
		}
	}
	for path := range house {
		if !built[path] {
			t.Errorf("there is no package %s, which the table names", path)
		}
		if _, twice := beside[path]; twice && !house[path].support && !strings.HasPrefix(path, "plugins/") {
			t.Errorf("package %s stands in the README's table and beside it", path)
		}
	}
}

func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			if reason := forbidden(p.path(), inside(imported)); reason != "" {
				t.Errorf("%s imports %s: %s", p.path(), inside(imported), reason)
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if reason := forbiddenInTests(p.path(), inside(imported)); reason != "" {
				t.Errorf("a test of %s imports %s: %s", p.path(), inside(imported), reason)
			}
		}
	}
}

// forbidden tells why one package of the module may not import another.
func forbidden(from, to string) string {
	if to == "" {
		return ""
	}
	if plugin, ok := pluginOf(from); ok {
		target, isPlugin := pluginOf(to)
		switch {
		case isPlugin && target != plugin:
			return "plugins know nothing of one another"
		case !isPlugin && to != "sdk" && !strings.HasPrefix(to, "sdk/"):
			return "a plugin stands on package sdk alone"
		case house[to].support:
			return "that is for tests"
		}
		return ""
	}
	switch _, isPlugin := pluginOf(to); {
	case isPlugin:
		return "a provider must not need a line of the gateway"
	case from == "sdk/merchant":
		return "the merchants' client stands on the standard library alone"
	case strings.HasPrefix(from, "sdk") && !strings.HasPrefix(to, "sdk"):
		return "the kit must not need the gateway"
	case house[to].support && !house[from].support:
		return "that is for tests"
	case house[to].floor >= house[from].floor:
		return "imports go to lower floors only"
	}
	return ""
}

// forbiddenInTests is milder: a test may meet its neighbours and test support.
func forbiddenInTests(from, to string) string {
	_, isPlugin := pluginOf(from)
	switch {
	case to == "" || to == from || house[to].support:
		return ""
	case !isPlugin && house[to].floor == house[from].floor && strings.HasPrefix(to, "gateway/"):
		return ""
	}
	return forbidden(from, to)
}

func TestForbiddenImports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"gateway/kind", "gateway/lifecycle", true},
		{"gateway/lifecycle", "gateway/kind", false},
		{"gateway/edge", "gateway/console", false},
		{"gateway/lifecycle", "sdk/sdktest", false},
		{"gateway/app", "plugins/payments", false},
		{"sdk", "sdk/manifest", true},
		{"sdk", "gateway/fault", false},
		{"sdk/merchant", "sdk/money", false},
		{"plugins/payments", "sdk", true},
		{"plugins/payments", "plugins/payments/sandbox", true},
		{"plugins/payments", "plugins/wallet1", false},
		{"plugins/payments", "gateway/fault", false},
		{"plugins/payments", "tenants", false},
	} {
		if reason := forbidden(c.from, c.to); (reason == "") != c.allowed {
			t.Errorf("%s may import %s: want %t, reason %q", c.from, c.to, c.allowed, reason)
		}
	}
	if forbiddenInTests("gateway/edge", "gateway/console") != "" || forbiddenInTests("gateway/edge", "gateway/app") == "" {
		t.Error("a test may meet its neighbours, and nobody above them")
	}
}

// pluginOf names the plugin that a package belongs to.
func pluginOf(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, "plugins/")
	name, _, _ := strings.Cut(rest, "/")
	return name, ok
}

func TestLibrariesAreImportedWhereAllowed(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			library, allowed, known := door(imported)
			switch {
			case !isOutside(imported):
			case strings.HasPrefix(p.path(), "sdk/merchant"):
				t.Errorf("%s imports %s: it stands on the standard library alone", p.path(), imported)
			case !known:
				t.Errorf("%s imports %s, which has no door: name its packages in the table", p.path(), imported)
			case !opens(allowed, p.path()) && (len(allowed) > 0 || !house[p.path()].support):
				t.Errorf("%s imports %s, whose door is %v", p.path(), imported, doors[library])
			}
		}
	}
}

// isOutside tells other people's packages from ours and the standard library's,
// whose paths begin with a word that has no dot.
func isOutside(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".") && inside(importPath) == "" && importPath != module
}

// door finds the library that a package belongs to, the longest name first.
func door(importPath string) (library string, allowed []string, known bool) {
	for name, packages := range doors {
		if (importPath == name || strings.HasPrefix(importPath, name+"/")) && len(name) > len(library) {
			library, allowed, known = name, packages, true
		}
	}
	return library, allowed, known
}

func opens(allowed []string, path string) bool {
	return allowed == nil || slices.ContainsFunc(allowed, func(pattern string) bool {
		parent, below := strings.CutSuffix(pattern, "/...")
		return path == parent || below && strings.HasPrefix(path, parent+"/")
	})
}

// sentence matches the end of one.
var sentence = regexp.MustCompile(`[.!?]["')]?(\s|$)`)

func TestPackagesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue // tests alone have nothing to own
		}
		doc := packageDoc(t, p)
		want := 3
		if p.Name == "main" {
			want = 1
		}
		if got := len(sentence.FindAllString(doc, -1)); got < want {
			t.Errorf("package %s is explained in %d sentences, want at least %d: what it owns, and what it must not do", p.path(), got, want)
		}
	}
}

func packageDoc(t *testing.T, p goPackage) string {
	t.Helper()
	var docs []string
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if file.Doc != nil && !ast.IsGenerated(file) {
			docs = append(docs, file.Doc.Text())
		}
	}
	return strings.Join(docs, "\n")
}

func TestNoTestSleeps(t *testing.T) {
	t.Parallel()
	seen := 0
	eachFile(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") && (!strings.HasSuffix(path, ".go") || !house[filepath.ToSlash(filepath.Dir(path))].support) {
			return
		}
		seen++
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		for _, pos := range sleeps(file) {
			t.Errorf("%s:%d sleeps: wait for what happens, or use testing/synctest", path, files.Position(pos).Line)
		}
	})
	if seen == 0 {
		t.Error("no test files found")
	}
}

// sleeps finds calls of time.Sleep. Inside synctest.Test the clock is made up,
// and sleeping is how it is moved.
func sleeps(file *ast.File) []token.Pos {
	var out []token.Pos
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if isCallOf(call, "synctest", "Test") {
			return false
		}
		if isCallOf(call, "time", "Sleep") {
			out = append(out, call.Pos())
		}
		return true
	})
	return out
}

func TestSleepDetection(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{
		`time.Sleep(1)`:                                          1,
		`go func() { for { time.Sleep(1) } }()`:                  1,
		`synctest.Test(t, func(t *testing.T) { time.Sleep(1) })`: 0,
		`t.Log("time.Sleep(1)")`:                                 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() { "+source+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(sleeps(file)); got != want {
			t.Errorf("%s: found %d, want %d", source, got, want)
		}
	}
}

func isCallOf(call *ast.CallExpr, pkg, name string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == pkg && selector.Sel.Name == name
}

func TestTreeNamesNoDirectoryBesideIt(t *testing.T) {
	t.Parallel()
	beside := []byte("../" + "shared")
	eachFile(t, func(path string) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
			return
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if bytes.Contains(line, beside) {
				t.Errorf("%s:%d: names a directory beside the tree", path, i+1)
			}
		}
	})
}

// eachFile visits the files that belong to the tree, by their path in it: not
// what make and gerbang leave there.
func eachFile(t *testing.T, visit func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (slices.Contains([]string{".git", ".gerbang", "bin", "node_modules"}, path) || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		if entry.Type().IsRegular() {
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
