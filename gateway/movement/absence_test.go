package movement_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

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
	highest := sent + manifest.HighestFee(sent)
	named := func(other movement.Movement, amount money.Amount) movement.Mutation {
		return movement.Mutation{Reference: other.UpstreamReference(), Amount: amount}
	}
	ended := func(other movement.Movement, after time.Duration) movement.Movement {
		other.UpdatedAt = epoch.Add(after)
		return other
	}
	settled := begun - time.Minute - 2*movement.ClockSkew
	for name, c := range map[string]struct {
		rows   []movement.Mutation
		others []movement.Movement
		absent bool
	}{
		"no rows":                        {absent: true},
		"rows of other amounts":          {rows: row(sent-1, highest+1, fee), absent: true},
		"a row of it":                    {rows: row(sent)},
		"a row of it with the fee":       {rows: row(sent + fee)},
		"a row of it with another fee":   {rows: row(sent + fee + 500)},
		"a row of it with twice the fee": {rows: row(sent + 2*fee)},
		"a row of it with the highest":   {rows: row(highest)},
		"a row of another":               {rows: row(sent), others: []movement.Movement{before}, absent: true},
		"one of two":                     {rows: row(sent, sent+fee), others: []movement.Movement{before}},
		"two of two":                     {rows: row(sent, sent), others: []movement.Movement{before, sentAt(3, 2*time.Minute, sent, fee)}, absent: true},
		"of another of a greater amount": {rows: row(sent + fee), others: []movement.Movement{sentAt(3, -time.Minute, sent+fee, 0)}, absent: true},
		"less than another moved":        {rows: row(sent), others: []movement.Movement{sentAt(3, -time.Minute, sent+fee, 0)}},
		"two, one of them another's":     {rows: row(sent, sent+fee), others: []movement.Movement{sentAt(3, -time.Minute, sent+fee, 0)}},
		"others in a row":                {rows: row(sent+fee, sent+2*fee), others: []movement.Movement{before, sentAt(3, -time.Minute, sent+fee, 0)}, absent: true},
		"another lacks its row":          {others: []movement.Movement{before}},
		"another that is just done":      {rows: row(sent), others: []movement.Movement{sentAt(3, begun-time.Minute, sent, fee)}},
		"another that ended while read":  {rows: row(sent), others: []movement.Movement{ended(before, begun)}},
		"another just told succeeded":    {rows: row(sent), others: []movement.Movement{ended(before, settled)}},
		"another that has settled":       {rows: row(sent), others: []movement.Movement{ended(before, settled-time.Second)}, absent: true},
		"itself is no other":             {rows: row(sent), others: []movement.Movement{m}},
		"the row names it":               {rows: []movement.Mutation{{Reference: m.UpstreamReference(), Amount: 1}}},
		"the row names another":          {rows: []movement.Mutation{named(before, sent)}, others: []movement.Movement{before}, absent: true},
		"the row has the bank's number":  {rows: []movement.Mutation{{Reference: "TRX-20260102-0001", Amount: sent}}},
		"the row names nobody we know":   {rows: []movement.Mutation{named(before, sent)}},
		"named rows explain no other":    {rows: append(row(sent), named(before, sent)), others: []movement.Movement{before}},
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

// TestMadeIsNeverAbsent draws transfers of an account with fees that nobody was told,
// and lists a row of each: one that was made is never proven absent, whatever else is.
func TestMadeIsNeverAbsent(t *testing.T) {
	t.Parallel()
	rules := rules(t, manifest.Transfer, movement.Pace{SettlesWithin: time.Minute, Every: 5 * time.Second})
	rapid.Check(t, func(r *rapid.T) {
		near := rapid.Int64Range(int64(sent)-1_000, int64(sent)+10_000)
		row := func(m movement.Movement) movement.Mutation {
			fees := rapid.SampledFrom([]money.Amount{0, 500, fee, 2 * fee, manifest.HighestFee(m.Amount)})
			made := movement.Mutation{Amount: m.Amount + fees.Draw(r, "fee")}
			if rapid.Bool().Draw(r, "named") {
				made.Reference = rapid.SampledFrom([]string{m.UpstreamReference(), "the bank's own"}).Draw(r, "name")
			}
			return made
		}
		m := sentAt(1, 0, sent, fee)
		m.State = movement.Acknowledged
		read := movement.Mutations{Begun: epoch.Add(10 * time.Minute), Rows: []movement.Mutation{row(m)}}
		var others []movement.Movement
		for i := range rapid.IntRange(0, 6).Draw(r, "others") {
			other := sentAt(byte(2+i), 0, money.Amount(near.Draw(r, "amount")), fee)
			other.UpdatedAt = epoch.Add(time.Duration(rapid.IntRange(1, 12).Draw(r, "told")) * time.Minute)
			if others = append(others, other); other.UpdatedAt.Before(read.Begun.Add(-time.Minute-2*movement.ClockSkew)) || rapid.Bool().Draw(r, "listed") {
				read.Rows = append(read.Rows, row(other))
			}
		}
		read.From = m.MutationsFrom(others)
		if text, absent := m.Absent(rules, read, others); absent {
			r.Fatalf("it was made: %s", text)
		}
	})
}
