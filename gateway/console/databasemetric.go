package console

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var (
	exceptionsOpen = prometheus.NewDesc("gerbang_exceptions_open", "Open exceptions by reason, over all replicas.", []string{"reason"}, nil)
	queueOverdue   = prometheus.NewDesc("gerbang_queue_overdue_seconds",
		"For how long the first of a queue has been due, over all replicas: polls, callbacks, mails or statements. 0 where nothing is.", []string{"queue"}, nil)
	oldestMovement = prometheus.NewDesc("gerbang_movement_oldest_seconds",
		"The age of the oldest movement that has not ended, over all replicas. A payment or collection waits for its payer.", []string{"kind", "mode"}, nil)
	oldestCallback = prometheus.NewDesc("gerbang_callback_oldest_seconds",
		"The age of the oldest callback that is undelivered and still tried, over all replicas.", []string{"mode"}, nil)
	oldestMail  = prometheus.NewDesc("gerbang_mail_oldest_seconds", "The age of the oldest mail that waits to be sent, over all replicas; 0 where none does.", nil, nil)
	waitingFor  = prometheus.NewDesc("gerbang_waiting", "What waits for a person beside exceptions, by sort, over all replicas; 1000 stands for more.", []string{"sort"}, nil)
	pausesSet   = prometheus.NewDesc("gerbang_pauses", "What operators have paused, by sort, over all replicas.", []string{"what"}, nil)
	readFromAll = []*prometheus.Desc{exceptionsOpen, queueOverdue, oldestMovement, oldestCallback, oldestMail, waitingFor, pausesSet}
)

func gauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// readings are those of the console.
func (c *Console) readings() *readings {
	return newReadings([]reading{
		{"exceptions", c.readExceptions()}, {"backlog", c.readBacklog}, {"oldest", c.readOldest}, {"waiting", c.readWaiting}, {"pauses", c.readPauses},
	}, readFromAll, c.deps.Now, c.log)
}

// readExceptions counts the open ones. A reason that was seen stays there with 0.
func (c *Console) readExceptions() func(context.Context, time.Time) ([]prometheus.Metric, error) {
	seen := map[string]bool{}
	return func(ctx context.Context, _ time.Time) (out []prometheus.Metric, err error) {
		open, err := c.deps.Exceptions.CountExceptions(ctx)
		if err != nil {
			return nil, err
		}
		for reason := range open {
			seen[reason] = true
		}
		for reason := range seen {
			out = append(out, gauge(exceptionsOpen, float64(open[reason]), reason))
		}
		return out, nil
	}
}

func (c *Console) readBacklog(ctx context.Context, now time.Time) (out []prometheus.Metric, err error) {
	b, err := c.deps.Database.Backlog(ctx, now)
	if err != nil {
		return nil, err
	}
	for queue, overdue := range b.Overdue {
		out = append(out, gauge(queueOverdue, overdue.Seconds(), queue))
	}
	return append(out, gauge(oldestMail, b.Mail.Seconds())), nil
}

// readOldest is a reading of its own: where it takes too long, what is overdue is told.
func (c *Console) readOldest(ctx context.Context, now time.Time) (out []prometheus.Metric, err error) {
	o, err := c.deps.Database.Oldest(ctx, now)
	if err != nil {
		return nil, err
	}
	for open, age := range o.Movements {
		out = append(out, gauge(oldestMovement, age.Seconds(), open.Kind, open.Mode))
	}
	for mode, age := range o.Callbacks {
		out = append(out, gauge(oldestCallback, age.Seconds(), mode))
	}
	return out, nil
}

