package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

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
		Channel: Printable(u.Channel),
	}
	if f.Says != movement.SaysNothing && f.Says != movement.SaysNotFound {
		l.addData(op, m, &f, u.Data)
	}
	return f
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
