package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// mostMoves is how often a movement can move on, or be polled, while a fact is applied:
// the states only go forward, and polls are far apart.
const mostMoves = 6

// Apply takes in a fact about a movement. Whoever brings it (a lookup, a
// notification, a statement, an operator), it ends here. It returns the movement as
// it stands then. An error means that the fact must be told again.
func (l *Lifecycle) Apply(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact) (movement.Movement, error) {
	m, _, err := l.apply(ctx, op, m, f)
	return m, err
}

// ApplyOnce is [Lifecycle.Apply], which also tells whether this fact has moved the
// movement, and not somebody else's.
func (l *Lifecycle) ApplyOnce(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact) (movement.Movement, bool, error) {
	m, led, err := l.apply(ctx, op, m, f)
	return m, led == ledToMove, err
}

// ledTo is what the applying of a fact has led to.
type ledTo int

const (
	ledToNothing   ledTo = iota
	ledToException       // and to nothing else
	ledToMove
)

// apply commits, one after the other, all that a fact leads to: it may end a movement and
// tell of money that went back since. What of it was committed stays; who tells the rest
// again changes nothing of that.
func (l *Lifecycle) apply(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact) (_ movement.Movement, led ledTo, err error) {
	for range mostMoves + 2*len(f.Returns) {
		event := uuid.New() // the same on every try of one commit; what follows on it is another event
		// 1. What the fact means for the movement as it was seen.
		f.Now = l.Now()
		l.addReports(op, m, &f)
		t := movement.Apply(op.Rules, m, f)
		// What operators must know is listed before the rest is committed, which may leave
		// nothing to poll: nobody would tell it again.
		if err := l.list(ctx, m, t.Exceptions); err != nil {
			return m, ledToException, err
		}
		if t.Effect == movement.Nothing || t.Effect == movement.Contradiction {
			if len(t.Exceptions) > 0 {
				led = max(led, ledToException)
			}
			return m, led, nil
		}
		if err := l.precede(ctx, m, f, t); err != nil {
			return m, ledToNothing, err
		}
		// 2. All that follows from it, in one commit.
		c, done, err := l.commit(ctx, op, m, f, event)
		if err != nil {
			return m, ledToNothing, err
		}
		moves := t.Effect == movement.Move || t.Effect == movement.Renewal || t.Effect == movement.Errored
		records := t.Effect == movement.LateMoney || t.Effect == movement.MoneyBack || t.Effect == movement.OtherAmount
		if (moves || records) && done {
			if t.Releases {
				l.releaseAmount(ctx, m)
			}
			if moves {
				led = ledToMove
			}
			m = c.After()
			if len(f.Returns) == 0 {
				return m, led, nil
			}
			continue
		}
		// 3. The movement as it stands now. Where another replica was faster, or has
		// polled it, the fact is about that.
		was := m
		m, err = l.Reread(ctx, m.ID)
		if err == nil && moves && m.Provider != was.Provider && !ofAttempt(f) {
			return m, ledToNothing, fmt.Errorf("lifecycle: movement %s went from provider %s to %s while a fact was applied", m.ID, was.Provider, m.Provider)
		}
		again := moves && stillAbout(op.Rules, f, was, m) || records && m.Attempt == was.Attempt && m.Sequence != was.Sequence
		if err != nil || !again {
			return m, led, err
		}
	}
	return m, ledToNothing, errors.New("lifecycle: a movement kept changing while a fact was applied")
}

// stillAbout tells whether a fact that found its movement changed is about what stands
// there now. A "not found" is not: it is proof only if nothing has happened since. Nor
// is an absence where a poll sends the same request again: one may have sent it since.
func stillAbout(rules movement.Rules, f movement.Fact, was, now movement.Movement) bool {
	switch {
	case now.Attempt != was.Attempt:
		return !ofAttempt(f)
	case f.Says == movement.SaysNotFound, f.Says == movement.SaysAbsent && rules.Resubmits:
		return false
	}
	return now.State != was.State || now.Version != was.Version
}

