package storetest

import (
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

//go:embed testdata/*.txt
var results embed.FS

var update = flag.String("storetest.update", "", "the folder testdata, to write what the stories result in")

// Run plays each story on a store and compares all that it answers with testdata.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := strings.ReplaceAll(name, " ", "_") + ".txt"
			w := newSide(t.Context(), open(t))
			story(w)
			w.dump()
			got := strings.Join(w.log, "\n") + "\n"
			if *update != "" {
				if err := os.WriteFile(filepath.Join(*update, file), []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := results.ReadFile("testdata/" + file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(want), "\n")
			for i, line := range strings.Split(got, "\n") {
				if i >= len(lines) || line != lines[i] {
					t.Fatalf("line %d:\n%s\nwant\n%s", i+1, line, lines[min(i, len(lines)-1)])
				}
			}
		})
	}
}

// says is a fact in short.
func says(what movement.Says, source movement.Source, second int) movement.Fact {
	return movement.Fact{Source: source, Says: what, Now: at(second), Proves: true, EventID: "f1"}
}

// factOf is a fact about a movement, of its own amount.
type factOf movement.Fact

func (f factOf) on(w *side, place int) {
	m, told := w.seen[place], movement.Fact(f)
	if told.Amount = m.Amount; m.Kind == manifest.Order {
		told.Amount = m.Cost
	}
	w.fact(place, told)
}

