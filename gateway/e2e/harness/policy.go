package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// PolicyData is the policy's data, with what the test changes of it.
type PolicyData struct {
	File    string
	Markups Fields // nil leaves the default policy's
}

// SetRate sets the rate of tier starter and, unless it is zero, an upper bound.
func (l *PolicyData) SetRate(t *testing.T, perSecond, burst, most int) {
	t.Helper()
	l.Change(t, func(tiers map[string]map[string]any, amounts map[string]any) {
		tiers["starter"]["rate_per_second"], tiers["starter"]["burst"] = perSecond, burst
		if most > 0 {
			amounts["/payments/create"] = map[string]any{"max": most}
		}
	})
}

// LiftRates takes all tiers' rates away, as far as that can be told from no rate.
func (l *PolicyData) LiftRates(t testing.TB) {
	t.Helper()
	l.Change(t, func(tiers map[string]map[string]any, _ map[string]any) {
		for _, tier := range tiers {
			tier["rate_per_second"], tier["burst"] = 1_000_000, 1_000_000
		}
	})
}

// Change writes the default policy's data with a change.
func (l *PolicyData) Change(t testing.TB, edit func(tiers map[string]map[string]any, amounts map[string]any)) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(Root, "policy", "rego", "data.json"))
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Tiers   map[string]map[string]any `json:"tiers"`
		Quotas  json.RawMessage           `json:"quotas"`
		Amounts map[string]any            `json:"amounts"`
		Markups Fields                    `json:"markups"`
	}
	if err := json.Unmarshal(content, &data); err != nil {
		t.Fatal(err)
	}
	if l.Markups != nil {
		data.Markups = l.Markups
	}
	edit(data.Tiers, data.Amounts)
	edited, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	l.WriteText(t, string(edited))
}

// WriteText writes in place, as a careless editor does.
func (l *PolicyData) WriteText(t testing.TB, content string) {
	t.Helper()
	if err := os.WriteFile(l.File, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
