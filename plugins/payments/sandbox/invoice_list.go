package sandbox

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// listInvoices answers a bare array, the newest first.
func (s *Simulator) listInvoices(r *http.Request) (int, any, error) {
	limit, err := readLimit(r)
	if err != nil {
		return 0, nil, err
	}
	keep, err := invoiceFilter(r.URL.Query())
	if err != nil {
		return 0, nil, err
	}
	found := []invoiceBody{}
	s.selectInvoices(r, func(i invoice) bool {
		if keep(i) {
			found = append(found, i.body(r))
		}
		return len(found) < limit
	})
	// What is answered must not be undone by a crash.
	return http.StatusOK, found, s.env.Journal.Sync()
}

// selectInvoices visits an account's invoices, the newest first, after the
// cursor when there is one; an unknown cursor visits none.
func (s *Simulator) selectInvoices(r *http.Request, visit func(invoice) bool) {
	account, now, query := accountOf(r).ID, s.now(), r.URL.Query()
	s.mu.RLock()
	defer s.mu.RUnlock()
	candidates := s.invoices.byAccount[account]
	if external := query.Get("external_id"); external != "" {
		candidates = s.invoices.byReference[reference{account, external}]
	}
	cursor := query.Get("last_invoice")
	started := cursor == ""
	for _, i := range slices.Backward(candidates) {
		if !started {
			started = i.ID == cursor
			continue
		}
		if !visit(i.at(now)) {
			return
		}
	}
}

// bound is a filter by time: the value must lie on one side of it.
type bound struct {
	parameter string
	of        func(invoice) time.Time
	after     bool
}

var bounds = []bound{
	{"created_after", func(i invoice) time.Time { return i.Created }, true},
	{"created_before", func(i invoice) time.Time { return i.Created }, false},
	{"paid_after", func(i invoice) time.Time { return i.PaidAt }, true},
	{"paid_before", func(i invoice) time.Time { return i.PaidAt }, false},
	{"expired_after", func(i invoice) time.Time { return i.Expiry }, true},
	{"expired_before", func(i invoice) time.Time { return i.Expiry }, false},
}

// invoiceFilter reads the filters of a query into one condition.
func invoiceFilter(query url.Values) (func(invoice) bool, error) {
	conditions := []func(invoice) bool{}
	if statuses := readStatuses(query); len(statuses) > 0 {
		for _, status := range statuses {
			if !slices.Contains([]string{statePending, statePaid, "SETTLED", stateExpired}, status) {
				return nil, validationError(finding("query", "statuses", "has an unknown status", "any.allowOnly"))
			}
		}
		conditions = append(conditions, func(i invoice) bool { return slices.Contains(statuses, i.State) })
	}
	for _, b := range bounds {
		text := query.Get(b.parameter)
		if text == "" {
			continue
		}
		limit, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, validationError(finding("query", b.parameter, "must be a valid ISO 8601 date", "date.isoDate"))
		}
		conditions = append(conditions, func(i invoice) bool {
			at := b.of(i)
			return !at.IsZero() && at.Compare(limit) == side(b.after)
		})
	}
	return func(i invoice) bool {
		return !slices.ContainsFunc(conditions, func(holds func(invoice) bool) bool { return !holds(i) })
	}, nil
}

func side(after bool) int {
	if after {
		return 1
	}
	return -1
}

// readStatuses reads what the various clients send: a repeated parameter, with
// or without brackets, commas, or a JSON array.
func readStatuses(query url.Values) []string {
	var statuses []string
	for _, value := range append(query["statuses"], query["statuses[]"]...) {
		var list []string
		if json.Unmarshal([]byte(value), &list) != nil {
			list = strings.Split(value, ",")
		}
		statuses = append(statuses, list...)
	}
	return statuses
}
