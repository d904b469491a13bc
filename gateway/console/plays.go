package console

import (
	"context"
	"errors"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Simulators play providers for test movements.
type Simulators interface {
	Do(ctx context.Context, m movement.Movement, play sandbox.Play, amount money.Amount) error
}

// playMovement has something happen to a test movement at its provider's simulator.
func (c *Console) playMovement(x *call, wanted adminapi.NewPlay) (out adminapi.None, err error) {
	none := fault.New(fault.NotFound, "There is no such test movement.")
	id, _, ok := ourName(wanted.Movement)
	if !ok || c.deps.Simulators == nil {
		return out, none
	}
	if wanted.Amount < 0 {
		return out, fault.Invalid("amount", "must be 1 rupiah at least, or left out for all of it")
	}
	m, err := c.deps.Movements.MovementByID(x.request.Context(), id)
	if errors.Is(err, store.ErrNotFound) || err == nil && (m.Owner.Mode != string(tenants.Test) || x.operator.Of != "" && m.Owner.MerchantID != string(x.operator.Of)) {
		return out, none
	}
	if err != nil {
		return out, err
	}
	if err := c.deps.Simulators.Do(x.request.Context(), m, sandbox.Play(wanted.Play), wanted.Amount); err != nil {
		return out, err
	}
	audit := x.audit("movement.play", wanted.Play+" of "+m.ID.String()+", mode "+m.Owner.Mode)
	return out, c.deps.Merchants.NoteAudit(x.request.Context(), audit, tenants.MerchantID(m.Owner.MerchantID))
}
