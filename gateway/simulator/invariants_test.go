package simulator

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// ended checks that a final state is the first.
func (w *world) ended(c movement.Change) {
	if before, is := w.books.ended[c.Movement.ID]; is {
		w.violate("final states never change", "%s was %s and is %s", w.books.name(c.Movement.ID), before, c.To)
	}
}

// reserved checks that no two open collections of an account have one amount.
func (w *world) reserved(m movement.Movement) {
	if m.Kind != manifest.Collection {
		return
	}
	for _, id := range w.books.ids {
		other, err := w.store.MovementByID(w.ctx, id)
		same := err == nil && id != m.ID && other.Kind == m.Kind && other.Owner == m.Owner && other.ConnectionAccount == m.ConnectionAccount
		if same && other.Amount == m.Amount && other.State.Open() {
			w.violate("amounts of open collections differ", "%s and %s both ask for %v", w.books.name(m.ID), w.books.name(id), m.Amount)
		}
	}
}

// record is all that stands in the store about a movement.
type record struct {
	movement.Movement
	name       string
	history    []movement.HistoryEntry
	callbacks  []movement.Callback
	postings   []ledger.Transaction
	exceptions []movement.Exception
}

func (r record) doubted(reasons ...string) bool {
	return slices.ContainsFunc(r.exceptions, func(x movement.Exception) bool { return len(reasons) == 0 || slices.Contains(reasons, x.Reason) })
}

// recordOf reads all of a movement.
func (w *world) recordOf(id movement.ID) record {
	m, err := w.store.MovementByID(w.ctx, id)
	r := record{Movement: m, name: w.books.name(id)}
	fail := func(err error) {
		if err != nil {
			w.violate("the store answers", "%s: %v", r.name, err)
		}
	}
	fail(err)
	r.history, err = w.store.History(w.ctx, id)
	fail(err)
	r.callbacks, err = w.store.CallbacksOfMovement(w.ctx, m.Owner, id, r.history)
	fail(err)
	r.postings, err = w.store.PostingsOf(w.ctx, m.Owner, id)
	fail(err)
	r.exceptions, err = w.store.ExceptionsOf(w.ctx, m.Owner, id.String())
	fail(err)
	return r
}

// check checks what must be true of every history.
func (w *world) check() {
	for _, m := range w.merchants {
		w.readAllEvents(m)
	}
	var all []record
	for _, id := range w.books.ids {
		all = append(all, w.recordOf(id))
	}
	for _, r := range all {
		w.checkEnd(r)
		w.checkDecided(r)
		w.checkHistory(r)
		w.checkEvents(r)
		w.checkEventList(r)
		w.checkWorth(r)
		w.checkResolved(r)
		w.checkPostings(r)
		w.checkUpstream(r)
	}
	w.checkUnnamed(all)
	w.checkBalances(all)
	w.checkUsage(all)
	w.checkQuotas()
	w.checkStatements()
	for _, in := range w.intents {
		w.checkAnswers(in)
	}
}

// checkEnd: nothing is open for ever without an exception.
func (w *world) checkEnd(r record) {
	if r.State.Open() && !slices.ContainsFunc(r.exceptions, func(x movement.Exception) bool { return x.ResolvedAt.IsZero() }) {
		w.violate("nothing is open for ever", "%s is %s, and stands on no operator's list", r.name, r.State)
	}
}

// checkDecided: what operators have decided ends, whatever process died.
func (w *world) checkDecided(r record) {
	made, err := w.store.OverrideOf(w.ctx, r.ID, r.Attempt)
	if err == nil && made.Made() && made.Outcome != movement.OverrideResubmit && r.State.Open() {
		w.violate("what is decided ends", "%s is %s, and was decided %s", r.name, r.State, made.Outcome)
	}
}

// checkHistory: entries are numbered without gaps, but for the reservations.
func (w *world) checkHistory(r record) {
	if got := len(r.history) + w.books.count[r.ID]; got != r.Sequence {
		w.violate("histories have no gaps", "%s: %d entries and %d reservations, and its sequence is %d", r.name, len(r.history), w.books.count[r.ID], r.Sequence)
	}
	for i, e := range r.history {
		if i > 0 && e.Sequence <= r.history[i-1].Sequence {
			w.violate("histories have no gaps", "%s: %d comes after %d", r.name, e.Sequence, r.history[i-1].Sequence)
		}
	}
}

