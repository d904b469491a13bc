package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// TestMovementsAreListed: by what is asked for, page by page, of one merchant in one mode, and the figures are those of the list.
func TestMovementsAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.transfers(time.Hour, nil)
	of := first.Owner
	for n, age := range []time.Duration{2 * time.Hour, 3 * time.Hour, 40 * 24 * time.Hour} {
		w.transfers(age, func(m *movement.Movement) {
			m.Owner, m.Reference, m.Amount = of, fmt.Sprintf("PAY/1%d", n), 75_000
			m.Request = json.RawMessage(`{"body":{"payer_email":"budi@shop.example"},"path":"/wallet1/transfer/bank"}`)
		})
	}
	w.transfers(time.Hour, func(m *movement.Movement) { m.Owner, m.Owner.Mode = of, "test" })
	other := w.transfers(time.Hour, nil)
	filter := adminapi.MovementFilter{Merchant: of.MerchantID, Mode: "live", Kind: string(manifest.Transfer)}
	all := []string{"PAY/1", "PAY/10", "PAY/11", "PAY/12"}
	for name, c := range map[string]struct {
		change func(*adminapi.MovementFilter)
		want   []string
	}{
		"all":                            {func(*adminapi.MovementFilter) {}, all},
		"a status":                       {func(f *adminapi.MovementFilter) { f.Status = "Pending" }, all},
		"another status":                 {func(f *adminapi.MovementFilter) { f.Status = "Success" }, nil},
		"since":                          {func(f *adminapi.MovementFilter) { f.Since = time.Now().Add(-150 * time.Minute) }, all[:2]},
		"until":                          {func(f *adminapi.MovementFilter) { f.Until = time.Now().Add(-150 * time.Minute) }, all[2:]},
		"a part, in 31 days":             {func(f *adminapi.MovementFilter) { f.Search = "AY/1" }, all[:3]},
		"a whole reference alone":        {func(f *adminapi.MovementFilter) { f.Search = "PAY/1" }, all[:1]},
		"a whole reference, however old": {func(f *adminapi.MovementFilter) { f.Search = "PAY/12" }, all[3:]},
		"a whole reference, too late":    {func(f *adminapi.MovementFilter) { f.Search, f.Until = "PAY/1", time.Now().Add(-150*time.Minute) }, all[2:3]},
		"an id":                          {func(f *adminapi.MovementFilter) { f.Search = first.ID.String() }, all[:1]},
		"another merchant's id":          {func(f *adminapi.MovementFilter) { f.Search = other.ID.String() }, nil},
		"an amount":                      {func(f *adminapi.MovementFilter) { f.Search = "Rp75.000" }, all[1:3]},
		"a provider's reference":         {func(f *adminapi.MovementFilter) { f.Search = "prov-PAY/10" }, all[1:2]},
		"a payer":                        {func(f *adminapi.MovementFilter) { f.Search = "Budi@shop.example" }, all[1:3]},
		"a wildcard":                     {func(f *adminapi.MovementFilter) { f.Search = "PAY%" }, nil},
		"another kind":                   {func(f *adminapi.MovementFilter) { f.Kind = "payment" }, nil},
	} {
		wanted := filter
		c.change(&wanted)
		var got []string
		for wanted.Limit = 2; ; {
			page, err := adminapi.ListMovements.Call(t.Context(), w, wanted)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, m := range page.Movements {
				if got = append(got, m.Reference); m.Status != "Pending" || m.State != string(movement.Pending) {
					t.Errorf("%s: %+v", name, m)
				}
			}
			if wanted.After = page.Next; page.Next == "" {
				break
			}
		}
		figures, err := adminapi.ShowFigures.Call(t.Context(), w, adminapi.FigureFilter{MovementFilter: wanted})
		if err != nil || len(figures.Spans) != 1 || figures.TooMany {
			t.Fatalf("%s: %+v, %v", name, figures, err)
		}
		var counted int64
		for _, count := range figures.Spans[0].Counts {
			counted += count.Count
		}
		if !slices.Equal(got, c.want) || counted != int64(len(c.want)) {
			t.Errorf("%s: %q, and %d counted, want %q", name, got, counted, c.want)
		}
	}
	filter.Since = time.Now().AddDate(0, 0, -2)
	days, err := adminapi.ShowFigures.Call(t.Context(), w, adminapi.FigureFilter{MovementFilter: filter, By: "day"})
	if err != nil || len(days.Spans) < 3 || len(days.Spans) > 4 || !days.Spans[1].From.Equal(days.Spans[0].From.AddDate(0, 0, 1)) {
		t.Errorf("%+v, %v", days, err)
	}
	for field, change := range map[string]func(*adminapi.FigureFilter){
		"kind":   func(f *adminapi.FigureFilter) { f.Kind = "query" },
		"mode":   func(f *adminapi.FigureFilter) { f.Mode = "both" },
		"status": func(f *adminapi.FigureFilter) { f.Status = "succeeded" },
		"search": func(f *adminapi.FigureFilter) { f.Search = "a\x1eb" },
		"after":  func(f *adminapi.FigureFilter) { f.After = other.ID.String() },
		"by":     func(f *adminapi.FigureFilter) { f.By = "week" },
		"since":  func(f *adminapi.FigureFilter) { f.By, f.Since = "day", time.Now().AddDate(0, 0, -40) },
	} {
		wanted := adminapi.FigureFilter{MovementFilter: filter}
		change(&wanted)
		_, err := adminapi.ShowFigures.Call(t.Context(), w, wanted)
		w.refused(err, http.StatusBadRequest, field)
	}
}
