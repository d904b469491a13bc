package console

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// logged is what the log of decisions has of a decision: what was counted in its second
// that may be the one, and its own input where that was kept.
type logged struct {
	series []decision.Series
	input  *decision.Input
}

// merchants are those of what was counted, each once.
func (l logged) merchants() []tenants.MerchantID {
	var ids []tenants.MerchantID
	for _, s := range l.series {
		if id := tenants.MerchantID(s.Merchant); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// record is the version of the record that was decided on, 0 where several may be.
func (l logged) record() int64 {
	if l.input != nil {
		return l.input.Record
	}
	for _, s := range l.series {
		if s.Record != l.series[0].Record {
			return 0
		}
	}
	if len(l.series) == 0 {
		return 0
	}
	return l.series[0].Record
}

// logged reads the minute of a decision.
func (c *Console) logged(ctx context.Context, f decision.Facts, id string) (logged, error) {
	var found logged
	if c.deps.Decisions.Past == nil {
		return found, nil
	}
	minute := f.At.Truncate(time.Minute)
	parts, err := c.deps.Decisions.Past.Decisions(ctx, minute, minute.Add(time.Minute))
	if err != nil {
		return found, err
	}
	for _, part := range parts {
		counted, err := decision.Unpack(part.Counts)
		if err != nil {
			return found, err
		}
		for _, series := range counted {
			if counts(series, f) {
				found.series = append(found.series, series.Series)
			}
		}
		if part.Inputs == nil {
			continue
		}
		inputs, err := c.inputs(part.Inputs)
		if err != nil {
			return found, err
		}
		for _, in := range inputs {
			if in.ID.String() == id {
				found.input = &in
				found.series = []decision.Series{in.Series}
				return found, nil
			}
		}
	}
	return found, nil
}

// inputs opens what is kept of refused requests, nothing where the key that sealed it is
// gone.
func (c *Console) inputs(sealed []byte) ([]decision.Input, error) {
	opened, err := c.deps.Decisions.Open(sealed)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	return decision.UnpackInputs(opened)
}

// counts reports whether a series counts what an id tells, in its second.
func counts(c decision.Counted, f decision.Facts) bool {
	return c.Outcome != decision.Unused && c.Rule == f.Rule && c.Live == f.Live && decision.MerchantDigest(c.Merchant) == f.Merchant &&
		decision.OperationDigest(c.Operation) == f.Operation && decision.VersionDigest(c.Version) == f.Version &&
		slices.ContainsFunc(c.Counts, func(n decision.Count) bool { return int(n.Second) == f.At.Second() })
}

// recordThen is a merchant's record as it was decided on, and whether it is not the one of
// now.
func (c *Console) recordThen(ctx context.Context, m tenants.Merchant, version int64) (tenants.Merchant, bool, error) {
	if version == m.Version {
		return m, true, nil
	}
	if version == 0 {
		return m, false, nil
	}
	then, err := c.deps.Decisions.Past.MerchantRecord(ctx, m.ID, version)
	if errors.Is(err, store.ErrNotFound) {
		return m, false, nil
	}
	return then, err == nil, err
}

// asked is what the policy was asked about a request whose input was kept.
func (c *Console) asked(e *explained) policy.AdmitInput {
	in := e.logged.input
	return policy.AdmitInput{
		Merchant: admission.RecordOf(e.record), Mode: e.mode(), Amount: in.Amount, Fields: in.Fields, Parties: in.Parties,
		Lists:     in.Lists,
		Operation: policyOperation(e.operations[0]), Now: in.At.In(admission.ZoneOf(tenants.Merchant{}, c.config.Location)),
	}.Quoted(in.Quote)
}

// reasons puts what the policy said to a merchant in place of its rules, as far as the
// input was kept.
func (c *Console) reasons(ctx context.Context, e *explained, out *adminapi.Decision) error {
	if _, ofPolicy := e.Rule.PolicyNumber(); !ofPolicy || e.logged.input == nil || len(e.sets) != 1 || len(e.operations) != 1 || !e.known {
		return nil
	}
	explained, err := e.sets[0].Explain(ctx, c.asked(e))
	if err != nil || explained.Decision.Allow {
		return err
	}
	out.Places = nil
	for _, because := range explained.Because {
		out.Places = append(out.Places, placeBecause(because))
	}
	return nil
}

func placeBecause(b policy.Because) adminapi.Place {
	return adminapi.Place{File: b.Rule.File, Line: b.Rule.Line, Rule: b.Rule.Name, Reason: b.Reason}
}

// trace adds the input of a refused request and what its rules did with it. Who reads it
// stands in the merchant's audit before it is shown.
func (c *Console) trace(x *call, e *explained, out *adminapi.Decision) error {
	if !x.operator.Inputs {
		return fault.New(fault.ScopeMissing, "This operator may not read what requests asked for: its entry in the configuration needs inputs: true, or its token to be made with --inputs.")
	}
	in := e.logged.input
	if in == nil {
		out.Notes = append(out.Notes, "the input was not kept: only refused requests' are, at most 100 a second, for seven days; of an admitted one, the movement has it")
		return nil
	}
	ctx := x.request.Context()
	if err := c.deps.Merchants.NoteAudit(ctx, x.audit("decision.trace", "read the input and trace of the decision "+out.ID), tenants.MerchantID(in.Merchant)); err != nil {
		return notFound(err, "merchant")
	}
	out.Input = &adminapi.DecisionInput{Amount: in.Amount, Fields: in.Fields, Parties: in.Parties, Lists: in.Lists, Quote: in.Quote}
	if len(e.sets) != 1 || len(e.operations) != 1 || !e.known {
		out.Notes = append(out.Notes, "the rules can't be traced: the policy's version, the operation or the merchant's record is not kept")
		return nil
	}
	asked := c.asked(e)
	explained, err := e.sets[0].Explain(ctx, asked)
	if err != nil {
		return err
	}
	if !explained.Decision.Allow {
		out.Places = nil
	}
	for _, because := range explained.Because {
		out.Places = append(out.Places, placeBecause(because))
	}
	out.Trace, err = e.sets[0].Trace(ctx, asked)
	return err
}
