package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// Calls is a page of a merchant's log of requests, at Base.
type Calls struct {
	Base   string
	Filter adminapi.RequestLogFilter
	Modes  []string // that the visitor may choose among
	Log    adminapi.RequestLog
	Next   string
}

// Calls reads the page that the visitor asks for.
func (v *Visit) Calls(admin adminapi.Caller, base string, filter adminapi.RequestLogFilter, modes ...string) (Calls, error) {
	filter.State, filter.Operation, filter.Code, filter.ID = v.Form("state"), v.Form("operation"), v.Form("code"), strings.TrimSpace(v.Form("id"))
	filter.After = v.Form("after")
	log, err := adminapi.ListRequestLog.Call(v.Request.Context(), admin, filter)
	c := Calls{Base: base, Filter: filter, Modes: modes, Log: log}
	if log.Next != "" {
		c.Next = base + c.query(map[string]string{"state": filter.State, "operation": filter.Operation, "code": filter.Code, "id": filter.ID, "after": log.Next})
	}
	return c, err
}

// query is the query of a URL of the log.
func (c Calls) query(values map[string]string) string {
	if len(c.Modes) > 0 {
		values["mode"] = c.Filter.Mode
	}
	return Query(values)
}

// To is the page of a call.
func (c Calls) To(id string) string {
	return c.Base + "/" + url.PathEscape(id) + c.query(map[string]string{})
}

// Moment writes a time as programs do, to the millisecond and with its zone.
func Moment(at time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	return at.In(zone).Format("2006-01-02T15:04:05.000Z07:00")
}

// Support is what is told about a call to whom can help, without bodies.
func Support(merchant string, c adminapi.LoggedRequest, zone *time.Location) string {
	var out strings.Builder
	key := c.KeyID
	const shown = 4
	if len(key) > shown {
		key = "…" + key[len(key)-shown:]
	}
	for _, row := range [][2]string{
		{"time", Moment(c.At, zone)}, {"merchant_id", merchant + ", " + c.Mode}, {"request_id", c.RequestID}, {"decision_id", c.DecisionID},
		{"call", c.Method + " " + c.Operation}, {"answer", fmt.Sprintf("%d %s", c.Status, c.Code)}, {"message", c.Message}, {"sent", c.Sent}, {"retry", c.Retry},
		{"replayed", map[bool]string{true: "yes", false: "no"}[c.Replayed]}, {"reference", c.Reference}, {"took", fmt.Sprintf("%.3f ms", c.DurationMS)},
		{"key", c.KeyName + " (" + key + ")"}, {"from", c.Address}, {"user_agent", c.Agent},
	} {
		if row[1] != "" {
			fmt.Fprintf(&out, "%-12s %s\n", row[0], row[1])
		}
	}
	return out.String()
}

// Pretty is JSON for people, "" for none.
func Pretty(text json.RawMessage) string {
	var out bytes.Buffer
	if len(text) == 0 || json.Indent(&out, text, "", "  ") != nil {
		return ""
	}
	return out.String()
}
