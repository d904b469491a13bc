package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// withheld are built-in functions, by name or by prefix where they end in a dot, that OPA does not call nondeterministic
// and that have no business in a policy all the same: they reach outside, mint or open tokens, parse other code, or go on
// for hours, or until all memory is taken, without a look at the deadline.
var withheld = []string{
	"http.", "net.", "opa.", "io.", "providers.", "rand.", "uuid.", "rego.parse_module", "graphql.",
	"bits.lsh", "graph.reachable_paths", "strings.render_template",
}

// capabilities is what rules may use: OPA's language and its functions, without network, clock, chance and environment.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.Nondeterministic || slices.ContainsFunc(withheld, func(name string) bool {
			return b.Name == name || strings.HasSuffix(name, ".") && strings.HasPrefix(b.Name, name)
		})
	})
	// Empty, not nil: a schema may name no host at all.
	c.AllowNet = []string{}
	return c
}

// withheldFunction reports whether OPA has a function that policies may not call.
func withheldFunction(name string) bool {
	named := func(b *ast.Builtin) bool { return b.Name == name }
	return slices.ContainsFunc(ast.CapabilitiesForThisVersion().Builtins, named) && !slices.ContainsFunc(capabilities().Builtins, named)
}
