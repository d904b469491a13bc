package operators

import (
	"cmp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// figureDays are how many days a merchant's pictures have, today among them.
const figureDays = 30

// figures are a merchant's movements of a kind, and its callbacks, as the merchant's own
// console draws them.
func (c *Console) figures(r *room) error {
	id, mode, kind := r.named("merchant"), cmp.Or(r.Form("mode"), string(tenants.Live)), cmp.Or(r.Form("kind"), string(manifest.Payment))
	since := c.deps.Now().AddDate(0, 0, 1-figureDays)
	figures, err := adminapi.ShowFigures.Call(r.Request.Context(), r.admin, adminapi.FigureFilter{
		By: "day", MovementFilter: adminapi.MovementFilter{Merchant: id, Mode: mode, Kind: kind, Since: since},
	})
	if err != nil {
		return err
	}
	callbacks, err := adminapi.ShowCallbackFigures.Call(r.Request.Context(), r.admin, adminapi.CallbackFigureFilter{Merchant: id, Mode: mode, Since: since})
	if err != nil {
		return err
	}
	return r.Show("figures.html", r.T("Numbers of 30 days"), map[string]any{
		"Merchant": id, "Path": merchantPath(id, ""), "Mode": mode, "Modes": modes, "Kind": kind, "Kinds": movement.Kinds(),
		"TooMany": figures.TooMany || callbacks.TooMany, "Charts": append(r.FigureCharts(figures), r.CallbackCharts(callbacks)...),
	})
}
