package sdktest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, serveExample) }

func exampleSuite() sdktest.Suite {
	return sdktest.Suite{
		Manifest: []byte(exampleManifest),
		Open:     openUpstream, OwnErrors: true,
		Examples: []sdktest.Example{
			{Name: "pay", Operation: "/example/pay", Body: json.RawMessage(`{"amount":100}`), Want: sdk.Pending},
			{Name: "unlucky", Operation: "/example/pay", Body: json.RawMessage(`{"amount":13}`), Want: sdk.Refused, Code: sdk.RefuseOther},
			{Name: "end", Operation: "/example/end", Body: json.RawMessage(`{}`), Want: sdk.Done, Ends: "pay", Leaves: sdk.StatusExpired},
			{Name: "rate", Operation: "/example/rate", Body: json.RawMessage(`{}`), Want: sdk.Done},
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, exampleSuite())
}

// TestOfMutants is run by TestSuiteFails in a process of its own.
func TestOfMutants(t *testing.T) {
	t.Parallel()
	mutant := os.Getenv(envMutant)
	if mutant == "" {
		t.Skip("runs only with a mutant")
	}
	s := exampleSuite()
	if strings.HasPrefix(mutant, orders) {
		s = orderSuite()
	}
	if strings.HasPrefix(mutant, collections) {
		s = collectionSuite()
	}
	s.Command = mutantCommand(mutant)
	switch mutant {
	case "no examples":
		s.Examples = s.Examples[1:]
	case "wrong example":
		s.Examples[0].Body = json.RawMessage(`{"amount":"100"}`)
	case "no such operation":
		s.Examples[0].Operation = "/example/none"
	case "ends nowhere":
		s.Examples[2].Ends = "rate"
	case "not a manifest":
		s.Manifest = []byte(`{}`)
	}
	sdktest.Run(t, s)
}

func mutantCommand(mutant string) func() *exec.Cmd {
	return func() *exec.Cmd {
		command := exec.Command(os.Args[0])
		command.Env = []string{"GERBANG_SDKTEST_PLUGIN=1", envMutant + "=" + mutant}
		return command
	}
}

// TestSuiteFails proves each property of the suite by a plugin that lacks it.
func TestSuiteFails(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ where, want string }{
		"other manifest":            {"manifest", "serves a manifest with digest"},
		"one account":               {"accounts", "the upstream has"},
		"one mode":                  {"accounts", "the upstream has"},
		"old credentials":           {"rotation", "401"},
		"verifies anything":         {"verify", "want usable false"},
		"never says not found":      {"unknown_reference", "want not found"},
		"creates twice":             {"pay/twice", "the upstream has"},
		"wrong amount":              {"pay/outcome", "the upstream has"},
		"other result":              {"pay/outcome", "not as declared"},
		"finds nothing":             {"pay/cut_after", "status 1, while the upstream has 1"},
		"no currency":               {"pay/outcome", "want reference"},
		"halves":                    {"pay/outcome", "want reference"},
		"deaf":                      {"pay/hang", "outlived its context"},
		"optimist":                  {"pay/cut_after", "want nothing"},
		"blames nobody":             {"pay/error_before", "blame 0"},
		"hears no end":              {"pay/error_before", "is true, the plugin says false"},
		"hears its end in anything": {"pay/cut_before", "is false, the plugin says true"},
		"sure of refusals":          {"unlucky", "outcome 0, want 3"},
		"ends nothing":              {"end", "status 2 afterwards"},
		"trusts anybody":            {"pay/forged_notification", "another merchant's"},
		"reads anything":            {"pay/forged_notification", "with a broken body"},
		"new event id":              {"pay/genuine_notification", "on a repeat of"},
		"other channel":             {"pay/genuine_notification", "the notification by"},
		"no examples":               {"", "has no accepted example"},
		"wrong example":             {"", "no test of this plugin"},
		"no such operation":         {"", "the manifest has no operation"},
		"ends nowhere":              {"", "is no example of /example/pay"},
		"not a manifest":            {"", "the manifest:"},

		orders + "buys in the quote":   {"buy/quote", "want nothing"},
		orders + "quotes nothing":      {"buy/quote", "want price, cost and data"},
		orders + "refuses to quote":    {"buy/quote", "no quote"},
		orders + "ignores the quote":   {"buy/outcome", "the upstream has"},
		orders + "buys again":          {"buy/outcome", "the upstream has"},
		orders + "tells another price": {"buy/outcome", "want reference"},
		orders + "other event id":      {"buy/genuine_notification", "a lookup says"},
		orders + "lists nothing":       {"buy/outcome", "the list has no product"},

		collections + "one code":            {"collect/code", "two amounts have one code"},
		collections + "code of nobody":      {"collect/code", "two accounts have one code"},
		collections + "forgets the code":    {"collect/code", "when looked up"},
		collections + "other result":        {"collect/code", "not as declared"},
		collections + "reads nothing":       {"statements", "want a statement that was read"},
		collections + "one account":         {"statements", "the statement has"},
		collections + "loses a row":         {"statements", "the statement has"},
		collections + "names rows anew":     {"statements", "one by one the statement has"},
		collections + "reads pages by time": {"statements", "the new lines are"},
		collections + "promises the future": {"statements", "which has not come yet"},
		collections + "keeps the cursor":    {"a_statement_read_twice", "the same cursor led to"},
		collections + "trusts the cursor":   {"a_foreign_cursor", "leads to"},
	}
	for mutant, c := range cases {
		t.Run(mutant, func(t *testing.T) {
			t.Parallel()
			pattern := "^TestOfMutants$"
			for part := range strings.SplitSeq(c.where, "/") {
				pattern += "/^" + part + "$"
			}
			command := exec.Command(os.Args[0], "-test.run="+strings.TrimSuffix(pattern, "/^$"))
			command.Env = append(os.Environ(), envMutant+"="+mutant)
			out, err := command.CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte(c.want)) || bytes.Contains(out, []byte("panic:")) {
				t.Errorf("%v, want a failure with %q:\n%s", err, c.want, out)
			}
		})
	}
}
