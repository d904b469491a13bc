package merchants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// pathOf is where the list of a kind's movements stands, and titleOf its name.
func pathOf(kind manifest.Kind) string { return "/" + string(kind) + "s" }

func titleOf(kind manifest.Kind) string {
	return strings.ToUpper(string(kind[:1])) + string(kind[1:]) + "s"
}

// groups are what a list can be narrowed to. What is submitting may still come to nothing,
// and nobody was told of it.
var groups = map[string][]movement.State{
	"":          {movement.Acknowledged, movement.Pending, movement.Succeeded, movement.Failed, movement.Expired, movement.Returned},
	"pending":   {movement.Acknowledged, movement.Pending},
	"succeeded": {movement.Succeeded},
	"failed":    {movement.Failed},
	"expired":   {movement.Expired},
	"returned":  {movement.Returned},
}

// pageOf is how many rows a page has.
const pageOf = 50

// prefixSpan is how far back a beginning of a reference is looked for.
const prefixSpan = 31 * 24 * time.Hour

// listed is a movement in a list.
type listed struct {
	movement.Movement

	Shown movement.State
	Name  string // the reference, or the id of one without
}

func (c *Console) list(r *room, kind manifest.Kind) error {
	asked := map[string]string{"state": r.Form("state"), "from": r.Form("from"), "to": r.Form("to"), "reference": r.Form("reference")}
	l, err := c.listing(r, kind, asked)
	if err != nil {
		return err
	}
	found, err := c.found(r.Request.Context(), l)
	if err != nil {
		return err
	}
	rows := make([]listed, len(found))
	for i, m := range found {
		rows[i] = listed{m, m.Listed(), nameOf(&m)}
	}
	next := ""
	if len(rows) == pageOf {
		more := maps.Clone(asked)
		more["after"] = found[pageOf-1].ID.String()
		next = r.Path(pathOf(kind)) + query(more)
	}
	return r.Show("list.html", r.T(titleOf(kind)), map[string]any{
		"Room": r, "Kind": kind, "Title": titleOf(kind), "Path": r.Path(pathOf(kind)), "Asked": asked, "Rows": rows, "Next": next,
		"States": slices.Sorted(maps.Keys(groups)), "First": r.Form("after") == "",
	})
}

// found are a list's movements. A whole reference is looked up by its key and shown alone:
// the beginning of one has every movement of its time read.
func (c *Console) found(ctx context.Context, l movement.Listing) ([]movement.Movement, error) {
	if l.Prefix == "" {
		return c.deps.Records.Movements(ctx, l)
	}
	m, err := c.deps.Records.MovementByKey(ctx, movement.Key{Owner: l.Owner, Kind: l.Kind, Reference: l.Prefix})
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return nil, err
	case slices.Contains(l.States, m.Listed()) && !m.CreatedAt.Before(l.Since) && m.CreatedAt.Before(l.Before):
		return []movement.Movement{m}, nil
	}
	if l.Before.Sub(l.Since) > prefixSpan {
		l.Since = l.Before.Add(-prefixSpan)
	}
	return c.deps.Records.Movements(ctx, l)
}

// listing reads a list's filters. Days are the console's zone's.
func (c *Console) listing(r *room, kind manifest.Kind, asked map[string]string) (l movement.Listing, err error) {
	now := c.deps.Now()
	l = movement.Listing{Owner: r.owner(), Kind: kind, States: groups[asked["state"]], Before: now.Add(movement.ClockSkew), Prefix: asked["reference"], Most: pageOf}
	if l.States == nil {
		return l, fault.Invalid("state", "must be one of the list")
	}
	if l.Since, err = c.day(asked["from"], 0); err != nil {
		return l, fault.Invalid("from", "must be a day like 2026-01-31")
	}
	if asked["to"] != "" {
		if l.Before, err = c.day(asked["to"], 1); err != nil {
			return l, fault.Invalid("to", "must be a day like 2026-01-31")
		}
	}
	after := r.Form("after")
	if after == "" {
		return l, nil
	}
	id, err := movement.ParseID(after)
	if err != nil {
		return l, fault.Invalid("after", "is no id of a movement")
	}
	l.After, err = c.own(r, id)
	return l, err
}

func (c *Console) day(text string, plus int) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	location := c.config.Location
	if location == nil {
		location = time.UTC
	}
	day, err := time.ParseInLocation(time.DateOnly, text, location)
	return day.AddDate(0, 0, plus), err
}

// own reads a movement of this merchant in this mode.
func (c *Console) own(r *room, id movement.ID) (movement.Movement, error) {
	m, err := c.deps.Records.MovementByID(r.Request.Context(), id)
	if errors.Is(err, store.ErrNotFound) || err == nil && m.Owner != r.owner() {
		return movement.Movement{}, tenants.ErrNotFound
	}
	return m, err
}

func nameOf(m *movement.Movement) string {
	if reference := m.CallersReference(); reference != "" {
		return reference
	}
	return m.ID.String()
}

