package policy

import "github.com/open-policy-agent/opa/v1/ast"

// Names tells whether the set's data or rules have a text, such as the path of an operation,
// tests aside.
func (s *Set) Names(text string) bool { return s.texts[text] }

// RoutesTo tells whether the rules order providers and the set has the name of one.
func (s *Set) RoutesTo(provider string) bool { return s.Routes() && s.Names(provider) }

// textsOf are the texts of a set.
func textsOf(data map[string]any, modules map[string]*ast.Module) map[string]bool {
	texts := map[string]bool{}
	note := func(text string) { texts[text] = true }
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case string:
			note(value)
		case []any:
			for _, item := range value {
				walk(item)
			}
		case map[string]any:
			for name, member := range value {
				note(name)
				walk(member)
			}
		}
	}
	walk(data)
	for _, module := range modules {
		ast.WalkTerms(module, func(term *ast.Term) bool {
			if text, ok := term.Value.(ast.String); ok {
				note(string(text))
			}
			return false
		})
	}
	return texts
}
