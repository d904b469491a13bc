package manifest

import (
	"slices"
	"strconv"
	"time"
)

// sendWindow is how long after the reservation a gateway may still send.
const sendWindow = Duration(5 * time.Second)

// checkResubmit checks what a provider must say whose upstream is asked by the
// same request again.
func (m *Manifest) checkResubmit(faults *Faults) {
	if m.ResubmitWithin <= 0 {
		faults.add("/resubmit_within", "must be given with lookup resubmit: after it the same request would be a second movement")
	}
	if m.ResubmitBuysWithin < 0 || m.ResubmitBuysWithin > m.ResubmitWithin {
		faults.add("/resubmit_buys_within", "must be a span of time that is no longer than resubmit_within")
	}
	for _, op := range m.Operations {
		if op.Money() && m.LookupEvery < op.Timeout+sendWindow {
			faults.add("/lookup_every", "must be at least %v with lookup resubmit, or the same request would be sent beside the first of %s",
				op.Timeout+sendWindow, op.Path)
		}
	}
	m.checkAccount(faults, "with lookup resubmit: under another account the same request would be a second movement")
}

// checkAccount checks that the manifest says what names an account.
func (m *Manifest) checkAccount(faults *Faults, why string) {
	shape, err := objectShape(m.Connection)
	fields := m.AccountFields()
	if err != nil || len(fields) == 0 || slices.ContainsFunc(fields, func(name string) bool { return shape.types[name] != "string" }) {
		faults.add("/account", "%q must point to a string property of the connection (%s)", m.Account, why)
	}
}

// checkReportsLateOf checks that the manifest says what names an account's own lateness.
func (m *Manifest) checkReportsLateOf(faults *Faults) {
	if shape, err := objectShape(m.Connection); err != nil || !m.Statements || shape.types[property(m.ReportsLateOf)] != "string" {
		faults.add("/reports_late_of", "%q must point to a string property of the connection, and there must be statements", m.ReportsLateOf)
	}
}

// checkUnasked refuses what only queries have.
func checkUnasked(faults *Faults, place string, op Operation) {
	if op.Cache != 0 || len(op.Filter) > 0 || len(op.Markup) > 0 || op.Get || op.Common || op.Scope != "" {
		faults.add(place, "cache, common, filter, markup, get and scope: are for queries; leave them out")
	}
}

// checkQuote checks how the price of a money operation is found.
func (m *Manifest) checkQuote(faults *Faults, place string, op Operation, request shape) {
	if op.Kind == Order && !op.Quote || op.Quote && op.Kind != Order && op.Kind != Transfer {
		faults.add(place+"/quote", "an order needs one, a transfer may have one, and nothing else has one")
	}
	if op.Product != nil && op.Kind != Order {
		faults.add(place+"/product", "is for orders and queries")
	}
	m.checkProduct(faults, place, op, request)
}

// checkProduct checks how a request names an item of a list of products.
func (m *Manifest) checkProduct(faults *Faults, place string, op Operation, request shape) {
	if op.Product == nil {
		return
	}
	if list, ok := m.Operation(op.Product.List); !ok || list.Kind != Query || list.Cache <= 0 {
		faults.add(place+"/product/list", "%q is no cached query of this manifest", op.Product.List)
	}
	if t := request.types[property(op.Product.Field)]; t != "string" {
		faults.add(place+"/product/field", "%q must point to a string property of the request", op.Product.Field)
	}
	if property(op.Product.Key) == "" || property(op.Product.Available) == "" {
		faults.add(place+"/product", "key and available must point to top-level properties of the list's items")
	}
}

// minCache keeps a cached answer from being asked for all the time.
const minCache = Duration(time.Second)

func (m *Manifest) checkQuery(faults *Faults, place string, op Operation) {
	if op.Quote {
		faults.add(place+"/quote", "is for orders and transfers")
	}
	if op.Scope != "" && op.Scope != "transfer" {
		faults.add(place+"/scope", "is transfer, or not given")
	}
	if op.Cache != 0 && op.Cache < minCache {
		faults.add(place+"/cache", "must be at least %v", minCache)
	}
	if op.Common && op.Cache == 0 {
		faults.add(place+"/common", "is for cached queries")
	}
	if len(op.Filter) > 0 && op.Cache == 0 {
		faults.add(place+"/filter", "is for cached queries")
	}
	shape, err := objectShape(op.Request)
	if err != nil {
		faults.add(place+"/request", "%s", flat(err))
		return
	}
	if op.Product != nil && op.Cache != 0 {
		faults.add(place+"/product", "a cached query has none")
	} else {
		m.checkProduct(faults, place, op, shape)
	}
	for i, name := range op.Filter {
		if shape.types[name] != "string" {
			faults.add(place+pointer("filter", strconv.Itoa(i)), "%q is no string property of the request", name)
		}
	}
	for i, m := range op.Markup {
		if property(m.Price) == "" || property(m.Product) == "" {
			faults.add(place+pointer("markup", strconv.Itoa(i)), "price and product must point to top-level properties")
		}
	}
}
