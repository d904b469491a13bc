package console

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/version"
)

// Metrics counts what the gateway does. It is made before anything that reports
// to it, and any number of goroutines may report.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler

	requests *prometheus.CounterVec
	durations,
	callDurations *prometheus.HistogramVec
	calls *prometheus.CounterVec

	callbacks         *prometheus.CounterVec
	callbackDurations prometheus.Histogram
	foreign           *prometheus.CounterVec
	policyRefused     *prometheus.CounterVec
	signInFailures    *prometheus.CounterVec
	moved             *prometheus.CounterVec
	spent, unspent    *prometheus.CounterVec
	ledgerChecked     *prometheus.GaugeVec
	ledgerOffences    *prometheus.GaugeVec

	mu       sync.Mutex
	measured []measurement // the oldest first
}

// buckets reach from an answer out of memory to the longest operation.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30}

// NewMetrics makes an empty count in a registry of its own, with Go's runtime,
// the process and the build beside it.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gerbang_requests_total", Help: "Merchants' requests by route and result: OK or the error code.",
		}, []string{"route", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gerbang_request_duration_seconds", Help: "How long merchants' requests took.", Buckets: buckets,
		}, []string{"route"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gerbang_plugin_calls_total", Help: "Calls, lookups and notifications handed to plugins, by outcome.",
		}, []string{"provider", "mode", "operation", "method", "outcome"}),
		callDurations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gerbang_plugin_call_duration_seconds", Help: "How long plugins took.", Buckets: buckets,
		}, []string{"provider", "method"}),
		callbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gerbang_callbacks_total", Help: "Attempts to deliver a callback, by outcome.",
		}, []string{"outcome"}),
		callbackDurations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gerbang_callback_duration_seconds", Help: "How long attempts to deliver a callback took.", Buckets: buckets,
		}),
		foreign: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gerbang_foreign_notifications_total", Help: "What providers notified of that has no name of ours: others use the account, too.",
		}, []string{"provider"}),
	}
	m.policyRefused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gerbang_policy_refusals_total", Help: "Policy versions that this replica refused: when pushed, when proposed, or in force.",
	}, []string{"when"})
	for _, when := range []string{"push", "proposal", "head"} {
		m.policyRefused.WithLabelValues(when)
	}
	m.signInFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gerbang_sign_in_failures_total", Help: "Wrong passwords, codes and links of people, and wrong tokens of operators' programs.",
	}, []string{"of"})
	for _, of := range []string{people, tokens} {
		m.signInFailures.WithLabelValues(of)
	}
	m.moved = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gerbang_movements_total", Help: "Movements that this replica moved into a state.",
	}, []string{"kind", "mode", "state"})
	m.spent = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gerbang_deposit_spent_rupiah_total", Help: "Rupiah that orders took out of the platform's deposit at a provider, as this replica booked them.",
	}, []string{"provider", "mode"})
	m.unspent = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gerbang_deposit_returned_rupiah_total", Help: "Rupiah that came back into the platform's deposit at a provider, since orders failed after they had succeeded.",
	}, []string{"provider", "mode"})
	m.ledgerChecked = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gerbang_ledger_check_timestamp_seconds", Help: "When this replica last checked the ledger, on an operator's word.",
	}, []string{"scope"})
	m.ledgerOffences = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gerbang_ledger_check_offences", Help: "What broke an invariant of the ledger in the last check of this replica; 100 stands for more.",
	}, []string{"invariant"})
	build := version.Of()
	m.registry.MustRegister(m.signInFailures, m.moved, m.spent, m.unspent, m.ledgerChecked, m.ledgerOffences, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gerbang_build_info", Help: "1 for the program that this replica runs.",
		ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Revision, "go": build.Go},
	}, func() float64 { return 1 }))
	m.registry.MustRegister(m.policyRefused, m.requests, m.durations, m.calls, m.callDurations, m.callbacks, m.callbackDurations, m.foreign,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// Observe counts an answer to a merchant. The route is a pattern, never a path
// with an id in it.
func (m *Metrics) Observe(route, code string, took time.Duration) {
	m.requests.WithLabelValues(route, code).Inc()
	m.durations.WithLabelValues(route).Observe(took.Seconds())
}

// ObserveCall counts one exchange with a plugin.
func (m *Metrics) ObserveCall(o host.Observation) {
	m.calls.WithLabelValues(o.Provider, o.Mode, o.Operation, o.Method, o.Outcome).Inc()
	m.callDurations.WithLabelValues(o.Provider, o.Method).Observe(o.Took.Seconds())
}

// ObserveCallback counts one attempt to deliver a callback.
func (m *Metrics) ObserveCallback(attempt callback.Attempt) {
	m.callbacks.WithLabelValues(string(attempt.Outcome)).Inc()
	m.callbackDurations.Observe(attempt.Duration.Seconds())
}

// ObserveForeign counts what a notification told of a movement that is none of ours.
func (m *Metrics) ObserveForeign(provider string) { m.foreign.WithLabelValues(provider).Inc() }

// WatchDecisions counts the decisions and inputs that the log of decisions had no room
// for, or could not write.
func (m *Metrics) WatchDecisions(dropped func() (counts, inputs int64)) {
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gerbang_decisions_dropped_total", Help: "Decisions of the policy that are missing in the log of decisions.",
		}, func() float64 { counts, _ := dropped(); return float64(counts) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gerbang_decision_inputs_dropped_total", Help: "Inputs of refused requests that were not kept.",
		}, func() float64 { _, inputs := dropped(); return float64(inputs) }),
	)
}

