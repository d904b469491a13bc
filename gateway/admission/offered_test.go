package admission_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// shipped are the operations of the plugins in this repository.
func shipped(t *testing.T) []policy.Offered {
	t.Helper()
	files, err := filepath.Glob("../../plugins/*/manifest.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var manifests []*manifest.Manifest
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(content)
		if err != nil {
			t.Fatal(file, err)
		}
		manifests = append(manifests, m)
	}
	snapshot, err := catalog.Build(manifests)
	if err != nil {
		t.Fatal(err)
	}
	return admission.Offered(snapshot)
}

// TestTheDefaultPolicyFitsTheShippedPlugins: its paths are theirs, and each operation of each tier has an answer and a rate.
func TestTheDefaultPolicyFitsTheShippedPlugins(t *testing.T) {
	t.Parallel()
	facts := policy.Facts{Operations: shipped(t), Merchants: map[string]int{"starter": 2, "growth": 1, "scale": 1}}
	set, findings, err := policy.Gate(t.Context(), policy.Default(), facts)
	if err != nil || set == nil || len(findings) > 0 {
		t.Errorf("findings are %q, %v", findings, err)
	}
}

// TestOffered: kind, amount, quote and fields are what a request is admitted with.
func TestOffered(t *testing.T) {
	t.Parallel()
	offered := shipped(t)
	of := func(path string) policy.Offered {
		i := slices.IndexFunc(offered, func(o policy.Offered) bool { return o.Path == path })
		if i < 0 {
			t.Fatalf("%s is not offered", path)
		}
		return offered[i]
	}
	transfer := of("/wallet1/transfer/bank")
	if transfer.Kind != "transfer" || transfer.Provider != "wallet1" || !transfer.Amount || !transfer.Quote || len(transfer.Fields) != 3 || transfer.Fields["bank_code"] == nil {
		t.Errorf("a transfer is offered as %+v", transfer)
	}
	if order := of("/ppob/order"); order.Kind != "order" || !order.Amount || order.Fields["sku"] == nil {
		t.Errorf("an order is offered as %+v", order)
	}
	if status := of("/payments/status"); status.Kind != "query" || status.Amount || len(status.Fields) > 0 {
		t.Errorf("a status is offered as %+v", status)
	}
	if balance := of(catalog.BalancePath); balance.Provider != "" || balance.Kind != "query" {
		t.Errorf("a balance is offered as %+v", balance)
	}
}
