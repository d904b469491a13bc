package snap

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestBankList(t *testing.T) {
	t.Parallel()
	a := newAdapter(t)
	r := a.listBanks(t.Context(), sdk.Call{})
	var list []Bank
	if err := json.Unmarshal(r.Data, &list); err != nil || r.Outcome != sdk.Done {
		t.Fatalf("%+v, %v", r, err)
	}
	table, err := os.ReadFile("../banks.csv")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Count(string(table), "\n") - 1; len(list) != want {
		t.Errorf("%d banks, want %d", len(list), want)
	}
	if list[0] != (Bank{"002", "Bank Rakyat Indonesia (BRI)"}) {
		t.Errorf("first is %+v", list[0])
	}
	for _, bank := range list {
		if len(bank.clearingCode()) != 3 {
			t.Errorf("%s goes out as %s", bank.Value, bank.clearingCode())
		}
	}
}

func TestBrokenBankTables(t *testing.T) {
	t.Parallel()
	for _, table := range []string{
		"", "code,label\n", "label,code\nBCA,014\n", "code,label\n14,BCA\n", "code,label\n014,\n",
		"code,label\n014,BCA\n014,BCA again\n", "code,label\n014X,BCA\n", "code,label\n014,BCA,more\n",
	} {
		if _, err := ReadBanks([]byte(table)); err == nil {
			t.Errorf("%q is taken for a list of banks", table)
		}
	}
}

func TestBeneficiary(t *testing.T) {
	t.Parallel()
	a := newAdapter(t)
	for name, c := range map[string]struct{ code, account, clearing, digits, field string }{
		"plain":               {"014", "2460888509", "014", "2460888509", ""},
		"separated":           {"014", "246-088.85 09", "014", "2460888509", ""},
		"with leading zeros":  {"014", "0000888509", "014", "0000888509", ""},
		"a sharia unit":       {"114S", "12345678", "114", "12345678", ""},
		"in lower case":       {"114s", "12345678", "114", "12345678", ""},
		"with space around":   {" 014 ", "12345678", "014", "12345678", ""},
		"unknown bank":        {"999", "12345678", "", "", "bank_code"},
		"bank without a zero": {"14", "12345678", "", "", "bank_code"},
		"no bank":             {"", "12345678", "", "", "bank_code"},
		"letters":             {"014", "12345x", "", "", "account_no"},
		"too short":           {"014", "123", "", "", "account_no"},
		"too long":            {"014", strings.Repeat("1", 35), "", "", "account_no"},
	} {
		to, why := a.beneficiary(c.code, c.account)
		if c.field == "" {
			if why != nil || to.bank.clearingCode() != c.clearing || to.account != c.digits {
				t.Errorf("%s: %+v, %+v", name, to, why)
			}
			continue
		}
		if why == nil || why.Outcome != sdk.Refused || why.Refusal.Code != sdk.RefuseRequest || why.Refusal.Fields[0].Field != c.field {
			t.Errorf("%s: %+v", name, why)
		}
	}
}
