package console

import (
	"cmp"
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// People invites people to merchants. What is not there is tenants.ErrNotFound. Each change
// is committed with its audit entry.
type People interface {
	// Invite returns the link where nothing was mailed.
	Invite(ctx context.Context, by string, to tenants.MerchantID, role tenants.Role, address, language string) (url string, i tenants.Invitation, err error)
	Invitations(ctx context.Context, to tenants.MerchantID) ([]tenants.Invitation, error)
	Uninvite(ctx context.Context, by string, to tenants.MerchantID, address string) error
}

func (c *Console) invitePerson(x *call, wanted adminapi.NewInvitation) (adminapi.Invitation, error) {
	language := cmp.Or(wanted.Language, mail.Indonesian)
	if language != mail.Indonesian && language != mail.English {
		return adminapi.Invitation{}, fault.Invalid("language", "must be id or en")
	}
	role := cmp.Or(tenants.Role(wanted.Role), tenants.RoleOwner)
	url, i, err := c.deps.People.Invite(x.request.Context(), x.operator.Name, x.merchant(), role, wanted.Email, language)
	out := invitationDocument(i)
	out.URL = url
	return out, notFound(err, "merchant")
}

func (c *Console) listInvitations(x *call, _ adminapi.MerchantID) ([]adminapi.Invitation, error) {
	if _, err := c.account(x); err != nil {
		return nil, err
	}
	list, err := c.deps.People.Invitations(x.request.Context(), x.merchant())
	out := make([]adminapi.Invitation, len(list))
	for i := range list {
		out[i] = invitationDocument(list[i])
	}
	return out, err
}

func (c *Console) revokeInvitation(x *call, of adminapi.Uninvitation) ([]adminapi.Invitation, error) {
	if err := c.deps.People.Uninvite(x.request.Context(), x.operator.Name, x.merchant(), of.Email); err != nil {
		return nil, notFound(err, "invitation")
	}
	return c.listInvitations(x, adminapi.MerchantID{Merchant: of.Merchant})
}

func invitationDocument(i tenants.Invitation) adminapi.Invitation {
	return adminapi.Invitation{Email: i.Email, Role: string(i.Role), By: i.By, ExpiresAt: i.ExpiresAt, Mail: i.Mail}
}
