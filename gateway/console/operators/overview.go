package operators

import (
	"net/url"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// overview is the first page: what waits for a person, and whether all is well.
func (c *Console) overview(r *room) error {
	ctx := r.Request.Context()
	all, err := adminapi.ListWaiting.Call(ctx, r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	pauses, err := adminapi.ListPauses.Call(ctx, r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	plugins, err := adminapi.ListPlugins.Call(ctx, r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	replicas, err := adminapi.ListReplicas.Call(ctx, r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	unready := r.admin.Ready(ctx)
	return r.Show("overview.html", r.T("Overview"), map[string]any{
		"Exceptions": page.AtMost(len(all.Exceptions), adminapi.MostListed), "Second": len(all.Overrides) + len(all.Adjustments) + len(all.Activations) + len(all.Approvals), "Pauses": pauses, "Plugins": plugins, "Replicas": replicas, "Unready": unready,
	})
}

// findDays are how far back ids are looked for that only a scan finds.
const findDays = 31

// find shows all that an id belongs to, whoever made the id. It shows at once what the gateway named itself, and has the
// page search on.
func (c *Console) find(r *room) error {
	if r.Form("id") == "" {
		return r.Show("find.html", r.T("Find"), map[string]any{"ID": "", "Days": findDays, "Place": placePath})
	}
	search := adminapi.Search{Scan: "false"}
	if r.Form("scan") == "true" {
		search.Scan = ""
	}
	return c.showFound(r, search)
}

// trace shows what a refused request asked for, too. Reading that is in the merchant's
// audit, so a link can't have somebody do it.
func (c *Console) trace(r *room) error { return c.showFound(r, adminapi.Search{Trace: true}) }

func (c *Console) showFound(r *room, search adminapi.Search) error {
	if from := r.Form("from"); from != "" {
		var err error
		if search.Since, err = time.ParseInLocation(time.DateOnly, from, c.zone()); err != nil {
			return fault.Invalid("from", "must be a day like 2026-01-31")
		}
	}
	search.ID = r.Form("id")
	found, err := adminapi.Find.Call(r.Request.Context(), r.admin, search)
	if err != nil {
		return err
	}
	return r.Show("find.html", r.T("Find"), map[string]any{
		"ID": search.ID, "Days": findDays, "From": r.Form("from"), "Found": found, "Place": placePath,
		"Scan": "/find?" + url.Values{"id": {search.ID}, "from": {r.Form("from")}, "scan": {"true"}}.Encode(),
	})
}

// placePath is the page of what was found.
func placePath(p adminapi.FoundPlace) string {
	switch p.Kind {
	case adminapi.PlaceCallback:
		return merchantPath(p.MerchantID, "/callbacks?mode="+url.QueryEscape(p.Mode))
	case adminapi.PlaceAdjustment:
		return merchantPath(p.MerchantID, "/money?mode="+url.QueryEscape(p.Mode))
	case adminapi.PlacePolicy:
		return policyPath(p.ID)
	case adminapi.PlaceActivation:
		return "/activations/" + url.PathEscape(p.ID)
	case adminapi.PlaceReplica:
		return "/replicas"
	}
	return merchantPath(p.MerchantID, "")
}

func (c *Console) zone() *time.Location {
	if c.config.Location == nil {
		return time.UTC
	}
	return c.config.Location
}
