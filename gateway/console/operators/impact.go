package operators

import (
	"cmp"
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

func (c *Console) impact(r *room) error {
	span, err := time.ParseDuration(r.Form("since"))
	if err != nil || !slices.Contains(spans, r.Form("since")) {
		return fault.Invalid("since", "must be 1h, 24h or 168h")
	}
	found, err := r.admin.Impact(r.Request.Context(), adminapi.NewImpact{Version: r.named("version"), Since: c.deps.Now().Add(-span)}, nil)
	if err != nil {
		return err
	}
	whole := adminapi.ImpactRow{NewlyDenied: found.NewlyDenied, NewlyAllowed: found.NewlyAllowed, Unknown: found.Unknown}
	bars := barsOf(found.Rows)
	return r.Show("impact.html", r.T("Impact"), map[string]any{
		"I": found, "Path": policyPath(r.named("version")), "Whole": barOf(whole, found.Decisions), "Bars": bars[:min(len(bars), most)], "Left": max(0, len(bars)-most),
		"Short": short(r.named("version")),
	})
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
