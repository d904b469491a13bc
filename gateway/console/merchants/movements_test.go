package merchants

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// paged is an admin API whose list of movements comes in pages.
type paged [][]adminapi.MovementLine

func (p *paged) RoundTrip(*http.Request) (*http.Response, error) {
	list := adminapi.MovementList{Movements: (*p)[0]}
	if *p = (*p)[1:]; len(*p) > 0 {
		list.Next = "more"
	}
	text, err := json.Marshal(map[string]any{"data": list})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text))}, err
}

// TestExportsSayWhatIsListed: whatever others have written, each movement is one record, which a spreadsheet takes for text.
func TestExportsSayWhatIsListed(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("WIB", 7*60*60)
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Custom(func(t *rapid.T) adminapi.MovementLine {
			at := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "at"), 0).UTC()
			m := adminapi.MovementLine{CreatedAt: at, ID: "id", Reference: rapid.StringMatching(`[=+@"',;\n A-Za-z0-9é%-]{0,12}`).Draw(t, "reference"), Status: "PAID", Amount: 25000}
			if rapid.Bool().Draw(t, "paid") {
				m.PaidAt = &at
			}
			return m
		})
		pages := paged(rapid.SliceOfN(rapid.SliceOfN(line, 0, 3), 1, 3).Draw(t, "pages"))
		var want []adminapi.MovementLine
		for _, p := range pages {
			want = append(want, p...)
		}
		w := httptest.NewRecorder()
		c := &Console{config: Config{Location: zone}, deps: Dependencies{Dependencies: page.Dependencies{Now: time.Now}}}
		r := &room{
			Visit: &page.Visit{Writer: w, Request: httptest.NewRequest(http.MethodGet, "/payments/export.csv", http.NoBody)}, //nolint:noctx // nothing waits
			Mode:  tenants.Test, admin: adminapi.NewClientOver(&pages),
		}
		if err := c.export(r, manifest.Payment); err != nil {
			t.Fatal(err)
		}
		text, marked := strings.CutPrefix(w.Body.String(), "\ufeff")
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || !marked || len(rows) != len(want)+1 || strings.Count(text, "\r\n") < len(rows) {
			t.Fatalf("%q: %v", text, err)
		}
		for i, m := range want {
			row := rows[i+1]
			reference := strings.TrimPrefix(row[2], "'")
			if strings.HasPrefix(m.Reference, "'") {
				reference = row[2]
			}
			if reference != m.Reference || strings.ContainsAny(row[2][:min(1, len(row[2]))], "=+-@\n") || row[4] != "25000" {
				t.Errorf("%q of %+v", row, m)
			}
			at, err := time.Parse(time.RFC3339, row[0])
			if err != nil || !at.Equal(m.CreatedAt) || !strings.HasSuffix(row[0], "+07:00") || (row[7] != "") != (m.PaidAt != nil) {
				t.Errorf("%q of %+v: %v", row, m, err)
			}
		}
	})
}

// TestStatusesAreColoured: each word that a merchant reads in answers and callbacks has the colour of its state.
func TestStatusesAreColoured(t *testing.T) {
	t.Parallel()
	for _, kind := range movement.Kinds() {
		rules, _ := movement.RulesOf(kind)
		for _, state := range rules.Listed("") {
			word := rules.Word(state.Of())
			if state == movement.Returned {
				word = rules.Word(movement.Failed)
			}
			if page.Tone(word) == "" || page.Tone(word) != page.Tone(state) {
				t.Errorf("%s: %s and %s have other colours", kind, word, state)
			}
		}
	}
}
