package operators

import (
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// people are those who can sign in here, and the tokens that programs have.
func (c *Console) people(r *room) error {
	members, err := c.deps.SignIn.Members(r.Request.Context(), tenants.Platform)
	if err != nil {
		return err
	}
	tokens, err := adminapi.ListOperatorTokens.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	open, err := c.deps.SignIn.Invitations(r.Request.Context(), tenants.Platform)
	if err != nil {
		return err
	}
	invitations := page.Invitations{Rows: open}
	if tenants.Invites(tenants.Platform, r.Role) {
		invitations.Revoke = "/people/invitations/revoke"
	}
	return r.Show("people.html", r.T("People"), map[string]any{
		"Invitations": invitations,
		"Rows":        members, "Tokens": tokens, "Roles": tenants.RolesOf(tenants.Platform), "Me": r.Who.Person.ID, "May": tenants.Invites(tenants.Platform, r.Role),
	})
}

// mayInvite refuses those who may not say who is an operator. The admin API does not know
// people: this is the one rule that a page judges.
func (r *room) mayInvite() error {
	if tenants.Invites(tenants.Platform, r.Role) {
		return nil
	}
	return fault.New(fault.ScopeMissing, r.T("Your role may not say who is an operator: that takes the role admin."))
}

func (c *Console) invite(r *room) error {
	if err := r.mayInvite(); err != nil {
		return err
	}
	url, _, err := c.deps.SignIn.Invite(r.Request.Context(), r.By(), tenants.Platform, tenants.Role(r.Form("role")), r.Form("email"), r.Language())
	return r.invited(err, url, "/people")
}

// invited tells what became of an invitation: it is mailed, or its link is shown.
func (r *room) invited(err error, url, back string) error {
	if err != nil || url == "" {
		return r.did(err, back, "The invitation is on its way by mail. It is good once, for 7 days.")
	}
	return r.Show("secrets.html", r.T("Invitation"), map[string]any{"Back": back, "Secrets": []shownSecret{linkOf(url)}})
}

func linkOf(url string) shownSecret {
	return shownSecret{"Nothing was mailed: send this link yourself. It is good once, for 7 days.", url}
}

func (c *Console) uninvite(r *room) error {
	if err := r.mayInvite(); err != nil {
		return err
	}
	err := c.deps.SignIn.Uninvite(r.Request.Context(), r.By(), tenants.Platform, r.Form("email"))
	return r.did(err, "/people", "The invitation is revoked.")
}

func tokenOf(token string) shownSecret { return shownSecret{"Operator's token", token} }

// another is the operator whom a form is about.
func (c *Console) another(r *room) (tenants.Member, error) {
	if err := r.mayInvite(); err != nil {
		return tenants.Member{}, err
	}
	list, err := c.deps.SignIn.Members(r.Request.Context(), tenants.Platform)
	if err != nil {
		return tenants.Member{}, err
	}
	i := slices.IndexFunc(list, func(m tenants.Member) bool { return m.PersonID.String() == r.named("person") })
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
		return r.Go("/people", "") // nobody's sessions end for nothing
	}
	m.Role = tenants.Role(r.Form("role"))
	err = c.deps.SignIn.SetRole(r.Request.Context(), r.By(), m)
	return r.did(err, "/people", "The role is changed, and all sessions of that person are ended.")
}

func (c *Console) removePerson(r *room) error {
	m, err := c.another(r)
	if err != nil {
		return err
	}
	err = c.deps.SignIn.Remove(r.Request.Context(), r.By(), m)
	return r.did(err, "/people", "This person is no operator any more, and all of their sessions are ended.")
}

func (c *Console) createToken(r *room) error {
	made, err := adminapi.CreateOperatorToken.Call(r.Request.Context(), r.admin, adminapi.NewOperatorToken{Name: r.Form("name"), Role: r.Form("role"), Expires: r.Form("expires")})
	if err != nil {
		return err
	}
	return showToken(r, made)
}

func (c *Console) rotateToken(r *room) error {
	made, err := adminapi.RotateOperatorToken.Call(r.Request.Context(), r.admin, adminapi.OperatorRotation{
		Name: r.named("operator"), Overlap: r.Form("overlap"),
	})
	if err != nil {
		return err
	}
	return showToken(r, made)
}

func showToken(r *room, made adminapi.CreatedOperatorToken) error {
	return r.Show("secrets.html", made.Name, map[string]any{"Back": "/people", "Secrets": []shownSecret{tokenOf(made.Token)}})
}

func (c *Console) revokeToken(r *room) error {
	_, err := adminapi.RevokeOperatorTokens.Call(r.Request.Context(), r.admin, adminapi.OperatorRevocation{
		Name: r.named("operator"), Reason: r.Form("reason"),
	})
	return r.did(err, "/people", "All tokens of that name are revoked.")
}
