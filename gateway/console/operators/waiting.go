package operators

import (
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// waiting is all that waits for a person.
func (c *Console) waiting(r *room) error {
	ctx := r.Request.Context()
	exceptions, err := r.admin.Exceptions(ctx)
	if err != nil {
		return err
	}
	adjustments, err := r.admin.Waiting(ctx)
	if err != nil {
		return err
	}
	return r.Show("waiting.html", r.T("Waiting"), map[string]any{"Exceptions": exceptions, "Adjustments": adjustments, "Most": adminapi.MostListed})
}

func (c *Console) resolve(r *room) error {
	return r.did(r.admin.ResolveException(r.Request.Context(), adminapi.Resolution{
		MerchantID: r.Form("merchant"), Mode: r.Form("mode"), Subject: r.Form("subject"), Reason: r.Form("reason"), FactID: r.Form("fact"),
		Resolution: r.Form("resolution"),
	}), "/waiting", "The exception is resolved.")
}

// statementLines are a merchant's lines that pay no collection.
func (c *Console) statementLines(r *room) error {
	lines, err := r.admin.StatementLines(r.Request.Context(), r.named("merchant"))
	if err != nil {
		return err
	}
	return r.Show("lines.html", r.T("Statement lines"), map[string]any{"Rows": lines, "Merchant": r.named("merchant"), "Path": merchantPath(r.named("merchant"), "")})
}

func (c *Console) assign(r *room) error {
	_, err := r.admin.Assign(r.Request.Context(), r.Form("movement"), adminapi.NewAssignment{Payment: r.Form("payment"), Reason: r.Form("reason")})
	return r.did(err, merchantPath(r.named("merchant"), "/statement-lines"), "The line pays that collection now.")
}