// WatchRequests shows how many calls the log of requests is missing.
func (m *Metrics) WatchRequests(dropped func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "gerbang_requests_dropped_total", Help: "Merchants' calls that were not kept in the log of requests.",
	}, func() float64 { return float64(dropped()) }))
}

// WatchAudit shows how the chain over the audit is, as far as this replica knows.
func (m *Metrics) WatchAudit(figures func() audit.Figures) {
	m.registry.MustRegister(auditCollector(figures))
}

type auditCollector func() audit.Figures

var (
	auditSequence = prometheus.NewDesc("gerbang_audit_sequence", "The number of the last link in the chain over the audit.", nil, nil)
	auditSealed   = prometheus.NewDesc("gerbang_audit_sealed_timestamp_seconds", "When each entry of the audit had its link last.", nil, nil)
	auditSent     = prometheus.NewDesc("gerbang_audit_sent_timestamp_seconds", "When the audit's sink had all links last.", nil, nil)
	auditVerified = prometheus.NewDesc("gerbang_audit_verified_timestamp_seconds", "When this replica verified the audit last.", nil, nil)
	auditBreaks   = prometheus.NewDesc("gerbang_audit_breaks", "What this replica's last verification of the audit found broken; 100 stands for more.", nil, nil)
)

// Describe implements prometheus.Collector.
func (auditCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{auditSequence, auditSealed, auditSent, auditVerified, auditBreaks} {
		to <- d
	}
}

// Collect implements prometheus.Collector. What this replica does not know is not there.
func (c auditCollector) Collect(to chan<- prometheus.Metric) {
	f := c()
	gauge := func(d *prometheus.Desc, value float64, known time.Time) {
		if !known.IsZero() {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
		}
	}
	gauge(auditSequence, float64(f.Sequence), f.SealedAt)
	gauge(auditSealed, float64(f.SealedAt.Unix()), f.SealedAt)
	gauge(auditSent, float64(f.SentAt.Unix()), f.SentAt)
	gauge(auditVerified, float64(f.Verified.Unix()), f.Verified)
	gauge(auditBreaks, float64(f.Breaks), f.Verified)
}

// WatchTraces shows what becomes of traces.
func (m *Metrics) WatchTraces(spans func() (made, sent, failed int64)) {
	of := func(name, help string, count func() int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(count()) }))
	}
	of("gerbang_trace_spans_made_total", "Parts of traces that were made. What was neither sent nor failed waits, or was too much to wait.",
		func() int64 { n, _, _ := spans(); return n })
	of("gerbang_trace_spans_sent_total", "Parts of traces that the collector has taken.", func() int64 { _, n, _ := spans(); return n })
	of("gerbang_trace_spans_failed_total", "Parts of traces that the collector has not taken.", func() int64 { _, _, n := spans(); return n })
}

// Whose failures to sign in are counted.
const (
	people = "people"
	tokens = "tokens"
)

// CountFailures counts people's failures to sign in beside those who slow them.
func (m *Metrics) CountFailures(of *limit.Failures) signin.Failures {
	return countedFailures{of, m.signInFailures.WithLabelValues(people)}
}

type countedFailures struct {
	*limit.Failures
	count prometheus.Counter
}

// Record counts a failure.
func (f countedFailures) Record(now time.Time, addr netip.Addr) (blocked bool, retryAfter time.Duration) {
	f.count.Inc()
	return f.Failures.Record(now, addr)
}

// ObserveMoved counts a movement that has another state, and what it took out of a deposit.
func (m *Metrics) ObserveMoved(c movement.Change) {
	m.moved.WithLabelValues(string(c.Movement.Kind), c.Movement.Owner.Mode, string(c.To)).Inc()
	if p := c.Posting; p != nil && p.Legs.Deposit != 0 {
		of := m.spent
		if p.Legs.Deposit < 0 {
			of = m.unspent
		}
		of.WithLabelValues(p.Provider, c.Movement.Owner.Mode).Add(math.Abs(float64(p.Legs.Deposit)))
	}
}