// ofAttempt tells of a fact that it is about the attempt that its movement stood at, and
// no later one: what a call or a lookup of that attempt says. What else a provider
// says is about a name, which the same request keeps over attempts.
func ofAttempt(f movement.Fact) bool {
	_, update := f.State()
	return !update || f.Source == movement.FromCall || f.Source == movement.FromLookup
}

// commit commits what a fact leads to, with what is rendered for it. It is the one
// place where a movement's state changes. A false may also mean that an earlier try
// of ours was through without our hearing of it, so whoever gets one reads what
// stands there.
func (l *Lifecycle) commit(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact, event uuid.UUID) (c movement.Change, done bool, err error) {
	done, err = Persist(ctx, l.Patience, func(ctx context.Context) (bool, error) {
		f.Now = l.Now() // of this try, or the event would be older than its commit
		c = movement.Change{Transition: movement.Apply(op.Rules, m, f), Movement: m, At: f.Now}
		if err := l.render(ctx, op, &c, event); err != nil {
			return false, err
		}
		return l.Store.Apply(ctx, c)
	})
	if c.Callback != nil && c.Callback.URL != "" && l.CallbackCommitted != nil {
		l.CallbackCommitted()
	}
	if c.Mail != nil && done {
		l.MailCommitted()
	}
	if c.Effect == movement.Move && done && l.Moved != nil {
		l.Moved(c)
	}
	return c, done, err
}

// render makes the creation's answer, the callback and the receipt of a transition.
// They are rendered now, so that a late delivery never tells old news as new.
func (l *Lifecycle) render(ctx context.Context, op *catalog.Operation, c *movement.Change, event uuid.UUID) error {
	then := c.After()
	kind := l.kinds[op.Kind]
	if c.Answers {
		c.Answer = firstAnswer(kind, op, then)
	}
	if name := op.Rules.Event(c.Tells); name != "" && op.Status != nil {
		receiver, err := l.receiver(ctx, then)
		if err != nil {
			return err
		}
		data := kind.Event(op, then, c.At)
		if c.Return != nil {
			data.SetJSON("return", returnTold(*c.Return))
		}
		body := (&Object{}).SetText("event", name).SetJSON("data", data.JSON())
		c.Callback = &movement.CallbackEvent{ID: event, Event: name, URL: receiver, Body: body.JSON()}
	}
	if receipter, mails := kind.(Receipter); mails && c.Receipt && l.MailCommitted != nil {
		if c.Mail = receipter.Receipt(ctx, then); c.Mail != nil {
			c.Mail.ID = event
		}
	}
	return nil
}

// returnTold is a return as a merchant reads it.
func returnTold(r movement.Return) json.RawMessage {
	o := (&Object{}).SetText("id", r.ID).SetText("sort", string(r.Sort)).SetNumber("amount", int64(r.Amount)).
		SetTime("at", r.At).SetTime("undone_at", r.UndoneAt)
	if r.Refund != "" {
		o.SetText("refund_id", r.Refund)
	}
	return o.JSON()
}

// firstAnswer is the data of a creation's first answer, which a replay repeats.
func firstAnswer(kind Kind, op *catalog.Operation, m movement.Movement) json.RawMessage {
	answer, err := kind.Answer(op, m)
	if err != nil {
		return nil
	}
	data, _ := answer.Data.(json.RawMessage) // kinds answer nothing else
	return data
}

// receiver is where a movement's callbacks go: the URL of its request, or the
// merchant's default, or nowhere.
func (l *Lifecycle) receiver(ctx context.Context, m movement.Movement) (string, error) {
	if m.CallbackURL != "" {
		return m.CallbackURL, nil
	}
	account, err := l.Account(ctx, m)
	if err != nil {
		return "", err
	}
	return account.CallbackURL(tenants.Mode(m.Owner.Mode)), nil
}

