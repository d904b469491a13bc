package policy

import "testing"

// TestNames: data, quotas and rules name paths; a test of the rules does not.
func TestNames(t *testing.T) {
	t.Parallel()
	set, err := Compile(t.Context(), Default())
	if err != nil {
		t.Fatal(err)
	}
	if set.Names("/bank/transfer") { // of the shipped tests alone
		t.Error("a path that stands in a test is named")
	}
	source := Default()
	source["own.rego"] = []byte("package gerbang\n\nrefusals contains \"no\" if {\n\tinput.operation.path in {\"/coins/buy\"}\n\tinput.merchant.tier == \"none\"\n}\n")
	if set, err = Compile(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if !set.Names("/coins/buy") || set.Names("/coins/sell") {
		t.Errorf("named are %v", set.texts)
	}
	if set.RoutesTo("coins") {
		t.Error("rules without an order send something to a provider")
	}
	source["route.rego"] = []byte("package gerbang\n\nroute := [\"payments\", \"coins\"] if input.amount > 5\n")
	if set, err = Compile(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if !set.RoutesTo("coins") || set.RoutesTo("notes") {
		t.Error("the order names coins, and not notes")
	}
}
