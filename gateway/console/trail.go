package console

import (
	"context"
	"strings"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

func (c *Console) showMovement(x *call, wanted adminapi.MovementID) (out adminapi.Movement, err error) {
	m, err := c.movementNamed(x, wanted.Movement)
	if err != nil {
		return out, err
	}
	ctx := x.request.Context()
	history, err := c.deps.Movements.History(ctx, m.ID)
	if err != nil {
		return out, err
	}
	out = movementDocument(m, history)
	if err := c.addTrail(ctx, m, &out); err != nil {
		return out, err
	}
	callbacks, err := c.deps.Movements.CallbacksOfMovement(ctx, m.Owner, m.ID, history)
	if err != nil {
		return out, err
	}
	for _, callback := range callbacks {
		attempts, err := c.deps.Callbacks.Attempts(ctx, callback.CallbackKey)
		if err != nil {
			return out, err
		}
		shown := callbackDocument(callback)
		shown.Attempts = attemptDocuments(attempts)
		out.Callbacks = append(out.Callbacks, shown)
	}
	return out, nil
}

// addTrail adds what is kept beside the movement and its history.
func (c *Console) addTrail(ctx context.Context, m movement.Movement, out *adminapi.Movement) error {
	var err error
	if out.Notes, err = c.deps.Movements.NotesOf(ctx, m.ID); err != nil {
		return err
	}
	postings, err := c.deps.Movements.PostingsOf(ctx, m.Owner, m.ID)
	if err != nil {
		return err
	}
	for _, p := range postings {
		out.Postings = append(out.Postings, adminapi.Posting{
			Attempt: p.Attempt, Kind: string(p.Kind), At: p.At, Available: adminapi.Rupiah(p.Available), Held: adminapi.Rupiah(p.Held),
			Margin: adminapi.Rupiah(p.Margin), Cost: adminapi.Rupiah(p.Legs.Cost), Deposit: adminapi.Rupiah(p.Deposit),
		})
	}
	if out.Overrides, err = c.deps.Movements.OverridesOf(ctx, m.ID); err != nil {
		return err
	}
	exceptions, err := c.deps.Exceptions.ExceptionsOf(ctx, m.Owner, m.ID.String())
	for _, e := range exceptions {
		out.Exceptions = append(out.Exceptions, exceptionDocument(e))
	}
	return err
}

func attemptDocuments(attempts []movement.CallbackAttempt) []adminapi.CallbackAttempt {
	var out []adminapi.CallbackAttempt
	for _, a := range attempts {
		out = append(out, adminapi.CallbackAttempt{
			At: a.At, DurationMS: a.Took.Milliseconds(), Status: a.Status, Outcome: a.Outcome, Fault: a.Fault, Answer: a.Answer,
		})
	}
	return out
}

// shownReference is a reference as its merchant knows it. One that we have made for
// a transfer without any begins with a control character and is not shown.
func shownReference(reference string) string {
	if strings.IndexFunc(reference, unicode.IsControl) == 0 {
		return ""
	}
	return reference
}
