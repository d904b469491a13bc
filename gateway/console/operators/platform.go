package operators

import "github.com/seed-f006e74d/gerbang/tenants"

func (c *Console) replicas(r *room) error {
	list, err := r.admin.Replicas(r.Request.Context())
	if err != nil {
		return err
	}
	return r.Show("replicas.html", r.T("Replicas"), map[string]any{"Rows": list})
}

// audit is what was done to the platform itself.
func (c *Console) audit(r *room) error {
	entries, err := r.admin.Audit(r.Request.Context(), string(tenants.Platform))
	if err != nil {
		return err
	}
	return r.Show("audit.html", r.T("Audit"), map[string]any{"Rows": entries, "Merchant": "", "Path": ""})
}
