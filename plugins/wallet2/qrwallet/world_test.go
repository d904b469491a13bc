package qrwallet

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// printed is a published example of a static code, and whom it pays.
const (
	printed = "00020101021126670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI51370014ID.CO.QRIS.WWW" +
		"0215ID10191234567815204123453033605802ID5914NamaMerchantC16009NamaKota16110123456789062070703K196304B22E"
	shop = "ID1019123456781"
)

const header = "settlement_id,transaction_time,amount,currency,merchant_id,terminal_id,status,rrn\n"

// sealed gives a code that was changed its right checksum.
func sealed(text string) string {
	text = text[:len(text)-4]
	return text + qris.Checksum(text)
}

// change is how an account differs from one that is right.
type change func(*credentials)

func connection(t *testing.T, changes ...change) sdk.Connection {
	t.Helper()
	given := credentials{StaticCode: printed, MerchantCode: shop}
	for _, c := range changes {
		c(&given)
	}
	document, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Connection{MerchantID: "m", Mode: "test", Version: 1, Credentials: document}
}

// books is a directory of reports.
type books struct {
	t   *testing.T
	dir string
}

func newBooks(t *testing.T) books { t.Helper(); return books{t, t.TempDir()} }

func (b books) connection(changes ...change) sdk.Connection {
	b.t.Helper()
	return connection(b.t, append([]change{func(c *credentials) { c.Reports.Directory = b.dir }}, changes...)...)
}

func (b books) write(name, document string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(document), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// touch says when a report was last written.
func (b books) touch(name string, at time.Time) {
	b.t.Helper()
	if err := os.Chtimes(filepath.Join(b.dir, name), at, at); err != nil {
		b.t.Fatal(err)
	}
}

func (b books) read(cursor string, limit int) sdk.StatementPage {
	b.t.Helper()
	return statement(b.t.Context(), sdk.Statement{Connection: b.connection(), Cursor: cursor, Limit: limit})
}

// mustRead insists on the ids that are read.
func (b books) mustRead(what, cursor string, want ...string) sdk.StatementPage {
	b.t.Helper()
	r := b.read(cursor, 100)
	if diff := cmp.Diff(want, ids(r.Lines)); !r.Known || diff != "" {
		b.t.Errorf("%s: %+v, and other ids:\n%s", what, r, diff)
	}
	return r
}

func ids(entries []sdk.StatementLine) (all []string) {
	for _, e := range entries {
		all = append(all, e.ID)
	}
	return all
}

// settled is a row of the shop that money arrived.
func settled(id string, amount money.Amount) string {
	return fmt.Sprintf("%s,2026-01-02 15:04:05,%d.00,IDR,%s,K19,SETTLED,77\n", id, amount, shop)
}

func named(at time.Time) string { return "settlement-" + at.UTC().Format("20060102T150405Z") + ".csv" }

func lines(parts ...string) string { return strings.Join(parts, "") }
