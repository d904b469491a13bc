package operators

import (
	"cmp"
	"net/url"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// requests lists a merchant's calls.
func (c *Console) requests(r *room) error {
	merchant, mode := r.named("merchant"), cmp.Or(r.Form("mode"), string(tenants.Live))
	calls, err := r.Calls(r.admin, merchantPath(merchant, "/requests"), adminapi.RequestLogFilter{Merchant: merchant, Mode: mode, Limit: pageOf}, string(tenants.Live), string(tenants.Test))
	if err != nil {
		return err
	}
	return r.Show("requests.html", r.T("Requests"), map[string]any{"Merchant": merchant, "Path": merchantPath(merchant, ""), "Calls": calls})
}

// request shows one of a merchant's calls.
func (c *Console) request(r *room) error {
	merchant, mode := r.named("merchant"), cmp.Or(r.Form("mode"), string(tenants.Live))
	found, err := adminapi.FindOf.Call(r.Request.Context(), r.admin, adminapi.SearchOf{Merchant: merchant, Mode: mode, ID: r.named("request")})
	if err != nil {
		return err
	}
	logged := found.Request
	if logged == nil {
		return tenants.ErrNotFound
	}
	return r.Show("request.html", r.T("Request"), map[string]any{
		"Merchant": merchant, "Back": merchantPath(merchant, "/requests") + "?mode=" + url.QueryEscape(mode), "Call": logged, "Made": found.Movements, "Movements": "/movements/",
		"Asked": page.Pretty(logged.Asked), "Answered": page.Pretty(logged.Answered), "Moment": page.Moment(logged.At, c.config.Location), "Support": page.Support(merchant, *logged, c.config.Location),
	})
}
