package operators

import (
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
)

// operationRow is an operation with its rates over all slices.
type operationRow struct {
	adminapi.OperationCount
	ASecond float64
	Refused int64
}

// traffic shows what becomes of requests, anew every few seconds.
func (c *Console) traffic(r *room) error {
	t, err := adminapi.ShowTraffic.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	seconds := float64(max(1, len(t.Slices)*t.SliceSeconds))
	var operations []operationRow
	for _, o := range t.Operations {
		refused := o.Slice.Refused()
		operations = append(operations, operationRow{o, float64(o.Admitted+refused) / seconds, refused})
	}
	return r.Show("traffic.html", r.T("Traffic"), map[string]any{
		"T": t, "Chart": r.chartOf(t), "Operations": operations, "Minutes": int(seconds / 60),
		"Measured": c.deps.Now().Sub(t.MeasuredSince).Round(time.Second).String(),
	})
}

// chartOf draws what was decided a second in each slice.
func (r *room) chartOf(t adminapi.Traffic) page.Chart {
	chart := page.Chart{Title: r.T("Decided requests"), X: r.T("Time"), Y: r.T("Requests a second"), Stacked: true, Decimals: 1, Series: []page.Series{
		{Name: r.T("admitted"), Tone: "good"}, {Name: r.T("refused"), Tone: "bad"},
	}}
	second := float64(max(1, t.SliceSeconds))
	for i, slice := range t.Slices {
		chart.Labels = append(chart.Labels, r.Clock(t.From.Add(time.Duration(i*t.SliceSeconds)*time.Second)))
		for n, of := range []int64{slice.Admitted, slice.Refused()} {
			chart.Series[n].Values = append(chart.Series[n].Values, float64(of)/second)
		}
	}
	return chart
}
