package merchants

import (
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) members(r *room) error {
	list, err := c.deps.SignIn.Members(r.Request.Context(), r.Member.MerchantID)
	if err != nil {
		return err
	}
	open, err := c.deps.SignIn.Invitations(r.Request.Context(), r.Member.MerchantID)
	if err != nil {
		return err
	}
	for i := range open {
		if !has(list, open[i].By) {
			open[i].By = ""
		}
	}
	return r.Show("members.html", r.T("Members"), map[string]any{
		"Room": r, "Rows": list, "Roles": tenants.RolesOf(r.Member.MerchantID), "Me": r.Who.Person.ID,
		"Invitations": page.Invitations{Rows: open, Revoke: r.Path("/members/invitations/revoke")},
	})
}

func (c *Console) invite(r *room) error {
	url, i, err := c.deps.SignIn.Invite(r.Request.Context(), r.By(), r.Member.MerchantID, tenants.Role(r.Form("role")), r.Form("email"), r.Language())
	if err != nil {
		return err
	}
	if url == "" {
		return r.Go(r.Path("/members"), "The invitation is on its way by mail. It is good once, for 7 days.")
	}
	return r.Show("secret.html", r.T("Invitation"), map[string]any{
		"Room": r, "Secret": url, "Back": r.Path("/members"),
		"Text": "Nothing was mailed: send this link to %s yourself. It is good once, for 7 days.", "About": i.Email,
	})
}

func (c *Console) uninvite(r *room) error {
	if err := c.deps.SignIn.Uninvite(r.Request.Context(), r.By(), r.Member.MerchantID, r.Form("email")); err != nil {
		return err
	}
	return r.Go(r.Path("/members"), "The invitation is revoked.")
}

// another is the member whom a form is about.
func (c *Console) another(r *room) (tenants.Member, error) {
	list, err := c.deps.SignIn.Members(r.Request.Context(), r.Member.MerchantID)
	if err != nil {
		return tenants.Member{}, err
	}
	i := slices.IndexFunc(list, func(m tenants.Member) bool { return m.PersonID.String() == r.Request.PathValue("person") })
	if i < 0 {
		return tenants.Member{}, tenants.ErrNotFound
	}
	return list[i], nil
}

func (c *Console) setRole(r *room) error {
	m, err := c.another(r)
	if err != nil {
		return err
	}
	if m.Role == tenants.Role(r.Form("role")) {
		return r.Go(r.Path("/members"), "") // nobody's sessions end for nothing
	}
	m.Role = tenants.Role(r.Form("role"))
	if err := c.deps.SignIn.SetRole(r.Request.Context(), r.By(), m); err != nil {
		return err
	}
	return r.Go(r.Path("/members"), "The role is changed, and all sessions of that person are ended.")
}

func (c *Console) removeMember(r *room) error {
	m, err := c.another(r)
	if err != nil {
		return err
	}
	if err := c.deps.SignIn.Remove(r.Request.Context(), r.By(), m); err != nil {
		return err
	}
	return r.Go(r.Path("/members"), "The member is removed, and all sessions of that person are ended.")
}

// theirs are the actions whose details are written by a merchant's people or about them
// alone. Of others no more is told than that an operator did it.
var theirs = []string{"signin.", "key.", "callback.", "member.", "connection.set"}

// has tells whether somebody is among a merchant's people. Of others no page says the address.
func has(people []tenants.Member, email string) bool {
	return slices.ContainsFunc(people, func(m tenants.Member) bool { return m.Email == email })
}

func (c *Console) audit(r *room) error {
	span, err := r.Span(c.config.Location)
	if err != nil {
		return err
	}
	entries, err := adminapi.ListAudit.Call(r.Request.Context(), r.admin, adminapi.AuditFilter{
		Merchant:       r.id(),
		AuditSelection: adminapi.AuditSelection{Since: span.Since, Until: span.Until, After: span.After, Action: r.Form("action"), Limit: pageOf},
	})
	if err != nil {
		return err
	}
	people, err := c.deps.SignIn.Members(r.Request.Context(), r.Member.MerchantID)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		if !has(people, e.Operator) && e.Operator != "gateway" {
			e.Operator, e.From = r.T("operator"), ""
		}
		if as, by, ok := strings.Cut(e.Detail, ", invited by "); ok && !has(people, by) {
			e.Detail = as
		}
		if !slices.ContainsFunc(theirs, func(prefix string) bool { return strings.HasPrefix(e.Action, prefix) }) {
			e.Detail = ""
		}
	}
	next := ""
	if len(entries) == pageOf {
		last := entries[pageOf-1]
		next = span.Older(r.Path("/audit"), map[string]string{"action": r.Form("action")}, last.At, last.ID.String())
	}
	return r.Show("audit.html", r.T("Audit"), map[string]any{"Room": r, "Rows": entries, "Span": span, "Action": r.Form("action"), "Next": next})
}
