package storetest

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Compare makes the same random calls of two stores and fails where they answer
// otherwise, or where something else stands in them afterwards.
func Compare(t *testing.T, ours, theirs Store) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		both := [2]*side{newSide(t.Context(), ours), newSide(t.Context(), theirs)}
		each := func(call func(w *side)) {
			for _, w := range both {
				call(w)
			}
			for i := range both[0].log {
				if i >= len(both[1].log) || both[0].log[i] != both[1].log[i] {
					rt.Fatalf("after %q:\n%s\nagainst\n%s", both[0].log[:i], both[0].log[i], both[1].log[min(i, len(both[1].log)-1)])
				}
			}
		}
		each(func(w *side) {
			for _, owner := range w.owners {
				w.say("credit", w.Credit(w.ctx, owner, 3000))
			}
		})
		second := 0
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			second += rapid.SampledFrom([]int{0, 1, 5, 20, 100, 2000}).Draw(rt, "passes")
			each(randomCall(rt, second, len(both[0].seen)))
		}
		each((*side).dump)
	})
}

// randomCall draws a call at a second, about one of the movements that were seen.
func randomCall(rt *rapid.T, second, seen int) func(*side) {
	number := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, name) }
	flag := func(name string) bool { return rapid.Bool().Draw(rt, name) }
	merchant := number("merchant", merchants)
	if number("quota", 12) == 0 {
		replica, batch, units := int64(number("replica", 2)), int64(1+number("batch", 8)), int64(1+number("units", 5))
		if flag("gives") {
			return func(w *side) { w.give(replica, batch, units) }
		}
		most := int64(3 + number("most", 8))
		return func(w *side) { w.take(replica, batch, units, most) }
	}
	if call := number("call", 16); seen > 0 && call > 3 {
		place := number("place", seen)
		switch call {
		case 4, 5, 6, 7:
			f := randomFact(rt, second)
			return func(w *side) { w.fact(place, f) }
		case 8:
			return func(w *side) { w.acknowledge(place) }
		case 9:
			before, next := second-number("since", 30), second+number("next", 100)
			return func(w *side) { w.poll(place, second, before, next) }
		case 10:
			return func(w *side) { w.miss(place, second+10) }
		case 11:
			operator, outcome, alone := number("operator", 3), rapid.SampledFrom(movement.OverrideOutcomes).Draw(rt, "outcome"), flag("alone")
			return func(w *side) { w.override(place, operator, second, outcome, alone) }
		case 12:
			told := number("told", 3)
			return func(w *side) {
				w.say("note", w.Note(w.ctx, at(second), w.seen[place], "polled", []string{"a", "b", "c"}[told]))
			}
		case 13:
			return func(w *side) { w.release(place) }
		}
		return randomLines(rt, second, seen, merchant)
	}
	if number("except", 6) == 0 {
		subject, lasting := number("subject", 2), flag("lasting")
		if flag("resolves") {
			return func(w *side) { w.resolve(merchant, subject, second) }
		}
		return func(w *side) { w.except(merchant, subject, second, lasting) }
	}
	d := randomDraft(rt, merchant, second)
	return func(w *side) { w.reserve(d) }
}

func randomDraft(rt *rapid.T, merchant, second int) draft {
	d := draft{
		kind: rapid.SampledFrom(movement.Kinds()).Draw(rt, "kind"), merchant: merchant, second: second,
		reference: rapid.IntRange(1, 3).Draw(rt, "reference"),
		amount:    money.Amount(rapid.SampledFrom([]int64{100, 1000, 2500}).Draw(rt, "amount")),
	}
	switch d.kind { //nolint:exhaustive // the others have no choice
	case manifest.Order:
		d.charge = rapid.SampledFrom([]movement.Charge{movement.Unpaid, movement.Charged, movement.Held}).Draw(rt, "charge")
		d.attempt = rapid.IntRange(0, 9).Draw(rt, "attempt")
	case manifest.Payment:
		d.attempt = rapid.IntRange(0, 3).Draw(rt, "attempt")
	case manifest.Transfer:
		d.ceiling = rapid.SampledFrom([]int64{0, 1100, 4000}).Draw(rt, "ceiling")
		d.unnamed = rapid.Bool().Draw(rt, "unnamed")
	case manifest.Collection:
		d.foreign = rapid.IntRange(0, 9).Draw(rt, "foreign") == 0
	}
	return d
}

func randomFact(rt *rapid.T, second int) movement.Fact {
	f := movement.Fact{
		Source: rapid.SampledFrom([]movement.Source{
			movement.FromCall, movement.FromLookup, movement.FromNotification, movement.FromStatement, movement.FromOperators,
		}).Draw(rt, "source"),
		Says: movement.Says(rapid.IntRange(int(movement.SaysAccepted), int(movement.SaysCancelled)).Draw(rt, "says")),
		Now:  at(second), EventID: rapid.SampledFrom([]string{"", "f1", "f2"}).Draw(rt, "event"), Proves: true,
		Amount: money.Amount(rapid.SampledFrom([]int64{100, 90, 1000, 990, 2500, 2490}).Draw(rt, "told")), Through: at(second),
		ProviderReference: rapid.SampledFrom([]string{"", "up"}).Draw(rt, "theirs"), Channel: rapid.SampledFrom([]string{"", "QRIS"}).Draw(rt, "channel"),
	}
	if f.Says == movement.SaysRefused {
		f.Refusal = &movement.Refusal{Code: "PROVIDER_REJECTED", Message: "No.", Fields: []movement.RefusalField{{Field: "f", Message: "m"}}}
	}
	if rapid.Bool().Draw(rt, "has data") {
		f.Data, f.Offers, f.Fuller, f.Late = []byte(`{"data":1}`), true, []byte(`{"data":1,"sn":"2"}`), "sn"
	}
	return f
}

func randomLines(rt *rapid.T, second, seen, merchant int) func(*side) {
	switch rapid.IntRange(0, 5).Draw(rt, "lines") {
	case 0:
		return func(w *side) { w.match(merchant, second) }
	case 1:
		free := rapid.IntRange(-30, 30).Draw(rt, "free")
		return func(w *side) { w.closeLines(merchant, second+free) }
	case 2:
		payment, place := rapid.IntRange(0, 3).Draw(rt, "payment"), rapid.IntRange(0, seen-1).Draw(rt, "to")
		return func(w *side) { w.assign(merchant, payment, place, second) }
	case 3:
		before := second - rapid.IntRange(0, 30).Draw(rt, "before")
		return func(w *side) {
			ours, err := w.PollStatement(w.ctx, w.account[merchant], at(second), at(before), at(second+60))
			w.say("poll the statement", ours, err)
		}
	}
	payments := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 3, rapid.ID[int]).Draw(rt, "payments")
	lines := make([]line, len(payments))
	for i, payment := range payments {
		lines[i] = line{
			payment: payment, pays: rapid.IntRange(-1, seen-1).Draw(rt, "pays"), second: second, paid: rapid.Bool().Draw(rt, "paid"),
			reversed: rapid.Bool().Draw(rt, "reversed"), differs: rapid.IntRange(0, 4).Draw(rt, "differs") == 0,
			failed: rapid.IntRange(0, 2).Draw(rt, "failed") == 0,
		}
	}
	stale := rapid.IntRange(0, 9).Draw(rt, "stale") == 0
	return func(w *side) { w.importLines(merchant, second, stale, lines...) }
}
