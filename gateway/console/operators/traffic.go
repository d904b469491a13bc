package operators

import (
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// The chart's size in its own units.
const (
	chartWidth  = 600
	chartHeight = 120
)

// column is a slice of time in the chart: what was admitted stands on the ground, what was
// refused upon it.
type column struct {
	X, Width                   float64
	AdmittedY, AdmittedHeight  float64
	RefusedY, RefusedHeight    float64
	At                         time.Time
	Admitted, Refused, ASecond float64
}

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
	columns, top := chartOf(t)
	seconds := float64(max(1, len(t.Slices)*t.SliceSeconds))
	var operations []operationRow
	for _, o := range t.Operations {
		refused := o.Slice.Refused()
		operations = append(operations, operationRow{o, float64(o.Admitted+refused) / seconds, refused})
	}
	return r.Show("traffic.html", r.T("Traffic"), map[string]any{
		"T": t, "Columns": columns, "Top": top, "Operations": operations, "Minutes": int(seconds / 60), "W": chartWidth, "H": chartHeight, "Latest": latest(columns),
		"Measured": c.deps.Now().Sub(t.MeasuredSince).Round(time.Second).String(),
	})
}

// chartOf draws slices against the greatest, whose requests a second are returned.
func chartOf(t adminapi.Traffic) ([]column, float64) {
	columns, width, most := make([]column, len(t.Slices)), float64(chartWidth)/float64(max(1, len(t.Slices))), 0.0
	second := float64(max(1, t.SliceSeconds))
	for i, slice := range t.Slices {
		columns[i] = column{
			X: float64(i) * width, Width: max(1, width-1), At: t.From.Add(time.Duration(i*t.SliceSeconds) * time.Second),
			Admitted: float64(slice.Admitted) / second, Refused: float64(slice.Refused()) / second,
		}
		columns[i].ASecond = columns[i].Admitted + columns[i].Refused
		most = max(most, columns[i].ASecond)
	}
	for i := range columns {
		one := &columns[i]
		if most > 0 {
			one.AdmittedHeight, one.RefusedHeight = chartHeight*one.Admitted/most, chartHeight*one.Refused/most
		}
		one.AdmittedY = chartHeight - one.AdmittedHeight
		one.RefusedY = one.AdmittedY - one.RefusedHeight
	}
	return columns, most
}

// latestShown is how many slices the table beside the chart has.
const latestShown = 6

// latest are the newest columns, the newest first.
func latest(columns []column) []column {
	var out []column
	for i := len(columns) - 1; i >= 0 && len(out) < latestShown; i-- {
		out = append(out, columns[i])
	}
	return out
}
