package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

func (c *Console) listExceptions(x *call, wanted adminapi.ExceptionFilter) ([]adminapi.Exception, error) {
	open, err := c.deps.Exceptions.OpenExceptions(x.request.Context(), cmp.Or(wanted.Limit, defaultPage))
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.Exception, len(open))
	for i, e := range open {
		list[i] = exceptionDocument(e)
	}
	return list, nil
}

func exceptionDocument(e movement.Exception) adminapi.Exception {
	id := exceptionID(e)
	if e.Times > 1 {
		e.Detail = fmt.Sprintf("%d times: %s", e.Times, e.Detail)
	} else {
		e.Times = 0
	}
	return adminapi.Exception{ID: id, Exception: e}
}

// exceptionID is what people call an exception: the same as long as it is open.
func exceptionID(e movement.Exception) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", e.Owner.MerchantID, e.Owner.Mode, e.Subject, e.Reason, e.FactID))
	return hex.EncodeToString(sum[:6])
}

// resolveException writes no audit entry of its own: the store does, in the same statement.
func (c *Console) resolveException(x *call, r adminapi.Resolution) (out adminapi.None, err error) {
	if !plain(r.Resolution, 1, maxReason) {
		return out, fault.Invalid("resolution", "must say in 1 to 500 characters, without control characters, how it was resolved")
	}
	e := movement.Exception{
		Owner:   movement.Owner{MerchantID: r.MerchantID, Mode: r.Mode},
		Subject: r.Subject, Reason: r.Reason, FactID: r.FactID,
	}
	err = c.deps.Exceptions.ResolveException(x.request.Context(), x.now, e, x.operator.Name, r.Resolution)
	if err != nil {
		return out, notFound(err, "open exception")
	}
	return out, nil
}

// movementDocument hides the values in the callback URL, in which merchants keep
// tokens of their own. The stored request never held a key.
func movementDocument(m movement.Movement, history []movement.HistoryEntry) adminapi.Movement {
	refusal := cmp.Or(m.Refusal, &movement.Refusal{})
	return adminapi.Movement{
		ID: m.ID.String(), MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind), Reference: shownReference(m.Reference),
		Operation: m.Operation, Provider: m.Provider, State: string(m.State), Attempt: m.Attempt, Amount: m.Amount,
		Request: m.Request, Result: m.Result, RefusalCode: refusal.Code, RefusalMessage: refusal.Message,
		UpstreamReference: m.UpstreamReference(), ProviderReference: m.ProviderReference, FactID: m.FactID,
		RequestID: m.RequestID, PolicyVersion: m.PolicyVersion, DecisionID: m.DecisionID, Misses: m.Misses,
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, SendBy: given(m.SendBy), ExpiresAt: given(m.ExpiresAt),
		PolledAt: given(m.PolledAt), DueAt: given(m.DueAt), PaidLateAt: given(m.PaidLateAt), ReturnedAt: given(m.ReturnedAt),
		PaidAmount: m.PaidAmount, Returned: m.Returned(), Returns: m.Returns,
		History: append([]movement.HistoryEntry{}, history...),
		Paying: adminapi.Paying{
			ConnectionOwner: string(m.ConnectionOwner), ConnectionVersion: m.ConnectionVersion, ConnectionAccount: m.ConnectionAccount,
			Charge: string(m.Charge), Cost: m.Cost, Fee: m.Fee, NameMatch: m.NameMatch, Destination: m.Destination, Quote: m.Quote,
		},
		Trail: adminapi.Trail{Answer: m.Answer, CallbackURL: adminapi.PresentURL(m.CallbackURL)},
	}
}

// given is a time, or nothing where it is zero.
func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
