package operators

import (
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// statementSpan is how much of a statement a page shows unless it is told.
const statementSpan = 31 * 24 * time.Hour

// money is a merchant's balance and statement in a mode, with the form to credit or debit.
func (c *Console) money(r *room) error {
	ctx, id := r.Request.Context(), r.named("merchant")
	mode := r.Form("mode")
	if mode == "" {
		mode = string(tenants.Live)
	}
	balance, err := adminapi.ShowBalance.Call(ctx, r.admin, adminapi.BalanceQuery{Merchant: id, Mode: mode})
	if err != nil {
		return err
	}
	statement, err := adminapi.ListAccountStatement.Call(ctx, r.admin, adminapi.AccountStatementFilter{
		Merchant: id,
		Mode:     mode, From: c.deps.Now().Add(-statementSpan), After: r.Form("after"), Limit: pageOf,
	})
	if err != nil {
		return err
	}
	path := merchantPath(id, "/money")
	return r.Show("money.html", r.T("Balance"), map[string]any{
		"Merchant": id, "Path": merchantPath(id, ""), "Mode": mode, "Modes": modes, "Balance": balance, "Rows": statement.Entries,
		"Next": next(path+"?mode="+mode, statement.Next),
	})
}

func (c *Console) adjust(r *room) error {
	amount, err := r.whole("amount")
	if err != nil {
		return err
	}
	if amount == nil {
		return fault.Invalid("amount", "is required")
	}
	id := r.named("merchant")
	wanted := adminapi.NewAdjustment{Merchant: id, Mode: r.Form("mode"), Amount: money.Amount(*amount), Reason: r.Form("reason"), Reference: r.Form("reference")}
	change := adminapi.Credit
	switch r.Form("kind") {
	case "credit":
	case "debit":
		change = adminapi.Debit
	default:
		return fault.Invalid("kind", "must be credit or debit")
	}
	made, err := change.Call(r.Request.Context(), r.admin, wanted)
	switch {
	case err != nil:
		return err
	case made.Existed:
		return r.Go(merchantPath(id, "/money?mode="+made.Mode), "This reference was used before, with the same words: nothing was done twice.")
	case made.State == "waiting":
		return r.Go("/waiting", "It waits until another operator approves it.")
	}
	return r.Go(merchantPath(id, "/money?mode="+made.Mode), "The balance is changed.")
}

// decide approves or rejects what another operator wanted.
func (c *Console) decide(r *room) error {
	key := adminapi.AdjustmentKey{MerchantID: r.Form("merchant"), Mode: r.Form("mode"), Reference: r.Form("reference")}
	if r.Form("decision") == "approve" {
		_, err := adminapi.ApproveAdjustment.Call(r.Request.Context(), r.admin, key)
		return r.did(err, "/waiting", "It is approved and posted.")
	}
	_, err := adminapi.RejectAdjustment.Call(r.Request.Context(), r.admin, key)
	return r.did(err, "/waiting", "It is rejected.")
}
