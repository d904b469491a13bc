package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

const (
	openEntries = `{"success":true,"data":[
	{"id":"a1b2c3d4e5f6","merchant_id":"mer_1","mode":"live","subject":"m-10","reason":"amount_differs","fact_id":"evt-1"},
	{"id":"a1ffffffffff","merchant_id":"mer_2","mode":"test","subject":"m-11","reason":"paid_late"},
	{"id":"b0b0b0b0b0b0","merchant_id":"mer_3","mode":"live","subject":"connection to ppob","reason":"our_account","fact_id":"2 deposit"}]}`
	nothing = `{"success":true,"data":{}}`
)

func TestAnEntryIsResolvedByABeginningOfItsName(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"a1b":            `{"merchant_id":"mer_1","mode":"live","subject":"m-10","reason":"amount_differs","fact_id":"evt-1","resolution":"done"}`,
		"m-11":           `{"merchant_id":"mer_2","mode":"test","subject":"m-11","reason":"paid_late","resolution":"done"}`,
		"connection to ": `{"merchant_id":"mer_3","mode":"live","subject":"connection to ppob","reason":"our_account","fact_id":"2 deposit","resolution":"done"}`,
	} {
		f := newConsole(t, http.StatusOK, openEntries, nothing)
		code, p := run(t, f.environment(), "", "exception", "resolve", entry, "--resolution", "done", "--yes")
		if code != exitOK || len(f.requests) != 2 || f.requests[1].path != "/admin/exceptions/resolve" || f.requests[1].body != want {
			t.Errorf("%q: exit code %d, asked %q: %s", entry, code, f.requests, &p.errors)
		}
	}
	for entry, c := range map[string]struct {
		code int
		want string
	}{"a1": {exitRefused, "2 open exceptions begin with \"a1\":\n  a1b2c3d4e5f6  m-10"}, "x": {exitNotFound, "no open exception begins with \"x\""}} {
		f := newConsole(t, http.StatusOK, openEntries, nothing)
		code, p := run(t, f.environment(), "", "exception", "resolve", entry, "--resolution", "done", "--yes")
		if code != c.code || len(f.requests) != 1 || !strings.Contains(p.errors.String(), c.want) {
			t.Errorf("%q: exit code %d, asked %q: %s", entry, code, f.requests, &p.errors)
		}
	}
	f := newConsole(t, http.StatusOK, openEntries, nothing)
	for _, args := range []string{"", "|a1b|--subject|m-10", "|--merchant|mer_1|--mode|live|--subject|m-10"} {
		if code, _ := run(t, f.environment(), "", strings.Split("exception|resolve|--resolution|done"+args, "|")...); code != exitUsage || len(f.requests) != 0 {
			t.Errorf("%s: exit code %d, asked %q", args, code, f.requests)
		}
	}
}

// entries answers with so many of a list.
func entries(n int) string {
	return `{"success":true,"data":[` + strings.Repeat(`{"id":"a1"},`, n-1) + `{"id":"a1"}]}`
}

// TestAnOlderEntryIsNamedByItsParts: the console tells the newest alone, so that one
// which is not among them may well be open.
func TestAnOlderEntryIsNamedByItsParts(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		adminapi.MostListed:     "none of the newest 1000 exceptions begins with \"x\"; name an older one by --merchant, --mode, --subject and --reason, and --fact where it has one\n",
		adminapi.MostListed - 1: "no open exception begins with \"x\"; gerbang exception list shows them\n",
	} {
		f := newConsole(t, http.StatusOK, entries(n), nothing)
		code, p := run(t, f.environment(), "", "exception", "resolve", "x", "--resolution", "done", "--yes")
		if code != exitNotFound || len(f.requests) != 1 || !strings.HasSuffix(p.errors.String(), want) {
			t.Errorf("%d entries: exit code %d, asked %q: %s", n, code, f.requests, &p.errors)
		}
	}
	f := newConsole(t, http.StatusOK, nothing)
	code, p := run(t, f.environment(), "", strings.Split("exception|resolve|--merchant|mer_1|--mode|live|--subject|m-10|--reason|amount_differs|--fact|evt-1|--resolution|done|--yes", "|")...)
	want := request{http.MethodPost, "/admin/exceptions/resolve",
		`{"merchant_id":"mer_1","mode":"live","subject":"m-10","reason":"amount_differs","fact_id":"evt-1","resolution":"done"}`}
	if code != exitOK || len(f.requests) != 1 || f.requests[0] != want {
		t.Errorf("by its parts: exit code %d, asked %q: %s", code, f.requests, &p.errors)
	}
}

func TestAFullListOfPaymentsSaysSo(t *testing.T) {
	t.Parallel()
	for n, says := range map[int]string{adminapi.MostListed: "the newest 1000 are shown; there may be more\n", adminapi.MostListed - 1: ""} {
		f := newConsole(t, http.StatusOK, entries(n))
		code, p := run(t, f.environment(), "", "statement", "list", "mer_1")
		if code != exitOK || p.errors.String() != says || strings.Count(p.output.String(), "\n") != n+1 {
			t.Errorf("%d payments: exit code %d, said %q", n, code, &p.errors)
		}
	}
}

func TestACutListSaysSo(t *testing.T) {
	t.Parallel()
	full := entries(adminapi.MostListed)
	for _, c := range []struct {
		answer, limit, says string
		rows                int
	}{
		{openEntries, "2", "2 of 3 are shown, the newest ones; --limit 3 shows all\n", 2},
		{openEntries, "3", "", 3},
		{full, "1000", "1000 of 1000 or more are shown, the newest ones\n", 1000},
	} {
		f := newConsole(t, http.StatusOK, c.answer)
		code, p := run(t, f.environment(), "", "exception", "list", "--limit", c.limit)
		if code != exitOK || p.errors.String() != c.says || strings.Count(p.output.String(), "\n") != c.rows+1 {
			t.Errorf("limit %s: exit code %d, said %q", c.limit, code, &p.errors)
		}
		if !strings.HasPrefix(p.output.String(), "ID ") || !strings.Contains(p.output.String(), "\na1") {
			t.Errorf("printed %s", &p.output)
		}
	}
	f := newConsole(t, http.StatusOK, openEntries)
	if code, _ := run(t, f.environment(), "", "exception", "list", "--limit", "1001"); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}
