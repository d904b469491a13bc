package console

import (
	"context"
	"strings"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Around reads what happened around a movement's story.
type Around interface {
	NotesOf(ctx context.Context, id movement.ID) ([]movement.Note, error)
	PostingsOf(ctx context.Context, owner movement.Owner, id movement.ID) ([]ledger.Transaction, error)
	CallbacksOfMovement(ctx context.Context, owner movement.Owner, id movement.ID, story []movement.HistoryEntry) ([]movement.Callback, error)
	OverridesOf(ctx context.Context, id movement.ID) ([]movement.Override, error)
}

func (c *Console) showMovement(x *call) (any, error) {
	m, err := c.movementNamed(x, x.request.PathValue("movement"))
	if err != nil {
		return nil, err
	}
	ctx := x.request.Context()
	story, err := c.deps.Movements.History(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	out := movementDocument(m, story)
	if err := c.addTrail(ctx, m, &out); err != nil {
		return nil, err
	}
	callbacks, err := c.deps.Around.CallbacksOfMovement(ctx, m.Owner, m.ID, story)
	if err != nil {
		return nil, err
	}
	for _, callback := range callbacks {
		attempts, err := c.deps.Callbacks.Attempts(ctx, callback.CallbackKey)
		if err != nil {
			return nil, err
		}
		shown := callbackDocument(callback)
		shown.Attempts = attemptDocuments(attempts)
		out.Callbacks = append(out.Callbacks, shown)
	}
	return out, nil
}

// addTrail adds what is kept beside the movement and its story.
func (c *Console) addTrail(ctx context.Context, m movement.Movement, out *adminapi.Movement) error {
	notes, err := c.deps.Around.NotesOf(ctx, m.ID)
	if err != nil {
		return err
	}
	for _, n := range notes {
		out.Notes = append(out.Notes, adminapi.Note(n))
	}
	postings, err := c.deps.Around.PostingsOf(ctx, m.Owner, m.ID)
	if err != nil {
		return err
	}
	for _, p := range postings {
		out.Postings = append(out.Postings, adminapi.Posting{
			Attempt: p.Attempt, Kind: string(p.Kind), At: p.At, Available: adminapi.Rupiah(p.Available), Held: adminapi.Rupiah(p.Held),
			Margin: adminapi.Rupiah(p.Margin), Cost: adminapi.Rupiah(p.Legs.Cost), Deposit: adminapi.Rupiah(p.Deposit),
		})
	}
	decisions, err := c.deps.Around.OverridesOf(ctx, m.ID)
	if err != nil {
		return err
	}
	for _, d := range decisions {
		out.Overrides = append(out.Overrides, verdictDocument(d))
	}
	entries, err := c.deps.Attention.ExceptionsOf(ctx, m.Owner, m.ID.String())
	for _, a := range entries {
		out.Exceptions = append(out.Exceptions, adminapi.Attended{
			Reason: a.Reason, FactID: a.FactID, Detail: a.Detail, At: a.At,
			ResolvedAt: given(a.ResolvedAt), ResolvedBy: a.ResolvedBy, Resolution: a.Resolution,
		})
	}
	return err
}

func verdictDocument(d movement.Override) adminapi.Override {
	return adminapi.Override{
		Attempt: d.Attempt, As: string(d.Outcome), Operator: d.Operator, Reason: d.Reason, At: d.At, Alone: d.Alone,
		ConfirmedBy: d.ConfirmedBy, ConfirmedReason: d.ConfirmedReason, ConfirmedAt: given(d.ConfirmedAt),
	}
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

// shownReference is a reference as its merchant knows it: one that we have made
// for a transfer without any begins with a control character, and is nobody's.
func shownReference(reference string) string {
	if strings.IndexFunc(reference, unicode.IsControl) == 0 {
		return ""
	}
	return reference
}
