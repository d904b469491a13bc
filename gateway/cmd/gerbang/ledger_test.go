package main

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

func TestLedgerCommands(t *testing.T) {
	t.Parallel()
	testAdminCommands(t, map[string]adminCommand{
		"credit": {
			args:   `merchant credit|mer_1|--amount|1_000_000|--reason|transfer 17|--reference|bank 17`,
			answer: `{"merchant_id":"mer_1","mode":"live","reference":"bank 17","kind":"credit","amount":1000000,"state":"posted","requested_by":"ayu"}`,
			method: "POST", path: "/admin/merchants/mer_1/credit",
			body: `{"mode":"live","amount":1000000,"reason":"transfer 17","reference":"bank 17"}`, prints: "credit       1000000\n",
		},
		"credit again": {
			args:   `merchant credit|mer_1|--amount|1000000|--reason|transfer 17|--reference|bank 17`,
			answer: `{"kind":"credit","amount":1000000,"state":"posted","existed":true}`, method: "POST", path: "/admin/merchants/mer_1/credit",
			body: `{"mode":"live","amount":1000000,"reason":"transfer 17","reference":"bank 17"}`, prints: "It was there already",
		},
		"debit that waits": {
			args:   `merchant debit|mer_1|--amount|200_000_000|--reason|closed|--reference|r|--mode|test`,
			answer: `{"kind":"debit","amount":200000000,"state":"waiting"}`, method: "POST", path: "/admin/merchants/mer_1/debit",
			body: `{"mode":"test","amount":200000000,"reason":"closed","reference":"r"}`, prints: "It waits for another operator",
		},
		"waiting": {
			args: `ledger waiting`, answer: `[{"merchant_id":"mer_1","mode":"live","kind":"credit","amount":7,"reference":"r","reason":"why","requested_by":"ayu"}]`,
			method: "GET", path: "/admin/ledger/waiting?limit=1000", prints: `mer_1     live  credit  7       "r"        why`,
		},
		"approve": {
			args: `ledger approve|mer_1|bank 17`, answer: `{"state":"posted","decided_by":"budi","decided_at":"2026-01-02T03:04:05Z"}`,
			method: "POST", path: "/admin/ledger/approve", body: `{"merchant_id":"mer_1","mode":"live","reference":"bank 17"}`,
			prints: "decided      2026-01-02T03:04:05Z  budi\n",
		},
		"reject": {
			args: `ledger reject|mer_1|r|--mode|test`, answer: `{"state":"rejected"}`,
			method: "POST", path: "/admin/ledger/reject", body: `{"merchant_id":"mer_1","mode":"test","reference":"r"}`, prints: "rejected",
		},
		"check": {
			args: `ledger check`, answer: `{"ok":true,"accounts":2,"invariants":[{"invariant":"transactions sum to zero","checked":12,"ok":true}]}`,
			method: "GET", path: "/admin/ledger/check", prints: "transactions sum to zero  12       ok\n\nAccounts checked from the beginning: 2.\n",
		},
		"check since a day": {
			args: `ledger check`, answer: `{"ok":true,"accounts":12,"since_verified":10,"verified_until":"2026-01-02T17:00:00Z"}`,
			method: "GET", path: "/admin/ledger/check",
			prints: "Accounts checked from the beginning: 2. Since their last verified day, the first of which ended at 2026-01-02T17:00:00Z: 10; --full",
		},
		"full check": {
			args: `ledger check|--full`, answer: `{"ok":true,"accounts":2}`,
			method: "GET", path: "/admin/ledger/check?full=true", prints: "Accounts checked from the beginning: 2.\n",
		},
		"balance": {
			args:   `ledger balance|mer_1|--mode|test|--at|2026-01-02T03:04:05Z`,
			answer: `{"merchant_id":"mer_1","mode":"test","at":"2026-01-02T03:04:05Z","accounts":[{"account":"available","amount":12000},{"account":"held","amount":0}]}`,
			method: "GET", path: "/admin/merchants/mer_1/balance?at=2026-01-02T03%3A04%3A05Z&mode=test", prints: "available  -         12000\n",
		},
		"balance of the platform": {
			args: `ledger balance`, answer: `{"merchant_id":"platform","accounts":[{"account":"cost","provider":"ppob","amount":-9000}]}`,
			method: "GET", path: "/admin/merchants/platform/balance?mode=live", prints: "cost     ppob      -9000\n",
		},
		"statement": {
			args:   `ledger statement|mer_1|--from|2026-01-02T03:04:05Z|--to|2026-02-02T03:04:05Z`,
			answer: `{"entries":[{"at":"2026-01-02T03:04:05Z","kind":"hold","reference":"order-1","provider":"ppob","available":-500,"held":500,"balance_available":9500,"balance_held":500}]}`,
			method: "GET", path: "/admin/merchants/mer_1/account-statement?from=2026-01-02T03%3A04%3A05Z&limit=1000&mode=live&to=2026-02-02T03%3A04%3A05Z",
			prints: `hold  "order-1"  ppob      -500       500   9500     500`,
		},
	})
}

