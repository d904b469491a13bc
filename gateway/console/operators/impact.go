package operators

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// spans are how far back a policy can be tried from a page; the command line tries longer.
var spans = []string{"1h", "24h", "168h"}

// most is how many rows of an impact a page has.
const most = 200

// bar is a row with the widths of its parts, in hundredths of the picture.
type bar struct {
	adminapi.ImpactRow

	Denied, Allowed, Unsure bit
}

// bit is a part of a bar.
type bit struct{ From, Width float64 }

// picture is an impact as a page draws it: its rows are bars, and no more than a page has.
type picture struct {
	adminapi.Impact

	Whole bar
	Bars  []bar
	Left  int
}

func pictureOf(i adminapi.Impact) *picture {
	bars := barsOf(i.Rows)
	i.Rows = nil
	return &picture{
		Impact: i, Whole: barOf(adminapi.ImpactRow{NewlyDenied: i.NewlyDenied, NewlyAllowed: i.NewlyAllowed, Unknown: i.Unknown}, i.Decisions),
		Bars: slices.Clone(bars[:min(len(bars), most)]), Left: max(0, len(bars)-most),
	}
}

// asked is the question of a page or form, with its span.
func (r *room) asked() (question, time.Duration, error) {
	q := question{by: r.By(), role: r.Role, version: r.named("version"), span: r.Form("since")}
	span, err := time.ParseDuration(q.span)
	if err != nil || !slices.Contains(spans, q.span) {
		return q, 0, fault.Invalid("since", "must be 1h, 24h or 168h")
	}
	return q, span, nil
}

// tryPolicy tries a version on the past anew. What the operator may do, and whether there is such a version, is judged by
// the admin API and told by the page.
func (c *Console) tryPolicy(r *room) error {
	q, span, err := r.asked()
	if err != nil {
		return err
	}
	c.startTrial(r, q, span, c.trials.begin)
	return r.Go(policyPath(q.version)+"/impact?since="+q.span, "")
}

func (c *Console) startTrial(r *room, q question, span time.Duration, start func(context.Context, question, try)) {
	wanted := adminapi.NewImpact{Version: q.version, Since: c.deps.Now().Add(-span)}
	start(r.Request.Context(), q, func(ctx context.Context, progress func(adminapi.ImpactProgress)) (*picture, error) {
		found, err := r.admin.Impact(ctx, wanted, progress)
		if err != nil {
			return nil, err
		}
		return pictureOf(found), nil
	})
}

// impact shows how far a trial is, and then what came of it. One that this replica does not have it begins: behind a balancer
// the page may come from another each time.
func (c *Console) impact(r *room) error {
	q, span, err := r.asked()
	if err != nil {
		return err
	}
	shown := map[string]any{"Path": policyPath(q.version), "Short": short(q.version), "Spans": spans, "Span": q.span}
	t := c.trials.look(q)
	if t == nil {
		c.startTrial(r, q, span, c.trials.resume)
		t = &standing{}
	}
	switch {
	case !t.over:
		shown["Running"], shown["Progress"] = true, t.progress
	case t.err != nil:
		_, shown["Problem"] = r.Problem(t.err)
	default:
		shown["I"] = t.result
	}
	return r.Show("impact.html", r.T("Impact"), shown)
}

// barsOf draws rows, those that change most first, each against the greatest.
func barsOf(rows []adminapi.ImpactRow) []bar {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b adminapi.ImpactRow) int { return cmp.Compare(total(b), total(a)) })
	bars := make([]bar, len(rows))
	for i, row := range rows {
		bars[i] = barOf(row, total(rows[0]))
	}
	return bars
}

func total(r adminapi.ImpactRow) int64 { return r.NewlyDenied + r.NewlyAllowed + r.Unknown }

func barOf(row adminapi.ImpactRow, against int64) bar {
	b, at := bar{ImpactRow: row}, 0.0
	for _, part := range []struct {
		count int64
		to    *bit
	}{{row.NewlyDenied, &b.Denied}, {row.NewlyAllowed, &b.Allowed}, {row.Unknown, &b.Unsure}} {
		*part.to = bit{at, 100 * float64(part.count) / float64(max(1, against))}
		at += part.to.Width
	}
	return b
}
