package admission_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

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
	slices.Reverse(files) // of their paths payments is the first provider, midtrans the second
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

var update = flag.Bool("update", false, "write the table of inputs into policy/README.md")

const readme = "../../policy/README.md"

// TestThePolicyReadmeListsTheInputs holds the table of what rules see of each operation against the manifests.
func TestThePolicyReadmeListsTheInputs(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- inputs: written by go generate -->\n", "<!-- end of inputs -->"
	before, rest, found := strings.Cut(string(content), begin)
	old, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", readme)
	}
	table := inputs(shipped(t))
	if *update {
		if err := os.WriteFile(readme, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(table, old); diff != "" {
		t.Errorf("%s is out of date; run make generate: %s", readme, diff)
	}
}

// inputs is the table.
func inputs(offered []policy.Offered) string {
	var table strings.Builder
	table.WriteString("\n| operation | kind | provider | amount | quote | fields |\n| --- | --- | --- | --- | --- | --- |\n")
	slices.SortFunc(offered, func(a, b policy.Offered) int { return strings.Compare(a.Path, b.Path) })
	for _, o := range offered {
		amount, quote := "", ""
		if o.Amount {
			amount = "yes"
		}
		if o.Quote {
			quote = map[string]string{"order": "price", "transfer": "fee, name_match"}[o.Kind]
		}
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(o.Fields)) {
			fields = append(fields, "`"+name+"`")
		}
		row := []string{"`" + o.Path + "`", o.Kind, o.Provider, amount, quote, strings.Join(fields, ", ")}
		for i := range row {
			row[i] = cmp.Or(row[i], "-")
		}
		fmt.Fprintf(&table, "| %s |\n", strings.Join(row, " | "))
	}
	return table.String() + "\n"
}

// TestThePolicyReadmesRules holds its rules as a push would, and asks about what each is for.
func TestThePolicyReadmesRules(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	source := policy.Default()
	for _, block := range regexp.MustCompile("(?s)`policy/([a-z_]+\\.rego)`[^`]*?.*?```rego\n(.*?)```").FindAllStringSubmatch(string(content), -1) {
		source[block[1]] = []byte(block[2])
	}
	if len(source) != len(policy.Default())+6 {
		t.Fatalf("the files are %v", slices.Sorted(maps.Keys(source)))
	}
	data := strings.TrimSuffix(strings.TrimSpace(string(source["data.json"])), "}")
	source["data.json"] = []byte(data + `, "custom": {"blocked_products": ["xld10"], "stopped_tiers": ["starter"]}}`)
	set, findings, err := policy.Gate(t.Context(), source, policy.Facts{Operations: shipped(t), Merchants: map[string]int{"starter": 1}})
	if err != nil || set == nil || len(findings) > 0 {
		t.Fatalf("findings are %q, %v", findings, err)
	}
	at := func(hour int) time.Time { return time.Date(2026, 11, 20, hour, 30, 0, 0, time.UTC) }
	for want, c := range map[string]struct {
		tier, kind, sku string
		hour            int
	}{
		"":                                       {"growth", "transfer", "", 12},
		"night.rego:Between 23:00 and 05:00":     {"growth", "transfer", "", 23},
		"products.rego:This product is not sold": {"growth", "order", "xld10", 23},
		"stopped.rego:Transfers of this tier are": {"starter", "transfer", "", 12},
	} {
		got, err := set.Explain(t.Context(), policy.AdmitInput{
			Merchant: policy.Merchant{ID: "m", Tier: c.tier, Status: "active"}, Mode: "live", Operation: policy.Operation{Path: "/a", Kind: c.kind},
			Amount: new(int64(2_000_000)), Now: at(c.hour), Fields: map[string]any{"sku": c.sku},
		})
		told := ""
		for _, b := range got.Because {
			told += b.Rule.File + ":" + b.Reason
		}
		if err != nil || !strings.HasPrefix(told, want) || want == "" && told != "" || len(got.Because) > 1 {
			t.Errorf("%+v: %q, %v; want %q", c, told, err, want)
		}
	}
}