// releaseAmount gives back the reserved amount of a collection that nobody was told
// of, so that tries that come to nothing use up no amounts. Where that fails the
// amount becomes free in its time.
func (l *Lifecycle) releaseAmount(ctx context.Context, m movement.Movement) {
	if err := l.Store.ReleaseAmount(ctx, m); err != nil {
		l.Log.WarnContext(ctx, "the amount of a collection that was not made stays reserved for a while", "movement", m.ID.String(), "error", err)
	}
}

// acknowledge records that a merchant reads that a movement is pending, and with it
// the first answer of one that has none, but where that is an offer: nobody has it yet.
func (l *Lifecycle) acknowledge(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	var answer json.RawMessage
	if op.Rules.Answers != movement.AnswerOffer {
		answer = firstAnswer(l.kinds[op.Kind], op, m)
	}
	if !m.State.Unknown() {
		return l.keepAnswer(ctx, m, answer)
	}
	then, err := Persist(ctx, l.Patience, func(ctx context.Context) (movement.Movement, error) {
		return l.Store.Acknowledge(ctx, m, answer)
	})
	if err != nil {
		return m, err
	}
	if op.Rules.Answers == movement.AnswerPending && !then.Answered() && !then.State.Unknown() && then.State != movement.NotSubmitted {
		return l.keepAnswer(ctx, then, answer) // moved on by somebody else, who gave no answer
	}
	return then, nil
}

func (l *Lifecycle) keepAnswer(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	_, err := Persist(ctx, l.Patience, func(ctx context.Context) (bool, error) {
		return l.Store.Apply(ctx, movement.Change{
			Transition: movement.Transition{Effect: movement.KeepAnswer}, Movement: m, At: l.Now(), Answer: answer,
		})
	})
	if err != nil {
		return m, err
	}
	return l.Reread(ctx, m.ID)
}

// Reread reads a movement as it stands now.
func (l *Lifecycle) Reread(ctx context.Context, id movement.ID) (movement.Movement, error) {
	return Persist(ctx, l.Patience, func(ctx context.Context) (movement.Movement, error) {
		return l.Store.MovementByID(ctx, id)
	})
}

// factOfCall is the word of the call that submitted a movement, checked.
func (l *Lifecycle) factOfCall(op *catalog.Operation, m movement.Movement, result sdk.Result) movement.Fact {
	f := movement.Fact{
		Source: movement.FromCall, Reference: m.UpstreamReference(), ProviderReference: NameOf(result.ProviderReference),
		Amount: result.Amount, ExpiresAt: result.ExpiresAt, Detail: Printable(result.Detail),
	}
	if f.Amount == 0 && !op.Rules.AmountIsCost {
		f.Amount = m.Amount // an answer that tells none is about what was asked
	}
	offers := op.Rules.Answers == movement.AnswerOffer
	switch result.Outcome {
	case sdk.Unknown:
		if result.Errored && op.Rules.ErrorEnds() {
			f.Says = movement.SaysErrored
		}
		return f
	case sdk.NotSent:
		f.Says = movement.SaysNotSent
		return f
	case sdk.Refused:
		if op.Rules.Answers != movement.AnswerPending {
			f.Says, f.Refusal = movement.SaysRefused, RefusalOf(result.Refusal)
			return f
		}
		f.Says, result.Data = movement.SaysFailed, (&Object{}).SetText("message", Printable(result.Refusal.Message)).JSON()
	case sdk.Done:
		f.Says = movement.SaysSucceeded
	case sdk.Pending:
		f.Says = movement.SaysPending
	default: // the SDK reads none from the wire
		return f
	}
	if offers {
		f.Says, f.Data, f.Offers = movement.SaysAccepted, result.Data, true
		return f
	}
	l.addData(op, m, &f, result.Data)
	return f
}

