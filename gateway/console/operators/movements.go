package operators

import (
	"net/url"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
)

func movementPath(id string) string { return "/movements/" + url.PathEscape(id) }

// movement is everything about one movement.
func (c *Console) movement(r *room) error {
	m, err := adminapi.ShowMovement.Call(r.Request.Context(), r.admin, adminapi.MovementID{Movement: r.named("movement")})
	if err != nil {
		return err
	}
	title := m.Reference
	if title == "" {
		title = m.ID
	}
	return r.Show("movement.html", title, map[string]any{
		"M": m, "Title": title, "Path": movementPath(m.ID), "Documents": documentsOf(m), "Outcomes": []string{"success", "failed", "resubmit"},
	})
}

// document is JSON under a title.
type document struct{ Title, Text string }

func documentsOf(m adminapi.Movement) []document {
	return []document{
		{"What was asked", page.Pretty(m.Request)}, {"The first answer", page.Pretty(m.Answer)}, {"The provider's result", page.Pretty(m.Result)},
		{"The provider's quote", page.Pretty(m.Quote)},
	}
}

func (c *Console) override(r *room) error {
	id := r.named("movement")
	done, err := adminapi.OverrideMovement.Call(r.Request.Context(), r.admin, adminapi.NewOverride{Movement: id, As: r.Form("as"), Reason: r.Form("reason"), Alone: r.Form("alone") != ""})
	if err != nil {
		return err
	}
	if done.Waiting {
		return r.Go(movementPath(id), "It waits until another operator says the same.")
	}
	return r.Go(movementPath(id), "The outcome is decided.")
}

func (c *Console) resend(r *room) error {
	_, err := adminapi.ResendCallbacks.Call(r.Request.Context(), r.admin, adminapi.ResendOrder{Merchant: r.Form("merchant"), Mode: r.Form("mode"), EventID: r.named("event")})
	return r.did(err, movementPath(r.named("movement")), "The callback is sent again.")
}
