package console

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	policyInfo = prometheus.NewDesc("gerbang_policy_info", "1 for the policy version that this replica runs.", []string{"version"}, nil)
	policyLag  = prometheus.NewDesc("gerbang_policy_behind", "1 where this replica does not run the policy version in force, else 0.", nil, nil)
	policyAge  = prometheus.NewDesc("gerbang_policy_head_age_seconds", "How long ago this replica read which policy version is in force. Beyond 30 s it takes no money.", nil, nil)
	replicasUp = prometheus.NewDesc("gerbang_replicas_live", "Replicas with a heartbeat within 30 s, as this replica has read it; up to 5 s old.", nil, nil)
)

// policyCollector tells which version this replica runs, and how many replicas there are.
type policyCollector struct {
	following Following
	version   func() string
	now       func() time.Time
}

// Describe implements prometheus.Collector.
func (*policyCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{policyInfo, policyLag, policyAge, replicasUp} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *policyCollector) Collect(to chan<- prometheus.Metric) {
	behind := 0.0
	if c.following.Lag() != nil {
		behind = 1
	}
	for desc, value := range map[*prometheus.Desc]float64{
		policyLag: behind, policyAge: c.following.Age(c.now()).Seconds(), replicasUp: float64(c.following.Members()),
	} {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	to <- prometheus.MustNewConstMetric(policyInfo, prometheus.GaugeValue, 1, c.version())
}
