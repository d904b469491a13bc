package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const shownTransfer = `{"id":"m-1","merchant_id":"mer_1","kind":"transfer","state":"succeeded","amount":50000,"fee":2500,"name_match":false,
	"upstream_reference":"m1-1","provider_reference":"prov-1","request":{"body":{"amount":50000}},"connection_owner":"merchant","connection_version":3,
	"created_at":"2026-01-02T03:04:05Z","history":[{"sequence":2,"event":"overridden","at":"2026-01-04T03:04:05Z","detail":"{}"}],
	"notes":[{"event":"polled","detail":"{\"said\":\"pending\"}","at":"2026-01-02T03:05:05Z","last_at":"2026-01-03T03:04:05Z","times":7}],
	"overrides":[{"as":"success","operator":"ayu","reason":"portal","at":"2026-01-04T03:00:00Z","confirmed_by":"budi","confirmed_reason":"called","confirmed_at":"2026-01-04T03:04:04Z"}],
	"exceptions":[{"reason":"unresolved","detail":"nobody knows","at":"2026-01-03T03:04:05Z","resolved_at":"2026-01-04T03:04:06Z","resolved_by":"ayu, budi","resolution":"decided"}],
	"postings":[{"kind":"capture","at":"2026-01-04T03:04:05Z","held":-7}],
	"callbacks":[{"event_id":"e-1","event":"transfer.status_update","state":"delivered","created_at":"2026-01-04T03:04:05Z",
		"attempts":[{"at":"2026-01-04T03:04:06Z","outcome":"delivered","status":200}]}]}`

func TestMovementCommands(t *testing.T) {
	t.Parallel()
	const overridden = `{"id":"m-1","kind":"transfer","state":"pending","waiting":true,"override":{"as":"success","operator":"ayu","reason":"portal","at":"2026-01-02T03:04:05Z"}}`
	testAdminCommands(t, map[string]adminCommand{
		"show": {
			args: `transfer show|m-1`, answer: shownTransfer, method: "GET", path: "/admin/movements/m-1",
			prints: "2026-01-02T03:05:05Z  polled                           {\"said\":\"pending\"}, times: 7, last at 2026-01-03T03:04:05Z\n" +
				"2026-01-03T03:04:05Z  listed unresolved                nobody knows\n" +
				"2026-01-04T03:00:00Z  proposed success                 by ayu: portal\n" +
				"2026-01-04T03:04:04Z  confirmed success                by budi: called\n",
		},
		"list": {
			args:   `payment list|mer_1|--mode|live|--search|payer@example.com|--limit|2`,
			answer: `{"movements":[{"created_at":"2026-01-02T03:04:05Z","id":"m-1","reference":"INV/7","status":"PAID","amount":25000}],"next":"m-1"}`,
			method: "GET", path: "/admin/merchants/mer_1/movements?kind=payment&limit=2&mode=live&search=payer%40example.com",
			prints: "2026-01-02T03:04:05Z  m-1  \"INV/7\"    PAID    25000   -",
		},
		"show an order by its merchant's name": {
			args: `order show|INV/7`, answer: `{"kind":"order","reference":"INV/7"}`, method: "GET", path: "/admin/movements/INV%2F7",
			prints: "reference           \"INV/7\"\n",
		},
		"override": {
			args: `transfer override|m-1|--as|success|--reason|portal|--yes`, answer: overridden,
			method: "POST", path: "/admin/movements/m-1/override", body: `{"as":"success","reason":"portal"}`, prints: "It waits for another operator",
		},
		"override alone": {
			args:   `order override|m-1|--as|failed|--reason|r|--alone|--yes`,
			answer: `{"state":"failed","override":{"as":"failed","operator":"ayu","reason":"r","alone":true}}`,
			method: "POST", path: "/admin/movements/m-1/override", body: `{"as":"failed","reason":"r","alone":true}`, prints: "decided alone failed  by ayu: r\n",
		},
	})
}

const foundTransfer = `{"id":"x","since":"2026-01-01T00:00:00Z","movements":[{"by":["request_id"],"id":"m-1","kind":"transfer","state":"succeeded","provider":"wallet1",
	"amount":50000,"history":[{"at":"2026-01-02T03:04:05Z","event":"reserved","detail":"attempt 1"}]},{"by":["reference"],"id":"m-2","kind":"order","reference":"x"}]}`

func TestFind(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":`+foundTransfer+`}`)
	code, p := run(t, f.environment(), "", "find", "a/b c", "--since", "2026-01-01T00:00:00Z")
	if code != exitOK || f.requests[0].path != "/admin/find?id=a%2Fb+c&since=2026-01-01T00%3A00%3A00Z" {
		t.Errorf("exit code %d, asked %q: %s", code, f.requests, &p.errors)
	}
	for _, line := range []string{"found by request_id\n", "reference -\n", "reference \"x\"\n", "reserved", "order m-2"} {
		if !strings.Contains(spaced(p.output.String()), line) {
			t.Errorf("printed\n%s\nwant %q in it", &p.output, line)
		}
	}
	none := newConsole(t, http.StatusOK, `{"success":true,"data":{"id":"x","since":"2026-01-01T00:00:00Z","movements":[]}}`)
	if code, p := run(t, none.environment(), "", "find", "x"); code != exitNotFound || !strings.Contains(p.errors.String(), "since 2026-01-01T00:00:00Z") {
		t.Errorf("nothing: exit code %d, said %s", code, &p.errors)
	}
}

// spaced is a table whose cells stand one space apart.
func spaced(table string) string { return regexp.MustCompile(" +").ReplaceAllString(table, " ") }

func TestTheTrailIsPrintedWhole(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":`+shownTransfer+`}`)
	_, p := run(t, f.environment(), "", "transfer", "show", "m-1")
	for _, part := range []string{
		"merchant, version 3", `sent {"body":{"amount":50000}}`, "name_match false", "fee 2500",
		"reference -\n", "posted capture", "held -7", "callback transfer.status_update", "delivered 200", "resolved unresolved", "by ayu, budi: decided",
	} {
		if !strings.Contains(spaced(p.output.String()), part) {
			t.Errorf("printed\n%s\nwant %q in it", &p.output, part)
		}
	}
	before := -1
	for _, event := range []string{"reserved", "polled", "listed", "proposed", "confirmed", "overridden", "try"} { // as it happened
		if at := strings.Index(p.output.String(), "  "+event); at < before {
			t.Errorf("%s comes too early", event)
		} else {
			before = at
		}
	}
	wrong := map[string]string{"transfer override m-1 --reason r": "--as", "transfer override m-1 --as=maybe --reason r": "--as must be one of", "order override m-1 --as=failed": "--reason"}
	for args, want := range wrong {
		if code, p := run(t, f.environment(), "", strings.Fields(args)...); code != exitUsage || !strings.Contains(p.errors.String(), want) {
			t.Errorf("%q: exit code %d, said %s", args, code, &p.errors)
		}
	}
}
