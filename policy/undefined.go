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

// undefined finds what rules read and nothing defines, which is never an error for them: they say nothing then.
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
		g.add(CheckMeaning, known[reason], f)
	}
}

// unread are the references of rules to data that is not there.
func (s *Set) unread() []Problem {
	var found []Problem
	s.references(func(ref ast.Ref, names []string) {
		if len(names) == 0 || len(s.rules.GetRulesDynamicWithOpts(ref, ast.RulesOptions{})) > 0 {
			return
		}
		if reason := s.missing(names); reason != "" {
			found = append(found, at(ref[0].Location, "", reason))
		}
	})
	return found
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

// missing says which of the names leads nowhere, "" where all lead somewhere.
func (s *Set) missing(names []string) string {
	var value any = s.data
	siblings := slices.Clone(optional)
	for module := range maps.Values(s.rules.Modules) {
		siblings = append(siblings, strings.TrimPrefix(module.Package.Path[:2].String(), "data."))
	}
	if slices.Contains(siblings[len(optional):], names[0]) {
		if len(names) == 1 {
			return ""
		}
		var rules []string
		for _, rule := range s.table.rules {
			rules = append(rules, rule.Name)
		}
		return undefinedName(strings.Join(names[:2], "."), rules)
	}
	for i, name := range names {
		path := strings.Join(names[:i+1], ".")
		within, _ := value.(map[string]any)
		next, there := within[name]
		if !there && !slices.Contains(optional, path) {
			for sibling := range within {
				siblings = append(siblings, strings.Join(append(slices.Clone(names[:i]), sibling), "."))
			}
			return undefinedName(path, siblings)
		}
		if slices.Contains(open, path) {
			return ""
		}
		value = next
		if _, object := value.(map[string]any); !object && there {
			return ""
		}
	}
	return ""
}

// undefinedName says that a name is no data's, and which one was meant.
func undefinedName(name string, others []string) string {
	reason := fmt.Sprintf("nothing defines data.%s, so that what reads it says nothing", name)
	if best := nearest(name, others); best != "" {
		reason += fmt.Sprintf("; is it data.%s?", best)
	}
	return reason
}

// nearest is the name that differs least, "" where none is near.
func nearest(name string, others []string) string {
	best, least := "", 4
	for _, other := range others {
		if d := distance(name, other); d < least && other != name {
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
