package host

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// Statement reads a page of a provider's statement, from a cursor on. It returns
// no error: a statement that could not be read is a page that is not Known. No
// breaker stops it, because the lines end movements. No breaker counts it, because
// one account's source says nothing of another's.
func (h *Host) Statement(ctx context.Context, provider string, s sdk.Statement, timeout time.Duration) sdk.StatementPage {
	started := time.Now()
	page := h.statement(ctx, provider, s, orDefault(timeout))
	outcome := "read"
	if !page.Known {
		outcome = "unread"
	}
	h.record(Observation{
		Provider: provider, Mode: s.Connection.Mode, Method: "statement", Outcome: outcome, Took: time.Since(started),
	})
	return page
}

func (h *Host) statement(ctx context.Context, name string, s sdk.Statement, timeout time.Duration) sdk.StatementPage {
	_, running, release, err := h.inquire(ctx, Use{Provider: name, MerchantID: s.Connection.MerchantID}, s.Connection)
	if err != nil {
		return sdk.NoStatement(sdk.BlameNone, err.Error())
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	page, err := running.wire.Statement(ctx, s)
	if err != nil {
		err = running.suspect(err)
		return sdk.NoStatement(sdk.BlameNone, "plugin transport: "+err.Error())
	}
	return page
}
