package host

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// Statement reads a provider's books from a cursor on. It never fails: books
// that could not be read are a report that is not known. No breaker stops it,
// and none learns from it: what it reads ends movements, and where one account's
// books lie says nothing of another's.
func (h *Host) Statement(ctx context.Context, provider string, s sdk.Statement, timeout time.Duration) sdk.StatementPage {
	started := time.Now()
	report := h.statement(ctx, provider, s, orDefault(timeout))
	outcome := "read"
	if !report.Known {
		outcome = "unread"
	}
	h.tell(Observation{
		Provider: provider, Mode: s.Connection.Mode, Method: "statement", Outcome: outcome, Took: time.Since(started),
	})
	return report
}

func (h *Host) statement(ctx context.Context, name string, s sdk.Statement, timeout time.Duration) sdk.StatementPage {
	_, running, leave, err := h.inquire(ctx, name)
	if err != nil {
		return sdk.NoStatement(sdk.BlameNone, err.Error())
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	report, err := running.wire.Statement(ctx, s)
	if err != nil {
		running.suspect(err)
		return sdk.NoStatement(sdk.BlameNone, "plugin transport: "+err.Error())
	}
	return report
}