// checkEvents: each end is told once, and so are late money, each return, and that it was
// undone.
func (w *world) checkEvents(r record) {
	rules, _ := movement.RulesOf(r.Kind)
	undone, unordered := 0, false
	for _, back := range r.Returns {
		if !back.UndoneAt.IsZero() {
			undone++
		}
		unordered = unordered || back.Refund == "" || !back.UndoneAt.IsZero()
	}
	once := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	for _, fact := range []struct {
		event, reason string // reason: of the exception that it is, too
		times         int
	}{
		{rules.Events.Ended, "", once(r.State.Final())},
		{rules.Events.PaidLate, movement.ReasonPaidLate, once(!r.PaidLateAt.IsZero())},
		{rules.Events.Returned, movement.ReasonReturned, len(r.Returns) + undone},
	} {
		told := 0
		for _, c := range r.callbacks {
			if c.Event == fact.event {
				told++
			}
		}
		if fact.event != "" && told != fact.times {
			w.violate("every end is told once", "%s is %s, and %s was told %d times, not %d", r.name, r.State, fact.event, told, fact.times)
		}
		if fact.reason == movement.ReasonReturned && !unordered {
			continue // its merchant has ordered it
		}
		if fact.reason != "" && fact.times > 0 && !r.doubted(fact.reason) {
			w.violate("operators know of late facts", "%s: %s is recorded and no exception", r.name, fact.reason)
		}
	}
	if r.PaidAmount != 0 && !r.doubted(movement.ReasonAmount) {
		w.violate("operators know of late facts", "%s: %v of %v arrived, and no exception", r.name, r.PaidAmount, r.Amount)
	}
}

// worth is what a merchant reads of a movement's money, in a status or an event.
type worth struct {
	Status         string        `json:"status"`
	PaidAmount     *money.Amount `json:"paid_amount"`
	ReturnedAmount money.Amount  `json:"returned_amount"`
	ReturnedAt     string        `json:"returned_at"`
	Return         *struct {
		ID       string       `json:"id"`
		Amount   money.Amount `json:"amount"`
		UndoneAt string       `json:"undone_at"`
	} `json:"return"`
}

// net is what is left for the merchant, by what it has read, of what it asked for.
func (t worth) net(asked money.Amount) money.Amount {
	if t.PaidAmount != nil {
		asked = *t.PaidAmount
	}
	return asked - t.ReturnedAmount
}

// arrived is what of a movement's money has come by our record, 0 for nothing.
func (r record) arrived() money.Amount {
	switch {
	case r.State == movement.Succeeded, !r.PaidLateAt.IsZero():
		return cmp.Or(r.PaidAmount, r.Amount)
	default:
		return r.PaidAmount
	}
}

// gone is what of it went back and did not come again.
func (r record) gone() (sum money.Amount) {
	for _, back := range r.Returns {
		if back.UndoneAt.IsZero() {
			sum += back.Amount
		}
	}
	return sum
}

