package merchants

import (
	"slices"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// numberDays are the spans that the page of numbers has.
var numberDays = []string{"30", "7", "1"}

// numbers are a kind's movements of the last days, as pictures.
func (c *Console) numbers(r *room) error {
	kind, days := manifest.Kind(r.Form("kind")), r.Form("days")
	if kind == "" {
		kind = manifest.Payment
	}
	if days == "" {
		days = numberDays[0]
	}
	if !slices.Contains(numberDays, days) {
		return fault.Invalid("days", "must be one of the list")
	}
	count, _ := strconv.Atoi(days) // one of the list
	figures, err := c.figures(r, kind, count)
	if err != nil {
		return err
	}
	callbacks, err := adminapi.ShowCallbackFigures.Call(r.Request.Context(), r.admin, adminapi.CallbackFigureFilter{Merchant: r.id(), Mode: string(r.Mode), Since: c.since(count)})
	if err != nil {
		return err
	}
	quotas, err := adminapi.ShowQuotas.Call(r.Request.Context(), r.admin, adminapi.InMode{Merchant: r.id(), Mode: string(r.Mode)})
	if err != nil {
		return err
	}
	return r.Show("numbers.html", r.T("Numbers"), map[string]any{
		"Room": r, "Kind": kind, "Kinds": movement.Kinds(), "Days": days, "Spans": numberDays, "TooMany": figures.TooMany || callbacks.TooMany,
		"Charts": slices.Concat(r.FigureCharts(figures), r.CallbackCharts(callbacks), []page.Chart{r.quotaChart(quotas)}),
	})
}

// figures count a kind's movements by the last days, of which today is one.
func (c *Console) figures(r *room, kind manifest.Kind, days int) (adminapi.Figures, error) {
	return adminapi.ShowFigures.Call(r.Request.Context(), r.admin, adminapi.FigureFilter{By: "day", MovementFilter: adminapi.MovementFilter{
		Merchant: r.id(), Mode: string(r.Mode), Kind: string(kind), Since: c.since(days),
	}})
}

// since is when the first of the last days was, today among them.
func (c *Console) since(days int) time.Time { return c.deps.Now().AddDate(0, 0, 1-days) }

// quotaChart draws how much of each quota is used, of those that have a limit.
func (r *room) quotaChart(quotas adminapi.Quotas) page.Chart {
	used := page.Series{Name: r.T("Used"), Tone: "tone-2"}
	chart := page.Chart{Title: r.T("Quotas of this period"), X: r.T("Quota"), Y: r.T("Percent"), Stacked: true, Decimals: 1, Reach: 100}
	for _, q := range quotas.Quotas {
		if q.Limit != nil && *q.Limit > 0 {
			chart.Labels, used.Values = append(chart.Labels, q.Quota), append(used.Values, 100*float64(q.Used)/float64(*q.Limit))
		}
	}
	chart.Series = []page.Series{used}
	return chart
}
