package console

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-f006e74d/gerbang/gateway/audit"
)

var updateMetrics = flag.Bool("update", false, "write the table of metrics into deploy/README.md")

// deploy is where the alerts, dashboards and runbooks are.
const deploy = "../../deploy/"

// described is a metric as the program declares it.
type described struct {
	name, help string
	labels     []string
}

var (
	declared  = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: (".*"), unit: ".*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	constant  = regexp.MustCompile(`(\w+)="`)
	ofBuckets = regexp.MustCompile(`_(bucket|count|sum)$`)
)

// metrics are all that the program has, by name: those of Go's runtime and the process too.
func metrics(t *testing.T) map[string]described {
	t.Helper()
	m := NewMetrics()
	none := func() (int64, int64) { return 0, 0 }
	m.WatchDecisions(none)
	m.WatchRequests(func() int64 { return 0 })
	m.WatchTraces(func() (made, sent, failed int64) { return 0, 0, 0 })
	m.WatchQuotas(func(int) int { return 0 })
	m.WatchAudit(func() audit.Figures { return audit.Figures{} })
	if err := (&Console{deps: Dependencies{Metrics: m, Now: time.Now}}).watch(); err != nil {
		t.Fatal(err)
	}
	to := make(chan *prometheus.Desc)
	go func() {
		m.registry.Describe(to)
		close(to)
	}()
	all := map[string]described{}
	for desc := range to {
		parts := declared.FindStringSubmatch(desc.String())
		if parts == nil {
			t.Fatalf("%s can't be read", desc)
		}
		help, err := strconv.Unquote(parts[2])
		if err != nil {
			t.Fatal(err)
		}
		d := described{name: parts[1], help: help}
		for _, label := range constant.FindAllStringSubmatch(parts[3], -1) {
			d.labels = append(d.labels, label[1])
		}
		if parts[4] != "" {
			d.labels = append(d.labels, strings.Split(parts[4], ",")...)
		}
		if slices.Contains(d.labels, "merchant") || slices.Contains(d.labels, "merchant_id") {
			t.Errorf("%s names merchants", d.name)
		}
		all[d.name] = d
	}
	return all
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(deploy + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	metricName = regexp.MustCompile(`\b((?:gerbang|go|process)_[a-z_]*[a-z])(?:\{([^{}]*)\})?`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping   = regexp.MustCompile(`\b(?:by|on|without)\s*\(([^)]*)\)`)
)

// wantMetrics wants every metric of a text to exist, with every label that is asked of it. It
// returns the labels that they have.
func wantMetrics(t *testing.T, where, text string, all map[string]described) (labels []string) {
	t.Helper()
	for _, found := range metricName.FindAllStringSubmatch(text, -1) {
		metric, is := all[found[1]]
		if !is {
			metric, is = all[ofBuckets.ReplaceAllString(found[1], "")]
			is = is && strings.HasSuffix(metric.name, "_duration_seconds")
		}
		if !is {
			t.Errorf("%s: there is no metric %s", where, found[1])
			continue
		}
		of := append([]string{"instance", "job", "le"}, metric.labels...)
		labels = append(labels, of...)
		for _, label := range matcher.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(of, label[1]) {
				t.Errorf("%s: %s has no label %s", where, metric.name, label[1])
			}
		}
	}
	return labels
}

// wantExpression wants the same of an expression, and that it groups by labels of its metrics.
func wantExpression(t *testing.T, where, expression string, all map[string]described) {
	t.Helper()
	labels := wantMetrics(t, where, expression, all)
	for _, list := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(list[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !slices.Contains(labels, label) {
				t.Errorf("%s: no metric there has the label %s", where, label)
			}
		}
	}
}

// alert is one of alerts.yml.
type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alert }
	}
	decoded, err := yaml.Parser().Unmarshal([]byte(content(t, "prometheus/alerts.yml")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(decoded)
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 30 {
		t.Fatalf("there are %d alerts", len(all))
	}
	return all
}

// TestAlerts holds each alert to the metrics that there are, to a test and to a runbook.
func TestAlerts(t *testing.T) {
	t.Parallel()
	all, tests := metrics(t), content(t, "prometheus/alerts_test.yml")+content(t, "prometheus/alerts_days_test.yml")
	well, _, _ := strings.Cut(tests, "\n  - name: no replica")
	names := map[string]bool{}
	for _, a := range alerts(t) {
		names[a.Alert] = true
		wantExpression(t, a.Alert, a.Expr, all)
		for _, found := range metricName.FindAllStringSubmatch(a.Expr, -1) {
			if !strings.Contains(well, found[1]+"{") {
				t.Errorf("%s: the first of alerts_test.yml has no %s, so it does not show that nothing fires where all is well", a.Alert, found[1])
			}
		}
		if !strings.Contains(tests, `alertname="`+a.Alert+`"}', value`) {
			t.Errorf("%s: no test sees it fire", a.Alert)
		}
		if a.Labels["severity"] != "page" && a.Labels["severity"] != "ticket" || a.Annotations["summary"] == "" {
			t.Errorf("%s is a %q: %q", a.Alert, a.Labels["severity"], a.Annotations["summary"])
		}
		if want := "deploy/RUNBOOKS.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: its runbook is %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
	}
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(content(t, "RUNBOOKS.md"), -1) {
		sections[heading[1]] = true
	}
	if !maps.Equal(names, sections) {
		t.Errorf("the alerts are %q, the runbooks' sections %q", slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(sections)))
	}
	wantMetrics(t, "alerts_test.yml, alerts_days_test.yml", tests, all)
	wantMetrics(t, "RUNBOOKS.md", content(t, "RUNBOOKS.md"), all)
	wantMetrics(t, "README.md", regexp.MustCompile(`gerbang_(merchants|operators|restored)\b`).ReplaceAllString(content(t, "README.md"), ""), all)
}

