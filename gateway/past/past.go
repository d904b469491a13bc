package past

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/impact"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Records are what is kept of the past.
type Records interface {
	Decisions(ctx context.Context, since, before time.Time) ([]store.DecisionPart, error)
	CountDecisions(ctx context.Context, since, before time.Time, add func(minute time.Time, counts []byte) error) error
	MovementsDecided(ctx context.Context, r store.DecidedRange) ([]movement.Movement, error)
	MerchantRecord(ctx context.Context, id tenants.MerchantID, version int64) (tenants.Merchant, error)
	MerchantsByID(ctx context.Context, ids []string) ([]tenants.Merchant, error)
	UsageIn(ctx context.Context, merchant, period string) ([]store.UsedBy, error)
}

// Reader reads the past. It remembers what it has read, so it is for one reading by one goroutine.
type Reader struct {
	Records    Records
	Key        decision.Key
	Open       func(sealed []byte) ([]byte, error) // of inputs
	Operations *catalog.Snapshot
	Location   *time.Location                   // the gateway's: of the hours that rules see, and of merchants that name no zone
	Policy     func(version string) *policy.Set // nil where it is not kept
	Merchant   string                           // whose past is read, all merchants' where it is ""
	Lists      func(policy.AdmitInput) []string // that hold something of a request now

	records map[recordKey]*policy.Merchant
	current map[string]*policy.Merchant // nil for one that is not there
	err     error                       // of what was looked up on the way

	moves  map[int64][]impact.Move // by the minute of their decision
	read   time.Time               // until when movements were read
	before movement.ID
	at     time.Time
}

type recordKey struct {
	merchant string
	version  int64
}

const (
	// reservedWithin is how long after its decision a movement is reserved.
	reservedWithin = time.Minute
	// page is how many movements are read at once.
	page = 2_000
	// mostRecords bounds the records that are remembered.
	mostRecords = 200_000
	// day is longer than any day.
	day = 26 * time.Hour
)

// Past reads what was decided from one second to another, after the transfers of the day before, which only count.
func (r *Reader) Past(ctx context.Context, since, until time.Time) iter.Seq2[impact.Past, error] {
	since, until = since.Truncate(time.Second), until.Truncate(time.Second)
	first := since.Truncate(time.Minute)
	r.reset()
	r.read = first
	return func(yield func(impact.Past, error) bool) {
		if !r.earlier(ctx, since, yield) {
			return
		}
		for minute := first; minute.Before(until); minute = minute.Add(time.Minute) {
			past, err := r.minute(ctx, minute)
			if err != nil {
				yield(impact.Past{}, err)
				return
			}
			for _, p := range past {
				if within := !p.At.Before(since) && p.At.Before(until); within && !yield(p, nil) {
					return
				}
			}
		}
	}
}

func (r *Reader) reset() {
	if r.records == nil {
		r.records, r.current = map[recordKey]*policy.Merchant{}, map[string]*policy.Merchant{}
	}
	r.moves, r.before, r.at, r.err = map[int64][]impact.Move{}, movement.ID{}, time.Time{}, nil
}

// earlier yields what was decided in the day before a time and counts against payout
// limits.
func (r *Reader) earlier(ctx context.Context, since time.Time, yield func(impact.Past, error) bool) bool {
	for _, kind := range movement.Kinds() {
		span := store.DecidedRange{Since: since.Add(-day), Before: since.Add(reservedWithin), Merchant: r.Merchant, Kind: string(kind), Most: page}
		if rules, _ := movement.RulesOf(kind); rules.Reserves == movement.ReserveLimits && !r.decided(ctx, span, since, yield) {
			return false
		}
	}
	return true
}

// decided yields what was decided in a span and before a time.
func (r *Reader) decided(ctx context.Context, span store.DecidedRange, since time.Time, yield func(impact.Past, error) bool) bool {
	for {
		found, err := r.Records.MovementsDecided(ctx, span)
		moves := make([]impact.Move, len(found))
		for i, m := range found {
			moves[i] = r.move(m)
		}
		err = cmp.Or(err, r.readRecords(ctx, merchantsOf(nil, nil, moves)))
		for _, move := range moves {
			if !move.NotSubmitted && move.At.Before(since) && !yield(move.Before(r.known(ctx), r.present(ctx, move.Merchant)), r.err) {
				return false
			}
		}
		if err != nil {
			return yield(impact.Past{}, err)
		}
		if len(found) < page {
			return true
		}
		span.AfterAt, span.After = found[page-1].CreatedAt, found[page-1].ID
	}
}

