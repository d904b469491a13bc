package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
)

const (
	// keptLimits is for how many combinations of merchant, mode and operation the limits are kept.
	keptLimits = 1 << 17

	// keptOperations is far above what a catalog has.
	keptOperations = 1 << 10
)

// refusedSilently is what a merchant is told where the rules refuse without a reason or say nothing at all.
const refusedSilently = "The policy does not allow this."

// routeRef is the third question, which a set need not answer.
var routeRef = ast.MustParseRef("data.gerbang.route")

// Set is a compiled set. It never changes and any number of goroutines may ask it.
type Set struct {
	version Version
	source  Source
	rules   *ast.Compiler
	data    map[string]any // data.json; nobody changes it
	store   storage.Store
	txn     storage.Transaction
	limits  question
	admit   question
	route   question // without a body where no rule answers it
	routes  bool     // whether one does
	table   ruleTable
	texts   map[string]bool // that its data or rules have

	// reads tells which costly parts of the input any rule looks at, and whether one looks at whose record it is or at seconds.
	reads  struct{ now, clock, fields, parties, lists, quote, id, seconds bool }
	listed map[string]*ast.Location // the lists that rules look at, by name

	study      time.Duration // bounds finding out what can be kept
	kept       *cache[recordKey, *keptAnswers]
	alike      *cache[alikeKey, *keptAnswers] // the same answers, by what they depend on
	operations *cache[Operation, *ast.Term]
	products   *cache[int, keptProducts] // by the hash of what they were read from
}

// question is one of those, ready to be asked.
type question struct {
	name     string
	compiler ast.QueryCompiler
	body     ast.Body
}

// recordKey finds what is kept of a merchant's record, in a mode, of a path.
type recordKey struct {
	merchant string
	record   int64
	mode     string
	path     string
}

// keptAnswers are the answers that depend on nothing but the set, a record, a mode and an operation, and from when until
// when they hold: from the last end of one of the merchant's own limits to the next.
type keptAnswers struct {
	operation   Operation
	from, until time.Time

	limits atomic.Pointer[Limits]
	admit  studied[Decision]
	route  studied[[]string]
}

func (k *keptAnswers) holds(operation Operation, now time.Time) bool {
	return k.operation == operation && !now.Before(k.from) && (k.until.IsZero() || now.Before(k.until))
}

// studied is an answer that is kept once it is found out to be the same whatever else a request says, and whenever.
type studied[T any] struct {
	asked  atomic.Uint32
	known  atomic.Pointer[T] // nil for not, or not yet
	varies atomic.Bool       // was found out
}

// newSet prepares the questions.
func newSet(
	source Source, rules *ast.Compiler, data map[string]any, store storage.Store, txn storage.Transaction,
) (*Set, error) {
	s := &Set{
		version:    source.Version(),
		source:     source,
		rules:      rules,
		data:       data,
		store:      store,
		txn:        txn,
		table:      newRuleTable(rules.Modules),
		texts:      textsOf(data, rules.Modules),
		routes:     len(rules.GetRules(routeRef)) > 0,
		study:      studyTime,
		kept:       newCache[recordKey, *keptAnswers](keptLimits),
		alike:      newCache[alikeKey, *keptAnswers](keptLimits),
		operations: newCache[Operation, *ast.Term](keptOperations),
		products:   newCache[int, keptProducts](keptMarkups),
	}
	asked := map[*question]ast.Ref{&s.limits: limitsRef, &s.admit: admitRef}
	if s.routes {
		asked[&s.route] = routeRef
	}
	for q, ref := range asked {
		q.name = string(ref[len(ref)-1].Value.(ast.String))
		q.compiler = rules.QueryCompiler()
		body, err := q.compiler.Compile(ast.NewBody(ast.Equality.Expr(ast.VarTerm("answer"), ast.NewTerm(ref))))
		if err != nil {
			return nil, err
		}
		q.body = body
	}
	for _, module := range rules.Modules {
		s.note(module)
	}
	return s, nil
}

