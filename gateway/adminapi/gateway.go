package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
)

// Plugin is the condition of one plugin's process.
type Plugin struct {
	Provider       string               `json:"provider"`
	Version        string               `json:"version"`
	SHA256         string               `json:"sha256"`
	ManifestDigest string               `json:"manifest_digest"`
	Owner          string               `json:"owner"` // whose account is used: merchant or platform
	Running        bool                 `json:"running"`
	PID            int                  `json:"pid,omitempty"`
	Since          *time.Time           `json:"since,omitempty"`
	Restarts       int                  `json:"restarts"`
	LastFault      string               `json:"last_fault,omitempty"`
	InFlight       int                  `json:"in_flight"`
	MaxInFlight    int                  `json:"max_in_flight"`
	Breakers       []host.BreakerStatus `json:"breakers"`
	Confined       string               `json:"confined"` // yes, or what the machine leaves open
	Ports          []string             `json:"ports"`    // TCP ports that it may connect to
	MemoryMB       int64                `json:"memory_mb,omitempty"`
	Latency        Latency              `json:"latency"`
	LastErrors     []PastFault          `json:"last_errors"` // the newest first
	// WaitsForRoute says that it takes nothing beside the other providers of its path until
	// a policy's route names it.
	WaitsForRoute bool `json:"waits_for_route,omitempty"`

	// Approval is what is in force, nil where the configuration alone names the plugin.
	Approval *PluginApproval `json:"approval,omitempty"`
	// Replicas are those that run, with what each runs and has.
	Replicas []PluginReplica `json:"replicas"`
}

// Latency is how long the last calls of a plugin took, on this replica.
type Latency struct {
	Calls    int   `json:"calls"` // that were measured
	MedianMS int64 `json:"median_ms"`
	P99MS    int64 `json:"p99_ms"`
}

// PastFault is why a process ended or could not be started, or why a call got no answer.
type PastFault struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
}

// Readiness is whether the gateway can serve, with each check.
type Readiness struct {
	Ready        bool    `json:"ready"`
	Checks       []Check `json:"checks"`
	Replica      string  `json:"replica_id"`
	Policy       string  `json:"policy_version"` // that this replica runs
	LiveReplicas int     `json:"live_replicas"`  // as this replica has last read
}

// Check is one condition of readiness.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// Ready returns nil when the gateway can serve, and else an error that names the
// failing checks.
func (c *Client) Ready(ctx context.Context) error {
	status, body, err := c.send(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return err
	}
	var r Readiness
	if err := json.Unmarshal(body, &r); err != nil || len(r.Checks) == 0 {
		return c.refused(status, body)
	}
	if status == http.StatusOK && r.Ready {
		return nil
	}
	var failing []string
	for _, check := range r.Checks {
		if !check.OK {
			failing = append(failing, check.Name+" "+check.Detail)
		}
	}
	return fmt.Errorf("the gateway is not ready: %s", strings.Join(failing, ", "))
}
