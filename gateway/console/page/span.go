package page

import (
	"net/url"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// AtMost is a number of which no more than so many were counted: then 50 is 50+.
func AtMost(n, most int) string {
	if n < most {
		return strconv.Itoa(n)
	}
	return strconv.Itoa(most) + "+"
}

// Span is what a list's form and its link to older rows ask for. Lists of rows that have a
// time and an id go on after the last row of a page: of those at its time by the ids.
type Span struct {
	From, To     string    // days, as typed
	Since, Until time.Time // as they bound the list
	After        string
}

// Span reads a list's days, which are the zone's, and where it goes on.
func (v *Visit) Span(zone *time.Location) (s Span, err error) {
	s = Span{From: v.Form("from"), To: v.Form("to"), After: v.Form("after")}
	if zone == nil {
		zone = time.UTC
	}
	day := func(name, text string, plus int) (time.Time, error) {
		if text == "" {
			return time.Time{}, nil
		}
		at, err := time.ParseInLocation(time.DateOnly, text, zone)
		if err != nil {
			return at, fault.Invalid(name, "must be a day like 2026-01-31")
		}
		return at.AddDate(0, 0, plus), nil
	}
	if s.Since, err = day("from", s.From, 0); err != nil {
		return s, err
	}
	if s.Until, err = day("to", s.To, 1); err != nil {
		return s, err
	}
	if until := v.Form("until"); until != "" {
		if s.Until, err = time.Parse(time.RFC3339Nano, until); err != nil {
			return s, fault.Invalid("until", "must be a time")
		}
	}
	return s, nil
}

// Older is the link to what comes after the last row of a page, with the list's other filters.
func (s Span) Older(path string, filters map[string]string, at time.Time, id string) string {
	q := url.Values{"until": {at.Format(time.RFC3339Nano)}, "after": {id}}
	for name, value := range filters {
		if value != "" {
			q.Set(name, value)
		}
	}
	if s.From != "" {
		q.Set("from", s.From)
	}
	if s.To != "" {
		q.Set("to", s.To)
	}
	return path + "?" + q.Encode()
}
