package snap

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	for now := time.Date(2026, 1, 1, 23, 59, 59, 0, jakarta); now.Year() < 2029; now = now.AddDate(0, 0, 1) {
		list := windows(now.Add(900 * time.Millisecond))
		if !list[0].to.Equal(now) {
			t.Fatalf("%v: begins with %v", now, list[0].to)
		}
		if last := list[len(list)-1].from; !last.Equal(now.AddDate(0, -3, 0).Add(time.Second)) {
			t.Fatalf("%v: ends with %v", now, last)
		}
		for i, w := range list {
			if w.to.After(w.from.AddDate(0, 1, 0)) || !w.from.Before(w.to) {
				t.Fatalf("%v: %v to %v is no month", now, w.from, w.to)
			}
			if i > 0 && !w.to.Add(time.Second).Equal(list[i-1].from) {
				t.Fatalf("%v: %v does not follow %v", now, list[i-1].from, w.to)
			}
		}
	}
}

// books is an upstream's history: one row at each of some moments, the newest
// first, named by its index.
type books struct {
	t        *testing.T
	rows     []time.Time
	requests atomic.Int32
	asText   bool
}

func (b *books) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(1)
	var asked struct {
		From   time.Time       `json:"fromDateTime"`
		To     time.Time       `json:"toDateTime"`
		Size   json.RawMessage `json:"pageSize"`
		Number json.RawMessage `json:"pageNumber"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		b.t.Errorf("history asked badly: %v", err)
	}
	if strings.HasPrefix(string(asked.Size), `"`) != b.asText || strings.HasPrefix(string(asked.Number), `"`) != b.asText {
		b.t.Errorf("page %s of %s", asked.Number, asked.Size)
	}
	size, _ := strconv.Atoi(strings.Trim(string(asked.Size), `"`))
	number, _ := strconv.Atoi(strings.Trim(string(asked.Number), `"`))
	if size < 1 || size > 50 || asked.To.After(asked.From.AddDate(0, 1, 0)) {
		b.t.Errorf("asked for %d rows from %v to %v", size, asked.From, asked.To)
	}
	details := []string{}
	for i, at := range b.rows {
		if at.Before(asked.From) || at.After(asked.To) {
			continue
		}
		details = append(details, fmt.Sprintf(`{"dateTime":%q,"amount":{"value":"%d.00","currency":"IDR"},"remark":"row %d","status":"SUCCESS","type":"PAYMENT"}`,
			at.Format(time.RFC3339), i+1, i))
	}
	details = details[min(number*size, len(details)):]
	details = details[:min(size, len(details))]
	_, _ = fmt.Fprintf(w, `{"responseCode":"2001200","detailData":[%s]}`, strings.Join(details, ","))
}

// rowsAt makes rows, so many in each of the months before today.
func rowsAt(months ...int) (rows []time.Time) {
	for m, count := range months {
		for i := range count {
			rows = append(rows, today.AddDate(0, -m, 0).Add(-time.Duration(i)*time.Hour-time.Hour))
		}
	}
	return rows
}

func list(t *testing.T, r sdk.Result) (names []string) {
	t.Helper()
	var rows []mutation
	if err := json.Unmarshal(r.Data, &rows); err != nil || r.Outcome != sdk.Done || rows == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, row := range rows {
		names = append(names, row.MerchantName)
	}
	return names
}

// Every page of ours is the same cut of the whole list, wherever windows and
// pages of the upstream end.
func TestPagesAreJoined(t *testing.T) {
	t.Parallel()
	for _, months := range [][]int{
		{0, 0, 0}, {1, 0, 0}, {0, 0, 1}, {3, 4, 5}, {50, 50, 50}, {100, 0, 7}, {0, 120, 0}, {230, 1, 99}, {49, 51, 101},
	} {
		t.Run(fmt.Sprint(months), func(t *testing.T) {
			t.Parallel()
			b := &books{t: t, rows: rowsAt(months...)}
			url := withToken(t, b.ServeHTTP)
			a := newAdapter(t)
			c := connect(t, url)
			for _, limit := range []int{7, 20, 50, 100} {
				var all []string
				for page := 1; ; page++ {
					got := list(t, a.transactions(t.Context(), queryCall(c, "/wallet1/transactions", fmt.Sprintf(`{"page":%d,"limit":%d}`, page, limit))))
					all = append(all, got...)
					if len(got) < limit {
						break
					}
				}
				want := []string{}
				for i := range b.rows {
					want = append(want, fmt.Sprintf("row %d", i))
				}
				if !slices.Equal(all, want) && len(want) > 0 {
					t.Errorf("limit %d: got %v", limit, all)
				}
			}
		})
	}
}

