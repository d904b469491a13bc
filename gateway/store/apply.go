package store

import (
	"context"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Apply commits a transition of a movement with its history, its posting, its
// callback event and its mail. It is false, without an error, when the movement no
// longer stands where the caller saw it.
func (s *Store) Apply(ctx context.Context, c movement.Change) (bool, error) {
	move := Move{
		Movement: c.Movement, To: c.To, Event: c.Event, Detail: c.Detail,
		Result: c.Result, Answer: c.Answer, Refusal: c.Refusal, ProviderReference: c.ProviderReference, FactID: c.FactID,
		ExpiresAt: c.ExpiresAt, PaidAt: c.PaidAt, Cost: c.Cost, DueAt: c.NextPoll,
		Unasked: c.Unpolled, AskedBefore: c.PolledBefore, Posting: c.Posting, Callback: c.Callback, Mail: c.Mail,
	}
	record := Record{ID: c.Movement.ID, At: c.HappenedAt, Detail: c.Detail, Posting: c.Posting, Callback: c.Callback}
	switch c.Effect {
	case movement.Move:
		return s.Move(ctx, c.At, move)
	case movement.LateMoney:
		return s.PaidLate(ctx, c.At, record)
	case movement.Reversal:
		return s.Reversed(ctx, c.At, record)
	case movement.Supplement:
		return s.Supplement(ctx, c.At, move)
	case movement.KeepAnswer:
		return true, s.Complete(ctx, move)
	case movement.Nothing, movement.Contradiction:
	}
	return false, fmt.Errorf("%w: effect %d is nothing to commit", ErrInvalid, c.Effect)
}
