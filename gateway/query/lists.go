package query

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// prefixSpan is the longest time that a prefix is searched in. The index goes by time
// and has no references, so a prefix that nothing has is looked for in every movement of
// that time.
const prefixSpan = 31 * 24 * time.Hour

// movements lists a merchant's movements of a kind, in its mode. It asks no provider.
func (q *Queries) movements(ctx context.Context, r lifecycle.Request) (lifecycle.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Operation.Timeout))
	defer cancel()
	asked, err := q.asked(ctx, r)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	found, err := q.records.Movements(ctx, asked)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	items := make([]json.RawMessage, len(found))
	for i, m := range found {
		if items[i], err = q.lifecycle.Listed(r.Operation.Lists, m); err != nil {
			return lifecycle.Answer{}, err
		}
	}
	return lifecycle.Answer{Data: items}, nil
}

// asked is which movements a request wants. The schema has said that its values fit.
func (q *Queries) asked(ctx context.Context, r lifecycle.Request) (l movement.Listing, err error) {
	body, target := r.Operation.WithDefaults(r.Body), r.Operation.Lists.Target
	status, _ := body["status"].(string)
	l = movement.Listing{Owner: r.Owner(), Kind: target.Kind, States: target.Rules.Listed(status)}
	l.Prefix, _ = body["reference_prefix"].(string)
	if l.Most, err = limitOf(body); err != nil {
		return l, err
	}
	l.Before = q.lifecycle.Now().Add(movement.ClockSkew)
	for name, at := range map[string]*time.Time{"from": &l.Since, "to": &l.Before} {
		text, given := body[name].(string)
		if !given {
			continue
		}
		if *at, err = time.Parse(time.RFC3339, text); err != nil {
			return l, fault.Invalid(name, "must be a time like 2026-01-31T17:00:00Z")
		}
	}
	switch {
	case l.Prefix == "":
	case l.Since.IsZero():
		l.Since = l.Before.Add(-prefixSpan)
	case l.Before.Sub(l.Since) > prefixSpan+movement.ClockSkew:
		return l, fault.Invalid("from", "must be at most 31 days before to, or before now without it, where reference_prefix is given")
	}
	if after, given := body["after"].(string); given {
		l.After, err = q.named(ctx, l, after)
	}
	return l, err
}

// named finds the movement that a list shall go on after: by its merchant's reference,
// or by our id, because a transfer may have no other name.
func (q *Queries) named(ctx context.Context, l movement.Listing, name string) (movement.Movement, error) {
	register := q.lifecycle.Store
	m, err := register.MovementByKey(ctx, movement.Key{Owner: l.Owner, Kind: l.Kind, Reference: name})
	if id, unread := movement.ParseID(name); errors.Is(err, movement.ErrNotFound) && unread == nil {
		m, err = register.MovementByID(ctx, id)
	}
	if errors.Is(err, movement.ErrNotFound) || err == nil && (m.Owner != l.Owner || m.Kind != l.Kind) {
		return movement.Movement{}, fault.Invalid("after", "is not the reference or id of anything in this list")
	}
	return m, err
}
