package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type waitingCommand struct{}

// Run prints a row for each thing that waits, with the command that decides it.
func (*waitingCommand) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	all, err := adminapi.ListWaiting.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return err
	}
	rows := [][]string{{"WHAT", "SINCE", "ASKED BY", "MERCHANT", "ABOUT", "REASON", "DECIDED BY"}}
	for _, o := range all.Overrides {
		rows = append(rows, []string{
			"override as " + string(o.Override.Outcome), timeText(&o.Override.At), o.Override.Operator, o.MerchantID, cmp.Or(o.Reference, o.ID), o.Override.Reason,
			"gerbang " + o.Kind + " override " + o.ID + " --as " + string(o.Override.Outcome) + " --reason WHY",
		})
	}
	for _, a := range all.Assignments {
		rows = append(rows, []string{
			"assignment", timeText(&a.At), a.Operator, a.MerchantID, a.Amount.Format() + ", " + a.Payment + " to " + a.Movement, a.Reason,
			"gerbang statement assign " + shellWord(a.Payment) + " " + a.Movement + " --reason WHY",
		})
	}
	for _, a := range all.Refunds {
		rows = append(rows, []string{
			"refund", timeText(&a.At), a.Operator, a.MerchantID, a.Amount.Format() + " of " + a.Movement, a.Reason,
			"gerbang payment refund " + a.Movement + " --amount " + a.Amount.String() + " --refund-id " + shellWord(a.RefundID) + " --reason WHY",
		})
	}
	for _, a := range all.Adjustments {
		rows = append(rows, []string{
			a.Kind, timeText(&a.RequestedAt), a.RequestedBy, a.MerchantID, a.Amount.Format() + ", " + a.Reference, a.Reason,
			"gerbang ledger approve " + a.MerchantID + " " + shellWord(a.Reference) + " --mode " + a.Mode,
		})
	}
	for _, a := range all.Activations {
		rows = append(rows, []string{
			"policy", timeText(&a.RequestedAt), a.RequestedBy, "-", short(a.Version) + " instead of " + short(a.Replaces), dash(a.Reason),
			"gerbang policy activate " + short(a.Version) + " --replaces " + short(a.Replaces),
		})
	}
	for _, a := range all.Approvals {
		rows = append(rows, []string{
			"plugin", timeText(&a.ApprovedAt), a.ApprovedBy, "-", a.Provider + " " + a.Version + " " + short(a.SHA256), a.Evidence, "gerbang plugin confirm " + a.ApprovalID,
		})
	}
	for _, e := range all.Exceptions {
		rows = append(rows, []string{
			"exception", timeText(&e.At), "-", e.MerchantID, e.Subject, e.Reason + ": " + e.Detail, "gerbang exception resolve " + e.ID + " --resolution HOW",
		})
	}
	return p.show(all, rows...)
}

// short is how people write a digest.
func short(digest string) string { return digest[:min(len(digest), 12)] }

// shellWord quotes what a shell would read otherwise.
func shellWord(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_./:", r)
	}) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

type pluginConfirm struct{ adminapi.ApprovalID }

// Run confirms what another operator approved.
func (c *pluginConfirm) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	approved, err := adminapi.ConfirmPlugin.Call(ctx, admin, c.ApprovalID)
	if err != nil {
		return err
	}
	return p.show(approved, approvalRows(approved)...)
}