func TestAPageFarOutCostsFewRequests(t *testing.T) {
	t.Parallel()
	b := &books{t: t, rows: rowsAt(500, 500, 60), asText: true}
	url := withToken(t, b.ServeHTTP)
	c := connect(t, url, "history_page_as_string", true)
	a := newAdapter(t)
	if got := list(t, a.transactions(t.Context(), queryCall(c, "", `{"page":51,"limit":20}`))); len(got) != 20 || got[0] != "row 1000" {
		t.Errorf("got %v", got)
	}
	if n := b.requests.Load(); n > 15 {
		t.Errorf("%d requests", n)
	}
	b.requests.Store(0)
	if got := list(t, a.transactions(t.Context(), queryCall(c, "", `{"page":1000000,"limit":100}`))); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if n := b.requests.Load(); n > 4*25 {
		t.Errorf("%d requests", n)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ row, want string }{
		"as in the sample": {
			`{"dateTime":"2026-10-21T09:17:11+07:00","amount":{"value":"12345678.00","currency":"IDR"},"remark":"Payment to Warung Ikan Bakar","status":"SUCCESS","type":"PAYMENT","sourceOfFunds":[{"source":"BALANCE"}]}`,
			`{"merchant_name":"Payment to Warung Ikan Bakar","transaction_amount":"12345678.00","transaction_type":"PAYMENT","transaction_date":"2026-10-21","transaction_time":"09:17:11","status":"SUCCESS"}`,
		},
		"in another zone, with milliseconds": {
			`{"dateTime":"2026-10-21T20:17:11.500Z","amount":{"value":"1.00"},"type":"TOP_UP"}`,
			`{"merchant_name":"","transaction_amount":"1.00","transaction_type":"TOP_UP","transaction_date":"2026-10-22","transaction_time":"03:17:11","status":""}`,
		},
		"without a zone": {
			`{"dateTime":"2026-10-21T20:17:11","amount":{"value":"1.00"},"remark":null}`,
			`{"merchant_name":"","transaction_amount":"1.00","transaction_type":"","transaction_date":"2026-10-21","transaction_time":"20:17:11","status":""}`,
		},
		"a sum with a sign and sen": {
			`{"dateTime":"2026-10-21T20:17:11+07:00","amount":{"value":"-0012.5"}}`,
			`{"merchant_name":"","transaction_amount":"12.50","transaction_type":"","transaction_date":"2026-10-21","transaction_time":"20:17:11","status":""}`,
		},
		"a sum as a number": {
			`{"dateTime":"2026-10-21T20:17:11+07:00","amount":{"value":0.5}}`,
			`{"merchant_name":"","transaction_amount":"0.50","transaction_type":"","transaction_date":"2026-10-21","transaction_time":"20:17:11","status":""}`,
		},
		"no time":          {`{"amount":{"value":"1.00"}}`, ""},
		"no sum":           {`{"dateTime":"2026-10-21T20:17:11+07:00"}`, ""},
		"a sum of words":   {`{"dateTime":"2026-10-21T20:17:11+07:00","amount":{"value":"ten"}}`, ""},
		"three decimals":   {`{"dateTime":"2026-10-21T20:17:11+07:00","amount":{"value":"1.000"}}`, ""},
		"an exponent":      {`{"dateTime":"2026-10-21T20:17:11+07:00","amount":{"value":"1e3"}}`, ""},
		"no object at all": {`7`, ""},
	} {
		// The same row again and again would be an endless history.
		up := newStub(t, map[string][]reply{historyPath: {
			coded(200, "2001200", `"detailData":[`+c.row+`]`), coded(404, "4041201", ""),
		}})
		r := newAdapter(t).transactions(t.Context(), queryCall(connect(t, up.url), "", `{}`))
		if c.want == "" {
			checkResult(t, name, r, theirFault, "")
			continue
		}
		if string(r.Data) != "["+c.want+"]" {
			t.Errorf("%s: %s %+v", name, r.Data, r)
		}
	}
}

func TestAHistoryThatFails(t *testing.T) {
	t.Parallel()
	many := `"detailData":[` + strings.Repeat(`{"dateTime":"2026-10-21T20:17:11+07:00","amount":{"value":"1.00"}},`, 50) +
		`{"dateTime":"2026-10-21T20:17:11+07:00","amount":{"value":"1.00"}}]`
	for name, c := range map[string]struct {
		reply reply
		want  verdict
	}{
		"down":              {reply{503, ""}, theirFault},
		"not allowed":       {coded(403, "4031201", ""), ourFault},
		"too often":         {coded(429, "4291200", ""), tooMany},
		"more than 50 rows": {coded(200, "2001200", many), theirFault},
	} {
		up := newStub(t, map[string][]reply{historyPath: {c.reply}})
		checkResult(t, name, newAdapter(t).transactions(t.Context(), queryCall(connect(t, up.url), "", `{}`)), c.want, "")
	}
}
