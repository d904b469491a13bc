package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// panel is a graph: the unit is Grafana's, and each query is a legend and an expression.
type panel struct {
	title, unit string
	queries     [][2]string
}

// dashboards are what deploy/grafana shows, by file.
var dashboards = []struct {
	file, title string
	panels      []panel
}{
	{"merchants", "Gerbang: merchants", []panel{
		{"Requests by route", "reqps", [][2]string{{"{{route}}", `sum by (route) (rate(gerbang_requests_total[$__rate_interval]))`}}},
		{"Answers by code", "reqps", [][2]string{{"{{code}}", `sum by (code) (rate(gerbang_requests_total[$__rate_interval]))`}}},
		{"Share of errors", "percentunit", [][2]string{
			{"INTERNAL", `sum(rate(gerbang_requests_total{code="INTERNAL"}[$__rate_interval])) / sum(rate(gerbang_requests_total[$__rate_interval]))`},
			{"providers", `sum(rate(gerbang_requests_total{code=~"PROVIDER_UNAVAILABLE|PROVIDER_TIMEOUT"}[$__rate_interval])) / sum(rate(gerbang_requests_total[$__rate_interval]))`},
			{"limits", `sum(rate(gerbang_requests_total{code=~"RATE_LIMITED|QUOTA_EXCEEDED|POLICY_DENIED"}[$__rate_interval])) / sum(rate(gerbang_requests_total[$__rate_interval]))`},
		}},
		{"Latency, 99 of 100", "s", [][2]string{{"{{route}}", `histogram_quantile(0.99, sum by (le, route) (rate(gerbang_request_duration_seconds_bucket[$__rate_interval])))`}}},
		{"Latency, median", "s", [][2]string{{"{{route}}", `histogram_quantile(0.5, sum by (le, route) (rate(gerbang_request_duration_seconds_bucket[$__rate_interval])))`}}},
		{"Accounts near a quota", "short", [][2]string{{"{{percent}} % or more", `max by (percent) (gerbang_quota_accounts)`}}},
		{"Attempts to deliver callbacks", "ops", [][2]string{{"{{outcome}}", `sum by (outcome) (rate(gerbang_callbacks_total[$__rate_interval]))`}}},
		{"Receivers' latency, 99 of 100", "s", [][2]string{{"all", `histogram_quantile(0.99, sum by (le) (rate(gerbang_callback_duration_seconds_bucket[$__rate_interval])))`}}},
		{"Callbacks behind", "s", [][2]string{
			{"due for", `max(gerbang_queue_overdue_seconds{queue="callbacks"})`}, {"oldest undelivered, {{mode}}", `max by (mode) (gerbang_callback_oldest_seconds)`},
		}},
		{"Sign-ins that fail", "short", [][2]string{{"{{of}}", `sum by (of) (increase(gerbang_sign_in_failures_total[$__rate_interval]))`}}},
	}},
	{"money", "Gerbang: money", []panel{
		{"Live movements by kind and new state", "ops", [][2]string{{"{{kind}} {{state}}", `sum by (kind, state) (rate(gerbang_movements_total{mode="live"}[$__rate_interval]))`}}},
		{"Share of live movements that fail", "percentunit", [][2]string{
			{"{{kind}}", `sum by (kind) (rate(gerbang_movements_total{mode="live",state="failed"}[$__rate_interval])) / sum by (kind) (rate(gerbang_movements_total{mode="live",state=~"succeeded|failed|expired|not_submitted"}[$__rate_interval]))`},
		}},
		{"Oldest open movement", "s", [][2]string{{"{{kind}} {{mode}}", `max by (kind, mode) (gerbang_movement_oldest_seconds)`}}},
		{"Queues behind", "s", [][2]string{{"{{queue}}", `max by (queue) (gerbang_queue_overdue_seconds)`}}},
		{"Providers' live calls by outcome", "ops", [][2]string{{"{{provider}} {{outcome}}", `sum by (provider, outcome) (rate(gerbang_plugin_calls_total{mode="live",method="call"}[$__rate_interval]))`}}},
		{"Live lookups and notifications by outcome", "ops", [][2]string{
			{"{{provider}} {{method}} {{outcome}}", `sum by (provider, method, outcome) (rate(gerbang_plugin_calls_total{mode="live",method=~"lookup|notify"}[$__rate_interval]))`},
		}},
		{"Open exceptions", "short", [][2]string{{"{{reason}}", `max by (reason) (gerbang_exceptions_open)`}}},
		{"Returns, amounts that differ, lines without a sale", "short", [][2]string{
			{"{{reason}}", `max by (reason) (gerbang_exceptions_open{reason=~"returned|amount_differs|paid_again|paid_late|ambiguous|unmatched|statement"})`},
		}},
		{"Accounts that providers refuse (a deposit, credentials)", "short", [][2]string{{"exceptions", `max(gerbang_exceptions_open{reason="our_account"})`}}},
		{"Rupiah taken out of deposits", "currencyIDR", [][2]string{
			{"{{provider}} {{mode}}", `sum by (provider, mode) (increase(gerbang_deposit_spent_rupiah_total[$__rate_interval]))`},
			{"{{provider}} {{mode}}, came back", `sum by (provider, mode) (increase(gerbang_deposit_returned_rupiah_total[$__rate_interval]))`},
		}},
		{"What waits for a second operator", "short", [][2]string{{"{{sort}}", `max by (sort) (gerbang_waiting)`}}},
		{"Pauses", "short", [][2]string{{"{{what}}", `max by (what) (gerbang_pauses)`}}},
		{"Last check of the ledger", "short", [][2]string{
			{"{{invariant}}", `max by (invariant) (gerbang_ledger_check_offences)`}, {"hours ago", `(time() - max(gerbang_ledger_check_timestamp_seconds)) / 3600`},
		}},
		{"Notifications of what is none of ours", "short", [][2]string{{"{{provider}}", `sum by (provider) (increase(gerbang_foreign_notifications_total[$__rate_interval]))`}}},
	}},
	{"machine", "Gerbang: machine", []panel{
		{"Checks of readiness that fail", "short", [][2]string{{"{{instance}} {{check}}", `1 - gerbang_ready`}}},
		{"Replicas by version", "short", [][2]string{
			{"program {{version}} {{revision}}", `count by (version, revision) (gerbang_build_info)`}, {"policy {{version}}", `count by (version) (gerbang_policy_info)`}, {"live", `max(gerbang_replicas_live)`},
		}},
		{"Policy in force", "s", [][2]string{{"{{instance}}: read ago", `gerbang_policy_head_age_seconds`}, {"{{instance}}: behind", `gerbang_policy_behind`}}},
		{"Database connections in use", "percentunit", [][2]string{{"{{instance}} {{pool}}", `gerbang_database_connections_in_use / gerbang_database_connections_max`}}},
		{"Waiting for connections", "short", [][2]string{{"{{instance}} {{pool}}", `rate(gerbang_database_wait_seconds_total[$__rate_interval])`}}},
		{"Statements by outcome", "ops", [][2]string{{"{{outcome}}", `sum by (outcome) (rate(gerbang_database_statements_total[$__rate_interval]))`}}},
		{"Age of what is read from the database", "s", [][2]string{{"{{instance}} {{reading}}", `gerbang_reading_age_seconds`}}},
		{"Plugins that are down", "short", [][2]string{{"{{instance}} {{provider}}", `1 - gerbang_plugin_up`}}},
		{"Plugins' calls in flight", "percentunit", [][2]string{{"{{instance}} {{provider}}", `gerbang_plugin_calls_in_flight / gerbang_plugin_calls_in_flight_limit`}}},
		{"Plugins started again", "short", [][2]string{{"{{instance}} {{provider}}", `increase(gerbang_plugin_restarts_total[$__rate_interval])`}}},
		{"Plugins' latency, 99 of 100", "s", [][2]string{
			{"{{provider}} {{method}}", `histogram_quantile(0.99, sum by (le, provider, method) (rate(gerbang_plugin_call_duration_seconds_bucket[$__rate_interval])))`},
		}},
		{"Breakers: 1 half-open, 2 open", "short", [][2]string{
			{"{{provider}} {{mode}} {{method}}", `max by (provider, mode, method) (gerbang_plugin_breaker_state)`}, {"accounts of {{provider}} {{mode}}", `max by (provider, mode) (gerbang_plugin_breaker_accounts_open)`},
		}},
		{"Processor", "short", [][2]string{{"{{instance}}", `rate(process_cpu_seconds_total[$__rate_interval])`}}},
		{"Memory", "bytes", [][2]string{{"{{instance}}", `process_resident_memory_bytes`}, {"{{instance}}, Go's heap", `go_memstats_heap_alloc_bytes`}}},
		{"Goroutines", "short", [][2]string{{"{{instance}}", `go_goroutines`}}},
		{"Clocks", "s", [][2]string{{"{{instance}}", `gerbang_clock_skew_seconds`}}},
		{"Dropped from logs", "short", [][2]string{
			{"{{instance}} requests", `increase(gerbang_requests_dropped_total[$__rate_interval])`}, {"{{instance}} decisions", `increase(gerbang_decisions_dropped_total[$__rate_interval])`},
			{"{{instance}} inputs", `increase(gerbang_decision_inputs_dropped_total[$__rate_interval])`},
		}},
		{"Schema", "none", [][2]string{{"{{instance}}", `gerbang_schema_version`}}},
	}},
}