// stories are each about one promise of a store. A place is the number of a movement
// as it was seen; the last one is -1.
var stories = map[string]func(w *side){
	"reference is reserved once": func(w *side) {
		d := draft{kind: manifest.Payment, reference: 1, amount: 1000}
		w.reserve(d)
		w.reserve(d)
		d.merchant = 1
		w.reserve(d)
	},
	"not submitted frees the reference": func(w *side) {
		w.reserve(draft{kind: manifest.Payment, reference: 1, amount: 1000})
		factOf(says(movement.SaysNotSent, movement.FromCall, 1)).on(w, 0)
		w.reserve(draft{kind: manifest.Payment, reference: 1, amount: 1000, attempt: 1, second: 2})
		w.reserve(draft{kind: manifest.Payment, reference: 1, amount: 900, attempt: 7, second: 3})
		factOf(says(movement.SaysAccepted, movement.FromCall, 4)).on(w, 0) // of the first attempt
		factOf(says(movement.SaysAccepted, movement.FromCall, 5)).on(w, len(w.seen)-1)
	},
	"acknowledged is never freed": func(w *side) {
		w.reserve(draft{kind: manifest.Transfer, reference: 1, amount: 1000, ceiling: 5000})
		w.acknowledge(0)
		factOf(says(movement.SaysNotSent, movement.FromCall, 1)).on(w, 0) // as it was before
		w.acknowledge(1)
		factOf(says(movement.SaysNotSent, movement.FromCall, 2)).on(w, 1)
		w.acknowledge(1)
	},
	"what is at odds with itself is refused": func(w *side) {
		w.say("credit", w.Credit(w.ctx, w.owners[0], 3000))
		w.reserve(draft{kind: manifest.Transfer, reference: 1, amount: 1000, charge: movement.Charged})
		w.reserve(draft{kind: manifest.Order, reference: 1, amount: 1000, charge: "later"})
		w.reserve(draft{kind: manifest.Query, reference: 1, amount: 1000})
		w.reserve(draft{kind: manifest.Payment, reference: 1, amount: 1000})
		w.reserve(draft{kind: manifest.Order, reference: 2, amount: 1000, charge: movement.Charged})
		refund := ledger.GiveBack(1000)
		given := draft{kind: manifest.Order, reference: 3, amount: 1000, charge: movement.Charged}
		begins := w.draft(given)
		move := movement.Transition{Effect: movement.Move, From: []movement.State{movement.Submitting, movement.Acknowledged}, To: movement.Failed}
		freed, posted, charged, lopsided := move, move, move, move
		freed.To = movement.NotSubmitted
		w.change(0, "free what may be acknowledged", freed)
		posted.Posting = &refund
		w.change(0, "post for what is not paid", posted)
		w.change(1, "post nothing for what is paid", move)
		charged.Posting = begins.Begins()
		w.change(1, "charge at the end", charged)
		lopsided.Posting = new(refund)
		lopsided.Posting.Available++
		w.change(1, "post what is not balanced", lopsided)
		w.change(1, "give back without a posting", movement.Transition{Effect: movement.MoneyBack, HappenedAt: at(9), Return: &movement.Return{Sort: movement.Reversal, Amount: 1200, At: at(9)}})
		w.change(1, "nothing", movement.Transition{})
	},
	"charge is taken and given back": func(w *side) {
		w.say("credit", w.Credit(w.ctx, w.owners[0], 3000))
		for reference, charge := range []movement.Charge{movement.Charged, movement.Held, movement.Unpaid, movement.Charged} {
			w.reserve(draft{kind: manifest.Order, reference: reference, amount: 1200, charge: charge, second: reference})
		}
		balance, err := w.Balance(w.ctx, w.owners[0])
		w.say("balance", balance, err)
		factOf(says(movement.SaysFailed, movement.FromLookup, 10)).on(w, 0)
		factOf(says(movement.SaysSucceeded, movement.FromLookup, 11)).on(w, 1)
		factOf(says(movement.SaysFailed, movement.FromNotification, 12)).on(w, len(w.seen)-1)
		factOf(says(movement.SaysFailed, movement.FromNotification, 13)).on(w, len(w.seen)-1)
		w.reserve(draft{kind: manifest.Order, reference: 9, amount: 1200, charge: movement.Charged, second: 20})
	},
	"payout limits count what is under way": func(w *side) {
		for reference := range 4 {
			w.reserve(draft{kind: manifest.Transfer, reference: reference, amount: 1000, ceiling: 2500, second: reference})
		}
		factOf(says(movement.SaysFailed, movement.FromLookup, 10)).on(w, 0)
		w.reserve(draft{kind: manifest.Transfer, reference: 5, amount: 1000, ceiling: 2500, second: 20})
		factOf(says(movement.SaysNotSent, movement.FromCall, 30)).on(w, 1)
		factOf(says(movement.SaysSucceeded, movement.FromNotification, 31)).on(w, len(w.seen)-1) // against all proof: it counts again
	},
	"movements are searched and counted": func(w *side) {
		for n, mail := range []string{"budi@shop.example", "Budi@Shop.example", "50%_@shop.example", "", "siti@shop.example", ""} {
			d := draft{kind: manifest.Payment, reference: n + 9, amount: money.Amount(1000 + 24_000*(n%2)), second: 100 * n}
			m := w.draft(d)
			if n == 5 {
				m.Reference = "A_50%\\INV"
			}
			m.Request = json.RawMessage(`{"body":{"description":"\"payer_email\":\"siti@shop.example\"","payer_email":"` + mail + `"},"path":"/operation"}`)
			w.reserveAs(d, m)
		}
		for place, second := range []int{60, 130, 500, 301} { // as long as it takes to pay: a minute, half of one, five and a second
			paid := says(movement.SaysSucceeded, movement.FromNotification, second)
			paid.At, paid.ProviderReference = at(second), fmt.Sprintf("PROV-%d", place)
			paid.Channel = []string{"qris", "va", "qris", ""}[place]
			factOf(paid).on(w, place)
		}
		factOf(says(movement.SaysAccepted, movement.FromCall, 402)).on(w, 4)
		w.reserve(draft{kind: manifest.Transfer, reference: 9, amount: 1000, unnamed: true})
		w.reserve(draft{kind: manifest.Payment, merchant: 1, reference: 9, amount: 1000})
		payments, _ := movement.RulesOf(manifest.Payment)
		l := movement.Listing{Owner: w.owners[0], Kind: manifest.Payment, States: append(payments.Listed(""), movement.Submitting), Before: at(1000), Most: 10}
		for _, search := range []string{"", "r1", "R1", "_", "50%", "%", `\`, "1000", "1.000", "Rp25.000", "Rp 25.000", "25", "1.0", "PROV-1", "PROV", "budi@shop.example", "BUDI@SHOP.EXAMPLE", "udi@shop.example", "siti@shop.example", "50%_@shop.example", "same-"} {
			l.Search = search
			found, err := w.Movements(w.ctx, l)
			var references []string
			for _, m := range found {
				references = append(references, m.Reference)
			}
			figures, failed := w.Figures(w.ctx, l, []time.Time{at(0), at(150), at(350), at(1000)})
			w.say(fmt.Sprintf("search %q", search), references, err, fmt.Sprintf("%+v", figures), failed)
		}
		l.Search, l.Kind = "same-", manifest.Transfer
		found, err := w.Movements(w.ctx, l)
		w.say("a fingerprint is no reference", found, err)
		l.Search, l.Kind = "", manifest.Payment
		for _, l.Most = range []int{6, 5} {
			figures, err := w.Figures(w.ctx, l, []time.Time{at(0), at(1000)})
			w.say(fmt.Sprintf("of at most %d", l.Most), fmt.Sprintf("%+v", figures), err)
		}
	},
	"unnamed transfers are found by their fingerprint": func(w *side) {
		for reference := range 3 {
			w.reserve(draft{kind: manifest.Transfer, reference: reference, amount: 1000, unnamed: true, second: reference})
		}
	},
	"transfers of an account that a row may be": func(w *side) {
		paid := func(d draft, change func(*movement.Movement)) {
			d.kind, d.reference = manifest.Transfer, len(w.seen)
			m := w.draft(d)
			change(&m)
			w.reserveAs(d, m)
			factOf(says(movement.SaysSucceeded, movement.FromCall, d.second+1)).on(w, len(w.seen)-1)
		}
		for i, amount := range []money.Amount{79_999, 80_000, 200_000, 320_000, 320_001} {
			paid(draft{amount: amount, second: i}, func(*movement.Movement) {})
		}
		paid(draft{amount: 200_000, second: 10, merchant: 1}, func(*movement.Movement) {})
		for _, version := range []int64{4, 3, 4} {
			paid(draft{amount: 200_000, second: 20}, func(m *movement.Movement) { m.ConnectionVersion, m.ConnectionAccount = version, "" })
		}
		for _, place := range []int{7, len(w.seen) - 1} {
			others, err := w.PaidOut(w.ctx, w.seen[place], 1000)
			w.say("paid out besides", w.seen[place], err)
			for _, other := range others {
				w.say("paid out", other.Reference, other.Amount)
			}
		}
	},
	"polls are apart": func(w *side) {
		w.reserve(draft{kind: manifest.Order, reference: 1, amount: 1000})
		w.poll(0, 70, 10, 130)
		w.poll(0, 71, 11, 131)
		w.poll(0, 70, 70, 0)
		w.poll(0, -100, -200, 140) // by a clock that is far behind: the others' times are of no future
		factOf(says(movement.SaysFailed, movement.FromCall, 200)).on(w, 0)
		w.fact(0, movement.Fact{
			Source: movement.FromOperators, Says: movement.SaysOverridden, Now: at(300), Begun: at(301),
			Override: &movement.Override{Operator: "operator", Outcome: movement.OverrideFailed, Alone: true},
		})
		w.poll(0, 400, 300, 500)
	},
	"shown is promised, without an answer": func(w *side) {
		w.reserve(draft{kind: manifest.Payment, reference: 1, amount: 1000})
		w.acknowledge(0)
		factOf(says(movement.SaysNotSent, movement.FromCall, 1)).on(w, 0) // as it was before
		w.reserve(draft{kind: manifest.Payment, reference: 2, amount: 1000})
		w.acknowledge(len(w.seen) - 1)
		factOf(says(movement.SaysAccepted, movement.FromCall, 2)).on(w, len(w.seen)-1)
	},
	"a resubmission is decided, is over and is decided again": func(w *side) {
		w.reserve(draft{kind: manifest.Order, reference: 1, amount: 1000})
		w.acknowledge(0)
		w.override(1, 1, 700, movement.OverrideResubmit, false)
		w.override(1, 2, 701, movement.OverrideResubmit, false)
		w.override(1, 3, 702, movement.OverrideResubmit, false) // the same again
		w.poll(len(w.seen)-1, 760, 700, 820)
		w.override(1, 3, 790, movement.OverrideResubmit, false)            // it is not over
		w.override(len(w.seen)-1, 3, 802, movement.OverrideResubmit, true) // it is
		w.override(1, 1, 803, movement.OverrideFailed, false)
		w.override(1, 2, 804, movement.OverrideResubmit, false) // another proposal stands
		w.override(1, 2, 900, movement.OverrideFailed, false)
		w.override(1, 2, 901, movement.OverrideResubmit, true) // what is made stays
	},
	"misses end it": func(w *side) {
		w.reserve(draft{kind: manifest.Payment, reference: 1, amount: 1000})
		w.poll(0, 60, 55, 65)
		factOf(says(movement.SaysNotFound, movement.FromLookup, 60)).on(w, 1)
		w.miss(1, 70)
		w.poll(2, 75, 70, 80)
		w.miss(2, 85)
		factOf(says(movement.SaysNotFound, movement.FromLookup, 75)).on(w, 3)
		w.miss(3, 90)
	},
	"a call that ended in an error is asked about sooner": func(w *side) {
		d := draft{kind: manifest.Payment, reference: 1, amount: 1000}
		w.reserve(d)
		factOf(says(movement.SaysErrored, movement.FromCall, 1)).on(w, 0)
		factOf(says(movement.SaysErrored, movement.FromCall, 2)).on(w, 0) // as it was before
		factOf(says(movement.SaysNotSent, movement.FromCall, 3)).on(w, 1)
		d.second = 4
		w.reserve(d) // of which nothing ended
		factOf(says(movement.SaysErrored, movement.FromCall, 5)).on(w, 1)
		factOf(says(movement.SaysErrored, movement.FromCall, 6)).on(w, len(w.seen)-1)
		w.acknowledge(len(w.seen) - 1)
	},
	"late money and reversals are recorded once": func(w *side) {
		w.say("credit", w.Credit(w.ctx, w.owners[0], 3000))
		w.reserve(draft{kind: manifest.Payment, reference: 1, amount: 1000})
		factOf(says(movement.SaysExpired, movement.FromLookup, 1)).on(w, 0)
		factOf(says(movement.SaysSucceeded, movement.FromNotification, 2)).on(w, 1)
		factOf(says(movement.SaysSucceeded, movement.FromNotification, 3)).on(w, 1)
		w.reserve(draft{kind: manifest.Order, reference: 2, amount: 1000, charge: movement.Charged, second: 4})
		place := len(w.seen) - 1
		factOf(says(movement.SaysSucceeded, movement.FromLookup, 5)).on(w, place)
		factOf(says(movement.SaysFailed, movement.FromLookup, 6)).on(w, place+1)
		factOf(says(movement.SaysFailed, movement.FromLookup, 7)).on(w, place+1)
	},
	"result of a success grows": func(w *side) {
		w.reserve(draft{kind: manifest.Order, reference: 1, amount: 1000})
		factOf(says(movement.SaysSucceeded, movement.FromLookup, 1)).on(w, 0)
		f := says(movement.SaysSucceeded, movement.FromNotification, 2)
		f.Late, f.Fuller, f.Data = "sn", []byte(`{"sn":"1"}`), []byte(`{"sn":"1"}`)
		factOf(f).on(w, 1)
		factOf(f).on(w, 1) // as it was before
	},
	"answers of calls are kept": func(w *side) {
		w.reserve(draft{kind: manifest.Payment, reference: 1, amount: 1000})
		factOf(says(movement.SaysSucceeded, movement.FromNotification, 1)).on(w, 0)
		f := says(movement.SaysAccepted, movement.FromCall, 2)
		f.Data, f.Offers, f.ProviderReference, f.ExpiresAt = []byte(`{"qr_string":"1"}`), true, "up", at(100)
		factOf(f).on(w, 1)
		factOf(f).on(w, 2)
	},
	"units of a quota are counted once": func(w *side) {
		w.take(0, 1, 3, 10)
		w.take(0, 1, 3, 10) // the same again
		w.take(1, 1, 5, 10)
		w.take(0, 2, 5, 10) // of which two are left
		w.take(1, 2, 1, 10)
		w.give(0, 2, 4) // it took, so its units are told
		w.give(0, 3, 2)
		w.give(0, 3, 2)
		w.take(0, 3, 1, 10) // it gave back
		w.take(0, 1, 1, 10) // it is overtaken
		w.give(0, 2, 1)
		w.take(1, 3, 9, 5) // the limit is lower now
		w.give(1, 4, 99)
		w.take(0, 4, 9, 5)
	},
	"exceptions stand once": func(w *side) {
		for i, lasting := range []bool{false, false, true, true} {
			w.except(0, 0, i, lasting)
		}
		w.resolve(0, 0, 10)
		w.except(0, 0, 11, false)
		w.except(0, 0, 9, true)
		w.except(0, 0, 12, true)
		w.except(0, 0, 13, true)
		w.resolve(0, 0, 20)
		w.except(0, 0, 21, true)
	},
	"overrides need two or one alone": func(w *side) {
		w.reserve(draft{kind: manifest.Transfer, reference: 1, amount: 1000})
		w.override(0, 1, 1, movement.OverrideSucceeded, false)
		w.override(0, 1, 2, movement.OverrideFailed, false)
		w.override(0, 2, 3, movement.OverrideSucceeded, false)
		w.override(0, 2, 4, movement.OverrideFailed, false)
		w.override(0, 3, 5, movement.OverrideSucceeded, true)
		w.reserve(draft{kind: manifest.Transfer, reference: 2, amount: 1000})
		alone := len(w.seen) - 1
		w.override(alone, 1, 6, movement.OverrideSucceeded, false)
		w.override(alone, 2, 7, movement.OverrideFailed, true)
		w.override(alone, 1, 8, movement.OverrideFailed, false)
		made, err := w.OverrideOf(w.ctx, w.seen[alone].ID, 2)
		w.say("override of another attempt", made, err)
	},
	"notes are counted": func(w *side) {
		w.reserve(draft{kind: manifest.Transfer, reference: 1, amount: 1000})
		for second := range 3 {
			w.say("note", w.Note(w.ctx, at(second), w.seen[0], "polled", "a"))
		}
		w.say("note", w.Note(w.ctx, at(3), w.seen[0], "polled", "b"))
	},
	"due movements come in order": func(w *side) {
		for reference := range 3 {
			w.reserve(draft{kind: manifest.Payment, reference: reference, amount: 1000, second: 30 - 10*reference})
		}
		w.due(27, -1)
		w.due(100, -1)
		w.due(100, 2)
		w.poll(1, 18, 18, 60)
		w.acknowledge(0)
		factOf(says(movement.SaysSucceeded, movement.FromLookup, 20)).on(w, 2)
		w.due(100, -1)
	},
	"amounts are reserved": func(w *side) {
		w.reserve(draft{kind: manifest.Collection, reference: 1, amount: 1000})
		w.reserve(draft{kind: manifest.Collection, merchant: 1, reference: 1, amount: 1000, foreign: true})
		for reference := range movement.SmallCodes {
			w.reserve(draft{kind: manifest.Collection, reference: 10 + reference, amount: 5000, second: reference})
		}
		w.reserve(draft{kind: manifest.Collection, reference: 200, amount: 5000, second: 100})
	},
	"amounts are all taken": func(w *side) {
		for reference := range movement.MostCodes + 1 {
			w.reserve(draft{kind: manifest.Collection, reference: reference, amount: 5000})
		}
		w.reserve(draft{kind: manifest.Collection, reference: 5000, amount: 5000, second: 3601}) // its time is over, it is open
		factOf(says(movement.SaysNotSent, movement.FromCall, 10)).on(w, 7)
		w.release(7)
		w.reserve(draft{kind: manifest.Collection, reference: 5001, amount: 5000, second: 20})
		w.keys, w.log = nil, w.log[len(w.log)-5:]
	},
	"a paid amount is soon free": func(w *side) {
		for reference := range movement.MostCodes {
			w.reserve(draft{kind: manifest.Collection, reference: reference, amount: 5000})
		}
		for place := range 2 {
			factOf(says(movement.SaysAccepted, movement.FromCall, 1)).on(w, place)
		}
		w.importLines(0, 50, false, line{payment: 0, pays: 0, second: 40, paid: true}, line{payment: 1, pays: 1, second: 40, paid: true})
		w.match(0, 51)
		f := says(movement.SaysSucceeded, movement.FromStatement, 52)
		f.At = at(40)
		factOf(f).on(w, movement.MostCodes) // and the other does not know yet
		w.closeLines(0, 652)
		first, last := w.seen[0].Amount, len(w.log)
		for i, second := range []int{651, 652, 653} {
			w.reserve(draft{kind: manifest.Collection, reference: 5000 + i, amount: 5000, second: second})
		}
		w.say("it has the amount of the first", w.seen[len(w.seen)-1].Amount == first)
		w.keys, w.log = nil, w.log[last:]
	},
	"the least recently used amount is taken": func(w *side) {
		for reference := range movement.SmallCodes {
			w.reserve(draft{kind: manifest.Collection, reference: reference, amount: 5000, second: 60 * reference})
		}
		first := slices.Clone(w.seen)
		for place := range first {
			factOf(says(movement.SaysRefused, movement.FromCall, 60*place+1)).on(w, place)
		}
		last := len(w.log)
		for i := range 3 {
			w.reserve(draft{kind: manifest.Collection, reference: 5000 + i, amount: 5000, second: 20_000})
			w.say(fmt.Sprint("it has the amount of #", i), w.seen[len(w.seen)-1].Amount == first[i].Amount)
		}
		w.keys, w.log = nil, w.log[last:]
	},
	"lines pay their collections": func(w *side) {
		w.reserve(draft{kind: manifest.Collection, reference: 1, amount: 1000})
		factOf(says(movement.SaysAccepted, movement.FromCall, 1)).on(w, 0)
		w.importLines(0, 50, false, line{payment: 0, pays: 1, second: 40, paid: true}, line{payment: 1, pays: -1, second: 41, paid: true})
		w.importLines(0, 51, true, line{payment: 2, pays: 1, second: 40, paid: true})
		w.match(0, 52)
		w.closeLines(0, 600)
		f := says(movement.SaysSucceeded, movement.FromStatement, 53)
		f.At = at(40)
		factOf(f).on(w, 1)
		w.importLines(0, 60, false, line{payment: 0, pays: 1, second: 59, reversed: true}, line{payment: 2, pays: 1, second: 58, paid: true})
		w.match(0, 61)
		w.closeLines(0, 600)
		w.importLines(0, 70, false, line{payment: 0, pays: -1, second: 69, paid: true}, line{payment: 1, pays: -1, second: 69, reversed: true})
		w.match(0, 71)
	},
	"operators assign lines": func(w *side) {
		for reference := range 2 {
			w.reserve(draft{kind: manifest.Collection, reference: reference, amount: 1000})
			factOf(says(movement.SaysAccepted, movement.FromCall, 1)).on(w, len(w.seen)-1)
		}
		w.importLines(0, 50, false, line{payment: 0, pays: -1, second: 40, paid: true}, line{payment: 1, pays: 1, second: 40, paid: true})
		w.match(0, 51)
		w.assign(0, 0, 3, 52)
		w.assign(0, 1, 3, 53)
		w.closeLines(0, 600)
		w.assign(0, 1, 0, 54)
		w.assign(0, 0, 1, 55)
		ours, err := w.PollStatement(w.ctx, w.account[0], at(60), at(50), at(120))
		w.say("poll the statement", ours, err)
		ours, err = w.PollStatement(w.ctx, w.account[0], at(61), at(51), at(121))
		w.say("poll the statement", ours, err)
	},
	"statements are due for their sales": func(w *side) {
		due := func(second int) {
			all, err := w.DueStatements(w.ctx, []int{w.account[0].Bucket()}, at(0), at(second), 10)
			w.say(fmt.Sprintf("due at %d", second), slices.DeleteFunc(all, func(s movement.Statement) bool { return s.Account != w.account[0] }), err)
			s, err := w.Statement(w.ctx, w.account[0])
			pending, listErr := w.OpenSales(w.ctx, s, movement.Candidate{}, 1)
			w.say("pending", pending, err, listErr)
			if len(pending) > 0 {
				pending, err = w.OpenSales(w.ctx, s, pending[0], 10)
				w.say("behind it", pending, err)
			}
		}
		w.reserve(draft{kind: manifest.Collection, reference: 1, amount: 1000, second: 10})
		due(14)
		factOf(says(movement.SaysAccepted, movement.FromCall, 11)).on(w, 0)
		due(15)
		ours, err := w.PollStatement(w.ctx, w.account[0], at(15), at(10), at(75))
		w.say("poll the statement", ours, err)
		due(74)
		w.say("rest", w.RestStatement(w.ctx, w.account[0], at(74), at(20))) // not as it stands
		due(74)
		w.say("rest", w.RestStatement(w.ctx, w.account[0], at(75), at(200)))
		due(199)
		w.reserve(draft{kind: manifest.Collection, reference: 2, amount: 1000, second: 100})
		factOf(says(movement.SaysAccepted, movement.FromCall, 101)).on(w, len(w.seen)-1)
		due(105)
		w.reserve(draft{kind: manifest.Collection, reference: 3, amount: 1000, second: 103}) // due soon enough
		due(105)
	},
}
