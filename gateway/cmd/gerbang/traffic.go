package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type trafficCommand struct{}

// Run prints what was decided by operation, what was refused, and how the replica answered.
func (*trafficCommand) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	t, err := adminapi.ShowTraffic.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return err
	}
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	rows := [][]string{{"OPERATION, ALL REPLICAS", "ADMITTED", "SLOWED", "OVER QUOTA", "DENIED", "UNJUDGED"}}
	for _, o := range t.Operations {
		rows = append(rows, []string{o.Operation, n(o.Admitted), n(o.Slowed), n(o.OverQuota), n(o.Denied), n(o.Unjudged)})
	}
	rows = append(rows, table(t.Refusals)...)
	rows = append(rows, []string{"ROUTE OR PROVIDER, THIS REPLICA", "CALLS", "P50", "P99", "ANSWERS"})
	for _, r := range t.Routes {
		rows = append(rows, []string{r.Route, n(r.Requests), fmt.Sprint(r.P50MS, " ms"), fmt.Sprint(r.P99MS, " ms"), fmt.Sprint(r.Codes)})
	}
	for _, r := range t.Providers {
		rows = append(rows, []string{r.Provider + " " + r.Method, n(r.Calls), fmt.Sprint(r.P50MS, " ms"), fmt.Sprint(r.P99MS, " ms"), fmt.Sprint(r.Outcomes)})
	}
	return p.show(t, rows...)
}