// TestLinks follows each link of the runbooks to a heading or file.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	symbols := regexp.MustCompile(`[^a-z0-9 _-]`)
	for _, found := range link.FindAllStringSubmatch(content(t, "RUNBOOKS.md"), -1) {
		file := cmp.Or(found[1], "RUNBOOKS.md")
		text := content(t, file)
		anchors := []string{""}
		for _, heading := range regexp.MustCompile(`(?m)^##+ (.*)$`).FindAllStringSubmatch(text, -1) {
			anchors = append(anchors, strings.ReplaceAll(symbols.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
		}
		if !slices.Contains(anchors, found[2]) {
			t.Errorf("%s leads nowhere", found[0])
		}
	}
}

// promtool is Prometheus' own judge. It is skipped where there is none.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not installed (it is in Debian's package prometheus)")
	}
	command := exec.CommandContext(t.Context(), "promtool", args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestAlertsFire has Prometheus play the tests of the alerts.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	promtool(t, deploy+"prometheus", "check", "rules", "alerts.yml")
	promtool(t, deploy+"prometheus", "test", "rules", "alerts_test.yml", "alerts_days_test.yml")
}

// TestTableOfMetrics holds the table of deploy/README.md to what there is; -update writes it.
func TestTableOfMetrics(t *testing.T) {
	t.Parallel()
	all := metrics(t)
	var table strings.Builder
	table.WriteString("| metric | labels | |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if d := all[name]; strings.HasPrefix(name, "gerbang_") {
			labels := strings.Join(d.labels, "`, `")
			if labels != "" {
				labels = "`" + labels + "`"
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, labels, d.help)
		}
	}
	const begin, end = "<!-- The table of metrics: go test ./gateway/console -run TableOfMetrics -update -->\n", "<!-- The end of the table of metrics. -->"
	text := content(t, "README.md")
	before, rest, begun := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatal("deploy/README.md has no place for the table")
	}
	want := before + begin + "\n" + table.String() + "\n" + end + after
	if *updateMetrics {
		if err := os.WriteFile(filepath.Clean(deploy+"README.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != want {
		t.Error("the table of metrics is out of date: go test ./gateway/console -run TableOfMetrics -update")
	}
}
