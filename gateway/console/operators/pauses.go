package operators

import (
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) pauses(r *room) error {
	list, err := adminapi.ListPauses.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	plugins, err := adminapi.ListPlugins.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	return r.Show("pauses.html", r.T("Pauses"), map[string]any{"Rows": list, "Plugins": plugins, "Modes": modes, "Platform": string(tenants.Platform)})
}

// pause is what a form names.
func (r *room) pause(merchant string) tenants.Pause {
	return tenants.Pause{
		MerchantID: tenants.MerchantID(merchant), What: tenants.Pausable(r.Form("what")), Provider: tenants.Provider(r.Form("provider")),
		Mode: tenants.Mode(r.Form("mode")), Reason: r.Form("reason"),
	}
}

// setPause pauses something, or lets it go on.
func (c *Console) setPause(r *room) error {
	return r.changePause(r.pause(r.Form("merchant")), "/pauses")
}

// pauseOfMerchant does so with what is a merchant's.
func (c *Console) pauseOfMerchant(r *room) error {
	return r.changePause(r.pause(r.named("merchant")), merchantPath(r.named("merchant"), ""))
}

func (r *room) changePause(p tenants.Pause, back string) error {
	if r.Form("action") != "end" {
		_, err := adminapi.SetPause.Call(r.Request.Context(), r.admin, p)
		return r.did(err, back, "It is paused: nothing new begins, and what has begun goes on.")
	}
	ended, err := adminapi.EndPause.Call(r.Request.Context(), r.admin, p)
	if err == nil && len(ended.Still) > 0 {
		return r.Go(back, "This pause is ended, but another one still holds the same thing.")
	}
	return r.did(err, back, "It goes on.")
}