// checkWorth: what arrived less what went back equals what the merchant was told: by the
// last event and by the status, and by what the events tell of each return.
func (w *world) checkWorth(r record) {
	const invariant = "what arrived less what went back is told"
	rules, _ := movement.RulesOf(r.Kind)
	word := rules.Words[r.State]
	if all := r.State == movement.Succeeded && len(r.Returns) > 0 && r.gone() >= r.arrived(); all {
		word = rules.Words[movement.Failed]
	}
	check := func(where string, text []byte) {
		var told worth
		if err := json.Unmarshal(text, &told); err != nil {
			w.violate(invariant, "%s: %v", r.name, err)
			return
		}
		shows := r.Kind == manifest.Payment && r.arrived() != 0
		switch all := r.arrived() != 0 && r.gone() >= r.arrived(); {
		case told.Status != word, told.ReturnedAmount != r.gone(), (told.ReturnedAt != "") != all, shows != (told.PaidAmount != nil),
			shows && told.net(r.Amount) != r.arrived()-r.gone():
			w.violate(invariant, "%s is %s, of %v %v arrived and %v went back; its %s says %s", r.name, r.State, r.Amount, r.arrived(), r.gone(), where, text)
		}
	}
	if len(r.callbacks) > 0 {
		last := slices.MaxFunc(r.callbacks, func(a, b movement.Callback) int { return cmp.Compare(a.Sequence, b.Sequence) })
		var event struct{ Data json.RawMessage }
		_ = json.Unmarshal(last.Body, &event) // our own
		check("last event", event.Data)
	}
	if standing, err := w.replicas[0].lifecycle.Standing(r.Movement); err != nil || standing != nil {
		check("status", standing)
	}
	net := map[string]money.Amount{}
	for _, c := range r.callbacks {
		var event struct{ Data worth }
		if json.Unmarshal(c.Body, &event) == nil && event.Data.Return != nil {
			if net[event.Data.Return.ID] += event.Data.Return.Amount; event.Data.Return.UndoneAt != "" {
				net[event.Data.Return.ID] -= 2 * event.Data.Return.Amount
			}
		}
	}
	for _, back := range r.Returns {
		want := back.Amount
		if !back.UndoneAt.IsZero() {
			want = 0
		}
		if net[back.ID] != want {
			w.violate(invariant, "%s: of return %q %v is gone, and %v was told", r.name, back.ID, want, net[back.ID])
		}
	}
}

// checkMoney: what is left of a movement's money by our record is what is left by the
// upstream's.
func (w *world) checkMoney(r record, t *thing) {
	if t == nil || !t.was || r.arrived() == 0 || !w.sameAccount(r.Movement, t) {
		return
	}
	arrived := cmp.Or(t.arrived, r.Amount)
	left := arrived
	for _, back := range t.returns {
		switch {
		case back.Undone:
		case t.kind == manifest.Order: // which goes back whole, at its price
			left = 0
		default:
			left -= back.Amount
		}
	}
	if t.status == sdk.StatusFailed {
		left = 0
	}
	if r.State.Open() { // nothing of it is the merchant's yet
		left = arrived
	}
	if !r.PaidLateAt.IsZero() && w.books.overstated[t.reference] && r.doubted(movement.ReasonAmount) {
		return // what the provider told of late money with a wrong amount waits for a person
	}
	got := r.arrived() - r.gone()
	if w.books.overstated[t.reference] && got == left+1 { // nobody but the provider knows better
		return
	}
	if got != left {
		w.violate("what arrived less what went back is known", "%s is %s with %v, and the provider has %v left of %v", r.name, r.State, got, left, arrived)
	}
}

// sameAccount tells whether what was made on an account can be asked for still.
func (w *world) sameAccount(m movement.Movement, t *thing) bool {
	c, ok := w.books.holders[t.owner].Connection(tenants.Live, tenants.Provider(m.Provider))
	return ok && accountOf(sdk.Connection{Credentials: c.Sealed}) == t.account
}

// checkPostings: each attempt begins and ends once, as its movement did.
func (w *world) checkPostings(r record) {
	posted := map[[2]int]bool{}
	var sum ledger.Legs
	for _, p := range r.postings {
		step := [2]int{p.Attempt, int(p.Step)}
		if posted[step] || !w.books.attempts[r.ID][p.Attempt] {
			w.violate("each step is posted once", "%s: attempt %d, which was reserved: %v; %+v", r.name, p.Attempt, w.books.attempts[r.ID][p.Attempt], r.postings)
		}
		posted[step] = true
		sum.Available += p.Available
		sum.Held += p.Held
		if !p.Balanced() {
			w.violate("postings sum to zero", "%s: %+v", r.name, p)
		}
	}
	want := ledger.Legs{}
	switch lives := r.State.Open() || r.State == movement.Succeeded && r.ReturnedAt.IsZero(); {
	case r.Charge == movement.Unpaid && len(r.postings) == 0 || !lives:
	default:
		if want.Available = -r.Amount; r.State.Open() && r.Charge == movement.Held {
			want.Held = r.Amount
		}
	}
	if sum != want {
		w.violate("balances are what movements cost", "%s is %s: available %v and held %v, want %v and %v", r.name, r.State, sum.Available, sum.Held, want.Available, want.Held)
	}
}

