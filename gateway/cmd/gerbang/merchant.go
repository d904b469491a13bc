package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type merchantCommands struct {
	Invite  merchantInvite  `cmd:"" help:"Print a link by which somebody comes into the merchants' console."`
	Invited merchantInvited `cmd:"" help:"List a merchant's open invitations."`
	Revoke  merchantRevoke  `cmd:"" help:"End an invitation that was not used." name:"revoke-invitation"`
	Create  merchantCreate  `cmd:"" help:"Create a merchant; its keys are shown this once."`
	Suspend merchantSuspend `cmd:"" help:"Suspend a merchant: its requests are refused."`
	Resume  merchantResume  `cmd:"" help:"End a suspension."`
	Tier    merchantTier    `cmd:"" help:"Move a merchant to another tier."`
	Label   merchantLabel   `cmd:"" help:"Give a merchant labels, or take some away."`
	Limit   merchantLimit   `cmd:"" help:"Show, set or remove a merchant's own limits, which go before its tier's."`
	Credit  merchantCredit  `cmd:"" help:"Add money to a merchant's balance that came in outside of this service."`
	Debit   merchantDebit   `cmd:"" help:"Take money from a merchant's balance."`
	List    merchantList    `cmd:"" help:"List merchants."`
	Show    merchantShow    `cmd:"" help:"Show a merchant with its keys and connections."`
	Audit   merchantAudit   `cmd:"" help:"List the changes that were made to a merchant, and who signed in, the newest first."`
}

type merchantInvited struct{ adminapi.MerchantID }

// Run prints a row for each invitation.
func (c *merchantInvited) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showInvitations(adminapi.ListInvitations.Call(ctx, admin, c.MerchantID))
}

type merchantRevoke struct{ adminapi.Uninvitation }

// Run ends the invitation and prints the others.
func (c *merchantRevoke) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showInvitations(adminapi.RevokeInvitation.Call(ctx, admin, c.Uninvitation))
}

func (p *program) showInvitations(list []adminapi.Invitation, err error) error {
	if err != nil {
		return err
	}
	return p.show(list, table(list)...)
}

type merchantCreate struct{ adminapi.NewMerchant }

// Run prints the merchant and its secrets.
func (c *merchantCreate) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	m, err := adminapi.CreateMerchant.Call(ctx, admin, c.NewMerchant)
	if err != nil {
		return err
	}
	return p.show(m,
		[]string{"merchant_id", m.MerchantID}, []string{"name", m.Name}, []string{"tier", m.Tier}, []string{"status", m.Status},
		[]string{"live_key", m.LiveKey}, []string{"test_key", m.TestKey},
		[]string{"callback_secret", m.CallbackSecret}, []string{"test_callback_secret", m.TestCallbackSecret})
}

type merchantSuspend struct {
	adminapi.StatusChange
	dryRun
}

// Run stops the merchant.
func (c *merchantSuspend) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if c.DryRun {
		return c.try(ctx, p, admin, adminapi.MerchantTrial{MerchantID: c.Merchant, Suspend: true})
	}
	return p.showMerchant(adminapi.SuspendMerchant.Call(ctx, admin, c.StatusChange))
}

type merchantResume struct{ adminapi.StatusChange }

// Run lets the merchant go on.
func (c *merchantResume) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showMerchant(adminapi.ResumeMerchant.Call(ctx, admin, c.StatusChange))
}

type merchantTier struct {
	adminapi.TierChange
	dryRun
}

// Run moves the merchant.
func (c *merchantTier) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if c.DryRun {
		return c.try(ctx, p, admin, adminapi.MerchantTrial{MerchantID: c.Merchant, Tier: c.Tier})
	}
	return p.showMerchant(adminapi.SetTier.Call(ctx, admin, c.TierChange))
}

type merchantLabel struct {
	Merchant string            `arg:"" help:"The merchant's id."`
	Label    map[string]string `arg:"" optional:"" placeholder:"NAME=VALUE" help:"Those to give: for policies, time_zone, and what payers see."`
	Remove   []string          `placeholder:"NAME" help:"One to take away; may be repeated."`
	Reason   string            `help:"Why; kept in the audit."`
}

// Run changes the labels.
func (c *merchantLabel) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	change := adminapi.LabelChange{Merchant: c.Merchant, Labels: map[string]*string{}, Reason: c.Reason}
	for name, value := range c.Label {
		change.Labels[name] = &value
	}
	for _, name := range c.Remove {
		change.Labels[name] = nil
	}
	if len(change.Labels) == 0 {
		return usage(errors.New("NAME=VALUE or --remove NAME must be given"))
	}
	return p.showMerchant(adminapi.SetLabels.Call(ctx, admin, change))
}

// showMerchant prints a merchant after a change.
func (p *program) showMerchant(m adminapi.Merchant, err error) error {
	if err != nil {
		return err
	}
	return p.show(m, table([]adminapi.Merchant{m})...)
}

// listPage is how many merchants are asked for at once.
const listPage = 500

type merchantList struct{}

// Run prints all merchants.
func (*merchantList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	merchants, err := allMerchants(ctx, admin)
	if err != nil {
		return err
	}
	return p.show(merchants, table(merchants)...)
}

// allMerchants are those of all pages.
func allMerchants(ctx context.Context, admin *adminapi.Client) ([]adminapi.Merchant, error) {
	merchants := []adminapi.Merchant{}
	for after := ""; ; {
		page, err := adminapi.ListMerchants.Call(ctx, admin, adminapi.MerchantFilter{After: after, Limit: listPage})
		if err != nil {
			return nil, err
		}
		merchants = append(merchants, page.Merchants...)
		if after = page.Next; after == "" {
			return merchants, nil
		}
	}
}

type merchantShow struct{ adminapi.MerchantID }

// Run prints the merchant without any secret.
func (c *merchantShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	m, err := adminapi.ShowMerchant.Call(ctx, admin, c.MerchantID)
	if err != nil {
		return err
	}
	rows := [][]string{
		{"merchant_id", m.MerchantID}, {"name", m.Name}, {"tier", m.Tier}, {"status", m.Status},
		{"created", timeText(&m.CreatedAt)}, {"version", strconv.FormatInt(m.Version, 10)},
	}
	for _, k := range m.Keys {
		state := "usable"
		if !k.Usable {
			state = "ended"
		}
		rows = append(rows, []string{"key", k.KeyID, k.Mode, state, strings.Join(k.Scopes, ","), k.Name, "expires " + timeText(k.ExpiresAt), strings.Join(k.IPs, ",")})
	}
	for _, connection := range m.Connections {
		rows = append(rows, []string{
			"connection", connection.Provider, connection.Mode, connection.Owner,
			"version " + strconv.FormatInt(connection.Version, 10), connection.NotifyURL,
		})
	}
	for _, l := range m.Limits {
		rows = append(rows, append([]string{"limit"}, limitRow(l)...))
	}
	for _, setup := range m.Callbacks {
		rows = append(rows, []string{"callbacks", setup.Mode, "rotation " + setup.Rotation, setup.URL})
	}
	return p.show(m, rows...)
}
