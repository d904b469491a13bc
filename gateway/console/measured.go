package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// mostMeasured is how many measurements are kept: five minutes, at one each ten seconds.
const mostMeasured = 31

// measurement is what the counters stood at. It is as large as the metrics, whose labels are
// routes, codes and providers.
type measurement struct {
	at                    time.Time
	requests, calls       map[labelled]float64
	durations, callsTaken map[labelled]histogram
}

// labelled is a metric's labels: a route and a code, or a provider, a method and an outcome.
type labelled [3]string

// histogram is how many were at most as long as each of buckets, and how many there were.
type histogram struct {
	below []uint64
	all   uint64
}

// Measure keeps what the counters stand at. It reads them as a scrape does: whoever counts
// does not wait for it.
func (m *Metrics) Measure(now time.Time) {
	one := m.measure(now)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.measured = append(m.measured, one)
	if len(m.measured) > mostMeasured {
		m.measured = slices.Delete(m.measured, 0, 1)
	}
}

func (m *Metrics) measure(now time.Time) measurement {
	one := measurement{now, map[labelled]float64{}, map[labelled]float64{}, map[labelled]histogram{}, map[labelled]histogram{}}
	counts := func(of prometheus.Collector, to map[labelled]float64, names ...string) {
		for _, metric := range collected(of) {
			to[labelsOf(metric, names)] += metric.GetCounter().GetValue()
		}
	}
	counts(m.requests, one.requests, "route", "code")
	counts(m.calls, one.calls, "provider", "method", "outcome")
	lasted := func(of prometheus.Collector, to map[labelled]histogram, names ...string) {
		for _, metric := range collected(of) {
			h := histogram{all: metric.GetHistogram().GetSampleCount()}
			for _, bucket := range metric.GetHistogram().GetBucket() {
				h.below = append(h.below, bucket.GetCumulativeCount())
			}
			to[labelsOf(metric, names)] = h
		}
	}
	lasted(m.durations, one.durations, "route")
	lasted(m.callDurations, one.callsTaken, "provider", "method")
	return one
}

// collected are a collector's metrics.
func collected(of prometheus.Collector) []*dto.Metric {
	to := make(chan prometheus.Metric)
	go func() {
		of.Collect(to)
		close(to)
	}()
	var all []prometheus.Metric // first all of them: new labels wait for this loop
	for metric := range to {
		all = append(all, metric)
	}
	out := make([]*dto.Metric, 0, len(all))
	for _, metric := range all {
		var written dto.Metric
		if metric.Write(&written) == nil {
			out = append(out, &written)
		}
	}
	return out
}

func labelsOf(metric *dto.Metric, names []string) (l labelled) {
	for _, pair := range metric.GetLabel() {
		if i := slices.Index(names, pair.GetName()); i >= 0 {
			l[i] = pair.GetValue()
		}
	}
	return l
}

// answered is what merchants were answered, and how providers answered, since the oldest
// measurement that is kept.
func (m *Metrics) answered(now time.Time) (routes []adminapi.RouteTraffic, providers []adminapi.ProviderTraffic, since time.Time) {
	m.mu.Lock()
	if len(m.measured) == 0 {
		m.mu.Unlock()
		return nil, nil, now
	}
	was := m.measured[0]
	m.mu.Unlock()
	is := m.measure(now)

	byRoute := map[string]*adminapi.RouteTraffic{}
	for key, count := range is.requests {
		n := int64(count - was.requests[key])
		if n <= 0 {
			continue
		}
		route := key[0]
		if byRoute[route] == nil {
			r := &adminapi.RouteTraffic{Route: route, Codes: map[string]int64{}}
			r.P50MS, r.P99MS = quantiles(was.durations[labelled{route}], is.durations[labelled{route}])
			byRoute[route] = r
		}
		byRoute[route].Requests += n
		byRoute[route].Codes[key[1]] += n
	}
	byProvider := map[labelled]*adminapi.ProviderTraffic{}
	for key, count := range is.calls {
		n := int64(count - was.calls[key])
		if n <= 0 {
			continue
		}
		of := labelled{key[0], key[1]}
		if byProvider[of] == nil {
			p := &adminapi.ProviderTraffic{Provider: key[0], Method: key[1], Outcomes: map[string]int64{}}
			p.P50MS, p.P99MS = quantiles(was.callsTaken[of], is.callsTaken[of])
			byProvider[of] = p
		}
		byProvider[of].Calls += n
		byProvider[of].Outcomes[key[2]] += n
	}
	for _, r := range slices.SortedFunc(maps.Values(byRoute), func(a, b *adminapi.RouteTraffic) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Route, b.Route))
	}) {
		routes = append(routes, *r)
	}
	for _, p := range slices.SortedFunc(maps.Values(byProvider), func(a, b *adminapi.ProviderTraffic) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Method, b.Method))
	}) {
		providers = append(providers, *p)
	}
	return routes, providers, was.at
}

// quantiles are the median and the 99th percentile, in milliseconds, of what came between
// two states of a histogram: the bounds of the buckets that they fall into.
func quantiles(was, is histogram) (p50, p99 float64) {
	all := is.all - was.all
	at := func(share float64) float64 {
		for i, below := range is.below {
			if i < len(was.below) {
				below -= was.below[i]
			}
			if float64(below) >= share*float64(all) {
				return 1000 * buckets[i]
			}
		}
		return 1000 * buckets[len(buckets)-1] // or longer
	}
	if all == 0 {
		return 0, 0
	}
	return at(.5), at(.99)
}
