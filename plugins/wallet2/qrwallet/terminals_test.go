package qrwallet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// Codes of the same shop: of another terminal, and of none.
var (
	ofK20      = sealed(strings.Replace(printed, "0703K19", "0703K20", 1))
	unlabelled = sealed(strings.Replace(printed, "62070703K19", "", 1))
)

// rowOf is a row of the shop with a terminal, or of none.
func rowOf(terminal, id string, at time.Time, status string) string {
	return fmt.Sprintf("%s,%s,10057.00,IDR,%s,%s,%s,77\n", id, at.UTC().Format(time.RFC3339), shop, terminal, status)
}

// readBy reads on by another code of the shop.
func (b books) readBy(code, cursor string, want ...string) string {
	b.t.Helper()
	r := statement(b.t.Context(), sdk.Statement{Connection: b.connection(func(c *credentials) { c.StaticCode = code }), Cursor: cursor})
	if diff := cmp.Diff(want, ids(r.Lines)); !r.Known || diff != "" {
		b.t.Errorf("%+v, and other ids:\n%s", r, diff)
	}
	return r.Cursor
}

// TestAllTerminalsAreOneAccount: a row that names no terminal, or that is read by a
// code of none, can't pay a sale on two of them.
func TestAllTerminalsAreOneAccount(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	for name, code := range map[string]string{"K19": printed, "K20": ofK20, "none": unlabelled} {
		c := b.connection(func(c *credentials) { c.StaticCode = code })
		if r := verify(t.Context(), c); r.Outcome != sdk.Done || r.ProviderReference != shop {
			t.Errorf("terminal %s is account %q: %+v", name, r.ProviderReference, r)
		}
		c = b.connection(func(c *credentials) { c.StaticCode, c.MerchantCode = code, shop+"/K19" })
		if r := verify(t.Context(), c); r.Outcome != sdk.Refused || !strings.Contains(r.Refusal.Message, "merchant_code") {
			t.Errorf("terminal %s has an account of its own: %+v", name, r)
		}
	}
}

func TestRowsOfOtherTerminalsAreNotOurs(t *testing.T) {
	t.Parallel()
	b, at := newBooks(t), time.Now()
	b.write("a.csv", header+rowOf("K19", "s1", at, "SETTLED")+rowOf("K20", "s2", at, "SETTLED")+rowOf("", "s3", at, "SETTLED"))
	b.readBy(printed, "", "s1", "s3")
	b.readBy(ofK20, "", "s2", "s3")
	b.readBy(unlabelled, "", "s1", "s2", "s3")
}

// TestAConnectionMovesToAnotherTerminal, with sales open by the codes of both: the
// account and its cursor stay.
func TestAConnectionMovesToAnotherTerminal(t *testing.T) {
	t.Parallel()
	b, at := newBooks(t), time.Now()
	report := header + rowOf("K19", "s1", at, "SETTLED") + rowOf("K20", "s2", at, "SETTLED")
	b.write("a.csv", report)
	before := b.readBy(printed, "", "s1")
	moved := b.readBy(ofK20, before, "s1", "s2") // s2 was passed over, by a reader that knew the old code alone
	if b.readBy(ofK20, moved) != moved {
		t.Error("the cursor moves where nothing is new")
	}
	later := at.Add(leftFor + time.Hour)
	report += rowOf("K19", "s3", at.Add(time.Minute), "SETTLED") + rowOf("K19", "s4", later, "SETTLED") +
		rowOf("K19", "s1", later, "REVERSED") + rowOf("K21", "s5", at, "SETTLED") + rowOf("K20", "s6", later, "SETTLED")
	b.write("a.csv", report)
	now := b.readBy(ofK20, moved, "s3", "s1/reversed", "s6")
	// A reader that has not heard of the move passes nothing over, nor does the next.
	stale := b.readBy(printed, now, "s1", "s2", "s3", "s4", "s1/reversed")
	b.readBy(ofK20, stale, "s1", "s2", "s3", "s1/reversed", "s6")
}
