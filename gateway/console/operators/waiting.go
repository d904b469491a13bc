package operators

import (
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// waiting is all that waits for a person. What the visitor has asked for is another
// operator's to decide.
func (c *Console) waiting(r *room) error {
	all, err := adminapi.ListWaiting.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	return r.Show("waiting.html", r.T("Waiting"), map[string]any{"W": all, "Me": r.By(), "Most": adminapi.MostListed})
}

// confirmOverride says the same as another operator.
func (c *Console) confirmOverride(r *room) error {
	done, err := adminapi.OverrideMovement.Call(r.Request.Context(), r.admin, adminapi.NewOverride{Movement: r.Form("movement"), As: r.Form("as"), Reason: r.Form("reason")})
	if err == nil && done.Waiting { // of one's own, or of another attempt than the one that was shown
		return r.Go("/waiting", "It waits until another operator says the same.")
	}
	return r.did(err, "/waiting", "The outcome is decided.")
}

// confirmRefund says the same as another operator.
func (c *Console) confirmRefund(r *room) error {
	amount, err := money.Parse(r.Form("amount"))
	if err != nil {
		return err
	}
	done, err := adminapi.RefundPayment.Call(r.Request.Context(), r.admin, adminapi.NewRefund{
		Movement: r.Form("movement"), RefundID: r.Form("refund_id"), Amount: &amount, Reason: r.Form("reason"),
	})
	if err == nil && done.Waiting {
		return r.Go("/waiting", "It waits until another operator says the same.")
	}
	return r.did(err, "/waiting", "The refund is ordered.")
}

// confirmProvider confirms another operator's approval.
func (c *Console) confirmProvider(r *room) error {
	_, err := adminapi.ConfirmPlugin.Call(r.Request.Context(), r.admin, adminapi.ApprovalID{Approval: r.Form("approval")})
	return r.did(err, "/waiting", "The approval is confirmed. It can be activated on the provider's page.")
}

func (c *Console) resolve(r *room) error {
	_, err := adminapi.ResolveException.Call(r.Request.Context(), r.admin, adminapi.Resolution{
		MerchantID: r.Form("merchant"), Mode: r.Form("mode"), Subject: r.Form("subject"), Reason: r.Form("reason"), FactID: r.Form("fact"),
		Resolution: r.Form("resolution"),
	})
	return r.did(err, "/waiting", "The exception is resolved.")
}

// statementLines are a merchant's lines that pay no collection.
func (c *Console) statementLines(r *room) error {
	span, err := r.Span(c.config.Location)
	if err != nil {
		return err
	}
	lines, err := adminapi.ListStatementLines.Call(r.Request.Context(), r.admin, adminapi.LineFilter{
		MerchantID: tenants.MerchantID(r.named("merchant")), Until: span.Until, After: span.After, Limit: pageOf,
	})
	if err != nil {
		return err
	}
	older := ""
	if len(lines) == pageOf {
		last := lines[pageOf-1]
		older = span.Older(merchantPath(r.named("merchant"), "/statement-lines"), nil, last.At, last.ID)
	}
	return r.Show("lines.html", r.T("Statement lines"), map[string]any{
		"Rows": lines, "Merchant": r.named("merchant"), "Path": merchantPath(r.named("merchant"), ""), "Next": older,
	})
}

func (c *Console) assign(r *room) error {
	done, err := adminapi.AssignStatementLine.Call(r.Request.Context(), r.admin, adminapi.NewAssignment{Movement: r.Form("movement"), Payment: r.Form("payment"), Reason: r.Form("reason")})
	if err == nil && done.Waiting {
		return r.Go("/waiting", "It waits until another operator says the same.")
	}
	return r.did(err, merchantPath(r.named("merchant"), "/statement-lines"), "The line pays that collection now.")
}
