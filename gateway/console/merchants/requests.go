package merchants

import (
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
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

// requests lists this merchant's calls. Above them stands what was refused in the last hour, and by what.
func (c *Console) requests(r *room) error {
	calls, err := r.Calls(r.admin, r.Path("/requests"), adminapi.RequestLogFilter{Merchant: r.id(), Mode: string(r.Mode), Limit: pageOf})
	if err != nil {
		return err
	}
	var rows []counted
	if calls.Filter == (adminapi.RequestLogFilter{Merchant: r.id(), Mode: string(r.Mode), Limit: pageOf}) {
		found, err := adminapi.ListRequests.Call(r.Request.Context(), r.admin, adminapi.InMode{Merchant: r.id(), Mode: string(r.Mode)})
		if err != nil {
			return err
		}
		for _, of := range found.Requests {
			if of.Rule != "" {
				rows = append(rows, counted{of, whyOf(of.Rule, of.Reason, of.Limit)})
			}
		}
	}
	return r.Show("requests.html", r.T("Requests"), map[string]any{"Room": r, "Rows": rows, "Calls": calls})
}

// request shows one of this merchant's calls, by the id of its request or its decision, and what was decided on it.
func (c *Console) request(r *room) error {
	ctx, id := r.Request.Context(), r.Request.PathValue("request")
	found, err := adminapi.FindOf.Call(ctx, r.admin, adminapi.SearchOf{Merchant: r.id(), Mode: string(r.Mode), ID: id})
	if err != nil {
		return err
	}
	shown := map[string]any{"Room": r, "Decision": found.Decision, "Refused": false, "Made": found.Movements, "Movements": r.Path("/movements/")}
	if logged := found.Request; logged != nil {
		shown["Call"], shown["Asked"], shown["Answered"] = logged, page.Pretty(logged.Asked), page.Pretty(logged.Answered)
		shown["Moment"], shown["Support"] = page.Moment(logged.At, c.config.Location), page.Support(r.id(), *logged, c.config.Location)
	} else if found.Decision == nil {
		return tenants.ErrNotFound
	}
	if d := found.Decision; d != nil {
		var reasons []string
		for _, place := range d.Places {
			if place.Reason != "" {
				reasons = append(reasons, place.Reason)
			}
		}
		shown["Refused"], shown["Why"] = d.Rule != "", whyOf(d.Rule, strings.Join(reasons, " "), d.Limit)
	}
	return r.Show("request.html", r.T("Request"), shown)
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