// minute is what was decided in a minute.
func (r *Reader) minute(ctx context.Context, minute time.Time) ([]impact.Past, error) {
	counted, inputs, err := r.log(ctx, minute)
	if err != nil {
		return nil, err
	}
	if err := r.readMoves(ctx, minute.Add(time.Minute+reservedWithin)); err != nil {
		return nil, err
	}
	number := minute.Unix() / 60
	moves := r.moves[number]
	delete(r.moves, number)
	if err := r.readRecords(ctx, merchantsOf(counted, inputs, moves)); err != nil {
		return nil, err
	}
	past := impact.PastOf(minute, counted, inputs, moves, r.known(ctx))
	return past, r.err
}

// log reads what the replicas wrote of a minute. Inputs that can't be opened, because their key is gone, count as not kept.
func (r *Reader) log(ctx context.Context, minute time.Time) ([]decision.Counted, []decision.Input, error) {
	parts, err := r.Records.Decisions(ctx, minute, minute.Add(time.Minute))
	if err != nil {
		return nil, nil, err
	}
	var counted []decision.Counted
	var inputs []decision.Input
	for _, part := range parts {
		if counted, err = r.unpack(counted, minute, part.Counts); err != nil {
			return nil, nil, err
		}
		if part.Inputs == nil {
			continue
		}
		opened, err := r.Open(part.Inputs)
		if err != nil {
			continue
		}
		kept, err := decision.UnpackInputs(opened)
		if err != nil {
			return nil, nil, fmt.Errorf("past: minute %s: %w", minute.Format(time.RFC3339), err)
		}
		for _, in := range kept {
			if r.Merchant == "" || in.Merchant == r.Merchant {
				quoted := policy.AdmitInput{Parties: in.Parties}.Quoted(in.Quote)
				in.Lists = r.listed(in.Merchant, quoted.Parties)
				inputs = append(inputs, in)
			}
		}
	}
	return counted, inputs, nil
}

// unpack adds what a replica counted of the reader's merchants.
func (r *Reader) unpack(counted []decision.Counted, minute time.Time, counts []byte) ([]decision.Counted, error) {
	some, err := decision.Unpack(counts)
	if err != nil {
		return nil, fmt.Errorf("past: minute %s: %w", minute.Format(time.RFC3339), err)
	}
	for _, c := range some {
		if r.Merchant == "" || c.Merchant == r.Merchant {
			counted = append(counted, c)
		}
	}
	return counted, nil
}

// merchantsOf are the merchants that decisions were made of.
func merchantsOf(counted []decision.Counted, inputs []decision.Input, moves []impact.Move) map[string]bool {
	named := map[string]bool{}
	for _, c := range counted {
		named[c.Merchant] = true
	}
	for _, in := range inputs {
		named[in.Merchant] = true
	}
	for _, m := range moves {
		named[m.Merchant] = true
	}
	return named
}

// readMoves reads the movements that were reserved until a time.
func (r *Reader) readMoves(ctx context.Context, until time.Time) error {
	for r.read.Before(until) {
		found, err := r.Records.MovementsDecided(ctx, store.DecidedRange{
			Since: r.read, Before: until, AfterAt: r.at, After: r.before, Merchant: r.Merchant, Most: page,
		})
		if err != nil {
			return err
		}
		for _, m := range found {
			move := r.move(m)
			minute := move.At.Unix() / 60
			r.moves[minute] = append(r.moves[minute], move)
			r.at, r.before = m.CreatedAt, m.ID
		}
		if len(found) < page {
			r.read = until
		}
	}
	return nil
}

