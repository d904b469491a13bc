package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// side is one store in a story: what it was asked, what it returned, and the movements
// as they were seen there.
type side struct {
	Store
	ctx     context.Context
	names   *names
	owners  []movement.Owner
	account []movement.AccountID
	seen    []movement.Movement // the latest last
	log     []string
	keys    []movement.Key
}

const merchants = 2

func newSide(ctx context.Context, s Store) *side {
	w := &side{Store: s, ctx: ctx, names: newNames()}
	for i := range merchants {
		w.owners = append(w.owners, movement.Owner{MerchantID: "mer_" + uuid.NewString(), Mode: "live"})
		w.names.known[w.owners[i].MerchantID] = "merchant" + strconv.Itoa(i+1)
		w.account = append(w.account, movement.NewAccountID("provider", "live", "name of "+w.owners[i].MerchantID))
		w.names.of("account", w.account[i].String())
	}
	return w
}

// say logs what a call has returned.
func (w *side) say(call string, results ...any) {
	line := call
	for _, result := range results {
		if err, failed := result.(error); failed {
			line += " | " + showError(err)
			continue
		}
		line += " | " + w.names.show(result)
	}
	w.log = append(w.log, line)
}

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// draft is what a reservation is asked for.
type draft struct {
	kind      manifest.Kind
	merchant  int
	reference int
	attempt   int
	second    int // when
	amount    money.Amount
	charge    movement.Charge
	ceiling   int64 // of a transfer's payout limit, 0 for none
	foreign   bool  // on the other merchant's account
	unnamed   bool
}

func (w *side) draft(d draft) movement.Movement {
	m := movement.Movement{
		Key:     movement.Key{Owner: w.owners[d.merchant], Kind: d.kind, Reference: "r" + strconv.Itoa(d.reference)},
		Attempt: d.attempt, ID: movement.NewID(), Operation: "/operation", Provider: "provider", State: movement.Submitting,
		Amount: d.amount, Request: json.RawMessage(`{"body":{"n":` + strconv.Itoa(d.reference) + `}}`), ConnectionOwner: manifest.OwnerMerchant,
		ConnectionVersion: 3, ConnectionAccount: "name of " + w.owners[d.merchant].MerchantID,
		CallbackURL: "https://shop.example/callback", RequestID: "req", PolicyVersion: "v1", DecisionID: "d1",
		CreatedAt: at(d.second), SendBy: at(d.second + 5), Polled: movement.Polled{DueAt: at(d.second + 7)},
	}
	m.Charge = d.charge
	switch d.kind { //nolint:exhaustive // the others take nothing
	case manifest.Order:
		m.Cost, m.Quote = d.amount-10, json.RawMessage(`{"q":1}`)
	case manifest.Transfer:
		m.Fee, m.NameMatch = 25, new(true)
		if d.ceiling > 0 {
			m.Usage = []movement.Usage{
				{Name: "out.amount", Period: "2026-01-02", Amount: int64(d.amount), Ceiling: d.ceiling},
				{Name: "out.count", Period: "2026-01-02", Amount: 1, Ceiling: 3},
			}
		}
		if d.unnamed {
			m.Fingerprint = movement.UnnamedMark + "same-"
			m.Reference = m.Fingerprint + fmt.Sprintf("%08d", d.reference)
		}
	case manifest.Collection:
		account := w.account[d.merchant]
		if d.foreign {
			account = w.account[(d.merchant+1)%merchants]
		}
		m.ExpiresAt = at(d.second + 1800)
		m.Reserved = movement.ReservedAmount{Account: account, FreeAt: at(d.second + 3600)}
	}
	return m
}

// reserve reserves a draft and remembers the movement that has the reference.
func (w *side) reserve(d draft) { w.reserveAs(d, w.draft(d)) }

// reserveAs reserves what a draft was made, and changed into.
func (w *side) reserveAs(d draft, m movement.Movement) {
	m, ours, err := w.Reserve(w.ctx, m)
	if err == nil && m.Kind == manifest.Collection && ours {
		code := "small code"
		if m.Amount-d.amount > movement.SmallCodes {
			code = "large code"
		}
		w.names.amounts[m.Amount] = fmt.Sprintf("%s+%s", d.amount, code)
	}
	if err == nil {
		w.seen = append(w.seen, m)
		if !slices.Contains(w.keys, m.Key) {
			w.keys = append(w.keys, m.Key)
		}
	}
	m.Usage = nil // the reservation tells it with its ceilings, which nothing keeps
	w.say(fmt.Sprintf("reserve %+v", d), m, ours, err)
}

