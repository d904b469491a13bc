package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// tryPolicyTime bounds the work on one case, and on the set of a trial on the past: one that is no version is compiled and
// its tests run.
const tryPolicyTime = 15 * time.Second

// tryPolicy asks any version, or a set that is none, about a request that nobody made.
func (c *Console) tryPolicy(x *call, wanted adminapi.PolicyCase) (out adminapi.PolicyAnswer, err error) {
	ctx, cancel := context.WithTimeout(x.request.Context(), tryPolicyTime)
	defer cancel()
	op, ok := c.deps.Catalog.Current().ByPath(wanted.Operation)
	if !ok {
		return out, fault.Invalid("operation", "must be the path of one, such as "+catalog.BalancePath)
	}
	in, err := c.caseInput(ctx, x.now, op, wanted)
	if err != nil {
		return out, err
	}
	source, err := c.sourceToTry(ctx, wanted.Version, wanted.Files)
	if err != nil {
		return out, err
	}
	trial, named, err := c.deps.Decisions.Judge.Try(ctx, source, in)
	if err != nil {
		return out, triedFault("files", err)
	}
	answer := trialDocument(trial, in)
	if err := admission.Named(func(string) bool { return named }, op); err != nil { // before any rule is asked
		answer.Allow, answer.Reasons = false, []adminapi.PolicyReason{{Reason: fault.From(err).Message}}
	}
	return answer, nil
}

// sourceToTry is the set that is asked: a version, the one in force where none is named, or files that are none yet, read as
// a push reads them.
func (c *Console) sourceToTry(ctx context.Context, version string, files map[string]string) (policy.Source, error) {
	switch {
	case len(files) > 0 && version != "":
		return nil, fault.Invalid("version", "can't be given with files")
	case len(files) > 0:
		source, err := c.deps.Publisher.Whole(ctx, sourceOf(files))
		return source, policyFault(err)
	case version == "" || version == versionInForce:
		return c.deps.Policy().Source(), nil
	}
	v, err := c.deps.Publisher.Find(ctx, version)
	if err != nil {
		return nil, policyFault(err)
	}
	if c.deps.Publisher.Vault.VerifyPolicy(v.MAC, v.Digest()) != nil {
		return nil, fault.New(fault.NotFound, "This policy version can't be used: no gateway with this keyset has written it.")
	}
	source, err := c.deps.Publisher.Source(ctx, v.Version)
	return source, policyFault(err)
}

// triedFault tells what is wrong with a set that was tried.
func triedFault(field string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Invalid(field, fmt.Sprintf("take longer than %s to compile and test", tryPolicyTime))
	}
	return problemsFault(field, err)
}

// problemsFault tells what is wrong with a set.
func problemsFault(field string, err error) error {
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		return fault.Invalid(field, "is no policy that could answer: "+wrong.Error())
	}
	return err
}

// caseInput is what rules would see of the request.
func (c *Console) caseInput(ctx context.Context, now time.Time, op *catalog.Operation, wanted adminapi.PolicyCase) (policy.AdmitInput, error) {
	none := policy.AdmitInput{}
	at, err := c.caseTime(now, wanted.At)
	if err != nil {
		return none, err
	}
	mode := tenants.Mode(cmp.Or(wanted.Mode, string(tenants.Live)))
	if mode != tenants.Live && mode != tenants.Test {
		return none, fault.Invalid("mode", "must be live or test")
	}
	if wanted.Merchant == string(tenants.Platform) {
		return none, platformRefused()
	}
	account, err := c.deps.Merchants.AccountByID(ctx, tenants.MerchantID(wanted.Merchant))
	if err != nil {
		return none, notFound(err, "merchant")
	}
	body, err := caseBody(op, wanted.Input)
	if err != nil {
		return none, err
	}
	in, err := admission.InputOf(at, c.config.Location, account, mode, op, body)
	if err != nil {
		return none, err
	}
	if in, err = caseQuote(in, wanted.Quote); err != nil {
		return none, err
	}
	in.Lists = c.deps.Listing.Of(in)
	return in, nil
}

