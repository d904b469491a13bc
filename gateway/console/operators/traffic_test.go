package operators

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
)

func TestChart(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	columns, top := chartOf(adminapi.Traffic{From: from, SliceSeconds: 10, Slices: []decision.Slice{
		{Admitted: 10}, {}, {Admitted: 30, Slowed: 4, OverQuota: 3, Denied: 2, Unjudged: 1},
	}})
	if top != 4 || columns[2].ASecond != 4 || columns[2].Refused != 1 || columns[2].RefusedY != 0 || columns[2].RefusedHeight != 30 || columns[2].AdmittedY != 30 ||
		columns[0].AdmittedHeight != 30 || columns[1].AdmittedHeight != 0 || columns[1].AdmittedY != chartHeight || columns[2].X != 400 {
		t.Errorf("top %v, drawn %+v", top, columns)
	}
	if newest := latest(columns); len(newest) != 3 || !newest[0].At.Equal(from.Add(20*time.Second)) {
		t.Errorf("newest %+v", newest)
	}
	if columns, top := chartOf(adminapi.Traffic{SliceSeconds: 10, Slices: make([]decision.Slice, 60)}); top != 0 || columns[0].AdmittedY != chartHeight {
		t.Errorf("of nothing %v, %+v", top, columns[0])
	}
}
