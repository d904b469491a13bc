package scenarios

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	ends    = "payments.status_update"
	late    = "payments.paid_late"
	taken   = "payments.returned"
	differs = "payments.amount_differs"

	orderEnds, orderTaken       = "ppob.status_update", "ppob.returned"
	transferEnds, transferTaken = "transfer.status_update", "transfer.returned"
)

// addUp proves all that must be true of this merchant's movements at any time: what
// really exists, what was posted and counted for it, and what was told. Orders have one
// price over all their attempts.
func (w *world) addUp() {
	w.Helper()
	for _, wrong := range w.up.wrong {
		w.Error("the provider was " + wrong)
	}
	all := w.movements()
	for _, m := range all {
		w.happened(m)
		w.toldOf(m)
	}
	switch w.of {
	case orders:
		w.addUpBalance(all)
	case transfers:
		w.addUpUsage(all)
	}
}

// movements are all of this merchant's.
func (w *world) movements() []movement.Movement {
	w.Helper()
	var all []movement.Movement
	add := func(reference string) bool {
		m, err := w.keeper.MovementByKey(w.Context(), w.keyOf(reference))
		switch {
		case err == nil:
			all = append(all, m)
		case !errors.Is(err, store.ErrNotFound):
			w.Fatal(err)
		}
		return err == nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, reference := range w.used {
		if _, promised := w.promised[reference]; !add(reference) && promised {
			w.Errorf("%s was told to be pending, and is nowhere", reference)
		}
	}
	for _, print := range w.fingerprints {
		n := 1
		for add(fmt.Sprintf("%s%08d", print, n)) {
			n++
		}
	}
	return all
}

// addUpBalance checks the balance and the postings of all orders.
func (w *world) addUpBalance(all []movement.Movement) {
	w.Helper()
	balance := ledger.Balance{Available: w.opening}
	transactions := 1 // the opening
	for _, m := range all {
		wanted := w.entriesOf(m, &balance)
		transactions += len(wanted)
		w.posted(m, wanted)
	}
	if got := w.balance(); got != balance {
		w.Errorf("the balance is %+v, want %+v", got, balance)
	}
	if got := len(w.postings()); got != transactions {
		w.Errorf("%d transactions, want %d", got, transactions)
	}
}

// addUpUsage checks what all transfers count against payout limits.
func (w *world) addUpUsage(all []movement.Movement) {
	w.Helper()
	type limit struct{ period, name string }
	counts := map[limit]int64{}
	periods := map[string]bool{}
	for _, m := range all {
		for _, s := range m.Usage {
			periods[s.Period] = true
			if m.State != movement.Failed && m.State != movement.NotSubmitted {
				counts[limit{s.Period, s.Name}] += s.Amount
			}
		}
	}
	for period := range periods {
		used, err := w.keeper.Usage(w.Context(), w.owner(), period)
		if err != nil {
			w.Fatal(err)
		}
		for _, u := range used {
			if want := counts[limit{period, u.Name}]; u.Units != want {
				w.Errorf("%s %s: %d is used, want %d", period, u.Name, u.Units, want)
			}
			delete(counts, limit{period, u.Name})
		}
	}
	if len(counts) > 0 {
		w.Errorf("not counted: %v", counts)
	}
}

// agreedOn is what a movement's provider should take or give.
func agreedOn(m movement.Movement) money.Amount { return cmp.Or(m.Cost, m.Amount) }

// happened checks a movement against what exists at the provider.
func (w *world) happened(m movement.Movement) {
	w.Helper()
	t, times := w.up.under(nameOfMovement(m.ID))
	if times > 1 {
		w.Errorf("%s was made %d times", m.Reference, times)
	}
	if t != nil && t.reference != m.UpstreamReference() {
		w.Errorf("%s stands at attempt %d, and was made as %s", m.Reference, m.Attempt, t.reference)
	}
	if calls := w.up.called(m.UpstreamReference()); calls > m.Attempt {
		w.Errorf("%s was called %d times in %d attempts", m.Reference, calls, m.Attempt)
	}
	w.mu.Lock()
	_, promised := w.promised[m.Reference]
	w.mu.Unlock()
	if promised && m.State == movement.NotSubmitted {
		w.Errorf("%s was told to be pending, and is free", m.Reference)
	}
	if w.of.life > 0 {
		return // its payer, and no time, ends it
	}
	ended := t != nil && !w.now().Before(t.endAt)
	switch delivered := ended && t.ends == sdk.StatusDone; {
	case m.State == movement.Succeeded && (!delivered || t.amount != agreedOn(m)):
		w.Errorf("%s has succeeded, and of %v there is %+v", m.Reference, agreedOn(m), t)
	case m.State == movement.Failed && (delivered || t != nil && !ended), m.State == movement.NotSubmitted && t != nil:
		w.Errorf("%s stands at %s, and exists: %+v", m.Reference, m.State, t)
	}
}

// entriesOf are the transactions that a movement must have, applied to a balance.
func (w *world) entriesOf(m movement.Movement, balance *ledger.Balance) []string {
	w.Helper()
	begin, well, not := ledger.BeginCharge(m.Amount), ledger.EndCost(m.Cost), ledger.GiveBack(m.Amount)
	switch m.Charge {
	case movement.Held:
		begin, well, not = ledger.BeginHold(m.Amount), ledger.EndCapture(m.Amount, m.Cost), ledger.LetGo(m.Amount)
	case movement.Unpaid:
		return nil
	case movement.Charged:
	}
	var wanted []string
	add := func(attempt int, tx ledger.Transaction) {
		after, err := balance.Apply(tx.Legs)
		if err != nil {
			w.Fatal(err)
		}
		*balance = after
		wanted = append(wanted, entry(attempt, tx))
	}
	for attempt := 1; attempt <= m.Attempt; attempt++ {
		add(attempt, begin)
		if attempt < m.Attempt {
			add(attempt, not)
		}
	}
	switch m.State {
	case movement.Succeeded:
		add(m.Attempt, well)
	case movement.Failed, movement.NotSubmitted:
		add(m.Attempt, not)
	case movement.Submitting, movement.Acknowledged, movement.Pending, movement.Expired:
	}
	if !m.ReturnedAt.IsZero() {
		add(m.Attempt, ledger.TakeBack(m.Amount, m.Cost))
	}
	return wanted
}

func entry(attempt int, tx ledger.Transaction) string {
	return fmt.Sprintf("attempt %d step %d %s %+v", attempt, tx.Step, tx.Kind, tx.Legs)
}

// posted checks a movement's transactions: each balanced, each step once, and
// just those.
func (w *world) posted(m movement.Movement, wanted []string) {
	w.Helper()
	var got []string
	steps := map[string]int{}
	for _, tx := range w.postings() {
		if tx.Subject != uuid.UUID(m.ID) {
			continue
		}
		if steps[fmt.Sprint(tx.Attempt, tx.Step)]++; !tx.Balanced() || steps[fmt.Sprint(tx.Attempt, tx.Step)] > 1 || tx.Provider != ppob {
			w.Errorf("a transaction that can't be: %+v", tx)
		}
		got = append(got, entry(tx.Attempt, tx))
	}
	slices.Sort(got)
	if slices.Sort(wanted); !slices.Equal(got, wanted) {
		w.Errorf("%s stands at %s, attempt %d; posted\n%s\nwant\n%s", m.Reference, m.State, m.Attempt, strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

// toldOf checks a movement's callbacks: one for its end, and one for each return and each
// that was undone, byte for byte, where its kind says how these read. All that was told
// of returns is all that is kept of them.
func (w *world) toldOf(m movement.Movement) {
	w.Helper()
	callback := map[manifest.Kind]func(movement.Movement, movement.Callback) string{manifest.Order: orderTold, manifest.Transfer: transferTold}[w.of.kind]
	if callback == nil {
		return
	}
	ends, then := 0, m
	then.Returns, then.ReturnedAt = nil, time.Time{}
	for _, c := range w.toldIn(m) {
		returned, known := w.of.events[c.Event]
		suffix := ""
		switch {
		case !known:
			w.Errorf("%s: nobody knows the event %s", m.Reference, c.Event)
		case returned:
			then, suffix = w.withTold(then, c)
		default:
			ends++
		}
		want := callback(then, c)
		if want = strings.TrimSuffix(want, "}}") + suffix + "}}"; string(c.Body) != want {
			w.Errorf("told\n%s\nwant\n%s", c.Body, want)
		}
	}
	if final := m.State.Final(); ends > 1 || final != (ends == 1) {
		w.Errorf("%s stands at %s and was told %d times", m.Reference, m.State, ends)
	}
	if left, kept := leftOf(then), leftOf(m); left != kept || len(then.Returns) != len(m.Returns) || m.ReturnedAt.IsZero() != then.ReturnedAt.IsZero() {
		w.Errorf("%s has returns %+v, and was told of %+v", m.Reference, m.Returns, then.Returns)
	}
}

// toldIn are a movement's callbacks in the order of its history.
func (w *world) toldIn(m movement.Movement) []movement.Callback {
	w.Helper()
	all := slices.DeleteFunc(w.told(), func(c movement.Callback) bool { return c.MovementID != m.ID })
	slices.SortFunc(all, func(a, b movement.Callback) int { return a.Sequence - b.Sequence })
	return all
}

// withTold is a movement once a callback has told of a return, and how the callback ends.
func (w *world) withTold(m movement.Movement, c movement.Callback) (movement.Movement, string) {
	w.Helper()
	var body struct {
		Data struct {
			Return struct {
				ID, Sort string
				Amount   money.Amount
				At       time.Time
				UndoneAt time.Time `json:"undone_at"`
			}
		}
	}
	if err := json.Unmarshal(c.Body, &body); err != nil {
		w.Fatal(err)
	}
	r, undone := body.Data.Return, ""
	if !r.UndoneAt.IsZero() {
		undone = `,"undone_at":"` + lifecycle.Stamp(r.UndoneAt) + `"`
	}
	m.Returns = slices.DeleteFunc(slices.Clone(m.Returns), func(before movement.Return) bool {
		if before.ID == r.ID && (before.UndoneAt.IsZero() == r.UndoneAt.IsZero() || before.Amount != r.Amount) {
			w.Errorf("%s: return %q was told twice", m.Reference, r.ID)
		}
		return before.ID == r.ID
	})
	m.Returns = append(m.Returns, movement.Return{ID: r.ID, Sort: movement.ReturnSort(r.Sort), Amount: r.Amount, At: r.At, UndoneAt: r.UndoneAt})
	switch gone := leftOf(m) <= 0; {
	case !gone:
		m.ReturnedAt = time.Time{}
	case m.ReturnedAt.IsZero():
		m.ReturnedAt = r.At
	}
	return m, fmt.Sprintf(`,"return":{"id":%q,"sort":%q,"amount":%d,"at":%q%s}`, r.ID, r.Sort, r.Amount, lifecycle.Stamp(r.At), undone)
}

// leftOf is what has arrived of a movement's money less what went back of it.
func leftOf(m movement.Movement) money.Amount {
	left := cmp.Or(m.PaidAmount, m.Amount)
	for _, r := range m.Returns {
		if r.UndoneAt.IsZero() {
			left -= r.Amount
		}
	}
	return left
}

// returnedOf is how a status tells that money of a movement went back.
func returnedOf(m movement.Movement) string {
	told := ""
	if back := cmp.Or(m.PaidAmount, m.Amount) - leftOf(m); back > 0 {
		told = fmt.Sprintf(`,"returned_amount":%d`, back)
	}
	if !m.ReturnedAt.IsZero() {
		told += `,"returned_at":"` + lifecycle.Stamp(m.ReturnedAt) + `"`
	}
	return told
}

// orderTold is the callback of an order.
func orderTold(m movement.Movement, c movement.Callback) string {
	sn := `""`
	if m.State == movement.Succeeded {
		sn = `"SN-` + m.UpstreamReference() + `"`
	}
	message := cmp.Or(lifecycle.Reports(m)["message"], lifecycle.Message(ordersOf(orderPath).Rules, m))
	if !m.ReturnedAt.IsZero() {
		message = "The order had succeeded, and all of its money went back."
	}
	return fmt.Sprintf(`{"event":%q,"data":{"ref_id":%q,"sku":%s,"target":%s,"status":%q,"sn":%s,"message":%q,"timestamp":%q%s}}`,
		c.Event, m.Reference, m.Field("sku"), m.Field("target"), wordOf(m), sn, message, lifecycle.Stamp(c.CreatedAt), returnedOf(m))
}

// transferTold is the callback of a transfer: its status, and when it was told.
func transferTold(m movement.Movement, c movement.Callback) string {
	return fmt.Sprintf(`{"event":%q,"data":%s,"timestamp":%q}}`, c.Event, strings.TrimSuffix(statusOf(m), "}"), lifecycle.Stamp(c.CreatedAt))
}

// wordOf is what a merchant reads of an order or a transfer: that it has failed, too, once
// all of its money went back.
func wordOf(m movement.Movement) string {
	if m.State == movement.Succeeded && !m.ReturnedAt.IsZero() {
		return "Failed"
	}
	return map[movement.State]string{
		movement.Submitting: "Pending", movement.Acknowledged: "Pending", movement.Pending: "Pending", movement.Succeeded: "Success", movement.Failed: "Failed",
	}[m.State]
}

// ours is a caller's reference as JSON, null where it gave none.
func ours(m movement.Movement) string {
	if strings.HasPrefix(m.Reference, movement.UnnamedMark) {
		return "null"
	}
	return fmt.Sprintf("%q", m.Reference)
}

// answerOf is what the contract has a transfer answered.
func answerOf(m movement.Movement) string {
	if m.Operation == walletPath {
		return fmt.Sprintf(`{"refId":%q,"amount":%d,"status":%q,"external_id":%s}`, nameOfMovement(m.ID), m.Amount, wordOf(m), ours(m))
	}
	match := "null"
	if m.NameMatch != nil {
		match = fmt.Sprint(*m.NameMatch)
	}
	return fmt.Sprintf(`{"txId":%q,"amount":%d,"fee":%d,"status":%q,"external_id":%s,"name_match":%s}`,
		nameOfMovement(m.ID), m.Amount, m.Fee, wordOf(m), ours(m), match)
}

// statusOf is what the contract has a status answered.
func statusOf(m movement.Movement) string {
	name := "txId"
	if m.Operation == walletPath {
		name = "refId"
	}
	return fmt.Sprintf(`{%q:%q,"external_id":%s,"amount":%d,"fee":%d,"status":%q%s}`,
		name, nameOfMovement(m.ID), ours(m), m.Amount, m.Fee, wordOf(m), returnedOf(m))
}

// wantAnswer is the data of a creation's answer, "" where only its status is known.
func (w *world) wantAnswer(r Request, m movement.Movement) string {
	switch w.of {
	case orders:
		return fmt.Sprintf(`{"ref_id":%q,"sku":%q,"target":"081200001111","status":"Pending"}`, r.Operation.ReferenceOf(r.Body), w.sku)
	case transfers:
		return answerOf(m)
	}
	return ""
}

// truthful checks one answer to a creation against what is stored and what exists now.
func (w *world) truthful(r Request, a said) {
	w.Helper()
	for _, wrong := range w.up.wrong {
		w.Error("the provider was " + wrong)
	}
	m, there := w.latest(r)
	_, times := w.up.under(nameOfMovement(m.ID))
	w.mu.Lock()
	_, promised := w.promised[m.Reference]
	w.mu.Unlock()
	if print := strings.Trim(w.fingerprintOf(r), "-"+movement.UnnamedMark); print != "" && strings.Contains(fmt.Sprintf("%s %+v", a.data, a.err), print) {
		w.Errorf("an answer tells the gateway's own reference: %s %v", a.data, a.err)
	}
	if times > 1 || there && w.up.called(m.UpstreamReference()) > m.Attempt {
		w.Errorf("it was made %d times, called %d times in %d attempts", times, w.up.called(m.UpstreamReference()), m.Attempt)
	}
	switch want := w.wantAnswer(r, m); {
	case a.crashed:
	case a.err == nil && (!there || want != "" && a.data != want || want == "" && (a.word() != "PENDING" || times != 1)):
		w.Errorf("answered %s, stands at %s, made %d times, want %s", a.data, m.State, times, want)
	case a.err == nil:
	case a.err.Reference != r.Operation.ReferenceOf(r.Body):
		w.Errorf("%v names %q", a.err, a.err.Reference)
	case a.err.Sent == fault.SentRefused && (w.of == orders || m.State != movement.Failed || a.err.Retry != fault.RetryNever):
		w.Errorf("%v, and it stands at %s", a.err, m.State)
	case a.err.Sent == fault.SentUnknown && (a.err.Retry != fault.RetryLookupFirst || w.of == transfers && a.err.Code != fault.Internal):
		w.Errorf("unknown, and not to be looked up first: %v", a.err)
	case a.err.Retry == fault.RetryLookupFirst && a.err.Sent != fault.SentUnknown:
		w.Errorf("to be looked up first, and not unknown: %v", a.err)
	case a.err.Code == fault.InProgress && promised:
		w.Errorf("in progress, after it was told to be pending: %v", a.err)
	case a.err.Code == fault.InProgress, a.err.Sent == fault.SentUnknown:
	case a.err.Sent == fault.SentRefused && w.of == transfers: // it may have failed at the provider
	case there:
		over := m.State == movement.Failed && times == 0 && a.err.Retry == fault.RetryNever
		if times > 0 || promised && !over {
			w.Errorf("told that it was not sent (%v): made %d times, told before to be pending: %t", a.err, times, promised)
		}
	}
}
