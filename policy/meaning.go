package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// kinds are those of operations.
var kinds = []string{"query", "payment", "collection", "transfer", "order", "refund"}

// flaw is something in data.json that means nothing here.
type flaw struct {
	key    string   // names it in every version of a set
	path   []string // where it stands in data.json
	reason string
}

// meaning holds the set against the merchants and the operations that there are.
func (g *gate) meaning(source Source) {
	file, root := readJSON(dataFile, source[dataFile])
	g.removedTiers(file, root)
	g.ownIgnored()
	if len(g.facts.Operations) > 0 {
		known := map[string]bool{}
		if g.facts.Active != nil {
			for _, f := range g.flaws(g.facts.Active.data) {
				known[f.key] = true
			}
		}
		for _, f := range g.flaws(g.set.data) {
			if known[f.key] {
				f.reason += "; the version in force has this too"
			}
			g.add(CheckMeaning, known[f.key], file.at(root, f.path, f.reason))
		}
		g.unnamed(file, root)
		g.unsized(file, root)
		g.strangers()
		g.unlisted()
	}
	g.unknown(file, root, source)
	g.undefined()
	g.unused(file, root)
	g.idle()
}

// at is a problem at a path of the file, or at the last part of it that is there. An element of a list is a number.
func (f *jsonFile) at(n *node, path []string, reason string) Problem {
	offset := n.offset
	for _, name := range path {
		switch value := n.value.(type) {
		case []member:
			i := slices.IndexFunc(value, func(m member) bool { return m.name == name })
			if i < 0 {
				name = ""
				break
			}
			offset, n = value[i].offset, value[i].value
		case []*node:
			if i, err := strconv.Atoi(name); err == nil && i < len(value) {
				n = value[i]
				offset = n.offset
			}
		}
		if name == "" {
			break
		}
	}
	g := &jsonFile{name: f.name, src: f.src}
	g.problem(offset, "%s", reason)
	return g.problems[0]
}

// removedTiers notes the tiers that merchants are on and that have no limits.
func (g *gate) removedTiers(file *jsonFile, root *node) {
	tiers := g.set.tiers()
	for _, tier := range slices.Sorted(maps.Keys(g.facts.Merchants)) {
		without := g.unanswered[tier]
		switch {
		case g.facts.Merchants[tier] == 0:
		case !slices.Contains(tiers, tier) && (len(without) > 0 || len(g.facts.Operations) == 0):
			g.add(CheckMeaning, false, file.at(root, []string{"tiers"}, fmt.Sprintf(
				"merchants are on the tier %q, which is not in \"tiers\"; keep it, or move them to another tier first", tier)), tier)
		case len(without) > 0:
			rule := g.set.rules.GetRules(limitsRef)[0]
			g.add(CheckMeaning, false, at(rule.Location, "", fmt.Sprintf(
				"merchants of the tier %q have no rate for %s", tier, some(without))), tier)
		}
	}
}

// some is the first three of many.
func some(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more operations", len(names)-3)
	}
	return strings.Join(names, ", ")
}

// flaws are the paths and kinds that no operation has, and the quotas that count nothing.
func (g *gate) flaws(data map[string]any) []flaw {
	var found []flaw
	quotas, _ := data["quotas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		quota, _ := quotas[name].(map[string]any)
		paths, _ := quota["operations"].([]any)
		counts := 0
		for i, p := range paths {
			path, _ := p.(string)
			if g.offers(path) {
				counts++
				continue
			}
			found = append(found, flaw{"path " + path, []string{"quotas", name, "operations", strconv.Itoa(i)}, g.noPath(path)})
		}
		if counts == 0 && !g.counted[name] {
			found = append(found, flaw{"quota " + name, []string{"quotas", name}, fmt.Sprintf("the quota %q counts no operation", name)})
		}
	}
	amounts, _ := data["amounts"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		where := []string{"amounts", name}
		switch {
		case strings.HasPrefix(name, "/"):
			if !g.offers(name) {
				found = append(found, flaw{"path " + name, where, g.noPath(name)})
			}
		case !slices.Contains(kinds, name):
			found = append(found, flaw{"kind " + name, where, fmt.Sprintf("%q is neither a path nor a kind; kinds are %s", name, strings.Join(kinds, ", "))})
		}
	}
	tiers, _ := data["tiers"].(map[string]any)
	for _, tier := range slices.Sorted(maps.Keys(tiers)) {
		fields, _ := tiers[tier].(map[string]any)
		sized, _ := fields["quotas"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(sized)) {
			if quotas[name] == nil && !g.counted[name] {
				found = append(found, flaw{"tier quota " + name, []string{"tiers", tier, "quotas", name},
					fmt.Sprintf("the quota %q counts no operation: it is not in \"quotas\", and no provider is called so", name)})
			}
		}
	}
	return found
}

