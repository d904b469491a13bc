package merchants

import (
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// counted is how often requests were decided in one way.
type counted struct {
	adminapi.RequestCount

	Why why
}

// why tells what refused a request.
type why struct {
	Text   string // in a template's English
	Of     string // the name that the policy gives a rate or a quota, "" for none
	Reason string // in the policy's own words
	Limit  *adminapi.LimitUse
	Money  bool          // the limit is of rupiah
	Pace   time.Duration // of a rate: until there is room again
}

// whyOf tells what refused.
func whyOf(rule, reason string, limit *adminapi.LimitUse) why {
	w := why{Reason: reason, Limit: limit, Money: rule == decision.DayAmount.String() || rule == decision.DestinationAmount.String()}
	if limit != nil && limit.RatePerSecond > 0 {
		w.Pace = time.Duration(float64(time.Second) / limit.RatePerSecond).Round(time.Millisecond)
	}
	for text, of := range refusing {
		if name, ok := strings.CutPrefix(rule, of); ok {
			w.Text, w.Of = text, name
			return w
		}
	}
	switch {
	case rule == "":
	case refusals[rule]:
		w.Text = rule
	case reason == "":
		w.Text = "A rule of the policy. The answer's message says which."
	}
	return w
}

// refusing are what begins the rules that have names of the policy's.
var refusing = map[string]string{"rate": "rate ", "quota": "quota "}

// refusals are the rules that have names of the gateway's.
var refusals = map[string]bool{
	"the request is invalid":   true,
	decision.Unjudged.String(): true, decision.NoLimits.String(): true,
	decision.Suspended.String(): true, decision.Scope.String(): true, decision.NotNamed.String(): true,
	decision.DayAmount.String(): true, decision.DayCount.String(): true,
	decision.DestinationAmount.String(): true, decision.DestinationCount.String(): true,
}

// requests counts what was decided on this merchant's requests in the last hour: refusals
// with what refused them, and what was admitted by operation. Below stand single requests
// that were refused or failed.
func (c *Console) requests(r *room) error {
	found, err := adminapi.ListRequests.Call(r.Request.Context(), r.admin, adminapi.InMode{Merchant: r.id(), Mode: string(r.Mode)})
	if err != nil {
		return err
	}
	rows := make([]counted, len(found.Requests))
	for i, of := range found.Requests {
		rows[i] = counted{of, whyOf(of.Rule, of.Reason, of.Limit)}
	}
	after := r.Form("after")
	refused, err := adminapi.ListRefusals.Call(r.Request.Context(), r.admin, adminapi.RefusalFilter{Merchant: r.id(), Mode: string(r.Mode), After: after, Limit: pageOf})
	if err != nil {
		return err
	}
	next := ""
	if refused.Next != "" {
		next = r.Path("/requests") + query(map[string]string{"after": refused.Next})
	}
	return r.Show("requests.html", r.T("Requests"), map[string]any{"Room": r, "Rows": rows, "First": after == "", "Refused": refused, "Next": next})
}

// request shows what was decided on one of this merchant's requests.
func (c *Console) request(r *room) error {
	found, err := adminapi.FindOf.Call(r.Request.Context(), r.admin, adminapi.SearchOf{Merchant: r.id(), Mode: string(r.Mode), ID: r.Request.PathValue("decision")})
	if err != nil {
		return err
	}
	if found.Decision == nil {
		return tenants.ErrNotFound
	}
	d := found.Decision
	var reasons []string
	for _, place := range d.Places {
		if place.Reason != "" {
			reasons = append(reasons, place.Reason)
		}
	}
	return r.Show("request.html", r.T("Request"), map[string]any{
		"Room": r, "Decision": d, "Refused": d.Rule != "", "Why": whyOf(d.Rule, strings.Join(reasons, " "), d.Limit), "Movements": found.Movements,
	})
}

// decided leads to the movement that a request has made, or to what was decided on one
// that has made none: nowhere where there is neither.
func (c *Console) decided(r *room, id string) (string, error) {
	found, err := adminapi.FindOf.Call(r.Request.Context(), r.admin, adminapi.SearchOf{Merchant: r.id(), Mode: string(r.Mode), ID: id})
	switch {
	case err != nil:
		return "", err
	case len(found.Movements) > 0:
		return r.Path("/movements/" + found.Movements[0].ID), nil
	case found.Decision != nil:
		return r.Path("/requests/" + found.Decision.ID), nil
	}
	return "", nil
}
