package sandbox_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/wallet2/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

func TestEachShopHasACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	w := open(t)
	if again := w.connect("m", "test"); again.StaticCode != w.shop.StaticCode || again.Reports["directory"] != w.shop.Reports["directory"] {
		t.Errorf("got %+v, then %+v", w.shop, again)
	}
	seen := map[string]bool{w.shop.MerchantCode: true}
	for _, other := range []shop{w.connect("m", "live"), w.connect("n", "test")} {
		code, err := qris.Parse(other.StaticCode)
		if err != nil || code.Point() != qris.Static || code.NationalID() != other.MerchantCode {
			t.Errorf("%+v: %v", other, err)
		}
		if seen[other.MerchantCode] {
			t.Errorf("%s stands twice", other.MerchantCode)
		}
		seen[other.MerchantCode] = true
	}
}

// TestAShopIsToldHowLateReportsAre, within what a connection may say.
func TestAShopIsToldHowLateReportsAre(t *testing.T) {
	t.Parallel()
	for late, want := range map[time.Duration]string{0: "5s", time.Minute: "65s", 3 * time.Hour: "7200s"} {
		if w := open(t, func(o *sandbox.Options) { o.Late = late }); w.shop.ReportsLate != want {
			t.Errorf("%v: got %s, want %s", late, w.shop.ReportsLate, want)
		}
	}
}

func TestAPaymentIsReported(t *testing.T) {
	t.Parallel()
	w := open(t)
	receipt := w.pay(10057)
	if receipt.Amount != 10057 || receipt.State != "PAID" {
		t.Errorf("got %+v", receipt)
	}
	names, documents := w.reports()
	last := documents[len(documents)-1]
	want := []string{receipt.Reference, "2026-01-15 10:00:00", "10057.00", "IDR"}
	if len(last) != 2 || !slices.Equal(last[1][:4], want) || last[1][6] != w.shop.MerchantCode || last[1][7] != "K19" || last[1][9] != "70.00" || last[1][10] != "9987.00" {
		t.Errorf("%s has %q", names[len(names)-1], last)
	}
	var movements []kit.Movement
	if w.order("movements", nil, &movements); len(movements) != 1 || movements[0].Amount != 10057 || movements[0].Reference != receipt.Reference {
		t.Errorf("the witness has %+v", movements)
	}
}

func TestOnlyOurCodesArePaid(t *testing.T) {
	t.Parallel()
	w := open(t)
	other := open(t).connect("other", "live")
	amount := func(a money.Amount) *money.Amount { return &a }
	renamed := strings.Replace(w.shop.code(t, 10057), "NamaMerchant", "NamaPenipu12", 1)
	renamed = renamed[:len(renamed)-4] + qris.Checksum(renamed[:len(renamed)-4])
	for name, c := range map[string]struct {
		request kit.PayRequest
		unknown bool
	}{
		"no code":                {kit.PayRequest{QRString: "hello"}, true},
		"another wallet's":       {kit.PayRequest{QRString: other.code(t, 10057)}, true},
		"not made of the print":  {kit.PayRequest{QRString: renamed}, true},
		"a page":                 {kit.PayRequest{URL: "http://x"}, true},
		"the print, no amount":   {kit.PayRequest{QRString: w.shop.StaticCode}, false},
		"another amount than it": {kit.PayRequest{QRString: w.shop.code(t, 10057), Amount: amount(10058)}, false},
	} {
		_, err := w.up.Pay(c.request)
		var refused *kit.NotPayable
		if errors.Is(err, kit.ErrUnknown) != c.unknown || errors.As(err, &refused) == c.unknown {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.up.Pay(kit.PayRequest{QRString: w.shop.code(t, 10057), Amount: amount(10057)}); err != nil {
		t.Error(err)
	}
	if got := w.rows(); got != "SETTLED 10057" {
		t.Errorf("the reports have %s", got)
	}
}

func TestRowsComeLate(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.Late = time.Hour })
	w.pay(1)
	w.clock.Advance(59 * time.Minute)
	w.pay(2)
	if got := w.rows(); got != "" {
		t.Errorf("too early: %s", got)
	}
	w.clock.Advance(time.Minute)
	w.until("the first", func() bool { return w.rows() == "SETTLED 1" })
	w.stop() // killed, and back
	w.start()
	w.clock.Advance(time.Hour)
	w.until("the second", func() bool { return w.rows() == "SETTLED 1, SETTLED 2" })
}

func TestUntidyReports(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.Duplicate, o.Reorder = true, true })
	w.pay(1)
	w.clock.Advance(time.Second)
	w.pay(2)
	if got := w.rows(); got != "SETTLED 1, SETTLED 2, SETTLED 1" {
		t.Errorf("got %s", got)
	}
}

// TestAQuietDay: a report says when nothing happened, and leaves no heap of
// files behind.
func TestAQuietDay(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.pay(1)
	var last string
	for range 3 {
		w.clock.Advance(time.Minute)
		w.until("an empty report", func() bool {
			names, _ := w.reports()
			return len(names) == 2 && names[1] > last
		})
		names, _ := w.reports()
		last = names[1]
	}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	w := open(t)
	var paid kit.Receipt
	if status := w.order("settle", map[string]any{"merchant_code": w.shop.MerchantCode, "amount": 777}, &paid); status != http.StatusOK || paid.Amount != 777 {
		t.Fatalf("settle: %d %+v", status, paid)
	}
	reverse := map[string]string{"settlement_id": paid.Reference}
	if status := w.order("reverse", reverse, nil); status != http.StatusOK {
		t.Errorf("reverse: %d", status)
	}
	if got := w.rows(); got != "SETTLED 777, REVERSED 777" {
		t.Errorf("got %s", got)
	}
	if status := w.order("reverse", reverse, nil); status != http.StatusBadRequest {
		t.Errorf("reverse again: %d", status)
	}
	for name, body := range map[string]map[string]any{
		"reverse": {"settlement_id": "none"}, "settle": {"merchant_code": "none", "amount": 1}, "report": {"merchant_code": "none"},
	} {
		if status := w.order(name, body, nil); status != http.StatusNotFound {
			t.Errorf("%s of nothing: %d", name, status)
		}
	}
	if status := w.order("settle", map[string]any{"merchant_code": w.shop.MerchantCode, "amount": 0}, nil); status != http.StatusBadRequest {
		t.Errorf("settle nothing: %d", status)
	}
}

func TestDamagedReports(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.pay(1)
	damaged := filepath.Join(w.shop.Reports["directory"], "settlement-damaged.csv")
	for damage, ends := range map[string]string{"half": "15:04", "header": "15:04:05\n"} {
		if status := w.order("report", map[string]string{"merchant_code": w.shop.MerchantCode, "damage": damage}, nil); status != http.StatusOK {
			t.Errorf("%s: %d", damage, status)
		}
		text, err := os.ReadFile(damaged)
		if err != nil || !strings.HasSuffix(string(text), ends) || strings.HasPrefix(string(text), "settlement_id") != (damage == "half") {
			t.Errorf("%s: %v, %q", damage, err, text)
		}
	}
	if status := w.order("report", map[string]string{"merchant_code": w.shop.MerchantCode}, nil); status != http.StatusOK {
		t.Errorf("mended: %d", status)
	}
	if _, err := os.Stat(damaged); !os.IsNotExist(err) {
		t.Errorf("the damaged report is still there: %v", err)
	}
	if status := w.order("report", map[string]string{"merchant_code": w.shop.MerchantCode, "damage": "fire"}, nil); status != http.StatusBadRequest {
		t.Errorf("fire: %d", status)
	}
}
