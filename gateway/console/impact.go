package console

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/impact"
	"github.com/seed-f006e74d/gerbang/gateway/judge"
	"github.com/seed-f006e74d/gerbang/gateway/past"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// written is how long ago a decision was made that surely stands in the log.
const written = 15 * time.Second

// trial is a policy, or a change of a merchant, with the past that it is tried on.
type trial struct {
	judge.Past
	reader *past.Reader
	since  time.Time
	until  time.Time
	now    time.Time
}

// tryOnPast answers line by line: how far it is, and in the end the report. One is tried at a time, since it takes a
// core's time from the merchants.
func (c *Console) tryOnPast(w http.ResponseWriter, r *http.Request) {
	x := c.call(w, r)
	c.log.InfoContext(r.Context(), "an operator reads", "request_id", x.id, "operator", x.operator.Name, "path", r.URL.Path)
	if !c.trying.TryLock() {
		c.fail(w, r, x.id, fault.New(fault.InProgress, "A policy is being tried on the past already: wait until that is done."))
		return
	}
	free := sync.OnceFunc(c.trying.Unlock) // before the last line: who has read it may ask again at once
	defer free()
	var wanted adminapi.NewImpact
	err := decode(x, &wanted)
	var t trial
	if err == nil {
		t, err = c.trial(x, wanted)
	}
	if err != nil {
		free()
		c.fail(w, r, x.id, err)
		return
	}
	lines, begun := json.NewEncoder(w), false
	lines.SetEscapeHTML(false)
	say := func(line adminapi.ImpactLine) {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.Header().Set("Cache-Control", "no-store")
		}
		_ = lines.Encode(line) // who asked may be gone, and then the context ends
		_ = http.NewResponseController(w).Flush()
	}
	report, err := c.run(r.Context(), t, func(p adminapi.ImpactProgress) { say(adminapi.ImpactLine{Progress: &p}) })
	free()
	switch {
	case err != nil && !begun: // the policy does not compile, most likely
		c.fail(w, r, x.id, err)
		return
	case err != nil:
		c.log.ErrorContext(r.Context(), "a policy could not be tried on the past", "request_id", x.id, "cause", err)
		say(adminapi.ImpactLine{Message: fault.From(err).Message})
		return
	}
	document := impactDocument(t, report)
	c.nameMerchants(r.Context(), document.Rows)
	say(adminapi.ImpactLine{Data: &document})
}

// asking is how long a question may be on its way.
const asking = time.Minute

// trial checks what is wanted.
func (c *Console) trial(x *call, wanted adminapi.NewImpact) (trial, error) {
	t := trial{now: x.now, since: wanted.Since.UTC().Truncate(time.Second), until: x.now.Add(-written).UTC().Truncate(time.Second)}
	if wanted.Until != nil && wanted.Until.Before(t.until) {
		t.until = wanted.Until.UTC().Truncate(time.Second)
	}
	oldest := x.now.Add(-decision.Kept).UTC().Truncate(time.Second)
	if t.since.Before(oldest) && oldest.Sub(t.since) <= asking {
		t.since = oldest // seven days, when it was asked
	}
	if t.since.Before(oldest) || !t.since.Before(t.until) {
		return t, fault.Invalid("since", "must be within the last seven days, for which decisions are kept, before the end, and 15 seconds ago at least")
	}
	given := 0
	for _, one := range []bool{wanted.Version != "", wanted.Files != nil, wanted.Merchant != nil} {
		if one {
			given++
		}
	}
	if given != 1 {
		return t, fault.Invalid("version", "or files or merchant must be given, and one of them alone")
	}
	offered := c.deps.Catalog.Current()
	ctx := x.request.Context()
	t.reader = &past.Reader{
		Lists: func(in policy.AdmitInput) []string {
			in.Now = x.now
			return c.deps.Listing.Of(in)
		},
		Records: c.deps.Decisions.Past, Key: c.deps.Decisions.Key, Open: c.deps.Decisions.Open, Operations: offered, Location: c.config.Location,
		Policy: func(version string) *policy.Set {
			set, err := c.deps.Decisions.Policy(ctx, policy.Version(version))
			if err != nil {
				c.log.WarnContext(ctx, "a policy version can't be read, so decisions by it are tried without it", "version", version, "error", err)
			}
			return set
		},
	}
	if !wanted.Recorded {
		t.Against = c.deps.Policy()
	}
	if wanted.Merchant != nil {
		return c.merchantTrial(x, t, *wanted.Merchant)
	}
	var err error
	t.Source, err = c.sourceToTry(ctx, wanted.Version, wanted.Files)
	return t, err
}

