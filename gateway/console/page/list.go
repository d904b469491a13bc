package page

import (
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// List is a page of a merchant's movements of a kind, at Base.
type List struct {
	Base string
	To   string // the path before a movement's id
	// Modes and Kinds are those that the visitor may choose among, none where the path has said it.
	Modes []string
	Kinds []manifest.Kind
	// Filter is what is listed, and Asked how that stands in links.
	Filter   adminapi.MovementFilter
	Asked    map[string]string
	Statuses []string
	Rows     []adminapi.MovementLine
	Totals   []Total // of the first page alone
	TooMany  bool    // to sum up
	Next     string
	CSV      string // where the whole list is one file, "" for nowhere
}

// Total is what of a list stands in a status, or ("") all of it.
type Total struct {
	Status        string
	Count, Amount int64
}

// Movements reads the list that the visitor asks for; the filter says whose, and how long a page is.
func (v *Visit) Movements(admin adminapi.Caller, l List, zone *time.Location) (List, error) {
	var err error
	if l.Filter, l.Asked, err = v.MovementFilter(l.Filter, zone); err != nil {
		return l, err
	}
	if len(l.Modes) > 0 {
		l.Asked["mode"], l.Asked["kind"] = l.Filter.Mode, l.Filter.Kind
	}
	l.Filter.After = v.Form("after")
	found, err := adminapi.ListMovements.Call(v.Request.Context(), admin, l.Filter)
	if err != nil {
		return l, err
	}
	l.Rows = found.Movements
	rules, _ := movement.RulesOf(manifest.Kind(l.Filter.Kind))
	l.Statuses = append([]string{""}, rules.Statuses()...)
	if found.Next != "" {
		more := maps.Clone(l.Asked)
		more["after"] = found.Next
		l.Next = l.Base + Query(more)
	}
	if l.Filter.After == "" && len(l.Rows) > 0 {
		figures, err := adminapi.ShowFigures.Call(v.Request.Context(), admin, adminapi.FigureFilter{MovementFilter: l.Filter})
		if err != nil {
			return l, err
		}
		l.TooMany, l.Totals = figures.TooMany, totalsOf(figures)
	}
	return l, nil
}

// MovementFilter reads a list's filters, and how they stand in its links.
func (v *Visit) MovementFilter(f adminapi.MovementFilter, zone *time.Location) (adminapi.MovementFilter, map[string]string, error) {
	span, err := v.Span(zone)
	f.Status, f.Search, f.Since, f.Until = v.Form("status"), v.Form("search"), span.Since, span.Until
	return f, map[string]string{"status": f.Status, "from": span.From, "to": span.To, "search": f.Search}, err
}

// totalsOf sums figures up: over all, and then by status.
func totalsOf(figures adminapi.Figures) []Total {
	var totals []Total
	for _, span := range figures.Spans {
		for _, c := range span.Counts {
			for _, status := range []string{"", c.Status} {
				i := slices.IndexFunc(totals, func(t Total) bool { return t.Status == status })
				if i < 0 {
					i, totals = len(totals), append(totals, Total{Status: status})
				}
				totals[i].Count += c.Count
				totals[i].Amount += c.Amount
			}
		}
	}
	return totals
}

// Query is the query of a URL with the values that are not empty.
func Query(values map[string]string) string {
	q := url.Values{}
	for name, value := range values {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}
