package policy_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

var update = flag.Bool("update", false, "write what the commands of policy/README.md print into it")

// TestPushedPolicies pushes policies to a running gateway.
func TestPushedPolicies(t *testing.T) { //nolint:tparallel // its parts take turns on one gateway
	t.Parallel()
	p := harness.Start(t, harness.Settings{})
	t.Run("the commands of the README print what it shows", func(t *testing.T) { readmeCommands(t, p) })
	// The README moves a merchant to a tier of its own, which the next story's policies do not have.
	if _, err := adminapi.SetTier.Call(t.Context(), p.Admin(), adminapi.TierChange{Merchant: p.Merchants[harness.Small].MerchantID, Tier: "starter"}); err != nil {
		t.Fatal(err)
	}
	t.Run("an impact is what happens", func(t *testing.T) { impactIsWhatHappens(t, p) })
}

// readmeCommands does what policy/README.md says, from its first command to what
// a push refuses: it writes the files, edits data.json and runs the commands, which print
// what the README shows but for ids, times and digests.
func readmeCommands(t *testing.T, p *harness.Program) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: nobody has pasted the lines")
	}
	file := filepath.Join(harness.Root, "policy", "README.md")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, rest, found := strings.Cut(string(content), "\n| check | what is refused |")
	if !found {
		t.Fatal("the README tells no more what a push refuses")
	}
	r := &reader{t: t, Program: p, dir: t.TempDir(), bin: filepath.Dir(harness.Binary(t)), merchant: p.Merchants[harness.Small].MerchantID}
	// Text and code take turns.
	parts := strings.Split(text, "```")
	for i := 1; i < len(parts); i += 2 {
		kind, code, _ := strings.Cut(parts[i], "\n")
		if r.follow(parts[i-1]); kind == "rego" {
			r.write(r.named, code)
		} else {
			parts[i] = kind + "\n" + r.paste(code)
		}
	}
	const commands = 11
	if r.ran < commands || !strings.Contains(text, "2 faults") {
		t.Errorf("%d commands were run", r.ran)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(parts, "```")+"\n| check | what is refused |"+rest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reader is an operator who has the README open.
type reader struct {
	t *testing.T
	*harness.Program
	dir, bin, merchant string
	named              string // the file that the next code is of
	ran                int
}

var (
	ruleFile   = regexp.MustCompile("`(policy/[a-z_]+\\.rego)`")
	bodyFile   = regexp.MustCompile("(?s)`([a-z]+\\.json)`[^`]*`(\\{[^`]*\\})`")
	dataEdit   = regexp.MustCompile("[iI]n `data\\.json`(?:,? under `([a-z]+)`)?:? `(\"[^`]*)`")
	misspelt   = regexp.MustCompile("`(/[a-z0-9/]+)` is misspelt `(/[a-z0-9/]+)`")
	tierGone   = regexp.MustCompile("the tier `([a-z]+)` is gone again")
	afterAPush = regexp.MustCompile(`After the push:`)
)

// follow does what the text between two pieces of code says.
func (r *reader) follow(text string) {
	r.t.Helper()
	r.named = ""
	if found := ruleFile.FindStringSubmatch(text); found != nil {
		r.named = found[1]
	}
	for _, found := range bodyFile.FindAllStringSubmatch(text, -1) {
		r.write(found[1], found[2])
	}
	for _, found := range dataEdit.FindAllStringSubmatch(text, -1) {
		beginning := "{"
		if found[1] != "" {
			beginning = `"` + found[1] + `": {`
		}
		r.edit(beginning, beginning+"\n    "+found[2]+",")
	}
	for _, found := range misspelt.FindAllStringSubmatch(text, -1) {
		r.edit(`"`+found[1]+`"`, `"`+found[2]+`"`)
	}
	for _, found := range tierGone.FindAllStringSubmatch(text, -1) {
		_, line, _ := strings.Cut(r.data(), "\n    \""+found[1]+`": {`)
		line, _, _ = strings.Cut(line, "\n")
		r.edit("\n    \""+found[1]+`": {`+line, "")
	}
	if afterAPush.MatchString(text) {
		r.run(`gerbang policy push policy -m "as it stands" --activate --wait`, false)
	}
}

func (r *reader) write(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) data() string {
	r.t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dir, "policy", "data.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(content)
}

// edit changes what stands first in data.json.
func (r *reader) edit(from, to string) {
	r.t.Helper()
	before := r.data()
	after := strings.Replace(before, from, to, 1)
	if after == before {
		r.t.Fatalf("data.json has no %s:\n%s", from, before)
	}
	r.write("policy/data.json", after)
}

// paste runs the commands of a piece of code, and returns it with what they print. Without
// prompts they print what is not shown, and between the first and the others something has
// been edited, which is taken back.
func (r *reader) paste(code string) string {
	r.t.Helper()
	if !strings.HasPrefix(code, "$ ") {
		for i, line := range strings.Split(strings.TrimSpace(code), "\n") {
			if r.run(line, false); i == 0 {
				r.edit(`"burst": 10,`, `"burst": 11,`)
			}
		}
		r.edit(`"burst": 11,`, `"burst": 10,`)
		return code
	}
	var out strings.Builder
	for one := range strings.SplitSeq(strings.TrimPrefix(code, "$ "), "\n$ ") {
		line, shown, _ := strings.Cut(one, "\n")
		printed := r.run(line, strings.Contains(shown, "gerbang: "))
		if got, want := masked(printed), masked(shown); got != want && !*update {
			r.t.Errorf("%s\nprints\n%s\nand not\n%s", line, got, want)
		}
		out.WriteString("$ " + line + "\n" + printed)
	}
	return out.String()
}

// run runs a command as it is pasted.
func (r *reader) run(line string, fails bool) string {
	r.t.Helper()
	command := exec.CommandContext(r.t.Context(), "bash", "-c", line)
	command.Dir = r.dir
	command.Env = append(harness.CleanEnvironment(os.Environ()), "PATH="+r.bin+":"+os.Getenv("PATH"),
		"GERBANG_ADMIN_URL="+r.ConsoleURL, "GERBANG_ADMIN_TOKEN="+r.AdminToken, "MERCHANT="+r.merchant)
	out, err := command.CombinedOutput()
	if r.ran++; (err != nil) != fails {
		r.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

var varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+(Z|\+\d\d:\d\d)|mer_[0-9a-f-]{36}|\b([0-9a-f]{64}|[0-9a-f]{12})\b|\b[\d.]+m?s\b`)

// masked is a text without what differs from run to run.
func masked(text string) string {
	lines := strings.Split(strings.TrimSpace(varying.ReplaceAllString(text, "*")), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}
