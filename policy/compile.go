package policy

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/dependencies"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// testTime bounds one test of a set. A busy machine's pauses must not keep a
// gateway from starting.
const testTime = 5 * time.Second

// The two documents that a set must have.
var (
	limitsRef = ast.MustParseRef("data.gerbang.limits")
	admitRef  = ast.MustParseRef("data.gerbang.admit")
)

// Compile makes a set of a source: it checks data.json, compiles the rules strictly with restricted built-in functions and
// a typed input, looks for the two documents, runs the source's tests over its own data, and asks each document once.
// It ends with its context. Whatever is wrong is an *Error that names file and line; nothing is wrong with a set that is returned.
func Compile(ctx context.Context, source Source) (*Set, error) {
	set, _, err := compileWithin(ctx, source)
	return set, err
}

// CompileAgain is Compile for a source that Compile has taken before, maybe in another process: tests and answers are not
// tried again.
func CompileAgain(ctx context.Context, source Source) (*Set, error) {
	set, _, err := untested(ctx, source)
	return set, err
}

// compile is Compile, and says which check a refusal is of.
func compile(ctx context.Context, source Source) (*Set, Check, error) {
	set, modules, err := untested(ctx, source)
	if err != nil {
		return nil, CheckCompile, err
	}
	if err := runTests(ctx, compiler(ctx, set.store, set.txn), modules, set.store, set.txn); err != nil {
		return nil, CheckTests, err
	}
	if check, err := set.probe(ctx); err != nil {
		return nil, check, err
	}
	return set, "", nil
}

// untested is a set whose tests were not run, with all its modules.
func untested(ctx context.Context, source Source) (*Set, map[string]*ast.Module, error) {
	modules, data, problems := parse(source)
	if err := refused(problems); err != nil {
		return nil, nil, err
	}
	store := inmem.NewFromObjectWithOpts(data, inmem.OptReturnASTValuesOnRead(true))
	// The store is never written to, so one transaction serves every reader for as long as the set lives.
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("policy: %w", err)
	}
	rules := compiler(ctx, store, txn).WithSchemas(inputSchemas())
	if rules.Compile(withoutTests(modules)); rules.Failed() {
		return nil, nil, refused(problemsOf(dataFile, rules.Errors))
	}
	if err := refused(entryProblems(rules)); err != nil {
		return nil, nil, err
	}
	set, err := newSet(source, rules, data, store, txn)
	if err != nil {
		return nil, nil, fmt.Errorf("policy: %w", err)
	}
	return set, modules, nil
}

// parse reads every file and collects what is wrong with any of them.
func parse(source Source) (modules map[string]*ast.Module, data map[string]any, problems []Problem) {
	modules = map[string]*ast.Module{}
	options := ast.ParserOptions{Capabilities: capabilities(), RegoVersion: ast.RegoV1}
	for _, name := range slices.Sorted(maps.Keys(source)) {
		switch {
		case name != path.Base(name):
			problems = append(problems, Problem{File: name, Message: "the files of a set are in no directory"})
		case name == dataFile:
			var wrong []Problem
			data, wrong = checkData(source[name])
			problems = append(problems, wrong...)
		case path.Ext(name) == ruleSuffix:
			module, err := ast.ParseModuleWithOpts(name, string(source[name]), options)
			if err != nil {
				problems = append(problems, problemsOf(name, err)...)
				continue
			}
			modules[name] = module
		default:
			problems = append(problems, Problem{File: name, Message: "a set has only *.rego files and " + dataFile})
		}
	}
	if _, ok := source[dataFile]; !ok {
		problems = append(problems, Problem{File: dataFile, Message: "this file is missing"})
	}
	return modules, data, problems
}

// compiler is what rules and tests are compiled with.
func compiler(ctx context.Context, store storage.Store, txn storage.Transaction) *ast.Compiler {
	return ast.NewCompiler().
		WithStrict(true).
		WithCapabilities(capabilities()).
		WithDefaultRegoVersion(ast.RegoV1).
		WithPathConflictsCheck(storage.NonEmpty(ctx, store, txn))
}

// withoutTests is what runs in production. Tests are left out because a document that one of them replaces is
// evaluated more slowly, and because rules must not lean on fixtures.
func withoutTests(modules map[string]*ast.Module) map[string]*ast.Module {
	rules := maps.Clone(modules)
	maps.DeleteFunc(rules, func(name string, _ *ast.Module) bool { return strings.HasSuffix(name, testSuffix) })
	return rules
}

// entryProblems tells which document is missing, and what the limits depend on that their answer is not kept under.
func entryProblems(c *ast.Compiler) []Problem {
	var problems []Problem
	for _, ref := range []ast.Ref{limitsRef, admitRef} {
		if len(c.GetRules(ref)) == 0 {
			problems = append(problems, Problem{File: strings.TrimPrefix(ref.String(), "data."),
				Message: "no rule answers " + ref.String()})
		}
	}
	if len(problems) > 0 {
		return problems
	}
	allowed := []ast.Value{ast.String("merchant"), ast.String("mode"), ast.String("operation")}
	rule := c.GetRules(limitsRef)[0]
	bases, err := dependencies.Base(c, limitsRef)
	if err != nil {
		return []Problem{at(rule.Location, "", err.Error())}
	}
	for _, base := range bases {
		if !base.HasPrefix(ast.InputRootRef) {
			continue
		}
		if len(base) == 1 || !slices.ContainsFunc(allowed, func(v ast.Value) bool { return v.Compare(base[1].Value) == 0 }) {
			problems = append(problems, at(rule.Location, "", fmt.Sprintf("%s depends on %s; its answer is kept, so it may "+
				"read only input.merchant, input.mode and input.operation", limitsRef, base)))
		}
	}
	return problems
}

// runTests runs the tests of a set.
func runTests(
	ctx context.Context, c *ast.Compiler, modules map[string]*ast.Module, store storage.Store, txn storage.Transaction,
) error {
	results, err := tester.NewRunner().
		SetCompiler(c).
		SetModules(modules).
		SetStore(store).
		SetTimeout(testTime).
		RaiseBuiltinErrors(true).
		CapturePrintOutput(false).
		RunTests(ctx, txn)
	if err != nil {
		return refused(problemsOf(dataFile, err))
	}
	var problems []Problem
	for result := range results {
		switch {
		case result == nil || result.Pass() || result.Skip:
		case topdown.IsCancel(result.Error) && ctx.Err() != nil && !tooLarge(ctx): // the others took the time
		case topdown.IsCancel(result.Error):
			within := fmt.Sprintf("does not end within %s", testTime)
			if tooLarge(ctx) {
				within = ErrTooLarge.Error()
			}
			problems = append(problems, at(result.Location, "", result.Name+" "+within))
		case result.Error != nil:
			problems = append(problems, at(result.Location, "", result.Name+" can't be run: "+result.Error.Error()))
		default:
			problems = append(problems, at(result.Location, "", result.Name+" fails"))
		}
	}
	if err := ctx.Err(); err != nil && len(problems) == 0 {
		return fmt.Errorf("policy: the tests were cut short: %w", err)
	}
	return refused(problems)
}
