package operators

import (
	"cmp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// movements lists a merchant's movements of a kind in a mode, as the merchant's own console does.
func (c *Console) movements(r *room) error {
	merchant := r.named("merchant")
	list, err := r.Movements(r.admin, page.List{
		Base: merchantPath(merchant, "/movements"), To: "/movements/", Modes: []string{string(tenants.Live), string(tenants.Test)}, Kinds: movement.Kinds(),
		Filter: adminapi.MovementFilter{
			Merchant: merchant, Mode: cmp.Or(r.Form("mode"), string(tenants.Live)), Kind: cmp.Or(r.Form("kind"), string(manifest.Payment)), Limit: pageOf,
		},
	}, c.config.Location)
	if err != nil {
		return err
	}
	return r.Show("movements.html", r.T("Movements"), map[string]any{"Merchant": merchant, "Path": merchantPath(merchant, ""), "List": list})
}
