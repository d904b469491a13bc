package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// verifyTimeout stays below what the console's client waits for an answer.
const verifyTimeout = 15 * time.Second

// What an answer says of credentials that were stored.
const (
	verified   = "yes"
	unverified = "unverified"
)

// checked is what a provider said of credentials.
type checked struct{ Verified, Account string }

// verify asks the provider whether it takes the credentials. Its own words are
// for the operator who gave them: they go into the answer and nowhere else.
func (c *Console) verify(x *call, of tenants.Connection, credentials []byte, anyway bool) (checked, error) {
	if !c.offered.Load().verifies[of.Provider] {
		return checked{}, nil
	}
	said := c.deps.Plugins.Verify(x.request.Context(), string(of.Provider), sdk.Connection{
		MerchantID: string(of.MerchantID), Mode: string(of.Mode), Credentials: credentials,
	}, verifyTimeout)
	words := cmp.Or(foreign(said.Refusal.Message), foreign(said.Detail), "it does not say why")
	switch {
	case said.Mode != "" && said.Mode != string(of.Mode):
		return checked{}, fault.New(fault.ProviderRejected, fmt.Sprintf("These are %s's credentials for %s, and this connection is for %s: nothing was stored.",
			of.Provider, foreign(said.Mode), of.Mode), fault.Field{Field: "credentials", Message: "are for the other mode"})
	case said.Outcome == sdk.Done:
		return checked{Verified: verified, Account: foreign(said.ProviderReference)}, nil
	case said.Outcome == sdk.Refused, said.Blame == sdk.BlameAccount:
		return checked{}, fault.New(fault.ProviderRejected,
			string(of.Provider)+" refuses these credentials, and nothing was stored: "+words, fault.Field{Field: "credentials", Message: "are refused by the provider"})
	case anyway:
		return checked{Verified: unverified}, nil
	}
	next := ". Try again, or store them unverified (--unverified)."
	if x.operator.Of != "" {
		next = ". Try again later; operators can store them without asking."
	}
	return checked{}, fault.New(fault.ProviderUnavailable, string(of.Provider)+" could not be asked about these credentials, and nothing was stored: "+words+next)
}

// maxForeign bounds what others wrote, in an answer to an operator.
const maxForeign = 400

// foreign makes what others wrote fit for a terminal: short and printable.
func foreign(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text))
	if runes := []rune(text); len(runes) > maxForeign {
		text = string(runes[:maxForeign]) + "…"
	}
	return text
}
