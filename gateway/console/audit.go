package console

import (
	"cmp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) listAudit(x *call, wanted adminapi.AuditFilter) ([]store.Audit, error) {
	if _, err := c.account(x); err != nil {
		return nil, err
	}
	return c.auditOf(x, x.merchant(), wanted.AuditSelection)
}

func (c *Console) listAudits(x *call, wanted adminapi.AuditsFilter) ([]store.Audit, error) {
	if !plain(wanted.Merchant, 0, maxName) {
		return nil, fault.Invalid("merchant", "must have at most 200 characters, without control characters")
	}
	return c.auditOf(x, tenants.MerchantID(wanted.Merchant), wanted.AuditSelection)
}

// auditOf lists entries of a merchant, or of all where none is given.
func (c *Console) auditOf(x *call, id tenants.MerchantID, wanted adminapi.AuditSelection) ([]store.Audit, error) {
	after, err := afterOf(wanted.After, wanted.Until)
	if err != nil {
		return nil, err
	}
	r := store.AuditRange{
		MerchantID: id, Since: wanted.Since, Until: or(wanted.Until, x.now.Add(ahead)), After: after,
		Operator: wanted.Operator, Action: wanted.Action, About: wanted.About, Most: cmp.Or(wanted.Limit, defaultPage),
	}
	for name, text := range map[string]string{"operator": r.Operator, "action": r.Action, "about": r.About} {
		if !plain(text, 0, maxName) {
			return nil, fault.Invalid(name, "must have at most 200 characters, without control characters")
		}
	}
	entries, err := c.deps.Merchants.AuditOf(x.request.Context(), r)
	return append([]store.Audit{}, entries...), err
}

func (c *Console) exportAudit(x *call, wanted adminapi.AuditExport) ([]store.AuditLine, error) {
	links, err := c.deps.Merchants.AuditLinks(x.request.Context(), store.AuditSpan{
		After: wanted.After, Since: wanted.Since, Until: wanted.Until, Most: cmp.Or(wanted.Limit, defaultPage),
	})
	lines := make([]store.AuditLine, len(links))
	for i, l := range links {
		lines[i] = l.Line()
	}
	return lines, err
}

func (c *Console) verifyAudit(x *call, wanted adminapi.ExportedLink) (out store.AuditReport, err error) {
	var exported *audit.Anchor
	if wanted != (adminapi.ExportedLink{}) {
		if exported, err = audit.ParseAnchor(wanted.Sequence, wanted.Hash); err != nil {
			return out, fault.Invalid("hash", "must be the hash of a link, in 64 hexadecimal digits, with its sequence")
		}
	}
	return c.deps.Audit.Verify(x.request.Context(), exported)
}