// note sees which parts of the input a module looks at. A reference to the whole input looks at all of them.
func (s *Set) note(module *ast.Module) {
	ast.WalkRefs(module, func(ref ast.Ref) bool {
		if !ref.HasPrefix(ast.InputRootRef) {
			return false
		}
		s.reads.now = s.reads.now || mayRead(ref, termNow)
		s.reads.clock = s.reads.clock || mayRead(ref, termClock)
		s.reads.quote = s.reads.quote || mayRead(ref, termQuote) || mayRead(ref, termTold)
		s.reads.fields = s.reads.fields || mayRead(ref, termFields)
		s.reads.parties = s.reads.parties || mayRead(ref, termDestination) || mayRead(ref, termProduct) || mayRead(ref, termPayer)
		if mayRead(ref, termLists) {
			s.reads.lists = true
			s.noteList(ref)
		}
		s.reads.id = s.reads.id || mayRead(ref, termMerchant, termID)
		s.reads.seconds = s.reads.seconds || mayRead(ref, termNow) || mayRead(ref, termClock, termUnix)
		return false
	})
}

// Version names the set.
func (s *Set) Version() Version { return s.version }

// Source is what the set was made of. Nobody may change it.
func (s *Set) Source() Source { return s.source }

// Limits answers how fast, how many, at which markup and how much. The answer is kept under the set, the merchant and its
// record's version, the mode and the operation, until the first of the merchant's own limits expires, and is that of all
// records that are [Set.Alike]. ErrNoAnswer means that the rules have none; that and every other error is a refusal.
func (s *Set) Limits(ctx context.Context, in LimitsInput) (Limits, error) {
	if limits, ok := s.KeptLimits(in); ok {
		return limits, nil
	}
	limits, err := s.askLimits(ctx, in)
	if err != nil {
		return Limits{}, err
	}
	s.keeping(&in.Merchant, in.Mode, in.Operation, in.Now).limits.Store(&limits)
	return limits, nil
}

// keptOf is what is kept, nil for nothing. A record that nobody has asked for is answered as those that it is alike.
func (s *Set) keptOf(m *Merchant, mode string, operation Operation, now time.Time) *keptAnswers {
	key := recordKey{m.ID, m.Version, mode, operation.Path}
	if kept, ok := s.kept.get(key); ok && kept.holds(operation, now) {
		return kept
	}
	kept, ok := s.alike.get(alikeKey{s.Alike(*m), mode, operation})
	if !ok || !kept.holds(operation, now) {
		return nil
	}
	s.kept.put(key, kept)
	return kept
}

// keeping is where answers are kept.
func (s *Set) keeping(m *Merchant, mode string, operation Operation, now time.Time) *keptAnswers {
	kept := s.keptOf(m, mode, operation, now)
	if kept == nil {
		kept = &keptAnswers{operation: operation, from: m.lastExpiry(now), until: m.nextExpiry(now)}
		s.kept.put(recordKey{m.ID, m.Version, mode, operation.Path}, kept)
		s.alike.put(alikeKey{s.Alike(*m), mode, operation}, kept)
	}
	return kept
}

// KeptLimits is Limits where the answer is kept: nothing has to be evaluated.
func (s *Set) KeptLimits(in LimitsInput) (Limits, bool) {
	kept := s.keptOf(&in.Merchant, in.Mode, in.Operation, in.Now)
	if kept == nil {
		return Limits{}, false
	}
	limits := kept.limits.Load()
	if limits == nil {
		return Limits{}, false
	}
	return *limits, true
}

// askLimits is Limits without what is kept.
func (s *Set) askLimits(ctx context.Context, in LimitsInput) (Limits, error) {
	answer, err := s.ask(ctx, &s.limits, s.limitsTerm(&in))
	if err != nil {
		return Limits{}, err
	}
	if answer == nil {
		return Limits{}, ErrNoAnswer
	}
	limits, err := s.readLimits(answer.Value)
	if err != nil {
		return Limits{}, fmt.Errorf("policy: the answer of %s: %w", limitsRef, err)
	}
	limits.Version = s.version
	return limits, nil
}