// merchantTrial is a change of a merchant under the policy in force.
func (c *Console) merchantTrial(x *call, t trial, change adminapi.MerchantTrial) (trial, error) {
	account, err := c.deps.Merchants.AccountByID(x.request.Context(), tenants.MerchantID(change.MerchantID))
	if err != nil {
		return t, notFound(err, "merchant")
	}
	m := account.Merchant()
	m.Limits = nil
	for _, l := range change.Limits {
		if err := checkLimit(l); err != nil {
			return t, err
		}
		m.Limits = append(m.Limits, limitOf(l, "", time.Time{}))
	}
	if change.Tier != "" {
		m.Tier = tenants.Tier(change.Tier)
		if err := c.checkTier(x.request.Context(), m, x.now); err != nil {
			return t, err
		}
	}
	own := admission.RecordOf(m).Limits
	t.reader.Merchant, t.Source = change.MerchantID, c.deps.Policy().Source()
	var mu sync.Mutex
	changed := map[*policy.Merchant]*policy.Merchant{}
	t.Record = func(was *policy.Merchant) *policy.Merchant {
		mu.Lock()
		defer mu.Unlock()
		if known := changed[was]; known != nil {
			return known
		}
		m := *was
		m.Version = was.Version - x.now.UnixNano() // of no record: no answer may be kept for one
		if change.Suspend {
			m.Status = string(tenants.Suspended)
		}
		if change.Tier != "" {
			m.Tier = change.Tier
		}
		m.Limits = slices.DeleteFunc(slices.Clone(was.Limits), func(l policy.OwnLimit) bool {
			return l.Name == change.Remove || slices.ContainsFunc(own, func(o policy.OwnLimit) bool { return o.Name == l.Name })
		})
		m.Limits = append(m.Limits, own...)
		changed[was] = &m
		return &m
	}
	return t, nil
}

// run tries it.
func (c *Console) run(ctx context.Context, t trial, progress func(adminapi.ImpactProgress)) (impact.Report, error) {
	if t.Source.Version() != c.deps.Policy().Version() { // what can't be used is told before the past is read
		if err := c.deps.Decisions.Judge.Check(ctx, t.Source); err != nil {
			return impact.Report{}, problemsFault("files", err)
		}
	}
	world, err := t.reader.World(ctx, t.since, t.until, t.now)
	if err != nil {
		return impact.Report{}, err
	}
	world.Progress = func(done int64, at time.Time) {
		progress(adminapi.ImpactProgress{Decisions: done, Of: world.Decisions, At: at})
	}
	t.World, t.Decisions = world, t.reader.Past(ctx, t.since, t.until)
	report, err := c.deps.Decisions.Judge.Impact(ctx, t.Past)
	return report, problemsFault("files", err)
}

// nameMerchants gives rows the names that merchants have now.
func (c *Console) nameMerchants(ctx context.Context, rows []adminapi.ImpactRow) {
	names := map[string]string{}
	for _, row := range rows {
		names[row.MerchantID] = ""
	}
	found, err := c.deps.Decisions.Past.MerchantsByID(ctx, slices.Sorted(maps.Keys(names)))
	if err != nil {
		c.log.WarnContext(ctx, "an impact is told without merchants' names", "error", err)
	}
	for _, m := range found {
		names[string(m.ID)] = m.Name
	}
	for i := range rows {
		rows[i].MerchantName = names[rows[i].MerchantID]
	}
}

func impactDocument(t trial, r impact.Report) adminapi.Impact {
	out := adminapi.Impact{
		Version: string(t.Source.Version()), Since: t.since, Until: t.until, Verdict: r.Verdict, Decisions: r.Decisions,
		NewlyDenied: r.NewlyDenied, NewlyAllowed: r.NewlyAllowed, Rupiah: r.Rupiah, Unknown: r.Unknown, Rows: make([]adminapi.ImpactRow, len(r.Rows)),
	}
	if t.Against != nil {
		out.Against = string(t.Against.Version())
	}
	for i, row := range r.Rows {
		of := &out.Test
		if row.Mode == string(tenants.Live) {
			of = &out.Live
		}
		of.NewlyDenied, of.NewlyAllowed, of.Unknown = of.NewlyDenied+row.NewlyDenied, of.NewlyAllowed+row.NewlyAllowed, of.Unknown+row.Unknown
		out.Rows[i] = adminapi.ImpactRow{
			MerchantID: row.Merchant, Mode: row.Mode, Operation: row.Operation, Rule: row.Rule, NewlyDenied: row.NewlyDenied,
			NewlyAllowed: row.NewlyAllowed, FirstAt: row.FirstAt, Rupiah: row.Rupiah, Unknown: row.Unknown,
		}
	}
	return out
}
