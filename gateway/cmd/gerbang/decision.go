package main

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// decisionRows is a decision for people, nothing for none.
func decisionRows(d *adminapi.Decision) [][]string {
	if d == nil {
		return nil
	}
	rows := [][]string{
		{"decision", d.ID, d.Verdict}, {"at", timeText(&d.At)}, {"merchant", strings.Join(d.MerchantIDs, ", "), d.Mode},
		{"operation", dash(strings.Join(d.Operations, ", "))}, {"rule", dash(d.Rule)},
	}
	if d.ErrorCode != "" {
		rows = append(rows, []string{"answered", d.ErrorCode, d.RequestID})
	}
	for _, p := range d.Places {
		rows = append(rows, []string{"", p.File + ":" + strconv.Itoa(p.Line), strings.TrimSpace(p.Rule + " " + p.Reason)})
	}
	if l := d.Limit; l != nil {
		limit := strconv.FormatInt(l.Limit, 10)
		if l.RatePerSecond > 0 {
			limit = strconv.FormatFloat(l.RatePerSecond, 'g', -1, 64) + " a second, " + limit + " at once, per " + cmp.Or(l.Per, "merchant")
		}
		used := "-"
		if l.Used != nil {
			used = strconv.FormatInt(*l.Used, 10)
		}
		rows = append(rows, []string{"limit", limit}, []string{"used", used}, []string{"resets", timeText(l.ResetsAt)})
	}
	if d.Input != nil {
		input, _ := json.Marshal(d.Input) // of plain values
		rows = append(rows, []string{"input", string(input)})
	}
	for _, line := range d.Trace {
		rows = append(rows, []string{line.Op, line.File + ":" + strconv.Itoa(line.Line), line.Text})
	}
	rows = append(rows, []string{"policy_version", d.PolicyVersion}, []string{"replica", d.Replica})
	for _, note := range d.Notes {
		rows = append(rows, []string{"note", note})
	}
	return rows
}
