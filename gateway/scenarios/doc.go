// Package scenarios runs lifecycle, kinds, statements and overrides as merchants, providers
// and operators see them: each fault of a call at each moment of a creation, races,
// crashes, wrong clocks. A world is one merchant, the provider of one kind, and an engine
// between them, in memory for each change and on the real store where tests run long. It
// has nothing but tests, and must not be imported.
package scenarios
