package manifest

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// sendWindow is how long after the reservation a gateway may still send.
const sendWindow = Duration(5 * time.Second)

// checkResubmit checks what a provider must say whose upstream is asked by the
// same request again.
func (m *Manifest) checkResubmit() []error {
	var faults []error
	if m.ResubmitWithin <= 0 {
		faults = append(faults, errors.New("resubmit_within: must be given with lookup resubmit: after it the same request would be a second movement"))
	}
	if m.ResubmitBuysWithin < 0 || m.ResubmitBuysWithin > m.ResubmitWithin {
		faults = append(faults, errors.New("resubmit_buys_within: must be a span of time that is no longer than resubmit_within"))
	}
	for _, op := range m.Operations {
		if op.Money() && m.LookupEvery < op.Timeout+sendWindow {
			faults = append(faults, fmt.Errorf("lookup_every: must be at least %v with lookup resubmit, or the same request would be sent beside the first of %s",
				time.Duration(op.Timeout+sendWindow), op.Path))
		}
	}
	return append(faults, m.checkAccount("with lookup resubmit: under another account the same request would be a second movement")...)
}

// checkAccount checks that the manifest says what names an account.
func (m *Manifest) checkAccount(why string) []error {
	shape, err := objectShape(m.Connection)
	if err != nil {
		return []error{err}
	}
	fields := m.AccountFields()
	if len(fields) == 0 || slices.ContainsFunc(fields, func(name string) bool { return shape.types[name] != "string" }) {
		return []error{fmt.Errorf("account: %q must point to a string property of the connection (%s)", m.Account, why)}
	}
	return nil
}

// checkReportsLateOf checks that the manifest says what names an account's own lateness.
func (m *Manifest) checkReportsLateOf() []error {
	shape, err := objectShape(m.Connection)
	switch {
	case err != nil:
		return []error{err}
	case !m.Statements || shape.types[property(m.ReportsLateOf)] != "string":
		return []error{fmt.Errorf("reports_late_of: %q must point to a string property of the connection, and there must be statements", m.ReportsLateOf)}
	}
	return nil
}

// checkUnasked refuses what only queries have.
func checkUnasked(op Operation) []error {
	if op.Cache != 0 || len(op.Filter) > 0 || len(op.Markup) > 0 || op.Get || op.Scope != "" {
		return []error{errors.New("cache, filter, markup, get and scope: are for queries")}
	}
	return nil
}

// checkQuote checks how the price of a money operation is found.
func (m *Manifest) checkQuote(op Operation, request shape) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if op.Kind == Order && !op.Quote || op.Quote && op.Kind != Order && op.Kind != Transfer {
		fault("quote: an order needs one, a transfer may have one, and nothing else has one")
	}
	if op.Product != nil && op.Kind != Order {
		fault("product: is for orders and queries")
	}
	return append(faults, m.checkProduct(op, request)...)
}

// checkProduct checks how a request names an item of a list of products.
func (m *Manifest) checkProduct(op Operation, request shape) []error {
	if op.Product == nil {
		return nil
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if list, ok := m.Operation(op.Product.List); !ok || list.Kind != Query || list.Cache <= 0 {
		fault("product: list: %q is no cached query of this manifest", op.Product.List)
	}
	if t := request.types[property(op.Product.Field)]; t != "string" {
		fault("product: field: %q must point to a string property of the request", op.Product.Field)
	}
	if property(op.Product.Key) == "" || property(op.Product.Available) == "" {
		fault("product: key and available must point to top-level properties of the list's items")
	}
	return faults
}

// checkQueriedProduct checks the product that a query is about.
func (m *Manifest) checkQueriedProduct(op Operation) []error {
	if op.Cache != 0 {
		return []error{errors.New("product: a cached query has none")}
	}
	request, err := objectShape(op.Request)
	if err != nil {
		return []error{err}
	}
	return m.checkProduct(op, request)
}

// minCache keeps a cached answer from being asked for all the time.
const minCache = Duration(time.Second)

func (m *Manifest) checkQuery(op Operation) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if op.Quote {
		fault("quote: is for orders and transfers")
	}
	if op.Product != nil {
		faults = append(faults, m.checkQueriedProduct(op)...)
	}
	if op.Scope != "" && op.Scope != "transfer" {
		fault("scope: is transfer, or not given")
	}
	if op.Cache != 0 && op.Cache < minCache {
		fault("cache: must be at least %v", time.Duration(minCache))
	}
	if len(op.Filter) > 0 && op.Cache == 0 {
		fault("filter: is for cached queries")
	}
	shape, err := objectShape(op.Request)
	if err != nil {
		return append(faults, err)
	}
	for _, name := range op.Filter {
		if shape.types[name] != "string" {
			fault("filter: %q is no string property of the request", name)
		}
	}
	for _, m := range op.Markup {
		if property(m.Price) == "" || property(m.Product) == "" {
			fault("markup: price and product must point to top-level properties")
		}
	}
	return faults
}