// rules are those of a movement's kind, as an operation's manifest completes them.
func rules(m movement.Movement) movement.Rules {
	r, _ := movement.RulesOf(m.Kind)
	r.Pace, r.Timeout = movement.Pace{SettlesWithin: 30 * time.Second, ErrorSettlesWithin: 5 * time.Second, Every: 5 * time.Second}, 10*time.Second
	if r.Resubmits = m.Kind == manifest.Order; r.Resubmits {
		r.Pace.Every, r.ResubmitWithin, r.BuysWithin = time.Minute, time.Hour, 10*time.Minute
	}
	return r
}

// fact applies a fact to the movement that was seen at a place, and reads it again.
func (w *side) fact(place int, f movement.Fact) {
	m := w.seen[place]
	f.Reference = m.UpstreamReference()
	c := movement.Change{Transition: movement.Apply(rules(m), m, f), Movement: m, At: f.Now}
	call := fmt.Sprintf("fact %s says %d of #%d", f.Source, f.Says, place)
	if c.Effect == movement.Nothing || c.Effect == movement.Contradiction {
		w.say(call, "effect", int(c.Effect))
		return
	}
	if c.Answers {
		c.Answer = json.RawMessage(`{"answer":1}`)
	}
	if name := rules(m).Event(c.Tells); name != "" {
		c.Callback = &movement.CallbackEvent{ID: uuid.New(), Event: name, URL: "https://shop.example/callback", Body: json.RawMessage(`{"event":1}`)}
	}
	if c.Receipt {
		c.Mail = &movement.Mail{ID: uuid.New(), To: "payer@shop.example", Subject: "Paid", Text: "Thank you."}
	}
	done, err := w.Apply(w.ctx, c)
	w.say(call, "effect", int(c.Effect), done, err)
	w.read(place)
}

// change commits a change of the movement that was seen at a place as it is given,
// whatever the rules would make of it.
func (w *side) change(place int, what string, t movement.Transition) {
	t.Event, t.Detail = "changed", "{}"
	done, err := w.Apply(w.ctx, movement.Change{Transition: t, Movement: w.seen[place], At: at(10)})
	w.say(fmt.Sprintf("#%d: %s", place, what), done, err)
}

// read reads the movement that was seen at a place.
func (w *side) read(place int) {
	m, err := w.MovementByID(w.ctx, w.seen[place].ID)
	if err == nil {
		w.seen = append(w.seen, m)
	}
	w.say(fmt.Sprintf("read #%d", place), m, err)
}

// acknowledge has a status show a movement, which is the creation's answer where that
// is no offer.
func (w *side) acknowledge(place int) {
	var answer json.RawMessage
	if rules(w.seen[place]).Answers != movement.AnswerOffer {
		answer = json.RawMessage(`{"status":"Pending"}`)
	}
	m, err := w.Acknowledge(w.ctx, w.seen[place], answer)
	if err == nil {
		w.seen = append(w.seen, m)
	}
	w.say(fmt.Sprintf("acknowledge #%d", place), m, err)
}

func (w *side) poll(place, second, before, next int) {
	ours, err := w.Poll(w.ctx, w.seen[place], at(second), at(before), at(next))
	w.say(fmt.Sprintf("poll #%d at %d if not since %d, next %d", place, second, before, next), ours, err)
	w.read(place)
}

// due tells which of the first merchant's movements are due by a time, behind the place
// of one that was seen, or (below 0) of all.
func (w *side) due(second, behind int) {
	from := movement.QueuePlace{}
	if behind >= 0 {
		from.DueAt, from.ID = w.seen[behind].DueAt, w.seen[behind].ID
	}
	scan := movement.DueScan{Now: at(second), Most: 1e6}
	for from.Bucket = range movement.Buckets {
		scan.From = append(scan.From, from)
	}
	due, err := w.Due(w.ctx, scan)
	w.say(fmt.Sprintf("due at %d behind #%d", second, behind), err)
	for _, poll := range due {
		if strings.Contains(poll.Account, w.owners[0].MerchantID) {
			movements, err := w.MovementsByID(w.ctx, []movement.ID{poll.ID, movement.NewID()})
			w.say("due", poll, movements, err)
		}
	}
}

func (w *side) miss(place, next int) {
	misses, err := w.Miss(w.ctx, w.seen[place], at(next))
	w.say(fmt.Sprintf("miss #%d, next %d", place, next), misses, err)
	w.read(place)
}

// quotaPeriod is the month whose units are counted, and quotaName what they are of.
const quotaPeriod, quotaName = "2026-01", "calls"

