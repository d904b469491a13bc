package host

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// Verify asks a provider whether the credentials of a connection can be used.
// It never fails: [sdk.Done] says yes, [sdk.Refused] no, and so does blame for
// the account; anything else says that the upstream could not be asked. It is
// for connections that are not stored yet, so their version travels as 0.
//
// No breaker stops it, and none learns from it: where the connection leads is
// somebody's entry in a form, and a wrong one says nothing of the upstream.
func (h *Host) Verify(ctx context.Context, provider string, c sdk.Connection, timeout time.Duration) sdk.Result {
	started := time.Now()
	c.Version = 0
	result := h.verify(ctx, provider, c, orDefault(timeout))
	h.tell(Observation{
		Provider: provider, Mode: c.Mode, Method: "verify", Outcome: result.Outcome.String(), Took: time.Since(started),
	})
	return result
}

func (h *Host) verify(ctx context.Context, name string, c sdk.Connection, timeout time.Duration) sdk.Result {
	_, running, leave, err := h.inquire(ctx, name)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := running.wire.Verify(ctx, c)
	if err != nil {
		running.suspect(err)
		return sdk.DontKnow(sdk.BlameNone, "plugin transport: "+err.Error())
	}
	return result
}