// checkBalances: a balance is the sum of what was posted, and never below zero.
func (w *world) checkBalances(all []record) {
	for _, m := range w.merchants {
		available, held := opening, money.Amount(0)
		for _, r := range all {
			for _, p := range r.postings {
				if r.Owner == m.owner() {
					available, held = available+p.Available, held+p.Held
				}
			}
		}
		balance, err := w.store.Balance(w.ctx, m.owner())
		if err != nil || balance.Available != available || balance.Held != held || available < 0 || held < 0 {
			w.violate("balances are the sum of postings", "%s has %+v, its postings come to %v and %v: %v", m.name, balance, available, held, err)
		}
	}
}

// checkUsage: what counts against payout limits, and against payments, is what is under way
// or has moved, refunds that came back whole apart, and no limit is passed but by money
// that moved against all proof.
func (w *world) checkUsage(all []record) {
	type key struct{ owner, name, period string }
	used, again := map[key]int64{}, map[key]bool{}
	var keys []key // in the order of the reservations
	for _, r := range all {
		for _, u := range r.Usage {
			k := key{r.Owner.MerchantID, u.Name, u.Period}
			if _, known := used[k]; !known {
				keys = append(keys, k)
			}
			undone := r.Kind == manifest.Refund && r.Returned() == r.Amount // its payment has it again
			if used[k] += 0; r.State != movement.Failed && r.State != movement.NotSubmitted && !undone {
				used[k] += u.Amount
			}
			again[k] = again[k] || r.doubted(movement.ReasonContradiction)
		}
	}
	for _, k := range keys {
		got, err := w.store.UsedOf(w.ctx, movement.Owner{MerchantID: k.owner, Mode: "live"}, k.name, k.period)
		if err != nil || got != used[k] {
			w.violate("usage is what counts", "%s of %s is %d, its transfers come to %d: %v", k.name, w.books.owner(k.owner), got, used[k], err)
		}
		limit := int64(90_000)
		if strings.HasSuffix(k.name, ".count") {
			limit = *w.merchants[slices.IndexFunc(w.merchants, func(m *merchant) bool { return m.owner().MerchantID == k.owner })].limits.Transfers.Day.Count
		}
		if got > limit && !again[k] && !strings.HasPrefix(k.name, "refund.") {
			w.violate("no limit is passed", "%s of %s is %d", k.name, w.books.owner(k.owner), got)
		}
	}
}

// checkUpstream: the upstream's own ledger agrees with ours, or operators know better.
func (w *world) checkUpstream(r record) {
	things, last := 0, (*thing)(nil)
	for _, t := range w.up.made {
		id, ok := movement.ParseUpstreamReference(t.reference)
		if elsewhere := t.reference != r.UpstreamReference() || t.provider != r.Provider; !ok || id != r.ID || t.lost && elsewhere {
			continue // a restore has lost what else was asked for
		}
		things++
		if t.reference == r.UpstreamReference() && t.provider == r.Provider {
			last = t
		} else if !r.doubted(movement.ReasonContradiction) {
			w.violate("requests that were never sent made nothing", "%s", w.books.upstreamName(t.reference))
		}
	}
	if things > 1 {
		w.violate("one upstream movement a reference", "%s was made %d times", r.name, things)
	}
	// By the restore: also what is bought under a name that could not be asked for again since.
	unasked := last != nil && r.Kind == manifest.Order && r.State == movement.NotSubmitted && last.asked.Before(w.recovered)
	unknown := last != nil && last.lost && !last.heard.IsZero() && last.heard.Before(r.CreatedAt) // it was listed as such
	forgotten := last != nil && (last.unheard || unknown || last.lost && (unasked || !r.State.Open() && r.UpdatedAt.Before(w.recovered)))
	doubtful := forgotten || w.books.overridden[r.ID] || r.doubted(movement.ReasonContradiction, movement.ReasonCurrency)
	if r.Kind == manifest.Collection || doubtful {
		return
	}
	if late := !r.PaidLateAt.IsZero() && r.PaidAmount != 0; !late && w.knowsRefunds(r) { // of late money a first wrong word stays
		w.checkMoney(r, last)
	}
	if r.doubted(movement.ReasonAmount) {
		return
	}
	done := last != nil && last.status == sdk.StatusDone
	switch r.State {
	case movement.Succeeded:
		if last == nil || !last.was {
			w.violate("what succeeded was done", "%s", r.name)
		} else if !done && r.ReturnedAt.IsZero() {
			w.violate("what was taken back is recorded", "%s", r.name)
		}
	case movement.Failed, movement.Expired, movement.NotSubmitted:
		if done && last.late && r.PaidLateAt.IsZero() {
			w.violate("money that moves against all proof is known", "%s is %s", r.name, r.State)
		} else if done && r.PaidLateAt.IsZero() {
			w.violate("what failed was not done", "%s is %s", r.name, r.State)
		}
	case movement.Submitting, movement.Acknowledged, movement.Pending:
		ended := last != nil && last.status != sdk.StatusPending
		if ended && !r.doubted() {
			w.violate("what has ended is known", "%s is %s, and the provider has ended it", r.name, r.State)
		}
	}
}

