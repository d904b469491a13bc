package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

var listNames = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*_(destinations|payers|products|merchants|addresses)$`)

// ListKind is what a list of a name holds: the name's last word, "" where no list can have the name.
func ListKind(name string) string {
	if found := listNames.FindStringSubmatch(name); found != nil {
		return found[2]
	}
	return ""
}

// insertLists adds the lists that hold something of a request.
func (s *Set) insertLists(input ast.Object, in *AdmitInput) {
	if !s.reads.lists {
		return
	}
	names := s.lists(in)
	object := ast.NewObjectWithCapacity(len(names))
	for _, name := range names {
		object.Insert(ast.StringTerm(name), ast.InternedTerm(true))
	}
	input.Insert(termLists, ast.NewTerm(object))
}

// noteList sees which list a reference looks at; "" is any.
func (s *Set) noteList(ref ast.Ref) {
	var name ast.String
	if len(ref) > 2 {
		name, _ = ref[2].Value.(ast.String)
	}
	if s.listed == nil {
		s.listed = map[string]*ast.Location{}
	}
	s.listed[string(name)] = ref[0].Location
}

// ReadsList reports whether a rule may look at a list. What is put on any other changes nothing.
func (s *Set) ReadsList(name string) bool { return s.listed[name] != nil || s.listed[""] != nil }

// ReadsLists reports whether a rule looks at any.
func (s *Set) ReadsLists() bool { return s.reads.lists }

// lists are those of a request, as far as the rules look at them.
func (s *Set) lists(in *AdmitInput) []string {
	switch {
	case !s.reads.lists:
		return nil
	case in.Listed == nil:
		return in.Lists
	}
	return in.Listed(*in)
}

// unlisted warns about lists that can't be there.
func (g *gate) unlisted() {
	for _, name := range slices.Sorted(maps.Keys(g.set.listed)) {
		if name != "" && ListKind(name) == "" {
			g.add(CheckMeaning, true, at(g.set.listed[name], "", fmt.Sprintf(
				"there can be no list %q: its name must end in _destinations, _payers, _products, _merchants or _addresses, so the rule says nothing", name)))
		}
	}
}