// caseTime reads when the case is.
func (c *Console) caseTime(now time.Time, text string) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	const wall = "2006-01-02 15:04"
	at, err := time.ParseInLocation(wall, text, admission.ZoneOf(tenants.Merchant{}, c.config.Location))
	if err != nil {
		return at, fault.Invalid("at", "must be a time such as 2026-11-20T23:30:00+07:00, or 2026-11-20 23:30 in the gateway's time zone")
	}
	return at, nil
}

// caseBody reads a request's body as the merchants' listener does: without key and merchant, and held against the schema.
func caseBody(op *catalog.Operation, input json.RawMessage) (catalog.Document, error) {
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	skip := func(jsontext.Value) error { return nil }
	body, err := jsonbody.Read(input, func(name string) func(jsontext.Value) error {
		if name == "secret_key" || name == "merchant_id" {
			return skip
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if wrong := op.Check(body); len(wrong) > 0 {
		return nil, fault.Invalid("input."+wrong[0].Field, wrong[0].Message)
	}
	return body, nil
}

// caseQuote adds what the quote would say.
func caseQuote(in policy.AdmitInput, text json.RawMessage) (policy.AdmitInput, error) {
	if len(text) == 0 {
		return in, nil
	}
	quote, err := jsonbody.Read(text, func(string) func(jsontext.Value) error { return nil })
	if err != nil {
		return in, err
	}
	if price, ok := quote["price"].(json.Number); ok {
		if _, err := price.Int64(); err != nil {
			return in, fault.Invalid("quote.price", "must be a whole number of rupiah")
		}
	}
	return in.Quoted(quote), nil
}

// trialDocument is the answer for operators.
func trialDocument(t policy.Trial, in policy.AdmitInput) adminapi.PolicyAnswer {
	answer := adminapi.PolicyAnswer{
		Version: string(t.Decision.Version), Allow: t.Decision.Allow && t.Limits != nil, Reasons: []adminapi.PolicyReason{},
		At: in.Now.Format(time.RFC3339), Amount: in.Amount, Fields: in.Fields, Parties: in.Parties, Lists: in.Lists, Steps: t.Steps + t.LimitsSteps,
		Limits: adminapi.PolicyLimits{Rates: []adminapi.PolicyRate{}, Quotas: []adminapi.PolicyQuota{}},
	}
	for _, b := range t.Because {
		answer.Reasons = append(answer.Reasons, adminapi.PolicyReason{Reason: b.Reason, Rule: b.Rule.Name, File: b.Rule.File, Line: b.Rule.Line})
	}
	if t.Limits == nil {
		if t.Decision.Allow {
			answer.Reasons = append(answer.Reasons, adminapi.PolicyReason{Reason: "The policy sets no limits for this merchant."})
		}
		return answer
	}
	for _, r := range t.Limits.Rates {
		answer.Limits.Rates = append(answer.Limits.Rates, adminapi.PolicyRate{Name: r.Name, RatePerSecond: r.PerSecond, Burst: r.Burst, Per: string(r.Per)})
	}
	for _, q := range t.Limits.Quotas {
		answer.Limits.Quotas = append(answer.Limits.Quotas, adminapi.PolicyQuota{Name: q.Name, Limit: q.Limit})
	}
	l := &answer.Limits
	l.Markup, l.Products = int64(t.Limits.Markup.Default), len(t.Limits.Markup.Products)
	l.Day = adminapi.PolicyPayout{Amount: t.Limits.Transfers.Day.Amount, Count: t.Limits.Transfers.Day.Count}
	l.DestinationDay = adminapi.PolicyPayout{Amount: t.Limits.Transfers.DestinationDay.Amount, Count: t.Limits.Transfers.DestinationDay.Count}
	if d := t.Limits.RepeatWithin; d > 0 {
		l.RepeatWithin = d.String()
	}
	return answer
}