// checkStatements: each line was judged, and pays a collection that knows.
func (w *world) checkStatements() {
	paid := map[movement.ID]int{}
	for _, account := range w.books.known {
		told := map[string]bool{}
		for _, row := range w.up.rows[w.options.Prefix+w.books.accounts[account]] {
			line, err := w.store.Line(w.ctx, account, row.Reference)
			if err != nil || told[row.Reference] {
				continue // of another provider's account of this name, or nothing was collected; or told before
			}
			told[row.Reference] = true
			var m movement.Movement
			if line.Movement != (movement.ID{}) {
				paid[line.Movement]++
				m, _ = w.store.MovementByID(w.ctx, line.Movement)
			}
			w.checkLine(line, m)
			w.checkUnmatched(line, row.told)
		}
	}
	for _, id := range w.books.ids {
		if paid[id] > 1 {
			w.violate("one payment a collection", "%s has %d", w.books.name(id), paid[id])
		}
		m, err := w.store.MovementByID(w.ctx, id)
		if err == nil && m.Kind == manifest.Collection && m.State == movement.Succeeded && paid[id] == 0 && !w.books.assigned[id] && !w.books.overridden[id] {
			w.violate("what succeeded was done", "%s is paid by no line", w.books.name(id))
		}
	}
}

// checkUnmatched: a payment of what a sale asked for, within a day of it, pays that sale
// or is known to operators; also one with a time before the sale, where it was told after.
func (w *world) checkUnmatched(line movement.StatementLine, told time.Time) {
	if line.State != movement.LineUnmatched {
		return
	}
	for _, id := range w.books.ids {
		m, err := w.store.MovementByID(w.ctx, id)
		of := err == nil && m.Kind == manifest.Collection && movement.NewAccountID(m.Provider, m.Owner.Mode, m.ConnectionAccount) == line.Account
		if !of || m.State != movement.Expired || m.Amount != line.Amount || line.At.After(m.ExpiresAt.Add(24*time.Hour)) {
			continue
		}
		if line.At.Before(m.CreatedAt) && (line.At.Before(m.CreatedAt.Add(-24*time.Hour)) || !told.After(m.CreatedAt.Add(movement.Skew))) {
			continue // told before anybody could know of the sale
		}
		listed, err := w.store.ExceptionsOf(w.ctx, m.Owner, "payment "+line.Payment)
		if err == nil && len(listed) == 0 && m.PaidLateAt.IsZero() {
			w.violate("late payments of sales are known", "%s of %v, for %s", line.Payment, line.Amount, w.books.name(id))
		}
	}
}

// collectsStill tells whether a collection is open that a line may be for.
func (w *world) collectsStill(line movement.StatementLine) bool {
	return slices.ContainsFunc(w.books.ids, func(id movement.ID) bool {
		m, err := w.store.MovementByID(w.ctx, id)
		return err == nil && m.Kind == manifest.Collection && m.State.Open() && m.Amount == line.Amount &&
			movement.NewAccountID(m.Provider, m.Owner.Mode, m.ConnectionAccount) == line.Account
	})
}

