package impact

import "testing"

// TestTheSumIsOfLiveRupiah: what test requests ask for is no money, so it is in no sum with what is.
func TestTheSumIsOfLiveRupiah(t *testing.T) {
	t.Parallel()
	s := &simulation{rows: map[rowKey]*Row{
		{merchant: "mer_1", live: true, operation: "/a"}: {NewlyDenied: 1, Rupiah: 5000},
		{merchant: "mer_1", operation: "/a"}:             {NewlyDenied: 2, Rupiah: 70_000},
	}}
	if r := s.report(); r.Rupiah != 5000 || r.NewlyDenied != 3 || len(r.Rows) != 2 {
		t.Errorf("%+v", r)
	}
}