// factOfUpdate is a status update of the provider, checked. It says nothing where
// the update does not.
func (l *Lifecycle) factOfUpdate(op *catalog.Operation, m movement.Movement, u sdk.StatusUpdate, source movement.Source) movement.Fact {
	f := movement.Fact{
		Source: source, Says: saysOf(u.Status), Reference: verbatim(u.Reference), ProviderReference: NameOf(u.ProviderReference),
		EventID: Printable(u.EventID), Amount: u.Amount, Currency: verbatim(u.Currency), At: Plausible(u.At, l.Now()), ExpiresAt: u.ExpiresAt,
		Channel: Printable(u.Channel), Returns: l.returnsOf(u.Returns),
	}
	if f.Says != movement.SaysNothing && f.Says != movement.SaysNotFound {
		l.addData(op, m, &f, u.Data)
	}
	return f
}

// returnsOf are the returns that a provider tells, checked: the sort and the name of one
// fit our records, and its times can be true.
func (l *Lifecycle) returnsOf(told []sdk.Return) []movement.Return {
	returns := make([]movement.Return, 0, len(told))
	for _, r := range told[:min(len(told), mostReturns)] {
		kept := movement.Return{
			ID: verbatim(cmp.Or(r.ID, r.Sort.String())), Sort: movement.ReturnSort(r.Sort.String()), Amount: r.Amount,
			At: l.moment(r.At), UndoneAt: l.moment(r.UndoneAt),
		}
		if r.Undone && kept.UndoneAt.IsZero() {
			kept.UndoneAt = l.moment(l.Now())
		}
		returns = append(returns, kept)
	}
	if more := len(told) - mostReturns; more > 0 { // for a person
		returns = append(returns, movement.Return{ID: fmt.Sprintf("%d returns more than %d", more, mostReturns)})
	}
	return returns
}

// mostReturns is how many returns of one movement are kept.
const mostReturns = 100