// move is a movement as the simulation sees it.
func (r *Reader) move(m movement.Movement) impact.Move {
	out := impact.Move{
		At: m.CreatedAt.Truncate(time.Second), Reserved: m.CreatedAt, Merchant: m.Owner.MerchantID, Live: m.Owner.Mode == string(tenants.Live),
		Operation: m.Operation, Version: m.PolicyVersion, NotSubmitted: m.State == movement.NotSubmitted,
	}
	if facts, err := r.Key.Open(m.DecisionID, m.CreatedAt); err == nil && facts.Merchant == decision.MerchantDigest(m.Owner.MerchantID) {
		out.At = facts.At
	}
	if m.State == movement.Failed {
		out.FailedAt = m.UpdatedAt
	}
	out.Input.Amount = new(int64(m.Amount))
	for _, u := range m.Usage {
		if to := movement.DestinationOf(u.Name); to != "" {
			out.Input.Limit = to
		}
	}
	op, there := r.Operations.ByPath(m.Operation)
	body, err := documentOf(m)
	if !there || err != nil {
		return out
	}
	if op.Quote {
		out.Input.Quote = m.QuoteForRules(op.Rules)
		if op.Rules.Reserves == movement.ReserveBalance {
			out.Input.Amount = nil // rules saw none before the price
		}
	}
	if op.HasAmount(body) {
		if asked, err := op.AmountOf(body); err == nil {
			out.Input.Amount = new(int64(asked))
		}
	}
	if len(op.Fields) > 0 {
		out.Input.Fields = op.PolicyFields(op.WithDefaults(body))
	}
	out.Input.Parties = op.Parties(body)
	if op.Rules.Reserves == movement.ReserveLimits {
		out.Input.Destination = cmp.Or(m.Destination, out.Input.Destination)
		out.Input.Limit = cmp.Or(out.Input.Limit, movement.DestinationDigest(m.Provider, cmp.Or(out.Input.Destination, movement.Destination(op.DestinationOf(body)))))
	}
	out.Lists = r.listed(m.Owner.MerchantID, out.Input.Parties)
	return out
}

// listed are the lists that hold something of a request now. Of addresses nothing is kept: it is on no list of them.
func (r *Reader) listed(merchant string, about policy.Parties) []string {
	if r.Lists == nil {
		return nil
	}
	return r.Lists(policy.AdmitInput{Merchant: policy.Merchant{ID: merchant}, Parties: about})
}

// documentOf is the body that a movement was asked with.
func documentOf(m movement.Movement) (catalog.Document, error) {
	var request struct {
		Body catalog.Document `json:"body"`
	}
	decoder := json.NewDecoder(bytes.NewReader(m.Request))
	decoder.UseNumber()
	err := decoder.Decode(&request)
	return request.Body, err
}

// known finds operations and records.
func (r *Reader) known(ctx context.Context) impact.Known {
	return impact.Known{
		Operation: r.operation,
		Record:    func(merchant string, version int64) *policy.Merchant { return r.record(ctx, merchant, version) },
		Lists:     func(merchant string) []string { return r.listed(merchant, policy.Parties{}) },
	}
}

// operation is an operation of a path. One that is offered no more may have read anything.
func (r *Reader) operation(path string) impact.Operation {
	op, there := r.Operations.ByPath(path)
	if !there {
		return impact.Operation{Operation: policy.Operation{Path: path}, Reads: true}
	}
	return impact.Operation{
		Operation: admission.OperationOf(op),
		Reads:     op.AmountField() != "" || len(op.Fields) > 0 || op.Quote || op.Product != nil, Money: op.Money(), Transfer: op.Rules.Reserves == movement.ReserveLimits,
		MustBeNamed: op.Unnamed,
	}
}

// present is a merchant's record as it is now.
func (r *Reader) present(ctx context.Context, merchant string) *policy.Merchant {
	if _, known := r.current[merchant]; !known {
		r.err = cmp.Or(r.readRecords(ctx, map[string]bool{merchant: true}), r.err)
	}
	return r.current[merchant]
}

