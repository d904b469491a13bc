package engine

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// alert puts a fault of an account at a provider on the operators' list: nobody
// else can mend it. Each kind of fault of each version of its credentials stands
// there once, and again where it goes on after somebody has resolved it. That it
// can't be written is logged, and changes no answer.
func (e *Engine) alert(ctx context.Context, provider string, c connection, what string) {
	what = printable(what)
	_, err := e.Records.AddException(ctx, movement.Exception{
		Owner: movement.Owner{MerchantID: c.MerchantID, Mode: c.Mode}, Subject: "connection to " + provider, Reason: reasonAccount, Provider: provider,
		FactID: strconv.FormatInt(c.Version, 10) + kindOfFault(what), Detail: what, At: e.Now(), Lasting: true,
	})
	if err != nil {
		e.Log.ErrorContext(ctx, "the operators' list can't be written", "reason", reasonAccount, "provider", provider, "error", err)
	}
}

// kindOfFault is what a fault's text says each time: its words without those
// that have a digit in them, which are references, times and sums.
func kindOfFault(text string) string {
	var kind strings.Builder
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }) {
		if !strings.ContainsFunc(word, unicode.IsDigit) {
			kind.WriteString(" " + strings.ToLower(word))
		}
	}
	return kind.String()
}