func (w *world) checkLine(line movement.StatementLine, m movement.Movement) {
	switch line.State {
	case movement.LineNew, movement.LineMatched:
		if line.State == movement.LineNew && w.collectsStill(line) { // which operators have on their list
			return
		}
		w.violate("every line is judged", "%s is %s for %s, which is %s", line.Payment, line.State, w.books.name(m.ID), m.State)
	case movement.LinePaid, movement.LineReversed:
		if line.Movement != (movement.ID{}) && m.State != movement.Succeeded && m.PaidLateAt.IsZero() {
			w.violate("paid collections know it", "%s pays %s, which is %s", line.Payment, w.books.name(m.ID), m.State)
		}
		if line.Movement != (movement.ID{}) && line.Operator == "" && line.Amount != m.Amount && !line.Differs {
			w.violate("paid collections know it", "%s of %v pays %s of %v", line.Payment, line.Amount, w.books.name(m.ID), m.Amount)
		}
		if line.State == movement.LineReversed && line.Movement != (movement.ID{}) && m.ReturnedAt.IsZero() {
			w.violate("what was taken back is recorded", "%s", w.books.name(m.ID))
		}
	case movement.LineUnmatched, movement.LineAmbiguous, movement.LineAgain:
	}
}

// checkAnswers: what a merchant has read stays true.
func (w *world) checkAnswers(in *intent) {
	if in.reference == "" {
		return
	}
	name := in.of.name + "/" + string(in.kind) + "/" + in.reference
	for i, a := range in.answers {
		if a.crashed || a.err != nil || a.what == "cancel" {
			continue
		}
		for _, b := range in.answers[i+1:] {
			if b.asked < a.heard || b.crashed {
				continue
			}
			freed := b.err != nil && b.what == "create" && b.err.Code == fault.ProviderUnavailable && b.err.Sent == fault.SentNo
			if freed || b.err != nil && b.err.Code == fault.NotFound {
				w.violate("what was answered is never taken back", "%s was answered %s, then %s", name, a.data, b.err.Code)
			}
			both := a.what != "status" && b.what != "status" && b.what != "cancel" && b.err == nil
			if both && a.what == b.what && first(in.kind, a.data) != first(in.kind, b.data) {
				w.violate("replays answer alike", "%s was answered %s, then %s", name, a.data, b.data)
			}
			if both && a.what != b.what {
				w.violate("another request is refused", "%s: %s and %s were both answered", name, a.what, b.what)
			}
		}
	}
}

// repeatWithin is for how long the policy refuses equal transfers without a reference.
const repeatWithin = 10 * time.Minute

// checkUnnamed: of equal transfers without a reference within a time, one has moved.
func (w *world) checkUnnamed(all []record) {
	type equal struct {
		owner movement.Owner
		what  string
	}
	last := map[equal]movement.Movement{}
	for _, r := range all {
		m := r.Movement
		if !m.Unnamed() || m.State != movement.Succeeded || m.Gone() {
			continue
		}
		like := equal{m.Owner, string(m.Field("account_no")) + m.Amount.String()}
		if before, is := last[like]; is && m.CreatedAt.Sub(before.CreatedAt).Abs() < repeatWithin {
			w.violate("equal transfers without a reference are one", "%s and %s", w.books.name(before.ID), w.books.name(m.ID))
		}
		last[like] = m
	}
}

func transferID(data string) string {
	var told struct{ TxID string }
	_ = json.Unmarshal([]byte(data), &told) // nothing known is no id
	return told.TxID
}

// first is the part of an answer that a replay must repeat.
func first(kind manifest.Kind, data string) string {
	var told map[string]any
	if json.Unmarshal([]byte(data), &told) != nil {
		return data
	}
	delete(told, "remaining_quota")
	if kind == manifest.Transfer || kind == manifest.Refund { // it tells how it stands
		delete(told, "status")
	}
	encoded, _ := json.Marshal(told) // it was JSON
	return string(encoded)
}