func TestABrokenLedgerIsAFailure(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":{"ok":false,"invariants":[
		{"invariant":"sums","checked":12,"ok":true,"offences":[]},
		{"invariant":"balances","checked":3,"ok":false,"offences":[{"merchant_id":"mer_1","mode":"live","subject":"s1","detail":"has 5, entries say 7"}]}]}}`)
	for arguments, said := range map[string]string{
		"ledger check":        "gerbang: the ledger is not right: 1 of 2 invariants are broken\n",
		"--json ledger check": `{"message":"the ledger is not right: 1 of 2 invariants are broken","exit_code":1}` + "\n",
	} {
		code, p := run(t, f.environment(), "", strings.Fields(arguments)...)
		if code != exitRefused || p.errors.String() != said {
			t.Errorf("%q: exit code %d, said %s", arguments, code, &p.errors)
		}
		if !strings.Contains(p.output.String(), "has 5, entries say 7") || !strings.Contains(p.output.String(), "12") {
			t.Errorf("%q printed %s", arguments, &p.output)
		}
	}
	code, p := run(t, f.environment(), "", "ledger", "check")
	for _, line := range []string{"sums       12       ok\n", "balances   3        1 wrong\n", "balances  mer_1     live  s1       has 5, entries say 7\n"} {
		if code != exitRefused || !strings.Contains(p.output.String(), line) {
			t.Errorf("printed\n%s\nwant %q in it", &p.output, line)
		}
	}
}

const (
	firstPage = `{"success":true,"data":{"next":"n 1","entries":[
		{"at":"2026-01-02T03:04:05.678901Z","kind":"credit","reference":"=HYPERLINK(\"http://x\"),\n1","subject":"s1","available":9,"balance_available":9}]}}`
	lastPage = `{"success":true,"data":{"entries":[
		{"at":"2026-01-02T03:04:06Z","kind":"charge","reference":"order-1","subject":"s2","attempt":2,"provider":"ppob","available":-4,"balance_available":5}]}}`
)

func TestAStatementIsWrittenAsCSV(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, firstPage, lastPage)
	code, p := run(t, f.environment(), "", "ledger", "statement", "mer_1", "--csv")
	if code != exitOK || p.errors.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, &p.errors)
	}
	rows, err := csv.NewReader(&p.output).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"at", "kind", "reference", "subject", "attempt", "provider", "available", "held", "balance_available", "balance_held"},
		{"2026-01-02T03:04:05.678901Z", "credit", "'=HYPERLINK(\"http://x\"),\n1", "s1", "0", "", "9", "0", "9", "0"},
		{"2026-01-02T03:04:06.000000Z", "charge", "order-1", "s2", "2", "ppob", "-4", "0", "5", "0"},
	}
	if !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("wrote %q, want %q", rows, want)
	}
	if len(f.requests) != 2 || f.requests[1].path != "/admin/merchants/mer_1/account-statement?after=n+1&limit=1000&mode=live" {
		t.Errorf("asked %q", f.requests)
	}
}

func TestAStatementIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, firstPage, lastPage)
	code, p := run(t, f.environment(), "", "--json", "ledger", "statement", "mer_1")
	var entries []adminapi.AccountEntry
	if err := json.Unmarshal(p.output.Bytes(), &entries); code != exitOK || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, &p.errors)
	}
	if len(entries) != 2 || entries[1].Available != -4 || entries[1].Attempt != 2 {
		t.Errorf("printed %+v", entries)
	}
}

func TestACutStatementIsAFailure(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, firstPage, `{"success":true,"data":[]}`)
	for _, form := range []string{"--csv", "--mode=live"} {
		if code, p := run(t, f.environment(), "", "ledger", "statement", "mer_1", form); code != exitRefused || p.errors.Len() == 0 {
			t.Errorf("%s: exit code %d, said %s", form, code, &p.errors)
		}
		f.requests = nil
	}
}

func TestABalanceIsWrittenAsCSV(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":{"merchant_id":"platform","mode":"live","at":"2026-01-02T03:04:05Z",
		"accounts":[{"account":"deposit","provider":"ppob","amount":-9000},{"account":"adjustments","amount":-10}]}}`)
	code, p := run(t, f.environment(), "", "ledger", "balance", "platform", "--csv")
	want := "merchant_id,mode,at,account,provider,amount\n" +
		"platform,live,2026-01-02T03:04:05.000000Z,deposit,ppob,-9000\nplatform,live,2026-01-02T03:04:05.000000Z,adjustments,,-10\n"
	if code != exitOK || p.output.String() != want {
		t.Errorf("exit code %d, wrote\n%s\nwant\n%s", code, &p.output, want)
	}
}