func (w *side) take(replica, batch, want, limit int64) {
	taken, used, err := w.TakeUsage(w.ctx, w.owners[0], quotaName, quotaPeriod, "replica "+strconv.FormatInt(replica, 10), batch, want, limit)
	w.say(fmt.Sprintf("replica %d takes %d of %d with batch %d", replica, want, limit, batch), taken, used, err)
}

func (w *side) give(replica, batch, back int64) {
	taken, err := w.GiveUsage(w.ctx, w.owners[0], quotaName, quotaPeriod, "replica "+strconv.FormatInt(replica, 10), batch, back)
	w.say(fmt.Sprintf("replica %d gives %d back with batch %d", replica, back, batch), taken, err)
}

func (w *side) release(place int) {
	w.say(fmt.Sprintf("release the amount of #%d", place), w.ReleaseAmount(w.ctx, w.seen[place]))
}

func (w *side) except(merchant, subject, second int, lasting bool) {
	fresh, err := w.AddException(w.ctx, movement.Exception{
		Owner: w.owners[merchant], Subject: "subject " + strconv.Itoa(subject), Reason: movement.ReasonAccount, FactID: "fact",
		Provider: "provider", Detail: "at " + strconv.Itoa(second), At: at(second), Lasting: lasting,
	})
	w.say(fmt.Sprintf("except subject %d at %d, lasting %v", subject, second, lasting), fresh, err)
}

func (w *side) resolve(merchant, subject, second int) {
	w.say(fmt.Sprintf("resolve subject %d at %d", subject, second), w.ResolveExceptions(
		w.ctx, at(second), w.owners[merchant], "subject "+strconv.Itoa(subject), []string{movement.ReasonAccount}, "operator", "mended"))
}

// override has an operator say something. A resubmission is over after 100 seconds, and
// at once for other words.
func (w *side) override(place, operator, second int, outcome movement.OverrideOutcome, alone bool) {
	m := w.seen[place]
	o := movement.Override{
		Operator: "operator " + strconv.Itoa(operator), Outcome: outcome, Reason: "phoned", At: at(second), Alone: alone, Supersedes: at(second),
	}
	if outcome == movement.OverrideResubmit {
		o.Supersedes = at(second - 100)
	}
	made, err := w.Override(w.ctx, m, o, movement.Exception{
		Owner: m.Owner, Subject: m.ID.String(), Reason: movement.ReasonAlone, FactID: "attempt " + strconv.Itoa(m.Attempt), At: at(second),
	})
	w.say(fmt.Sprintf("override #%d by %d as %s, alone %v", place, operator, o.Outcome, alone), made, err)
	if err != nil || !made.Made() {
		return
	}
	w.read(place) // it is due for that
	if outcome == movement.OverrideResubmit {
		w.fact(len(w.seen)-1, movement.Fact{Source: movement.FromOperators, Says: movement.SaysOverridden, Override: &made, Now: at(second), Begun: at(second)})
	}
}

// line is what a statement tells of a payment.
type line struct {
	payment  int
	pays     int // the place of the movement whose amount it has; -1 for nobody's
	second   int
	paid     bool
	reversed bool
	differs  bool
	failed   bool
}

func (w *side) imported(l line) movement.ImportedLine {
	told := movement.ImportedLine{
		Payment: "p" + strconv.Itoa(l.payment), ID: "l" + strconv.Itoa(l.second), Amount: 777, Currency: "IDR", At: at(l.second),
		Paid: l.paid, Differs: l.differs, Data: "data",
	}
	if l.pays >= 0 {
		told.Amount = w.seen[l.pays].Amount
	}
	if told.Failed = l.failed && !l.paid; l.reversed || told.Failed {
		told.ReversedAt = at(l.second)
	}
	return told
}

// read imports the lines of a merchant's account behind its cursor, or behind another.
func (w *side) importLines(merchant, second int, stale bool, lines ...line) {
	s, err := w.Statement(w.ctx, w.account[merchant])
	w.say("statement", s, err)
	if stale {
		s.Cursor += "?"
	}
	s.Account = w.account[merchant]
	told := make([]movement.ImportedLine, len(lines))
	for i, l := range lines {
		told[i] = w.imported(l)
	}
	done, err := w.Import(w.ctx, at(second), s, told, s.Cursor+"+", at(second))
	w.say(fmt.Sprintf("import %v at %d", lines, second), done, err)
}

