package operators

import (
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) replicas(r *room) error {
	list, err := adminapi.ListReplicas.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	return r.Show("replicas.html", r.T("Replicas"), map[string]any{"Rows": list})
}

// audit is what was done to the platform and to all merchants, or to one of them.
func (c *Console) audit(r *room) error { return c.auditOf(r, "", "/audit") }

func (c *Console) merchantAudit(r *room) error {
	return c.auditOf(r, r.named("merchant"), merchantPath(r.named("merchant"), "/audit"))
}

func (c *Console) auditOf(r *room, merchant, path string) error {
	span, err := r.Span(c.config.Location)
	if err != nil {
		return err
	}
	asked := map[string]string{"operator": r.Form("operator"), "action": r.Form("action"), "about": r.Form("about")}
	if merchant == "" {
		asked["merchant"] = r.Form("merchant")
	}
	wanted := adminapi.AuditSelection{
		Since: span.Since, Until: span.Until, After: span.After, Operator: asked["operator"], Action: asked["action"], About: asked["about"], Limit: pageOf,
	}
	var entries []store.Audit
	if merchant == "" {
		entries, err = adminapi.ListAudits.Call(r.Request.Context(), r.admin, adminapi.AuditsFilter{Merchant: asked["merchant"], AuditSelection: wanted})
	} else {
		entries, err = adminapi.ListAudit.Call(r.Request.Context(), r.admin, adminapi.AuditFilter{Merchant: merchant, AuditSelection: wanted})
	}
	if err != nil {
		return err
	}
	older := ""
	if len(entries) == pageOf {
		last := entries[pageOf-1]
		older = span.Older(path, asked, last.At, last.ID.String())
	}
	return r.Show("audit.html", r.T("Audit"), map[string]any{
		"Rows": entries, "Merchant": merchant, "Platform": string(tenants.Platform), "Back": merchantPath(merchant, ""), "Path": path,
		"Span": span, "Asked": asked, "Next": older,
	})
}
