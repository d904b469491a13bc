package console

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// listAllWaiting lists all that waits for a person.
func (c *Console) listAllWaiting(x *call, _ adminapi.None) (out adminapi.Waiting, err error) {
	ctx := x.request.Context()
	out = adminapi.Waiting{
		Overrides: []adminapi.WaitingOverride{}, Assignments: []adminapi.WaitingAssignment{}, Refunds: []adminapi.WaitingRefund{}, Adjustments: []adminapi.Adjustment{}, Activations: []adminapi.PolicyActivation{},
		Approvals: []adminapi.PluginApproval{}, Exceptions: []adminapi.Exception{},
	}
	overrides, err := c.deps.Movements.WaitingOverrides(ctx, adminapi.MostListed)
	if err != nil {
		return out, err
	}
	for _, w := range overrides {
		m := w.Movement
		out.Overrides = append(out.Overrides, adminapi.WaitingOverride{
			ID: m.ID.String(), MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind), Reference: shownReference(m.Reference),
			Provider: m.Provider, Amount: m.Amount, State: string(m.State), Override: w.Override,
		})
	}
	assignments, err := c.deps.Statements.WaitingClaims(ctx, adminapi.MostListed)
	if err != nil {
		return out, err
	}
	for _, a := range assignments {
		if refund := a.Refund(); refund != "" {
			out.Refunds = append(out.Refunds, adminapi.WaitingRefund{
				Movement: a.Movement.String(), RefundID: refund, MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode,
				Amount: a.Amount, Operator: a.Operator, Reason: a.Reason, At: a.At,
			})
			continue
		}
		out.Assignments = append(out.Assignments, adminapi.WaitingAssignment{
			Movement: a.Movement.String(), Payment: a.Payment, MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode,
			Amount: a.Amount, Operator: a.Operator, Reason: a.Reason, At: a.At,
		})
	}
	adjustments, err := c.deps.Ledger.Adjustments(ctx, store.Waiting, adminapi.MostListed)
	if err != nil {
		return out, err
	}
	for _, a := range adjustments {
		out.Adjustments = append(out.Adjustments, adjustmentDocument(a))
	}
	if out.Activations, err = c.waitingActivations(ctx, x.now); err != nil {
		return out, err
	}
	approvals, err := c.deps.Approvals.List(ctx)
	if err != nil {
		return out, err
	}
	for _, a := range approvals {
		if c.deps.Approvals.Waits(a) {
			out.Approvals = append(out.Approvals, c.approvalDocument(a))
		}
	}
	exceptions, err := c.deps.Exceptions.OpenExceptions(ctx, adminapi.MostListed)
	if err != nil {
		return out, err
	}
	for _, e := range exceptions {
		out.Exceptions = append(out.Exceptions, exceptionDocument(e))
	}
	return out, nil
}

func (c *Console) waitingActivations(ctx context.Context, now time.Time) ([]adminapi.PolicyActivation, error) {
	list := []adminapi.PolicyActivation{}
	waiting, err := c.deps.Policies.WaitingActivations(ctx, adminapi.MostListed)
	if err != nil || len(waiting) == 0 {
		return list, err
	}
	head, err := c.deps.Policies.PolicyHead(ctx)
	if err != nil {
		return nil, err
	}
	live, err := c.deps.Policies.LiveReplicas(ctx, now)
	if err != nil {
		return nil, err
	}
	for _, a := range waiting {
		list = append(list, activationOf(a, head, live))
	}
	return list, nil
}
