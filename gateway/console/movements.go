package console

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const (
	// searchSpan is how far back a search goes: it reads each movement of its time.
	searchSpan = 31 * 24 * time.Hour
	// mostFigured is how many movements are read for figures. Of more no number is told.
	mostFigured = 50_000
	// mostDays is how many days figures are told of.
	mostDays = 31
)

func (c *Console) listMovements(x *call, wanted adminapi.MovementFilter) (out adminapi.MovementList, err error) {
	l, rules, found, err := c.listing(x, wanted)
	if err == nil && found == nil {
		found, err = c.deps.Movements.Movements(x.request.Context(), l)
	}
	if err != nil {
		return out, err
	}
	out.Movements = make([]adminapi.MovementLine, len(found))
	for i, m := range found {
		out.Movements[i] = adminapi.MovementLine{
			CreatedAt: m.CreatedAt, ID: m.ID.String(), Reference: m.CallersReference(), Status: rules.Status(m), State: string(m.Listed()), Amount: m.Amount,
			Channel: m.Channel, Provider: m.Provider, ProviderReference: m.ProviderReference, PaidAt: given(m.PaidAt),
		}
	}
	if len(found) == l.Most {
		out.Next = found[l.Most-1].ID.String()
	}
	return out, nil
}

// showFigures counts a list: as a whole, or by the days on which it was created.
func (c *Console) showFigures(x *call, wanted adminapi.FigureFilter) (out adminapi.Figures, err error) {
	l, rules, found, err := c.listing(x, wanted.MovementFilter)
	if err != nil {
		return out, err
	}
	spans := []time.Time{l.Since, l.Before}
	switch wanted.By {
	case "":
	case "day":
		if spans, err = c.daysOf(l.Since, l.Before); err != nil {
			return out, err
		}
	default:
		return out, fault.Invalid("by", "must be day, or left out")
	}
	l.Most = mostFigured
	figures := l.Tell(spans, found)
	if found == nil {
		if figures, err = c.deps.Movements.Figures(x.request.Context(), l, spans); err != nil {
			return out, err
		}
	}
	return figuresDocument(spans, figures, time.Second, func(s movement.State) string {
		if s == movement.Returned {
			return rules.Word(movement.Failed)
		}
		return rules.Word(s)
	}), nil
}

// showCallbackFigures counts a merchant's callbacks by the days on which they were made.
func (c *Console) showCallbackFigures(x *call, wanted adminapi.CallbackFigureFilter) (out adminapi.Figures, err error) {
	owner, err := c.ownerOf(x, wanted.Mode)
	if err != nil {
		return out, err
	}
	spans, err := c.daysOf(wanted.Since, x.now.Add(movement.ClockSkew))
	if err != nil {
		return out, err
	}
	figures, err := c.deps.Callbacks.CallbackFigures(x.request.Context(), owner, spans, mostFigured)
	return figuresDocument(spans, figures, time.Millisecond, func(s movement.State) string { return string(s) }), err
}

// figuresDocument has figures by the words of their states, of which several may have one.
func figuresDocument(spans []time.Time, figures movement.Figures, unit time.Duration, word func(movement.State) string) adminapi.Figures {
	if figures.TooMany {
		return adminapi.Figures{TooMany: true, Spans: []adminapi.FigureSpan{}}
	}
	out := adminapi.Figures{Spans: make([]adminapi.FigureSpan, len(spans)-1)}
	for i := range out.Spans {
		out.Spans[i] = adminapi.FigureSpan{From: spans[i], Counts: []adminapi.FigureCount{}}
	}
	for _, f := range figures.Counts {
		counts, status := &out.Spans[f.Span].Counts, word(f.State)
		i := slices.IndexFunc(*counts, func(c adminapi.FigureCount) bool { return c.Status == status && c.Channel == f.Channel })
		if i < 0 {
			i, *counts = len(*counts), append(*counts, adminapi.FigureCount{Status: status, Channel: f.Channel})
		}
		(*counts)[i].Count += f.N
		(*counts)[i].Amount += f.Amount
	}
	for _, w := range figures.Waits {
		span, in := &out.Spans[w.Span], unit.Milliseconds()
		span.Timed, span.MedianMS, span.P95MS = w.N, w.Median*in, w.Most*in
	}
	return out
}

// daysOf are the beginnings of days, of the gateway's zone, and the end of the last.
func (c *Console) daysOf(since, before time.Time) ([]time.Time, error) {
	zone := c.config.Location
	if zone == nil {
		zone = time.FixedZone("WIB", 7*60*60)
	}
	y, m, d := or(since, before.AddDate(0, 0, 1-mostDays)).In(zone).Date()
	days := []time.Time{}
	for at := time.Date(y, m, d, 0, 0, 0, 0, zone); at.Before(before); at = at.AddDate(0, 0, 1) {
		if days = append(days, at); len(days) > mostDays {
			return nil, fault.Invalid("since", "must be at most 31 days before until")
		}
	}
	return append(days, before), nil
}

// listing is a list of a merchant's movements as it is asked for, with its only one where
// that is searched by its name.
func (c *Console) listing(x *call, wanted adminapi.MovementFilter) (l movement.Listing, rules movement.Rules, only []movement.Movement, err error) {
	owner, err := c.ownerOf(x, wanted.Mode)
	if err != nil {
		return l, rules, nil, err
	}
	rules, known := movement.RulesOf(manifest.Kind(wanted.Kind))
	l = movement.Listing{
		Owner: owner, Kind: rules.Kind, States: rules.Listed(wanted.Status), Since: wanted.Since, Before: or(wanted.Until, x.now.Add(movement.ClockSkew)),
		Search: wanted.Search, Most: cmp.Or(wanted.Limit, defaultPage),
	}
	switch {
	case !known:
		return l, rules, nil, fault.Invalid("kind", "must be payment, collection, order, refund or transfer")
	case len(l.States) == 0:
		return l, rules, nil, fault.Invalid("status", "must be one of "+strings.Join(rules.Statuses(), ", "))
	case !plain(l.Search, 0, maxAnyID):
		return l, rules, nil, fault.Invalid("search", "must have at most 255 characters, without control characters")
	}
	if wanted.After != "" {
		id, err := movement.ParseID(wanted.After)
		if err == nil {
			l.After, err = c.deps.Movements.MovementByID(x.request.Context(), id)
		}
		if err != nil || l.After.Owner != owner {
			return l, rules, nil, fault.Invalid("after", "is no id of a movement")
		}
	}
	if l.Search == "" {
		return l, rules, nil, nil
	}
	if wanted.After == "" {
		if only, err = c.wholly(x, l); only != nil || err != nil {
			return l, rules, only, err
		}
	}
	if from := l.Before.Add(-searchSpan); l.Since.Before(from) {
		l.Since = from
	}
	return l, rules, nil, nil
}

// wholly is the movement of a list whose whole reference or id is searched, however old it
// is. Where there is none, the search goes on in what it can read.
func (c *Console) wholly(x *call, l movement.Listing) ([]movement.Movement, error) {
	m, err := c.deps.Movements.MovementByKey(x.request.Context(), movement.Key{Owner: l.Owner, Kind: l.Kind, Reference: l.Search})
	if id, unread := movement.ParseID(l.Search); errors.Is(err, store.ErrNotFound) && unread == nil {
		m, err = c.deps.Movements.MovementByID(x.request.Context(), id)
	}
	if l.Search = ""; err == nil && l.Has(&m) {
		return []movement.Movement{m}, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return nil, err
}
