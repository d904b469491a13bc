package policy

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Names tells whether the set's data or rules have the path of an operation, tests aside.
func (s *Set) Names(path string) bool { return s.paths[path] }

// pathsOf are the texts of a set that may be paths of operations.
func pathsOf(data map[string]any, modules map[string]*ast.Module) map[string]bool {
	paths := map[string]bool{}
	note := func(text string) {
		if strings.HasPrefix(text, "/") {
			paths[text] = true
		}
	}
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
	return paths
}
