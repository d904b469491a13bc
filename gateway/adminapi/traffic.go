package adminapi

import (
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
)

// Traffic is what became of merchants' requests in the last minutes. What was decided is of
// all replicas; how long it took is of the one that was asked.
type Traffic struct {
	From         time.Time        `json:"from"` // of the first slice
	SliceSeconds int              `json:"slice_seconds"`
	Slices       []decision.Slice `json:"slices"`
	Operations   []OperationCount `json:"operations"` // the busiest first
	Refusals     []RefusalCount   `json:"refusals"`   // the most frequent first, at most 50

	ReplicaID     string            `json:"replica_id"`
	MeasuredSince time.Time         `json:"measured_since"` // on that replica
	Routes        []RouteTraffic    `json:"routes"`
	Providers     []ProviderTraffic `json:"providers"`
}

// OperationCount is how often requests for an operation were decided in each way.
type OperationCount struct {
	Operation string `json:"operation"`
	decision.Slice
}

// RefusalCount is how often a merchant was refused something by a rule.
type RefusalCount struct {
	Operation  string `json:"operation" column:"REFUSED"`
	MerchantID string `json:"merchant_id" column:"MERCHANT"`
	Mode       string `json:"mode" column:"MODE"`
	Verdict    string `json:"verdict" column:"VERDICT"` // denied, slowed, over_quota or unjudged
	Rule       string `json:"rule" column:"RULE"`
	N          int64  `json:"n" column:"TIMES"`
}

// RouteTraffic is how a replica answered a route. Latencies are upper bounds of histograms'
// buckets.
type RouteTraffic struct {
	Route    string           `json:"route"`
	Requests int64            `json:"requests"`
	Codes    map[string]int64 `json:"codes"` // OK, or the error's
	P50MS    float64          `json:"p50_ms"`
	P99MS    float64          `json:"p99_ms"`
}

// ProviderTraffic is how a provider answered a replica.
type ProviderTraffic struct {
	Provider string           `json:"provider"`
	Method   string           `json:"method"` // call, lookup and so on
	Calls    int64            `json:"calls"`
	Outcomes map[string]int64 `json:"outcomes"`
	P50MS    float64          `json:"p50_ms"`
	P99MS    float64          `json:"p99_ms"`
}
