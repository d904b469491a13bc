package host

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// Verify asks a provider whether the credentials of a connection can be used. It
// returns no error: [sdk.Done] means yes; [sdk.Refused], or blame for the account,
// means no; anything else means that the upstream could not be asked. It is for
// connections that are not stored yet, so their version is 0.
//
// No breaker stops it and none counts it: a wrong entry in an operator's form says
// nothing of the upstream.
func (h *Host) Verify(ctx context.Context, provider string, c sdk.Connection, timeout time.Duration) sdk.Result {
	started := time.Now()
	c.Version = 0
	result := h.verify(ctx, provider, c, orDefault(timeout))
	h.record(Observation{
		Provider: provider, Mode: c.Mode, Method: "verify", Outcome: result.Outcome.String(), Took: time.Since(started),
	})
	return result
}

func (h *Host) verify(ctx context.Context, name string, c sdk.Connection, timeout time.Duration) sdk.Result {
	_, running, release, err := h.inquire(ctx, Use{Provider: name, MerchantID: c.MerchantID}, c)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := running.wire.Verify(ctx, c)
	if err != nil {
		err = running.suspect(err)
		return sdk.DontKnow(sdk.BlameNone, "plugin transport: "+err.Error())
	}
	return result
}