// readWaiting counts what the list of what waits shows, but for exceptions.
func (c *Console) readWaiting(ctx context.Context, _ time.Time) ([]prometheus.Metric, error) {
	overrides, err := c.deps.Movements.WaitingOverrides(ctx, adminapi.MostListed)
	if err != nil {
		return nil, err
	}
	claims, err := c.deps.Statements.WaitingClaims(ctx, adminapi.MostListed)
	if err != nil {
		return nil, err
	}
	refunds := 0
	for _, claim := range claims {
		if claim.Refund() != "" {
			refunds++
		}
	}
	adjustments, err := c.deps.Ledger.Adjustments(ctx, store.Waiting, adminapi.MostListed)
	if err != nil {
		return nil, err
	}
	activations, err := c.deps.Policies.WaitingActivations(ctx, adminapi.MostListed)
	if err != nil {
		return nil, err
	}
	listed, err := c.deps.Approvals.List(ctx)
	if err != nil {
		return nil, err
	}
	approvals := 0
	for _, approved := range listed {
		if c.deps.Approvals.Waits(approved) {
			approvals++
		}
	}
	var out []prometheus.Metric
	for sort, n := range map[string]int{
		"override": len(overrides), "assignment": len(claims) - refunds, "refund": refunds, "adjustment": len(adjustments), "activation": len(activations), "approval": approvals,
	} {
		out = append(out, gauge(waitingFor, float64(n), sort))
	}
	return out, nil
}

func (c *Console) readPauses(ctx context.Context, _ time.Time) (out []prometheus.Metric, err error) {
	pauses, err := c.deps.Pauses.Pauses(ctx, adminapi.MostListed)
	if err != nil {
		return nil, err
	}
	counts := map[tenants.Pausable]int{tenants.PauseConnection: 0, tenants.PauseProvider: 0, tenants.PauseTransfers: 0}
	for _, p := range pauses {
		counts[p.What]++
	}
	for what, n := range counts {
		out = append(out, gauge(pausesSet, float64(n), string(what)))
	}
	return out, nil
}

var (
	poolInUse       = poolDesc("connections_in_use", "Connections that are working.")
	poolIdle        = poolDesc("connections_idle", "Connections that are open and idle.")
	poolMax         = poolDesc("connections_max", "Connections that there may be.")
	poolWaits       = poolDesc("waits_total", "How often a connection was waited for, because none was idle.")
	poolWaited      = poolDesc("wait_seconds_total", "How long was waited for connections.")
	statementsTotal = prometheus.NewDesc("gerbang_database_statements_total",
		"Statements by what they came to: ok, conflict and locked (both tried again), refused (by a constraint), cancelled, timeout, unavailable, other. A connection that could not be had counts, too.",
		[]string{"outcome"}, nil)
	schemaVersion = prometheus.NewDesc("gerbang_schema_version", "The schema of the database, as this replica read it last.", nil, nil)
	ready         = prometheus.NewDesc("gerbang_ready", "1 where a check of /readyz succeeds on this replica, which is ready where all do.", []string{"check"}, nil)
	fromMemory    = []*prometheus.Desc{poolInUse, poolIdle, poolMax, poolWaits, poolWaited, statementsTotal, schemaVersion, ready}
)

func poolDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("gerbang_database_"+name, help, []string{"pool"}, nil)
}

// stateCollector tells what this replica knows of its database, and whether it is ready. It
// asks no database.
type stateCollector struct{ *Console }

// Describe implements prometheus.Collector.
func (stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range fromMemory {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(to chan<- prometheus.Metric) {
	for _, p := range c.deps.Database.Pools() {
		to <- gauge(poolInUse, float64(p.InUse), p.Name)
		to <- gauge(poolIdle, float64(p.Idle), p.Name)
		to <- gauge(poolMax, float64(p.Max), p.Name)
		to <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(p.Waits), p.Name)
		to <- prometheus.MustNewConstMetric(poolWaited, prometheus.CounterValue, p.Waited.Seconds(), p.Name)
	}
	for outcome, n := range c.deps.Database.Outcomes() {
		to <- prometheus.MustNewConstMetric(statementsTotal, prometheus.CounterValue, float64(n), outcome)
	}
	if version := c.deps.Database.SchemaVersion(); version != 0 {
		to <- gauge(schemaVersion, float64(version))
	}
	for _, check := range c.checksBeside(c.deps.Database.Problem()) {
		to <- gauge(ready, oneIf(check.OK), check.Name)
	}
}