// match matches a merchant's open lines as the reconciler does, and applies nothing.
func (w *side) match(merchant, second int) {
	s, err := w.Statement(w.ctx, w.account[merchant])
	if err != nil {
		w.say("match", err)
		return
	}
	open, err := w.OpenLines(w.ctx, s.Account, "", 100)
	w.say("open lines", open, err)
	var matches []movement.Match
	for _, l := range open {
		candidates, err := w.Candidates(w.ctx, s, []money.Amount{l.Amount}, epoch, at(1e6))
		slices.SortFunc(candidates, func(a, b movement.Candidate) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(w.names.show(a.ID), w.names.show(b.ID)))
		})
		w.say("candidates", candidates, err)
		if found, decided := (movement.Rules{Quarantine: time.Hour}).FindMatch(l, candidates); decided && l.State == movement.LineNew {
			matches = append(matches, found)
		}
	}
	decided, err := w.Match(w.ctx, at(second), s, matches)
	slices.Sort(decided)
	w.say("match", len(decided), decided, err)
}

// closeLines closes a merchant's open lines. Their amounts are free from a second on.
func (w *side) closeLines(merchant, free int) {
	open, err := w.OpenLines(w.ctx, w.account[merchant], "", 100)
	if err == nil {
		err = w.CloseLines(w.ctx, w.account[merchant], open, at(free))
	}
	w.say("close lines", err)
}

func (w *side) assign(merchant, payment, place, second int) {
	l, err := w.Line(w.ctx, w.account[merchant], "p"+strconv.Itoa(payment))
	if err != nil {
		w.say("assign", err)
		return
	}
	done, err := w.Assign(w.ctx, at(second), l, w.seen[place].ID, "operator", "phoned")
	w.say(fmt.Sprintf("assign p%d to #%d", payment, place), done, err)
}

// dump logs all that stands in the store of the story's merchants.
func (w *side) dump() {
	for _, key := range w.keys {
		m, err := w.MovementByKey(w.ctx, key)
		w.say("movement", m, err)
		history, err := w.History(w.ctx, m.ID)
		w.say("history", history, err)
		callbacks, err := w.CallbacksOfMovement(w.ctx, key.Owner, m.ID, history)
		w.say("callbacks", callbacks, err)
		postings, err := w.PostingsOf(w.ctx, key.Owner, m.ID)
		w.say("postings", postings, err)
		notes, err := w.NotesOf(w.ctx, m.ID)
		w.say("notes", notes, err)
		exceptions, err := w.ExceptionsOf(w.ctx, key.Owner, m.ID.String())
		w.say("exceptions", exceptions, err)
	}
	for i, owner := range w.owners {
		balance, err := w.Balance(w.ctx, owner)
		w.say("balance", balance, err)
		units, err := w.UsedOf(w.ctx, owner, quotaName, quotaPeriod)
		w.say("units", units, err)
		for _, name := range []string{"out.amount", "out.count"} {
			used, err := w.UsedOf(w.ctx, owner, name, "2026-01-02")
			w.say("used of "+name, used, err)
		}
		events, err := w.Events(w.ctx, owner, uuid.Nil, 0, 1000)
		w.say("events", len(events), err)
		last, err := w.LastEqual(w.ctx, owner, manifest.Transfer, movement.UnnamedMark+"same-")
		w.say("last equal", last, err)
		if err == nil {
			out, err := w.PaidOut(w.ctx, last, 1000)
			w.say("paid out", out, err)
		}
		for subject := range 2 {
			exceptions, err := w.ExceptionsOf(w.ctx, owner, "subject "+strconv.Itoa(subject))
			w.say("exceptions", exceptions, err)
		}
		for payment := range 4 {
			name := "p" + strconv.Itoa(payment)
			l, err := w.Line(w.ctx, w.account[i], name)
			w.say("line", l, err)
			exceptions, err := w.ExceptionsOf(w.ctx, owner, "payment "+name)
			w.say("exceptions", exceptions, err)
		}
		w.saysLines(owner.MerchantID)
	}
}

// saysLines says how many statement lines wait, and holds that pages of them are all of them.
func (w *side) saysLines(merchant string) {
	whole, err := w.ListLines(w.ctx, movement.LineRange{MerchantID: merchant, Most: 100})
	w.say("listed lines", len(whole), err)
	paged := []movement.ListedLine{}
	for r := (movement.LineRange{MerchantID: merchant, Most: 2}); ; {
		page, err := w.ListLines(w.ctx, r)
		if paged = append(paged, page...); err != nil || len(page) < r.Most {
			break
		}
		last := page[len(page)-1]
		r.Until, r.Account, r.Payment = last.At, last.Account, last.Payment
	}
	if !reflect.DeepEqual(paged, whole) {
		w.say("in pages", paged, nil)
	}
}
