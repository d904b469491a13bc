package snap

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// stands is the status of the test's transfer.
func stands(status string) string {
	return `"originalPartnerReferenceNo":"` + reference + `","originalReferenceNo":"up-1","latestTransactionStatus":"` + status +
		`","transactionStatusDesc":"x","amount":{"value":"10000.00","currency":"IDR"},"transactionDate":"2026-11-21T00:30:00+07:00"`
}

func TestStandings(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]sdk.Status{
		"00": sdk.StatusDone, "01": sdk.StatusPending, "02": sdk.StatusPending, "03": sdk.StatusPending,
		"04": sdk.StatusFailed, "05": sdk.StatusFailed, "06": sdk.StatusFailed, "07": sdk.StatusNotFound,
		"08": sdk.StatusUnknown, "": sdk.StatusUnknown,
	} {
		up := newStub(t, map[string][]reply{
			topUpStatusPath: {coded(200, "2003900", stands(status))}, bankStatusPath: {coded(200, "2000000", stands(status))},
		})
		for _, operation := range []string{walletTransfer, bankTransfer} {
			f := newAdapter(t).lookup(t.Context(), lookupOf(connect(t, up.url), operation))
			if f.Status != want {
				t.Errorf("%s %s: %+v", operation, status, f)
			}
			event := ""
			if want == sdk.StatusDone || want == sdk.StatusFailed {
				event = reference + "-" + status
			}
			if f.EventID != event {
				t.Errorf("%s %s: event %q, want %q", operation, status, f.EventID, event)
			}
		}
	}
}

func TestWhatALookupTells(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string][]reply{topUpStatusPath: {coded(200, "2003900", stands("00"))}})
	f := newAdapter(t).lookup(t.Context(), lookupOf(connect(t, up.url), walletTransfer))
	if f.Reference != reference || f.ProviderReference != "up-1" || f.Amount != 10000 || f.Currency != "IDR" ||
		string(f.Data) != `{"referenceNo":"up-1"}` || !f.At.Equal(time.Date(2026, 11, 20, 17, 30, 0, 0, time.UTC)) {
		t.Errorf("got %+v", f)
	}
}

func TestWhatALookupAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operation, path, service, code string
		settings                       []any
	}{
		"wallet at DANA, live": {walletTransfer, "/v1.0/emoney/topup-status.htm", "38", "2003900", []any{"dialect", "dana"}},
		"wallet":               {walletTransfer, topUpStatusPath, "38", "2003900", nil},
		"bank":                 {bankTransfer, bankStatusPath, "00", "2000000", nil},
		"bank, service 36":     {bankTransfer, transferStatusPath, "43", "2003600", []any{"bank_status_service", "36"}},
		"bank at DANA":         {bankTransfer, "/v1.0/emoney/transfer-bank-status.htm", "00", "2000000", []any{"dialect", "dana"}},
		"wallet at DANA":       {walletTransfer, "/rest/v1.0/emoney/topup-status", "38", "2003900", []any{"dialect", "dana"}},
		"wallet, own path":     {walletTransfer, "/snap/v1.1/emoney/topup-status", "38", "2003900", []any{"paths", map[string]string{"wallet_status": "/snap/v1.1/emoney/topup-status"}}},
		"bank 36, dana path":   {bankTransfer, "/v1.0/emoney/transfer-bank-status.htm", "43", "2003600", []any{"dialect", "dana", "bank_status_service", "36"}},
	} {
		up := newStub(t, map[string][]reply{c.path: {coded(200, c.code, stands("00"))}})
		l := lookupOf(connect(t, up.url, c.settings...), c.operation)
		if strings.HasSuffix(name, "live") {
			l.Connection.Mode = "live"
		}
		for _, known := range []string{"", "up-1"} {
			l.ProviderReference = known
			if f := newAdapter(t).lookup(t.Context(), l); f.Status != sdk.StatusDone {
				t.Fatalf("%s: %+v", name, f)
			}
		}
		asked := up.of(c.path)
		if len(asked) != 2 {
			t.Fatalf("%s: asked %d times", name, len(asked))
		}
		if asked[0].member(t, "originalPartnerReferenceNo") != reference || asked[0].member(t, "serviceCode") != c.service ||
			asked[0].member(t, "originalReferenceNo") != "" || asked[1].member(t, "originalReferenceNo") != "up-1" {
			t.Errorf("%s: asked %s and %s", name, asked[0].body, asked[1].body)
		}
	}
}

func TestFiguresOfAStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer   string
		status   sdk.Status
		amount   money.Amount
		currency string
	}{
		"another amount":    {`"originalPartnerReferenceNo":"gb-0001","originalReferenceNo":"u","latestTransactionStatus":"00","amount":{"value":"100000.00","currency":"IDR"}`, sdk.StatusDone, 100000, "IDR"},
		"another currency":  {`"originalPartnerReferenceNo":"gb-0001","originalReferenceNo":"u","latestTransactionStatus":"00","amount":{"value":"10000.00","currency":"USD"}`, sdk.StatusDone, 10000, "USD"},
		"no amount":         {`"originalPartnerReferenceNo":"gb-0001","originalReferenceNo":"u","latestTransactionStatus":"00"`, sdk.StatusDone, 10000, "IDR"},
		"no reference":      {`"latestTransactionStatus":"00"`, sdk.StatusDone, 10000, "IDR"},
		"another reference": {`"originalPartnerReferenceNo":"gb-0002","latestTransactionStatus":"00"`, sdk.StatusUnknown, 0, ""},
		"a fraction":        {`"latestTransactionStatus":"00","amount":{"value":"10000.50","currency":"IDR"}`, sdk.StatusUnknown, 0, ""},
		"an exponent":       {`"latestTransactionStatus":"00","amount":{"value":"1e4","currency":"IDR"}`, sdk.StatusUnknown, 0, ""},
		"a negative sum":    {`"latestTransactionStatus":"00","amount":{"value":"-10000.00","currency":"IDR"}`, sdk.StatusUnknown, 0, ""},
		"a sum of a number": {`"latestTransactionStatus":"00","amount":{"value":10000.00,"currency":"IDR"}`, sdk.StatusDone, 10000, "IDR"},
		"no sum at all":     {`"latestTransactionStatus":"00","amount":"10000.00"`, sdk.StatusUnknown, 0, ""},
	} {
		up := newStub(t, map[string][]reply{topUpStatusPath: {coded(200, "2003900", c.answer)}})
		f := newAdapter(t).lookup(t.Context(), lookupOf(connect(t, up.url), walletTransfer))
		if f.Status != c.status || f.Amount != c.amount || f.Currency != c.currency {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestAnUnknownOperationIsNotLookedUp(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	if f := newAdapter(t).lookup(t.Context(), lookupOf(connect(t, up.url), "/other")); f.Status != sdk.StatusUnknown || up.count() != 0 {
		t.Errorf("%+v, %d requests", f, up.count())
	}
}
