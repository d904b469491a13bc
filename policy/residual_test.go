package policy

import (
	"strings"
	"testing"
	"time"
)

// TestResidual: what depends on nothing that is unknown is known, and what two sets leave open is the same text where
// they decide alike.
func TestResidual(t *testing.T) {
	t.Parallel()
	const rules = `package gerbang
` + limitsRule + `
admit := {"allow": count(refusals) == 0, "reasons": refusals}

refusals contains "Not active." if not input.merchant.status == "active"

refusals contains "Too much." if {
	input.operation.kind == "transfer"
	input.amount > 1000
}

refusals contains "Closed at night." if {
	input.operation.kind == "order"
	input.clock.hour < 6
}

refusals contains "Not to there." if {
	input.operation.kind == "transfer"
	input.fields.bank == "014"
}
`
	set, same := must(t, rulesOnly(rules)), must(t, rulesOnly(rules+"\n# Another version.\n"))
	within := `
refusals contains bound(data.custom.most) if input.operation.kind == "payment"

bound(most) := "Below." if input.amount < most.min

else := "Beyond." if input.amount > most.max
`
	bounded := func(most string) *Set {
		source := rulesOnly(rules + within)
		source[dataFile] = []byte(strings.Replace(string(source[dataFile]), "{", `{"custom": {"most": {"max": `+most+`}}, `, 1))
		return must(t, source)
	}
	stricter := must(t, rulesOnly(strings.Replace(rules, "1000", "900", 1)))
	ask := func(s *Set, kind, status string, unknown Unknown) Residual {
		t.Helper()
		in := request()
		in.Operation.Kind, in.Merchant.Status = kind, status
		in.Now = time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
		got, err := s.Residual(t.Context(), in, unknown)
		if err != nil {
			t.Fatal(err)
		}
		if got.Known == (got.Rest != "") {
			t.Errorf("known %t with the rest %q", got.Known, got.Rest)
		}
		return got
	}
	body, all := Unknown{Body: true}, Unknown{Body: true, Clock: true}
	if got := ask(set, "query", "active", all); !got.Known || !got.Decision.Allow {
		t.Errorf("a query reads nothing: %+v\n%s", got, got.Rest)
	}
	if got := ask(set, "query", "suspended", all); !got.Known || got.Decision.Allow || got.Decision.Reasons[0] != "Not active." {
		t.Errorf("a suspended merchant's query: %+v", got)
	}
	if got := ask(set, "order", "active", all); got.Known {
		t.Errorf("an order reads the clock: %+v", got)
	}
	if got := ask(set, "order", "active", body); !got.Known || got.Decision.Allow {
		t.Errorf("an order at three: %+v", got)
	}
	nine, eight := ask(bounded("900"), "payment", "active", all), ask(bounded("800"), "payment", "active", all)
	if nine.Known || eight.Known || nine.Rest == eight.Rest {
		t.Errorf("what a function reads is passed over: %+v, %+v", nine, eight)
	}
	if got := ask(bounded("900"), "query", "active", all); !got.Known || !got.Decision.Allow {
		t.Errorf("a query, of which no function is asked: %+v", got)
	}
	one := ask(set, "transfer", "active", body)
	if other := ask(same, "transfer", "active", body); one.Known || other.Rest != one.Rest {
		t.Errorf("the same rules leave %q and %q", one.Rest, other.Rest)
	}
	if other := ask(stricter, "transfer", "active", body); other.Rest == one.Rest {
		t.Errorf("a stricter rule leaves the same: %q", other.Rest)
	}
}

// TestWhatDataSaysIsOfItsSet: what is left of rules that ask data about something unknown is never the same in two sets.
func TestWhatDataSaysIsOfItsSet(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{
		`refusals contains "No." if count([x | some x in data.custom.list; x < input.amount]) > 0`,
		`refusals contains "No." if {x | some x in data.custom.list; x < input.amount} != set()`,
		`refusals contains "No." if { every x in data.custom.list { x < input.amount } }`,
		`refusals contains "No." if not data.custom.banks[input.fields.bank]`,
		`refusals contains "No." if input.fields.bank in data.custom.names`,
		`refusals contains "No." if count([1 | some name; data.custom[name] > input.amount]) > 0`,
		"over := [x | some x in data.custom.list; x < input.amount]\n\nrefusals contains \"No.\" if count(over) > 0",
		"over(n) := [x | some x in data.custom.list; x < n]\n\nrefusals contains \"No.\" if count(over(input.amount)) > 0",
		"most(n) := data.custom.n if n > 3\n\nelse := 4\n\nrefusals contains \"No.\" if count([1 | most(input.amount) < input.amount]) > 0",
		`refusals contains "No." if data.partial.most(input.amount) < input.amount`,
		`refusals contains "No." if data.partial.over`,
	} {
		rest := map[string]bool{}
		for _, custom := range []string{`{"list": [5], "n": 5, "banks": {"a": true}, "names": ["a"]}`, `{"list": [500], "n": 500, "banks": {"b": true}, "names": ["b"]}`} {
			source := rulesOnly("package gerbang\n" + limitsRule + "\nadmit := {\"allow\": count(refusals) == 0, \"reasons\": refusals}\n\n" + rules + "\n")
			source["partial.rego"] = []byte("package partial\n\nmost(n) := data.custom.n if n > 3\n\nelse := 4\n\nover if count([1 | most(input.amount) < input.amount]) > 0\n")
			source[dataFile] = []byte(`{"custom": ` + custom + `, "tiers": {"bronze": {"rate_per_second": 1, "burst": 1}}}`)
			left, err := must(t, source).Residual(t.Context(), request(), Unknown{Body: true, Clock: true})
			if err != nil || left.Known {
				t.Errorf("%s: %+v, %v", rules, left, err)
			}
			rest[left.Rest] = true
		}
		if len(rest) != 2 {
			t.Errorf("two sets leave the same of %s: %v", rules, rest)
		}
	}
}