func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "order-1": "order-1", "1+1": "1+1", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "'x": "'x",
	} {
		if got := inert(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestWrongUseOfTheLedger(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":{}}`)
	for args, want := range map[string]string{
		"merchant credit mer_1 --reason x --reference y":                       "--amount",
		"merchant credit mer_1 --amount 5 --reference y":                       "--reason",
		"merchant debit mer_1 --amount 5 --reason x":                           "--reference",
		"merchant debit mer_1 --amount 5 --reason x --reference y --mode prod": "--mode must be one of",
		"ledger balance mer_1 --at noon":                                       "noon",
		"ledger approve mer_1":                                                 "<reference>",
		"ledger statement":                                                     "<merchant>",
		"ledger statement mer_1 --from yesterday":                              "yesterday",
		"--json ledger statement mer_1 --csv":                                  "either --json or --csv",
		"--json ledger balance mer_1 --csv":                                    "either --json or --csv",
		"ledger frobnicate":                                                    "unexpected argument",
	} {
		code, p := run(t, f.environment(), "", strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(p.errors.String(), want) || p.output.Len() > 0 {
			t.Errorf("%q: exit code %d, said %s", args, code, &p.errors)
		}
	}
	for amount, want := range map[string]string{
		"0": "at least 1", "": "whole rupiah", "-5": "whole rupiah", "1.000": "whole rupiah", "1,000": "whole rupiah", "1e6": "whole rupiah",
		"0x10": "whole rupiah", "10_00": "whole rupiah", "_100": "whole rupiah", "1000_000": "whole rupiah", "100_": "whole rupiah", "1__000": "whole rupiah",
		"010": "must be a number", "1000000000001": "at most",
	} {
		code, p := run(t, f.environment(), "", "merchant", "credit", "mer_1", "--amount="+amount, "--reason", "x", "--reference", "y")
		if code != exitUsage || !strings.Contains(p.errors.String(), want) {
			t.Errorf("amount %q: exit code %d, said %s", amount, code, &p.errors)
		}
	}
	if len(f.requests) > 0 {
		t.Errorf("asked %q", f.requests)
	}
}
