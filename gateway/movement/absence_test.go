package movement_test

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const sent, fee money.Amount = 50_000, 2_500

// sentAt is a transfer of an account, created so long after the epoch and known to have
// succeeded ten seconds later.
func sentAt(number byte, after time.Duration, amount, fee money.Amount) movement.Movement {
	created := epoch.Add(after)
	return movement.Movement{
		ID: movement.ID{number}, Attempt: 1, Key: movement.Key{Kind: manifest.Transfer}, Amount: amount, Payout: movement.Payout{Fee: fee},
		State: movement.Succeeded, CreatedAt: created, SendBy: created.Add(5 * time.Second), UpdatedAt: created.Add(10 * time.Second),
	}
}

// TestAbsent counts rows and the transfers that have made them.
func TestAbsent(t *testing.T) {
	t.Parallel()
	rules := rules(t, manifest.Transfer, movement.Pace{SettlesWithin: time.Minute, Every: 5 * time.Second})
	m := sentAt(1, 0, sent, fee)
	m.State = movement.Acknowledged
	begun := 10 * time.Minute
	row := func(amounts ...money.Amount) (rows []movement.Mutation) {
		for _, a := range amounts {
			rows = append(rows, movement.Mutation{Amount: a})
		}
		return rows
	}
	before := sentAt(2, -time.Minute, sent, fee)
	for name, c := range map[string]struct {
		rows   []movement.Mutation
		others []movement.Movement
		absent bool
	}{
		"no rows":                        {absent: true},
		"rows of other amounts":          {rows: row(sent-1, sent+1, fee, sent+2*fee), absent: true},
		"a row of it":                    {rows: row(sent)},
		"a row of it with the fee":       {rows: row(sent + fee)},
		"a row of another":               {rows: row(sent), others: []movement.Movement{before}, absent: true},
		"one of two":                     {rows: row(sent, sent+fee), others: []movement.Movement{before}},
		"two of two":                     {rows: row(sent, sent), others: []movement.Movement{before, sentAt(3, 2*time.Minute, sent, fee)}, absent: true},
		"of another without a fee":       {rows: row(sent), others: []movement.Movement{sentAt(3, -time.Minute, sent, 0)}, absent: true},
		"of another of that with a fee":  {rows: row(sent + fee), others: []movement.Movement{sentAt(3, -time.Minute, sent+fee, 0)}, absent: true},
		"a fee that its row may not say": {rows: row(sent), others: []movement.Movement{sentAt(3, -time.Minute, sent, 2*fee)}},
		"another that is just done":      {rows: row(sent), others: []movement.Movement{sentAt(3, begun-time.Minute, sent, fee)}},
		"another that ends while it is read": {rows: row(sent), others: []movement.Movement{func() movement.Movement {
			late := before
			late.UpdatedAt = epoch.Add(begun)
			return late
		}()}},
		"itself is no other":          {rows: row(sent), others: []movement.Movement{m}},
		"the row names it":            {rows: []movement.Mutation{{Reference: m.UpstreamReference(), Amount: 1}}},
		"the row names another":       {rows: []movement.Mutation{{Reference: "another", Amount: sent}}, absent: true},
		"named rows explain no other": {rows: append(row(sent), movement.Mutation{Reference: before.UpstreamReference(), Amount: sent}), others: []movement.Movement{before}},
	} {
		read := movement.Mutations{From: m.MutationsFrom(c.others), Begun: epoch.Add(begun), Rows: c.rows}
		if text, absent := m.Absent(rules, read, c.others); absent != c.absent {
			t.Errorf("%s: %t, want %t: %s", name, absent, c.absent, text)
		}
	}
	read := movement.Mutations{From: epoch.Add(-movement.ProviderSkew), Begun: epoch.Add(begun), Rows: row(sent)}
	if text, absent := m.Absent(rules, read, []movement.Movement{before}); absent {
		t.Errorf("the row of one at the edge may lie before it: %s", text)
	}
}

// TestMutationsFrom moves the beginning before transfers that lie across it.
func TestMutationsFrom(t *testing.T) {
	t.Parallel()
	const skew = movement.ProviderSkew
	m := sentAt(1, 0, sent, fee)
	long := sentAt(4, -5*time.Hour, sent, fee)
	long.UpdatedAt = epoch.Add(-time.Minute)
	for name, c := range map[string]struct {
		others []movement.Movement
		want   time.Duration
	}{
		"alone":               {nil, -skew},
		"long before":         {[]movement.Movement{sentAt(2, -11*time.Minute, sent, fee)}, -skew},
		"later":               {[]movement.Movement{sentAt(2, time.Minute, sent, fee)}, -skew},
		"shortly before":      {[]movement.Movement{sentAt(2, -time.Minute, sent, fee)}, -time.Minute - skew},
		"one after the other": {[]movement.Movement{sentAt(3, -9*time.Minute, sent, fee), sentAt(2, -time.Minute, sent, fee)}, -9*time.Minute - skew},
		"one that took long":  {[]movement.Movement{long}, -5*time.Hour - skew},
	} {
		if got := m.MutationsFrom(c.others).Sub(epoch); got != c.want {
			t.Errorf("%s: from %v, want %v", name, got, c.want)
		}
	}
}