// readRecords reads the present records of those merchants of whom none was read, all at once: a log names many.
func (r *Reader) readRecords(ctx context.Context, merchants map[string]bool) error {
	ids := make([]string, 0, len(merchants))
	for id := range merchants {
		if _, known := r.current[id]; !known {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := r.Records.MerchantsByID(ctx, ids)
	if err != nil {
		return err
	}
	r.makeRoom(len(ids))
	for _, id := range ids {
		r.current[id] = nil
	}
	for _, m := range found {
		record := admission.RecordOf(m)
		r.current[record.ID] = &record
	}
	return nil
}

// record is a merchant's record at a version, nil where it is not kept.
func (r *Reader) record(ctx context.Context, merchant string, version int64) *policy.Merchant {
	key := recordKey{merchant, version}
	if m, known := r.records[key]; known {
		return m
	}
	if now := r.present(ctx, merchant); now != nil && now.Version == version {
		return now
	}
	m, err := r.Records.MerchantRecord(ctx, tenants.MerchantID(merchant), version)
	if errors.Is(err, store.ErrNotFound) {
		r.records[key] = nil
		return nil
	}
	if err != nil {
		r.err = err
		return nil
	}
	r.makeRoom(1)
	then := admission.RecordOf(m)
	r.records[key] = &then
	return &then
}

func (r *Reader) makeRoom(more int) {
	if len(r.records)+len(r.current)+more > mostRecords {
		clear(r.records)
		clear(r.current)
	}
}

// zone is where a merchant's days and months are counted.
func (r *Reader) zone(m *policy.Merchant) *time.Location {
	return admission.ZoneOf(tenants.Merchant{Labels: m.Labels}, r.Location)
}

// World is what the simulation must know besides. It reads how much of each quota is used now, and the log from since until
// now, to tell how much was used when the span began, wherever the span ends. What was decided in the last seconds is in
// no log yet: it counts as used before.
func (r *Reader) World(ctx context.Context, since, until, now time.Time) (impact.World, error) {
	r.reset()
	var decisions int64
	used, err := r.used(ctx, since, now)
	if err != nil {
		return impact.World{}, err
	}
	known := r.known(ctx)
	for minute := since.Truncate(time.Minute); minute.Before(now); minute = minute.Add(time.Minute) {
		var counted []decision.Counted
		err := r.Records.CountDecisions(ctx, minute, minute.Add(time.Minute), func(_ time.Time, counts []byte) (err error) {
			counted, err = r.unpack(counted, minute, counts)
			return err
		})
		if err != nil {
			return impact.World{}, err
		}
		if err := r.readRecords(ctx, merchantsOf(counted, nil, nil)); err != nil {
			return impact.World{}, err
		}
		for _, c := range counted {
			decisions += decidedIn(minute, since, until, c)
			if err := r.giveBack(ctx, used, minute, since, now, c, known); err != nil {
				return impact.World{}, err
			}
		}
	}
	return impact.World{
		Base: r.Policy, Zone: r.zone, Clock: admission.ZoneOf(tenants.Merchant{}, r.Location),
		Used:      used,
		Decisions: decisions,
	}, r.err
}

// decidedIn is how many decisions of a series were made in a span.
func decidedIn(minute, since, until time.Time, c decision.Counted) int64 {
	var n int64
	for _, count := range c.Counts {
		at := minute.Add(time.Duration(count.Second) * time.Second)
		if c.Outcome != decision.Unused && !at.Before(since) && at.Before(until) { // what was unused is among what was decided
			n += int64(count.N)
		}
	}
	return n
}

// month is how a period of a quota is named.
const month = "2006-01"

// used is what is used now of all quotas of the months between two times, wherever on earth.
func (r *Reader) used(ctx context.Context, since, now time.Time) (map[impact.Used]int64, error) {
	const zones = 14 * time.Hour // the furthest
	used := map[impact.Used]int64{}
	for at, last := since.Add(-zones).UTC(), ""; !at.After(now.Add(zones)); at = at.Add(zones) {
		period := at.Format(month)
		if period == last {
			continue
		}
		last = period
		found, err := r.Records.UsageIn(ctx, r.Merchant, period)
		if err != nil {
			return nil, err
		}
		for _, u := range found {
			used[impact.Used{Merchant: u.Owner.MerchantID, Live: u.Owner.Mode == string(tenants.Live), Quota: u.Name, Period: period}] = u.Units
		}
	}
	return used, nil
}

// giveBack takes what a series used of quotas since a time off what is used now. What was
// decided after now is not in that.
func (r *Reader) giveBack(ctx context.Context, used map[impact.Used]int64, minute, since, now time.Time, c decision.Counted, known impact.Known) error {
	sign := int64(-1)
	switch {
	case c.Rule.Refuses() || c.Outcome != decision.Decided && c.Outcome != decision.Unused:
		return nil
	case c.Outcome == decision.Unused:
		sign = 1
	}
	record, set := known.Record(c.Merchant, c.Record), r.Policy(c.Version)
	if record == nil || set == nil {
		return r.err
	}
	limits, err := set.Limits(ctx, policy.LimitsInput{
		Merchant: *record, Mode: c.Mode(), Operation: known.Operation(c.Operation).Operation, Now: minute,
	})
	if err != nil && !errors.Is(err, policy.ErrNoAnswer) {
		return fmt.Errorf("past: %w", err)
	}
	for _, quota := range limits.Quotas {
		for _, n := range c.Counts {
			if at := minute.Add(time.Duration(n.Second) * time.Second); !at.Before(since) && at.Before(now) {
				used[impact.Used{Merchant: c.Merchant, Live: c.Live, Quota: quota.Name, Period: at.In(r.zone(record)).Format(month)}] += sign * int64(n.N)
			}
		}
	}
	return r.err
}
