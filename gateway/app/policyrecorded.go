package app

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// recordedEach is how many movements, and how many refused requests, a set is asked about.
	recordedEach = 200
	// recordedEnough is from when movements of a wider span are not looked for: a busy gateway has enough in seconds, and
	// reading its day would take long.
	recordedEnough = 50
	// refusedWithin is how far back refused requests are read.
	refusedWithin = 5 * time.Minute
)

// recordedWithin are the spans in which movements are looked for.
var recordedWithin = []time.Duration{10 * time.Second, 10 * time.Minute, 24 * time.Hour}

// recorder turns what merchants have asked for into what a policy sees.
type recorder struct {
	app      *App
	snapshot *catalog.Snapshot
	zone     *time.Location
	accounts map[tenants.MerchantID]*tenants.Account // nil for those that are gone
}

// recorded are requests of late, those that moved money and those that were refused. What can't be read any more, because
// its merchant or operation is gone or the keyset has changed, is passed over.
func (a *App) recorded(ctx context.Context, snapshot *catalog.Snapshot) ([]policy.AdmitInput, error) {
	zone, err := time.LoadLocation(a.config.Zone)
	if err != nil {
		return nil, err
	}
	r := &recorder{a, snapshot, zone, map[tenants.MerchantID]*tenants.Account{}}
	moved, err := r.moved(ctx)
	if err != nil {
		return nil, err
	}
	refused, err := r.refused(ctx)
	return append(moved, refused...), err
}

// moved are the requests of movements.
func (r *recorder) moved(ctx context.Context) ([]policy.AdmitInput, error) {
	now := r.app.clock.Now()
	var found []movement.Movement
	for _, within := range recordedWithin {
		var err error
		found, err = r.app.store.MovementsDecided(ctx, store.DecidedRange{Since: now.Add(-within), Before: now, Most: recordedEach})
		if err != nil {
			return nil, err
		}
		if len(found) >= recordedEnough {
			break
		}
	}
	var inputs []policy.AdmitInput
	for _, m := range found {
		account, op, err := r.whose(ctx, m.Owner.MerchantID, m.Operation)
		if err != nil {
			return nil, err
		}
		if account == nil || op == nil {
			continue
		}
		body, err := jsonbody.Read(m.Body(), func(string) func(jsontext.Value) error { return nil })
		if err != nil {
			continue // another version of the program has taken it
		}
		in, err := admission.InputOf(m.CreatedAt, r.zone, account, tenants.Mode(m.Owner.Mode), op, body)
		if err != nil {
			continue // another version of the manifest has taken it
		}
		in.Destination = cmp.Or(m.Destination, in.Destination)
		in.Lists = r.app.lists.Of(in)
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// refused are the requests that were refused and kept.
func (r *recorder) refused(ctx context.Context) ([]policy.AdmitInput, error) {
	now := r.app.clock.Now()
	parts, err := r.app.store.Decisions(ctx, now.Add(-refusedWithin), now)
	if err != nil {
		return nil, err
	}
	var inputs []policy.AdmitInput
	for _, part := range parts {
		for _, kept := range r.opened(ctx, part) {
			if len(inputs) >= recordedEach {
				return inputs, nil
			}
			account, op, err := r.whose(ctx, kept.Merchant, kept.Operation)
			if err != nil {
				return nil, err
			}
			if account == nil || op == nil {
				continue
			}
			mode := tenants.Test
			if kept.Live {
				mode = tenants.Live
			}
			in, err := admission.InputOf(kept.At, r.zone, account, mode, op, nil)
			if err != nil {
				continue // as with movements
			}
			in.Amount, in.Fields, in.Parties = kept.Amount, kept.Fields, kept.Parties
			in.Lists = kept.Lists
			inputs = append(inputs, in.Quoted(kept.Quote))
		}
	}
	return inputs, nil
}

// opened are the inputs of a part of the log, none where it can't be opened.
func (r *recorder) opened(ctx context.Context, part store.DecisionPart) []decision.Input {
	if len(part.Inputs) == 0 {
		return nil
	}
	packed, err := r.app.vault.OpenDecisions(part.Inputs)
	if err == nil {
		var inputs []decision.Input
		if inputs, err = decision.UnpackInputs(packed); err == nil {
			return inputs
		}
	}
	r.app.log.WarnContext(ctx, "a push is judged without some refused requests: they can't be opened", "minute", part.Minute, "error", err)
	return nil
}

// whose are the merchant and the operation of a request, nil where they are gone.
func (r *recorder) whose(ctx context.Context, merchant, path string) (*tenants.Account, *catalog.Operation, error) {
	op, _ := r.snapshot.ByPath(path) // nil where it is gone
	id := tenants.MerchantID(merchant)
	account, asked := r.accounts[id]
	if !asked {
		var err error
		account, err = r.app.store.AccountByID(ctx, id)
		if err != nil && !errors.Is(err, tenants.ErrNotFound) {
			return nil, nil, err
		}
		r.accounts[id] = account
	}
	return account, op, nil
}