// Admit decides on one request. The context's deadline ends the evaluation. The decision that comes with an error
// refuses.
func (s *Set) Admit(ctx context.Context, in AdmitInput) (Decision, error) {
	input, err := s.admitTerm(&in)
	if err != nil {
		return Decision{Version: s.version}, err
	}
	answer, err := s.ask(ctx, &s.admit, input)
	if err != nil {
		return Decision{Version: s.version}, err
	}
	return s.decision(answer)
}

// studyAt is the how-manieth request it is worth to find out at whether an answer is the same for all: that costs as much as
// some dozens of answers. Where it was not found out in time, it is tried again at twice as many.
const studyAt = 16

// studyTime bounds finding out.
const studyTime = 20 * time.Millisecond

// KeptAdmission is Admit where the decision is kept: nothing has to be evaluated. It is kept under what [Set.Limits] is
// kept under. Nobody may change its reasons.
func (s *Set) KeptAdmission(in AdmitInput) (Decision, bool) {
	if len(s.lists(&in)) > 0 { // what is kept is of requests that are on none
		return Decision{}, false
	}
	if kept := s.keptOf(&in.Merchant, in.Mode, in.Operation, in.Now); kept != nil {
		if known := kept.admit.known.Load(); known != nil {
			return *known, true
		}
	}
	return Decision{}, false
}

// AdmitAndKeep is Admit for a merchant as its record is. The decision is kept once the rules have been evaluated with
// amount, fields, quote and time unknown and nothing that is unknown was left.
func (s *Set) AdmitAndKeep(ctx context.Context, in AdmitInput) (Decision, error) {
	decision, err := s.Admit(ctx, in)
	if err == nil && len(s.lists(&in)) == 0 {
		study(ctx, s, &s.keeping(&in.Merchant, in.Mode, in.Operation, in.Now).admit, &s.admit, in, decision)
	}
	return decision, err
}

// Routes reports whether the rules say anything of the order of providers.
func (s *Set) Routes() bool { return s.routes }

// KeptRoute is Route where the answer is kept or the rules say nothing: nothing has to be evaluated. Nobody may change it.
func (s *Set) KeptRoute(in AdmitInput) ([]string, bool) {
	if !s.Routes() {
		return nil, true
	}
	if len(s.lists(&in)) > 0 {
		return nil, false
	}
	if kept := s.keptOf(&in.Merchant, in.Mode, in.Operation, in.Now); kept != nil {
		if known := kept.route.known.Load(); known != nil {
			return *known, true
		}
	}
	return nil, false
}

// RouteAndKeep is Route for a merchant as its record is. The answer is kept as [Set.AdmitAndKeep] keeps a decision.
func (s *Set) RouteAndKeep(ctx context.Context, in AdmitInput) ([]string, error) {
	providers, err := s.Route(ctx, in)
	if err == nil && s.Routes() && len(s.lists(&in)) == 0 {
		study(ctx, s, &s.keeping(&in.Merchant, in.Mode, in.Operation, in.Now).route, &s.route, in, providers)
	}
	return providers, err
}

// Route answers which providers an allowed request may go to, in the order in which they are tried. It is nil where the rules
// say nothing: then the gateway's own order holds. An empty list is none.
func (s *Set) Route(ctx context.Context, in AdmitInput) ([]string, error) {
	if !s.Routes() {
		return nil, nil
	}
	input, err := s.admitTerm(&in)
	if err != nil {
		return nil, err
	}
	answer, err := s.ask(ctx, &s.route, input)
	if err != nil || answer == nil {
		return nil, err
	}
	providers, err := readRoute(answer.Value)
	if err != nil {
		return nil, fmt.Errorf("policy: the answer of %s: %w", routeRef, err)
	}
	return providers, nil
}

// readRoute reads the names of providers.
func readRoute(value ast.Value) ([]string, error) {
	list, ok := value.(*ast.Array)
	if !ok {
		return nil, fmt.Errorf("%s where a list of providers must be: a set has no order", ast.ValueName(value))
	}
	providers := make([]string, 0, list.Len())
	err := list.Iter(func(term *ast.Term) error {
		name, ok := term.Value.(ast.String)
		if !ok {
			return errors.New("a provider must be a string")
		}
		if slices.Contains(providers, string(name)) {
			return fmt.Errorf("%q is there twice", string(name))
		}
		providers = append(providers, string(name))
		return nil
	})
	return providers, err
}