// offers reports whether an operation has the path.
func (g *gate) offers(path string) bool {
	return slices.ContainsFunc(g.facts.Operations, func(o Offered) bool { return o.Path == path })
}

// noPath says that no operation has a path, and which one was meant.
func (g *gate) noPath(path string) string {
	reason := fmt.Sprintf("no operation has the path %q", path)
	var paths []string
	for _, op := range g.facts.Operations {
		paths = append(paths, op.Path)
	}
	if best := nearest(path, paths); best != "" {
		reason += fmt.Sprintf("; is it %q?", best)
	}
	return reason
}

// distance is how many letters two words differ by (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}

// unnamed warns about operations that are refused because the set does not name their paths.
func (g *gate) unnamed(file *jsonFile, root *node) {
	for _, op := range g.facts.Operations {
		if op.MustBeNamed && !g.set.Names(op.Path) {
			g.add(CheckMeaning, true, file.at(root, nil, fmt.Sprintf(
				"%s is refused to every merchant: an approval alone has brought it, and neither data nor rules name its path", op.Path)))
		}
	}
}

// unsized warns about quotas that have no limit unless a merchant has one of its own.
func (g *gate) unsized(file *jsonFile, root *node) {
	quotas, _ := g.set.data["quotas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		if g.counted[name] && !g.limited[name] {
			g.add(CheckMeaning, true, file.at(root, []string{"quotas", name}, fmt.Sprintf(
				"the quota %q has no limit here and in no tier: it bounds only merchants with a limit of their own", name)))
		}
	}
}

// strangers warns about fields that no operation offers, and paths that none has: such a rule never fires.
func (g *gate) strangers() {
	for _, module := range g.set.rules.Modules {
		ast.WalkRefs(module, func(ref ast.Ref) bool {
			name := fieldOf(ref)
			if slices.ContainsFunc(g.facts.Operations, func(o Offered) bool { return slices.Contains(o.Destination, name) }) {
				g.add(CheckMeaning, true, at(ref[0].Location, "", fmt.Sprintf(
					"input.fields.%s is as the merchant wrote it, and a space or a country's code makes it another text: input.destination is where the money goes", name)))
			}
			if name == "" || slices.ContainsFunc(g.facts.Operations, func(o Offered) bool { return o.Fields[name] != nil }) {
				return false
			}
			g.add(CheckMeaning, true, at(ref[0].Location, "", fmt.Sprintf("no operation offers the field %q: what reads it says nothing", name)))
			return false
		})
		ast.WalkTerms(module, func(term *ast.Term) bool {
			text, ok := term.Value.(ast.String)
			path := string(text)
			prefix := func(o Offered) bool { return strings.HasPrefix(o.Path, path) }
			if ok && len(path) > 1 && path[0] == '/' && !slices.ContainsFunc(g.facts.Operations, prefix) {
				g.add(CheckMeaning, true, at(term.Location, "", g.noPath(path)))
			}
			return false
		})
	}
}

// merchantID is what merchants' ids look like.
var merchantID = regexp.MustCompile(`\bmer_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// Mentioned are the ids of merchants that a source names outside of its tests, sorted.
func Mentioned(source Source) []string {
	var ids []string
	for name, content := range source {
		if !strings.HasSuffix(name, testSuffix) {
			ids = append(ids, merchantID.FindAllString(string(content), -1)...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// NamesProducts reports whether a source has markups of products, for which Facts need SKUs.
func NamesProducts(source Source) bool {
	data, problems := checkData(source[dataFile])
	markups, _ := data["markups"].(map[string]any)
	products, _ := markups["products"].(map[string]any)
	return len(problems) == 0 && len(products) > 0
}

// nobody is the tier of a finding that is about no merchant.
const nobody = ""

// unknown warns about merchants and products that nobody knows.
func (g *gate) unknown(file *jsonFile, root *node, source Source) {
	for _, id := range Mentioned(source) {
		known, asked := g.facts.KnownMerchants[id]
		if known || !asked {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(source)) {
			if at := strings.Index(string(source[name]), id); at >= 0 && !strings.HasSuffix(name, testSuffix) {
				f := &jsonFile{name: name, src: source[name]}
				f.problem(at, "there is no merchant %s", id)
				g.add(CheckMeaning, true, f.problems[0], nobody)
			}
		}
	}
	markups, _ := g.set.data["markups"].(map[string]any)
	products, _ := markups["products"].(map[string]any)
	for _, sku := range slices.Sorted(maps.Keys(products)) {
		if g.facts.SKUs != nil && !g.facts.SKUs[sku] {
			g.add(CheckMeaning, true, file.at(root, []string{"markups", "products", sku}, fmt.Sprintf("no product is called %q", sku)), nobody)
		}
	}
}
