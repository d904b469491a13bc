package digiflazz

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// productionKey is a key of the real environment; testKey is one of development.
const productionKey = "0123456789abcdef-0123"

func TestPlaces(t *testing.T) {
	t.Parallel()
	of := func(settings ...any) place {
		acc, err := openAccount(connect(t, "", settings...))
		if err != nil {
			t.Fatal(err)
		}
		return acc.place
	}
	const simulator = "http://127.0.0.1:41233/v1"
	production, development, simulated := of("api_key", productionKey), of(), of("base_url", simulator)
	places := map[place]bool{production: true, development: true, simulated: true, of("base_url", "http://127.0.0.1:41234/v1"): true}
	if len(places) != 4 {
		t.Errorf("four places are %v", places)
	}
	for at := range places {
		if len(at) != 16 || strings.Trim(string(at), "0123456789abcdef") != "" {
			t.Errorf("%q tells more than a sum", at)
		}
	}
	for name, same := range map[string][2]place{
		"a new production key":    {production, of("api_key", "another")},
		"a new development key":   {development, of("api_key", "dev-another")},
		"a new webhook secret":    {development, of("webhook_secret", "another")},
		"tests":                   {development, of("testing", true)},
		"the usual address":       {production, of("api_key", productionKey, "base_url", defaultBaseURL)},
		"an address written anew": {production, of("api_key", productionKey, "base_url", "https://API.digiflazz.com:443/v1/")},
		"a simulator's slash":     {simulated, of("base_url", simulator+"/")},
	} {
		if same[0] != same[1] {
			t.Errorf("%s: another place", name)
		}
	}
}

// An order is sent, and asked for, only where it was quoted: elsewhere the same
// request would buy, and its answer would be about nothing of ours. Both kinds of
// products; the keys of one kind are of one place.
func TestNothingGoesElsewhere(t *testing.T) {
	t.Parallel()
	replies := map[string]canned{
		"/transaction ":             {http.StatusOK, anAnswer("Sukses", "00", bought)},
		"/transaction inq-pasca":    {http.StatusOK, anAnswer("Sukses", "00", asked)},
		"/transaction pay-pasca":    {http.StatusOK, anAnswer("Sukses", "00", paid)},
		"/transaction status-pasca": {http.StatusOK, anAnswer("Sukses", "00", paid)},
	}
	up, other := newStub(t, replies), newStub(t, replies)
	development, production := connect(t, up.url), connect(t, up.url, "api_key", productionKey)
	for name, c := range map[string]struct {
		from, to sdk.Connection
		goes     bool
	}{
		"a production key after a development key": {development, production, false},
		"a development key after a production key": {production, development, false},
		"another base_url":                         {production, connect(t, other.url, "api_key", productionKey), false},
		"a new production key":                     {production, connect(t, up.url, "api_key", "another"), true},
		"a new development key":                    {development, connect(t, up.url, "api_key", "dev-another"), true},
	} {
		for _, wanted := range [][2]string{
			{pulsaItem, `{"sku":"xld10","target":"087800001230"}`},
			{plnItem, `{"sku":"pln","target":"530000000001","qty":11000}`},
		} {
			a := newAdapter()
			c.to.Version++
			q := a.quote(t.Context(), quoteOf(c.from, wanted[0], wanted[1]))
			before := len(up.asked()) + len(other.asked())
			result := a.order(t.Context(), callOf(c.to, string(q.Data), q.Cost))
			found := a.lookup(t.Context(), lookupOf(c.to, string(q.Data), q.Cost))
			sent := len(up.asked()) + len(other.asked()) - before
			if c.goes {
				if result.Outcome != sdk.Done || found.Status != sdk.StatusDone || sent != 2 {
					t.Errorf("%s: %+v, %+v, sent %d requests", name, result, found, sent)
				}
				continue
			}
			if result.Outcome != sdk.NotSent || found.Status != sdk.StatusUnknown || sent != 0 {
				t.Errorf("%s: %+v, %+v, sent %d requests", name, result, found, sent)
			}
			for _, word := range []struct {
				blame  sdk.Blame
				detail string
			}{{result.Blame, result.Detail}, {found.Blame, found.Detail}} {
				if word.blame != sdk.BlameAccount || !strings.Contains(word.detail, "base_url") || !strings.Contains(word.detail, "give the connection back") {
					t.Errorf("%s: %+v does not say what to do", name, word)
				}
			}
			// Where it was made it still can be asked for.
			if back := a.lookup(t.Context(), lookupOf(c.from, string(q.Data), q.Cost)); back.Status != sdk.StatusDone {
				t.Errorf("%s: back there: %+v", name, back)
			}
		}
	}
}