// study keeps an answer to a question if it is found out, at this request, to depend on nothing that is unknown. An error
// here says nothing about this request, which has its answer.
func study[T any](ctx context.Context, s *Set, of *studied[T], q *question, in AdmitInput, answer T) {
	if n := of.asked.Add(1); n < studyAt || bits.OnesCount32(n) != 1 || of.varies.Load() {
		return
	}
	studying, cancel := context.WithTimeout(ctx, s.study)
	defer cancel()
	_, known, err := s.rest(studying, q, in, Unknown{Body: true, Clock: true})
	switch {
	case err != nil:
	case known:
		of.known.Store(&answer)
	default:
		of.varies.Store(true)
	}
}

// decision reads the answer of admission. No answer refuses, and each refusal has a reason.
func (s *Set) decision(answer *ast.Term) (Decision, error) {
	decision := Decision{}
	if answer != nil {
		var err error
		if decision, err = readDecision(answer.Value); err != nil {
			return Decision{Version: s.version}, fmt.Errorf("policy: the answer of %s: %w", admitRef, err)
		}
	}
	if !decision.Allow && len(decision.Reasons) == 0 {
		decision.Reasons = []string{refusedSilently}
	}
	decision.Version = s.version
	return decision, nil
}

// deadline lets OPA see that a context is done. OPA asks often, so this saves the goroutine that would watch it.
type deadline struct{ context.Context }

// Cancel has nothing to do: only the context ends an evaluation.
func (deadline) Cancel() {}

// Cancelled reports whether the context is done.
func (d deadline) Cancelled() bool { return d.Err() != nil }

// ask evaluates a question; nil is no answer.
func (s *Set) ask(ctx context.Context, q *question, input *ast.Term) (*ast.Term, error) {
	return s.evaluate(ctx, q, input, func(query *topdown.Query) *topdown.Query { return query.WithCancel(deadline{ctx}) })
}

// evaluate is ask with what is set up besides, the end of the evaluation at least.
func (s *Set) evaluate(ctx context.Context, q *question, input *ast.Term, with func(*topdown.Query) *topdown.Query) (*ast.Term, error) {
	var answer *ast.Term
	query := topdown.NewQuery(q.body).
		WithQueryCompiler(q.compiler).
		WithCompiler(s.rules).
		WithStore(s.store).
		WithTransaction(s.txn).
		WithInput(input).
		WithMetrics(metrics.NoOp()).
		WithStrictBuiltinErrors(true)
	err := with(query).Iter(ctx, func(result topdown.QueryResult) error {
		for _, term := range result {
			answer = term
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("policy: %s: %w", q.name, ctx.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %s: %w", q.name, err)
	}
	return answer, nil
}

// probe asks both questions once for each tier, so that a document of the wrong shape, and a rule that never ends, are
// found before they are in force.
func (s *Set) probe(ctx context.Context) (Check, error) {
	check := CheckAnswer
	amount := int64(1)
	var problems []Problem
	for _, tier := range s.tiers() {
		in := AdmitInput{
			Merchant: Merchant{ID: "probe", Tier: tier, Status: "active"}, Mode: "test",
			Operation: Operation{Path: "/probe", Kind: "query", Provider: "probe"}, Amount: &amount,
		}
		for _, tried := range s.try(ctx, in, ofProbe) {
			if tried.fault != nil {
				check = tried.check
				problems = append(problems, *tried.fault)
			}
		}
		if err := ctx.Err(); err != nil && !tooLarge(ctx) {
			return "", fmt.Errorf("policy: the answers were not asked for to the end: %w", err)
		}
	}
	return check, refused(problems)
}

// tiers are the names of the tiers, sorted.
func (s *Set) tiers() []string {
	tiers, _ := s.data["tiers"].(map[string]any)
	return slices.Sorted(maps.Keys(tiers))
}