// observeLedger keeps what a check of the ledger has found.
func (m *Metrics) observeLedger(now time.Time, full bool, report store.LedgerReport) {
	scope := "since_verified"
	if full {
		scope = "full"
	}
	m.ledgerChecked.WithLabelValues(scope).Set(float64(now.Unix()))
	m.ledgerOffences.Reset()
	for _, check := range report.Invariants {
		m.ledgerOffences.WithLabelValues(check.Invariant).Set(float64(len(check.Offences)))
	}
}

// quotaPercents are the shares of a quota from which on its account is counted as near it.
var quotaPercents = []int{80, 95, 100}

// WatchQuotas shows how many accounts are near a quota: one whose nearest quota is used up
// to a percentage, as the function counts them.
func (m *Metrics) WatchQuotas(near func(percent int) int) {
	for _, percent := range quotaPercents {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "gerbang_quota_accounts",
			Help:        "Accounts (a merchant in a mode) whose nearest quota is used up to this percentage or more, as far as this replica has counted it.",
			ConstLabels: prometheus.Labels{"percent": strconv.Itoa(percent)},
		}, func() float64 { return float64(near(percent)) }))
	}
}

// ObservePolicyRefused counts a policy version that this replica refused.
func (m *Metrics) ObservePolicyRefused(when string) { m.policyRefused.WithLabelValues(when).Inc() }

// pluginCollector asks the host at each scrape, so nothing has to be kept up to date.
type pluginCollector struct{ plugins Plugins }

var (
	pluginUp        = describe("up", "Whether the plugin's process runs.", "provider")
	pluginRestarts  = describe("restarts_total", "How often the plugin's process was started again after it had ended.", "provider")
	pluginStreams   = describe("streams", "Whether calls of the plugin share a stream. 0 where it does not offer one, or where one has ended: calls are slower then until it is restarted.", "provider")
	pluginInFlight  = describe("calls_in_flight", "Calls that the plugin works on.", "provider")
	pluginMax       = describe("calls_in_flight_limit", "Calls that the plugin may work on at once.", "provider")
	pluginBreaker   = describe("breaker_state", "The state of the provider's own circuit, or of the shared account's where that is worse: 0 closed, 1 half-open, 2 open.", "provider", "mode", "method")
	pluginOpened    = describe("breaker_opened_total", "How often circuits opened: the provider's own, or those of accounts.", "provider", "mode", "scope")
	pluginAccounts  = describe("breaker_accounts_open", "Accounts whose circuits are open; the exceptions list names them.", "provider", "mode")
	breakerState    = map[string]float64{"closed": 0, "half-open": 1, "open": 2}
	pluginDescribed = []*prometheus.Desc{pluginUp, pluginRestarts, pluginStreams, pluginInFlight, pluginMax, pluginBreaker, pluginOpened, pluginAccounts}
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gerbang_plugin_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (pluginCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range pluginDescribed {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c pluginCollector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, s := range c.plugins.Status() {
		gauge(pluginUp, oneIf(s.Running), s.Provider)
		gauge(pluginStreams, oneIf(s.Streams), s.Provider)
		to <- prometheus.MustNewConstMetric(pluginRestarts, prometheus.CounterValue, float64(s.Restarts), s.Provider)
		gauge(pluginInFlight, float64(s.InFlight), s.Provider)
		gauge(pluginMax, float64(s.MaxInFlight), s.Provider)
		for _, b := range s.Breakers {
			gauge(pluginBreaker, breakerState[b.Calls], s.Provider, b.Mode, "call")
			gauge(pluginBreaker, breakerState[b.Lookups], s.Provider, b.Mode, "lookup")
			gauge(pluginAccounts, float64(b.AccountsOpen), s.Provider, b.Mode)
			to <- prometheus.MustNewConstMetric(pluginOpened, prometheus.CounterValue, float64(b.Opened), s.Provider, b.Mode, "provider")
			to <- prometheus.MustNewConstMetric(pluginOpened, prometheus.CounterValue, float64(b.AccountsOpened), s.Provider, b.Mode, "account")
		}
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// clockCollector tells what the last comparison of clocks has come to, and nothing
// before the first.
type clockCollector struct{ clock Clock }

var clockSkew = prometheus.NewDesc("gerbang_clock_skew_seconds",
	"How far this machine's own clock is ahead of the database's, negative when it is behind. Nothing is judged by it.", nil, nil)

// Describe implements prometheus.Collector.
func (clockCollector) Describe(to chan<- *prometheus.Desc) { to <- clockSkew }

// Collect implements prometheus.Collector.
func (c clockCollector) Collect(to chan<- prometheus.Metric) {
	if ahead, known := c.clock.Skew(); known {
		to <- prometheus.MustNewConstMetric(clockSkew, prometheus.GaugeValue, ahead.Seconds())
	}
}