// moment is a provider's time as our records keep it, zero for none that can be true.
func (l *Lifecycle) moment(t time.Time) time.Time {
	if t = Plausible(t, l.Now()); t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// verbatim makes what a provider wrote fit for our records, and unlike anything of ours
// where it was not.
func verbatim(text string) string {
	if fitting := Printable(text); fitting != text {
		return fitting + "…"
	}
	return text
}

func saysOf(s sdk.Status) movement.Says {
	switch s {
	case sdk.StatusPending:
		return movement.SaysPending
	case sdk.StatusDone:
		return movement.SaysSucceeded
	case sdk.StatusFailed:
		return movement.SaysFailed
	case sdk.StatusExpired:
		return movement.SaysExpired
	case sdk.StatusNotFound:
		return movement.SaysNotFound
	case sdk.StatusUnknown:
	}
	return movement.SaysNothing
}

// addData adds the data that a provider gives to a fact, as far as it can be used.
func (l *Lifecycle) addData(op *catalog.Operation, m movement.Movement, f *movement.Fact, data json.RawMessage) {
	if len(data) == 0 {
		return
	}
	var err error
	switch {
	case op.Rules.Flow == movement.MoneyOut:
		f.Raw = Printable(string(data))
		if err = checkData(op, data); err == nil {
			f.Data = data
		}
		if f.Says == movement.SaysSucceeded {
			if unfit := checkSuccess(op, data); unfit != nil {
				f.Unreadable = Printable(unfit.Error())
			}
		}
	case !m.Answered():
		if err = l.checkOffer(op, m, data); err == nil {
			f.Data, f.Offers = data, true
		}
	}
	if err != nil {
		l.Log.Warn("a provider's data does not fit", "movement", m.ID.String(), "error", err)
	}
}

// addReports adds what a success tells beyond the result that its movement has.
func (l *Lifecycle) addReports(op *catalog.Operation, m movement.Movement, f *movement.Fact) {
	if f.Says != movement.SaysSucceeded || m.State != movement.Succeeded || len(f.Data) == 0 {
		return
	}
	result, given := FieldsOf(m.Result), FieldsOf(f.Data)
	var late []string
	for _, name := range op.Rules.Reports {
		if fit(TextOf(result[name]), longestReport) == "" && fit(TextOf(given[name]), longestReport) != "" {
			late, result[name] = append(late, name), given[name]
		}
	}
	if len(late) == 0 {
		return
	}
	if fuller, err := json.Marshal(result); err == nil && checkData(op, fuller) == nil {
		f.Fuller, f.Late = fuller, strings.Join(late, ", ")
	}
}

// checkOffer says what is wrong with the data that a provider gives of a creation:
// what can't be stored or is not what was asked for is no answer.
func (l *Lifecycle) checkOffer(op *catalog.Operation, m movement.Movement, data json.RawMessage) error {
	if err := checkData(op, data); err != nil {
		return err
	}
	if checker, ok := l.kinds[op.Kind].(OfferChecker); ok {
		return checker.CheckOffer(m, data)
	}
	return nil
}

// checkData says what is wrong with data that a provider gives.
func checkData(op *catalog.Operation, data json.RawMessage) error {
	if !utf8.Valid(data) {
		return errors.New("the result is not UTF-8")
	}
	return op.CheckResult(data)
}

// checkSuccess says what is wrong with the data of a success: what was bought may
// stand in it and nowhere else, a token or a receipt, and must be told whole.
func checkSuccess(op *catalog.Operation, data json.RawMessage) error {
	if err := checkData(op, data); err != nil {
		return err
	}
	given := FieldsOf(data)
	for _, name := range op.Rules.Reports {
		if n := len(TextOf(given[name])); n > longestReport {
			return fmt.Errorf("%s is too long to be told: %d bytes", name, n)
		}
	}
	return nil
}

// mostFields is how many fields of a refusal are kept.
const mostFields = 20

// RefusalOf is a provider's no as it is kept and shown.
func RefusalOf(r sdk.Refusal) *movement.Refusal {
	refusal := &movement.Refusal{Code: Printable(string(r.Code)), Message: Printable(r.Message)}
	for _, f := range r.Fields[:min(len(r.Fields), mostFields)] {
		refusal.Fields = append(refusal.Fields, movement.RefusalField{Field: Printable(f.Field), Message: Printable(f.Message)})
	}
	return refusal
}

// Plausible is a moment that a provider tells, or none where nothing of ours can
// have happened then.
func Plausible(at, now time.Time) time.Time {
	if at.Year() < 2000 || at.After(now.Add(24*time.Hour)) {
		return time.Time{}
	}
	return at
}

// note keeps for operators what a provider said of money that goes out, or of what
// nobody knows whether it was sent, where it may change no state.
func (l *Lifecycle) note(ctx context.Context, op *catalog.Operation, m movement.Movement, event, word, text string) {
	if op.Rules.Flow == movement.MoneyIn && !m.State.Unknown() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	entry := (&Object{}).SetText("said", word)
	if text = Printable(text); text != "" {
		entry.SetText("detail", text)
	}
	if err := l.Store.Note(ctx, l.Now(), m, event, string(entry.JSON())); err != nil {
		l.Log.WarnContext(ctx, "what the provider said can't be noted", "movement", m.ID.String(), "error", err)
	}
}

// noteTimeout bounds the writing of what is good to know and no more.
const noteTimeout = time.Second

// LogResult tells operators what came back, at a level that fits.
func (l *Lifecycle) LogResult(ctx context.Context, m movement.Movement, r sdk.Result) {
	level := slog.LevelDebug
	switch {
	case r.Blame == sdk.BlameAccount:
		level = slog.LevelError // our own account: nobody but an operator can mend it
	case r.Outcome == sdk.Unknown || r.Outcome == sdk.NotSent:
		level = slog.LevelWarn
	}
	if !l.Log.Enabled(ctx, level) { // before the words are found
		return
	}
	l.Log.LogAttrs(ctx, level, "provider answered", slog.String("movement", m.ID.String()), slog.String("provider", m.Provider),
		slog.String("merchant", m.Owner.MerchantID), slog.String("mode", m.Owner.Mode), slog.String("outcome", r.Outcome.String()),
		slog.Bool("our_account", r.Blame == sdk.BlameAccount), slog.String("detail", r.Detail))
}
