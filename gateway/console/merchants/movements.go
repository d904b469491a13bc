package merchants

import (
	"encoding/json"
	"errors"
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

// pageOf is how many rows a page has.
const pageOf = 50

// listed is a movement in a list of several kinds.
type listed struct {
	adminapi.MovementLine

	Kind manifest.Kind
}

func (c *Console) list(r *room, kind manifest.Kind) error {
	path := r.Path(pathOf(kind))
	list, err := r.Movements(r.admin, page.List{Base: path, To: r.Path("/movements/"), Filter: c.listOf(r, kind)}, c.zone())
	if err != nil {
		return err
	}
	list.CSV = path + "/export.csv" + page.Query(list.Asked)
	return r.Show("list.html", r.T(titleOf(kind)), map[string]any{"Title": titleOf(kind), "Ready": c.ready(r, kind), "List": list})
}

// listOf is the whole list of a kind.
func (c *Console) listOf(r *room, kind manifest.Kind) adminapi.MovementFilter {
	return adminapi.MovementFilter{Merchant: r.id(), Mode: string(r.Mode), Kind: string(kind), Limit: pageOf}
}

// ready are the links to what is looked for most. Any other filter is a link, too: the
// page's address has it.
func (c *Console) ready(r *room, kind manifest.Kind) []page.Link {
	day := func(ago int) string { return c.deps.Now().In(c.zone()).AddDate(0, 0, -ago).Format(time.DateOnly) }
	rules, _ := movement.RulesOf(kind)
	var links []page.Link
	for _, of := range []struct {
		text   string
		values map[string]string
	}{
		{"Today", map[string]string{"from": day(0)}},
		{"Failed in the last 7 days", map[string]string{"from": day(6), "status": rules.Word(movement.Failed)}},
		{"Waiting", map[string]string{"status": rules.Word(movement.Pending)}},
	} {
		path := r.Path(pathOf(kind)) + page.Query(of.values)
		links = append(links, page.Link{Path: path, Text: of.text, Here: path == r.Request.URL.RequestURI()})
	}
	return links
}

// export writes a whole list as CSV, under the API's names.
func (c *Console) export(r *room, kind manifest.Kind) error {
	filter, _, err := r.MovementFilter(c.listOf(r, kind), c.zone())
	if err != nil {
		return err
	}
	filter.Limit = adminapi.MostListed
	header := []string{"created_at", "id", "reference", "status", "amount", "channel", "provider_reference", "paid_at"}
	return r.download(string(kind)+"s-"+string(r.Mode), header, func() (rows [][]string, more bool, err error) {
		found, err := adminapi.ListMovements.Call(r.Request.Context(), r.admin, filter)
		for _, m := range found.Movements {
			paid := ""
			if m.PaidAt != nil {
				paid = c.moment(*m.PaidAt)
			}
			rows = append(rows, []string{
				c.moment(m.CreatedAt), m.ID, cell(m.Reference), m.Status, m.Amount.String(), cell(m.Channel), cell(m.ProviderReference), paid,
			})
		}
		filter.After = found.Next
		return rows, found.Next != "", err
	})
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
	rules, _ := movement.RulesOf(m.Kind)
	return r.Show("movement.html", nameOf(&m), map[string]any{
		"Refundable": left > 0,
		"Room":       r, "M": m, "Line": adminapi.MovementLine{Status: rules.Status(m), State: string(m.Listed())}, "Name": nameOf(&m), "Whole": whole, "Request": page.Pretty(whole.Request), "Answer": page.Pretty(whole.Answer),
		"Stands": page.Pretty(stands), "List": r.Path(pathOf(m.Kind)), "ListTitle": titleOf(m.Kind),
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
	figures, err := c.figures(r, manifest.Payment, 7)
	if err != nil {
		return err
	}
	shown["Charts"] = r.FigureCharts(figures)[:2]
	latest := []listed{}
	for _, kind := range movement.Kinds() {
		found, err := adminapi.ListMovements.Call(ctx, r.admin, adminapi.MovementFilter{Merchant: r.id(), Mode: string(r.Mode), Kind: string(kind), Limit: 5})
		if err != nil {
			return err
		}
		for _, m := range found.Movements {
			latest = append(latest, listed{m, kind})
		}
	}
	slices.SortStableFunc(latest, func(a, b listed) int { return b.CreatedAt.Compare(a.CreatedAt) })
	shown["Latest"] = latest[:min(len(latest), 10)]
	return r.Show("overview.html", r.T("Overview"), shown)
}
