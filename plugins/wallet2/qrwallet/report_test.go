package qrwallet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

func amountOf(n int64) money.Amount { return money.Amount(n) }

func TestRowsOfAReport(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.write("a.csv", lines(header,
		"s1,2026-01-02 15:04:05,10057.00,IDR,"+shop+",K19,SETTLED,77\n",
		"s2,2026-01-02T15:04:06+08:00,10058,,"+shop+",,success,\n", // no currency, no terminal, a zone of its own
		"s1,2026-01-03 00:00:00,10057,IDR,"+shop+",K19,REVERSED,77\n",
		"s3,2026-01-02 15:04:05,1,IDR,"+shop+",K19,WAITING,\n",
		"s4,2026-01-02 15:04:05,1,IDR,ID0000000000000,K19,SETTLED,\n",
		"s5,2026-01-02 15:04:05,1,IDR,"+shop+",K20,SETTLED,\n",
		"s6,2026-01-02 15:04:05,1,USD,"+shop+",K19,SETTLED,\n"))
	data := []byte(`{"rrn":"77","terminal_id":"K19"}`)
	want := []sdk.StatementLine{
		{ID: "s1", Reference: "s1", Amount: 10057, Currency: "IDR", At: time.Date(2026, 1, 2, 8, 4, 5, 0, time.UTC), Data: data},
		{ID: "s2", Reference: "s2", Amount: 10058, Currency: "IDR", At: time.Date(2026, 1, 2, 7, 4, 6, 0, time.UTC), Data: []byte(`{}`)},
		{ID: "s1/reversed", Reference: "s1", Amount: 10057, Currency: "IDR", At: time.Date(2026, 1, 2, 17, 0, 0, 0, time.UTC), Reversed: true, Data: data},
		{ID: "s6", Reference: "s6", Amount: 1, Currency: "USD", At: time.Date(2026, 1, 2, 8, 4, 5, 0, time.UTC), Data: []byte(`{"terminal_id":"K19"}`)},
	}
	r := b.read("", 100)
	if diff := cmp.Diff(want, r.Lines); !r.Known || r.More || diff != "" {
		t.Errorf("%+v:\n%s", r, diff)
	}
}

// TestForeignForms: another order of columns, a mark of Windows, its line ends,
// quotes, and columns that nobody knows.
func TestForeignForms(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.write("a.csv", "\ufeff"+lines(
		"Status, Amount ,note,MERCHANT_ID,settlement_id,transaction_time\r\n",
		"SETTLED,\"10057.00\",\"kopi, \"\"panas\"\"\",", shop, ",s1,2026-01-02 15:04:05\r\n",
		"SETTLED,10058,x,", shop, ",s2,2026-01-02 15:04:05\r\n"))
	first := b.read("", 1)
	if got := ids(first.Lines); !first.More || len(got) != 1 || got[0] != "s1" || first.Lines[0].Amount != 10057 {
		t.Fatalf("got %+v", first)
	}
	b.mustRead("the second row", first.Cursor, "s2")
	zone := statement(t.Context(), sdk.Statement{Connection: b.connection(func(c *credentials) { c.TimeZone = "Asia/Makassar" })})
	if at := zone.Lines[0].At; !at.Equal(time.Date(2026, 1, 2, 7, 4, 5, 0, time.UTC)) {
		t.Errorf("in another zone it is %v", at)
	}
}

// TestBrokenReportsAreRefusedWhole, with file and line, and with nothing of them.
func TestBrokenReportsAreRefusedWhole(t *testing.T) {
	t.Parallel()
	good := settled("s1", 10057)
	for document, want := range map[string]string{
		good + good: "broken.csv: line 1: the header has no column settlement_id",
		"\n\n":      "broken.csv: line 1: the header is missing",
		strings.Replace(header, "amount", "x", 1):   "line 1: the header has no column amount",
		strings.Replace(header, "rrn", "status", 1): `line 1: the column "status" stands twice`,
		header + good + "s2,short\n":                "line 3: wrong number of fields",
		header + good + "s2,\"open\n":               "line 3: extraneous or missing \" in quoted-field",
	} {
		b := newBooks(t)
		b.write("broken.csv", document)
		r := b.read("", 100)
		if r.Known || r.Blame != sdk.BlameAccount || !strings.Contains(r.Detail, want) || len(r.Lines) > 0 || r.Cursor != "" {
			t.Errorf("%s: got %+v", want, r)
		}
	}
}

// TestARowThatCantBeReadHoldsUpNoOther: it is told of with its file and line, and nothing
// ends unpaid while it may be any payment.
func TestARowThatCantBeReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	good := settled("s1", 10057)
	for document, want := range map[string]string{
		header + good + strings.Replace(good, "10057.00", "10.5", 1):   "line 3: amount: must be whole rupiah",
		header + good + strings.Replace(good, "10057.00", "-5", 1):     "line 3: amount: must be whole rupiah",
		header + good + strings.Replace(good, "10057.00", "", 1):       "line 3: amount: must be whole rupiah",
		header + good + strings.Replace(good, "SETTLED", "MAYBE", 1):   `line 3: status: "MAYBE" is not known`,
		header + good + strings.Replace(good, "2026-01", "01/2026", 1): "line 3: transaction_time: write it like",
		header + good + strings.Replace(good, "s1,", ",", 1):           "line 3: settlement_id: must have 1 to 128",
	} {
		b := newBooks(t)
		b.write("broken.csv", document)
		r := b.read("", 100)
		if !r.Known || r.Blame != sdk.BlameAccount || !strings.Contains(r.Detail, "broken.csv: "+want) || len(r.Lines) != 1 || r.Cursor == "" || !r.Through.IsZero() {
			t.Errorf("%s: got %+v", want, r)
		}
	}
}

// TestAnEditedReport: a row that has failed since takes its payment back, and rows that are
// gone are told of.
func TestAnEditedReport(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.write("a.csv", header+settled("s1", 10057)+settled("s2", 10058))
	first := b.read("", 100)
	b.write("a.csv", header+strings.Replace(settled("s1", 10057), "SETTLED", "FAILED", 1)+settled("s3", 10059))
	then := b.read(first.Cursor, 100)
	if got := ids(then.Lines); !slices.Equal(got, []string{"s1/failed", "s3"}) || !then.Lines[0].Failed || then.Lines[0].Reference != "s1" {
		t.Errorf("got %+v", then)
	}
	if then.Blame != sdk.BlameAccount || !strings.Contains(then.Detail, "a.csv: what had been read of it has changed") {
		t.Errorf("told of %q", then.Detail)
	}
}

// FuzzParse: whatever stands in a report, rows lie in it, one after the other.
func FuzzParse(f *testing.F) {
	f.Add(header + settled("s1", 10057))
	f.Add("\ufeff" + header + "\n\n" + settled("s1", 1) + "half")
	f.Add("")
	f.Fuzz(func(t *testing.T, document string) {
		a := account{merchant: shop, terminals: terminals{"K19": {}}, zone: time.UTC}
		r, err := a.parse("f.csv", []byte(document), part{limit: 1 << 20})
		if err != nil {
			return
		}
		end := 0
		for _, row := range r.rows {
			if row.end <= end || row.end > r.end {
				t.Errorf("a row ends at %d after %d of %d", row.end, end, r.end)
			}
			end = row.end
		}
		if r.half != (r.end < len(document)) {
			t.Errorf("half %v, %d of %d", r.half, r.end, len(document))
		}
	})
}