// find leads to what has an id or a reference, of whatever kind.
func (c *Console) find(r *room) error {
	text := r.Form("id")
	if id, err := movement.ParseID(text); err == nil {
		if _, err := c.own(r, id); err == nil {
			return r.Go(r.Path("/movements/"+text), "")
		}
	}
	for _, kind := range movement.Kinds() {
		m, err := c.deps.Records.MovementByKey(r.Request.Context(), movement.Key{Owner: r.owner(), Kind: kind, Reference: text})
		if err == nil && m.State != movement.Submitting && m.State != movement.NotSubmitted {
			return r.Go(r.Path("/movements/"+m.ID.String()), "")
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if path, err := c.decided(r, text); err != nil || path != "" {
		if err != nil {
			return err
		}
		return r.Go(path, "")
	}
	return fault.New(fault.NotFound, r.T("Nothing here has this reference or id. References count capitals; look at the other mode, too."))
}

func (c *Console) movement(r *room) error {
	id, err := movement.ParseID(r.Request.PathValue("movement"))
	if err != nil {
		return tenants.ErrNotFound
	}
	m, err := c.own(r, id)
	if err != nil {
		return err
	}
	whole, err := adminapi.ShowMovement.Call(r.Request.Context(), r.admin, adminapi.MovementID{Movement: id.String()})
	if err != nil {
		return err
	}
	stands, err := c.deps.Standing(m)
	if err != nil {
		return err
	}
	left := money.Amount(0)
	if r.Member.Role.May(tenants.MayRefund) {
		if left, err = c.deps.Refundable(r.Request.Context(), m); err != nil {
			return err
		}
	}
	plays, err := c.playable(r, m)
	if err != nil {
		return err
	}
	return r.Show("movement.html", nameOf(&m), map[string]any{
		"Refundable": left > 0,
		"Room":       r, "M": m, "State": m.Listed(), "Name": nameOf(&m), "Whole": whole, "Request": pretty(whole.Request), "Answer": pretty(whole.Answer),
		"Stands": pretty(stands), "List": r.Path(pathOf(m.Kind)), "ListTitle": titleOf(m.Kind),
		"Plays": plays, "Seconds": m.State == movement.Pending || m.State == movement.Acknowledged,
		"Money": r.Member.Role.May(tenants.MayMoney), "History": entriesOf(whole.History),
	})
}

// told is what of an entry's detail merchants read: not what operators have written.
var told = []string{"source", "channel", "provider_reference", "code", "message"}

// entriesOf is a history as merchants read it.
func entriesOf(history []movement.HistoryEntry) []movement.HistoryEntry {
	shown := slices.Clone(history)
	for i, entry := range shown {
		var detail map[string]any
		_ = json.Unmarshal([]byte(entry.Detail), &detail) // none, where it is text for operators
		var parts []string
		for _, name := range told {
			if value, ok := detail[name].(string); ok && value != "" {
				parts = append(parts, name+" "+value)
			}
		}
		shown[i].Detail = strings.Join(parts, ", ")
	}
	return shown
}

// pretty is JSON for people.
func pretty(text json.RawMessage) string {
	if len(text) == 0 {
		return ""
	}
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return ""
	}
	return out.String()
}

// overview is the first page.
func (c *Console) overview(r *room) error {
	ctx := r.Request.Context()
	quotas, err := adminapi.ShowQuotas.Call(ctx, r.admin, adminapi.InMode{Merchant: r.id(), Mode: string(r.Mode)})
	if err != nil {
		return err
	}
	shown := map[string]any{"Room": r, "Quotas": quotas, "API": c.config.APIURL, "Codes": codes, "Code": codeOf(r).Name}
	if r.Member.Role.May(tenants.MayMoney) {
		balance, err := adminapi.ShowBalance.Call(ctx, r.admin, adminapi.BalanceQuery{Merchant: r.id(), Mode: string(r.Mode)})
		if err != nil {
			return err
		}
		shown["Balance"] = balance
	}
	for name, state := range map[string]movement.CallbackState{"Waiting": movement.CallbackWaiting, "Dead": movement.CallbackDead} {
		callbacks, err := adminapi.ListCallbacks.Call(ctx, r.admin, adminapi.CallbackFilter{Merchant: r.id(), Mode: string(r.Mode), State: string(state), Limit: pageOf})
		if err != nil {
			return err
		}
		shown[name] = page.AtMost(len(callbacks), pageOf)
	}
	merchant, err := adminapi.ShowMerchant.Call(ctx, r.admin, adminapi.MerchantID{Merchant: r.id()})
	if err != nil {
		return err
	}
	if shown["Steps"], err = c.steps(r, merchant); err != nil {
		return err
	}
	latest := []listed{}
	for _, kind := range movement.Kinds() {
		found, err := c.deps.Records.Movements(ctx, movement.Listing{
			Owner: r.owner(), Kind: kind, States: groups[""], Before: c.deps.Now().Add(movement.ClockSkew), Most: 5,
		})
		if err != nil {
			return err
		}
		for _, m := range found {
			latest = append(latest, listed{m, m.Listed(), nameOf(&m)})
		}
	}
	slices.SortStableFunc(latest, func(a, b listed) int { return b.CreatedAt.Compare(a.CreatedAt) })
	shown["Latest"] = latest[:min(len(latest), 10)]
	return r.Show("overview.html", r.T("Overview"), shown)
}