type object = map[string]any

// dashboard is one as Grafana reads it: graphs in two columns.
func dashboard(uid, title string, panels []panel) object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	const wide, high = 12, 8
	graphs := make([]object, len(panels))
	for i, p := range panels {
		targets := make([]object, len(p.queries))
		for j, q := range p.queries {
			targets[j] = object{"refId": string(rune('A' + j)), "legendFormat": q[0], "expr": q[1], "datasource": source}
		}
		graphs[i] = object{
			"id": i + 1, "title": p.title, "type": "timeseries", "datasource": source, "targets": targets,
			"gridPos":     object{"x": i % 2 * wide, "y": i / 2 * high, "w": wide, "h": high},
			"fieldConfig": object{"defaults": object{"unit": p.unit}, "overrides": []object{}},
		}
	}
	return object{
		"uid": "gerbang-" + uid, "title": title, "tags": []string{"gerbang"}, "schemaVersion": 39, "editable": true, "timezone": "browser",
		"refresh": "30s", "time": object{"from": "now-6h", "to": "now"}, "panels": graphs,
		"templating": object{"list": []object{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}},
	}
}

// TestDashboards holds the dashboards of deploy/grafana to the panels above, and those to the
// metrics that there are; -update writes them.
func TestDashboards(t *testing.T) {
	t.Parallel()
	all := metrics(t)
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboards\n    rules:\n")
	for _, d := range dashboards {
		for i, p := range d.panels {
			for j, q := range p.queries {
				wantExpression(t, d.file+": "+p.title, q[1], all)
				fmt.Fprintf(&rules, "      - record: %s:%d:%d\n        expr: '%s'\n", d.file, i, j, strings.ReplaceAll(q[1], "$__rate_interval", "5m"))
			}
		}
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(dashboard(d.file, d.title, d.panels)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Clean(deploy + "grafana/" + d.file + ".json")
		if *updateMetrics {
			if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is out of date: go test ./gateway/console -run Dashboards -update (%v)", file, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dashboards.yml"), []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, dir, "check", "rules", "dashboards.yml")
}
