package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// optional are the parts of data.json that a rule may read where they are left out.
var optional = []string{"tiers", "quotas", "amounts", "markups", "markups.tiers", "markups.products", "transfers", "transfers.tiers", "custom"}

// open are the parts of data.json whose names are values: of a tier, a path, a product.
var open = []string{"tiers", "quotas", "amounts", "markups.tiers", "markups.products", "transfers.tiers"}

// undefined finds what rules read and nothing defines, which is never an error for them. It is refused where no edit of
// data.json could define it, or where a name that is there was meant; under custom it may be left out on purpose.
func (g *gate) undefined() {
	known := map[string]bool{}
	if g.facts.Active != nil {
		for _, f := range g.facts.Active.unread() {
			known[f.Message] = true
		}
	}
	for _, f := range g.set.unread() {
		reason := f.Message
		if known[reason] {
			f.Message += "; the version in force has this too"
		}
		g.add(CheckMeaning, known[reason] || f.optional, f.Problem)
	}
}

// absent is a reference to what is not there. It is optional where it may be left out on purpose.
type absent struct {
	Problem
	optional bool
}

// unread are the references of rules to data that is not there.
func (s *Set) unread() []absent {
	packages := map[string]bool{} // and what leads to them
	for module := range maps.Values(s.rules.Modules) {
		path := ""
		for _, term := range module.Package.Path[1:] {
			name, _ := term.Value.(ast.String)
			path = joined(path, string(name))
			packages[path] = true
		}
	}
	rules := map[string]bool{}
	for _, rule := range s.table.rules {
		rules[rule.Name] = true
	}
	var found []absent
	s.references(func(ref ast.Ref, names []string) {
		if len(names) == 0 || len(s.rules.GetRulesDynamicWithOpts(ref, ast.RulesOptions{})) > 0 {
			return
		}
		if path, others := s.missing(names, packages, rules); path != "" {
			meant := nearest(path, others)
			reason := fmt.Sprintf("nothing defines data.%s: to a rule it is undefined", path)
			if meant != "" {
				reason += fmt.Sprintf("; is it data.%s?", meant)
			}
			found = append(found, absent{at(ref[0].Location, "", reason), meant == "" && names[0] == "custom"})
		}
	})
	return found
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// references calls back for each reference to data, with the names that it begins with.
func (s *Set) references(each func(ref ast.Ref, names []string)) {
	for _, module := range s.rules.Modules {
		ast.WalkRefs(module, func(ref ast.Ref) bool {
			if !ref[0].Equal(ast.DefaultRootDocument) || ref[0].Location == nil || ref[0].Location.File == "" {
				return false
			}
			var names []string
			for _, term := range ref[1:] {
				name, text := term.Value.(ast.String)
				if !text {
					break
				}
				names = append(names, string(name))
			}
			each(ref, names)
			return false
		})
	}
}

// missing is the shortest part of the names that leads nowhere, with what stands beside it, "" where all lead somewhere.
func (s *Set) missing(names []string, packages, rules map[string]bool) (path string, others []string) {
	var value any = s.data
	for i, name := range names {
		above := path
		path = joined(path, name)
		within, _ := value.(map[string]any)
		next, there := within[name]
		switch {
		case rules[path], slices.Contains(open, path):
			return "", nil
		case there:
			if _, object := next.(map[string]any); !object && !packages[path] {
				return "", nil
			}
		case !packages[path] && !slices.Contains(optional, path):
			for sibling := range within {
				others = append(others, joined(above, sibling))
			}
			for _, all := range [][]string{optional, slices.Collect(maps.Keys(packages)), slices.Collect(maps.Keys(rules))} {
				for _, other := range all {
					if strings.Count(other, ".") == i {
						others = append(others, other)
					}
				}
			}
			return path, others
		}
		value = next
	}
	return "", nil
}

// nearest is the path whose last name differs least and little from another path's, "" where none is near.
func nearest(path string, others []string) string {
	last := path[strings.LastIndexAny(path, "./")+1:]
	best, least := "", 2+min(len(last)/3, 2)
	for _, other := range slices.Sorted(slices.Values(others)) {
		if d := distance(path, other); d < least && other != path {
			best, least = other, d
		}
	}
	return best
}

// unused warns of what data.json has and no rule reads.
func (g *gate) unused(file *jsonFile, root *node) {
	read := map[string]bool{}
	var paths []string
	g.set.references(func(_ ast.Ref, names []string) {
		// A reference to a whole reads every part of it.
		path := strings.Join(names[:min(len(names), 2)], ".")
		read[path] = true
		paths = append(paths, path)
		if len(names) > 1 {
			read[names[0]+".*"] = true
		}
	})
	if read[""] {
		return
	}
	warn := func(where []string) {
		name := strings.Join(where, ".")
		reason := fmt.Sprintf("no rule reads %q", name)
		if best := nearest(name, paths); best != "" {
			reason += fmt.Sprintf(", though one reads %q", best)
		}
		g.add(CheckMeaning, true, file.at(root, where, reason))
	}
	for _, name := range slices.Sorted(maps.Keys(g.set.data)) {
		within, object := g.set.data[name].(map[string]any)
		switch {
		case read[name] || object && len(within) == 0:
		case name == "custom" && read["custom.*"]:
			for _, part := range slices.Sorted(maps.Keys(within)) {
				if !read["custom."+part] {
					warn([]string{"custom", part})
				}
			}
		case !read[name+".*"]:
			warn([]string{name})
		}
	}
}

// idle warns of rules that are new and that no request reaches, where there are recorded ones.
func (g *gate) idle() {
	if len(g.facts.Recorded) == 0 || g.facts.Active == nil || g.onlyMeaning {
		return
	}
	before := g.facts.Active.ruleTexts()
	for rule, number := range g.set.table.number {
		r := g.set.table.rules[number-1]
		reached := before[string(rule.Location.Text)]
		for line := r.Line; line <= r.end && !reached; line++ {
			reached = g.reached[place{r.File, line}]
		}
		if !reached {
			g.add(CheckMeaning, true, at(rule.Location, "", fmt.Sprintf("this rule is new, and no request reaches it, of %d recorded and of generated ones", len(g.facts.Recorded))))
		}
	}
}

func (s *Set) ruleTexts() map[string]bool {
	texts := map[string]bool{}
	for rule := range s.table.number {
		texts[string(rule.Location.Text)] = true
	}
	return texts
}
