package lifecycle

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// List makes an exception of a movement. What keeps it open stands on the list again
// where it is told again after somebody has resolved it.
func (l *Lifecycle) List(ctx context.Context, m movement.Movement, d movement.Cause) error {
	x := movement.Exception{
		Owner: m.Owner, Subject: m.ID.String(), Reason: d.Reason, FactID: d.FactID, Provider: m.Provider, Detail: d.Detail, At: l.Now(),
		Lasting: m.State.Open() && movement.OperatorsEnd(d.Reason),
	}
	fresh, err := Persist(ctx, l.Patience, func(ctx context.Context) (bool, error) { return l.Store.AddException(ctx, x) })
	log := l.Log.With("reason", d.Reason, "movement", m.ID.String(), "merchant", m.Owner.MerchantID,
		"mode", m.Owner.Mode, "provider", m.Provider, "detail", d.Detail)
	switch {
	case err != nil:
		log.ErrorContext(ctx, "an exception can't be written", "error", err)
	case fresh:
		log.WarnContext(ctx, "needs an operator")
	}
	return err
}

func (l *Lifecycle) list(ctx context.Context, m movement.Movement, causes []movement.Cause) error {
	for _, d := range causes {
		if err := l.List(ctx, m, d); err != nil {
			return err
		}
	}
	return nil
}

// Alert makes an exception of a fault of an account at a provider: nobody but an
// operator can mend it. Each fault of each version of its credentials stands there
// once, and again where it goes on after somebody has resolved it. That it can't be
// written is logged, and changes no answer.
func (l *Lifecycle) Alert(ctx context.Context, provider string, c Connection, what string) {
	what = Printable(what)
	_, err := l.Store.AddException(ctx, movement.Exception{
		Owner:   movement.Owner{MerchantID: c.MerchantID, Mode: c.Mode},
		Subject: "connection to " + provider, Reason: movement.ReasonAccount, Provider: provider,
		FactID: strconv.FormatInt(c.Version, 10) + SortOfFault(what), Detail: what, At: l.Now(), Lasting: true,
	})
	if err != nil {
		l.Log.ErrorContext(ctx, "an exception can't be written", "reason", movement.ReasonAccount, "provider", provider, "error", err)
	}
}

// SortOfFault is what a fault's text says each time: its words without those that
// have a digit in them, which are references, times and sums.
func SortOfFault(text string) string {
	var sort strings.Builder
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }) {
		if !strings.ContainsFunc(word, unicode.IsDigit) {
			sort.WriteString(" " + strings.ToLower(word))
		}
	}
	return sort.String()
}
