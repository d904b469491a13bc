package sandbox_test

import (
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/ppob/sandbox"
)

const xl = "087812345678"

// TestPublicNumbers are the upstream's own, with its flag for tests.
func TestPublicNumbers(t *testing.T) {
	t.Parallel()
	for customer, c := range map[string]struct{ first, then string }{
		"087800001230": {"Sukses 00", ""},
		"087800001232": {"Gagal 02", ""},
		"087800001233": {"Pending 03", "Sukses 00"},
		"087800001234": {"Pending 03", "Gagal 02"},
	} {
		w := open(t)
		last := w.want(c.first, w.buy("R", "xld10", customer, object{"testing": true}))
		if c.then != "" {
			if w.spent() != 10_850 || last["buyer_last_saldo"] != 999_989_150.0 || last.text("sn") != "" {
				t.Errorf("%s pending: %v, spent %d", customer, last, w.spent())
			}
			w.clock.Advance(2*time.Second - 1)
			w.silent()
			w.clock.Advance(1)
			e := w.next()
			if e.name != "update" || e.agent != "Digiflazz-Hookshot" || e.path != "/in" || !e.signed() {
				t.Errorf("%s: %+v", customer, e)
			}
			last = w.want(c.then, e.data)
		}
		spent := 0
		if last.text("status") == "Sukses" {
			spent = 10_850
		}
		if w.spent() != spent || last["buyer_last_saldo"] != float64(1_000_000_000-spent) || (last.text("sn") != "") != (spent > 0) ||
			w.states("R") != last.text("status") || last.text("ref_id") != "R" || last["price"] != 10_850.0 {
			t.Errorf("%s: %v, spent %d, witness %s", customer, last, w.spent(), w.states("R"))
		}
		w.silent()
	}
}

// TestTargets has targets in form and out of it.
func TestTargets(t *testing.T) {
	t.Parallel()
	w := open(t)
	for i, c := range []struct{ sku, customer, want, serial string }{
		{"xld10", xl, "Sukses 00", `^\d{16}$`},
		{"xld10", "0878123456789", "Sukses 00", `^\d{16}$`},
		{"xld10", "08781234567890", "Gagal 57", ``},
		{"xld10", "087812345", "Gagal 57", ``},
		{"xld10", "081212345678", "Gagal 52", ``},
		{"xld10", "6287812345678", "Gagal 52", ``},
		{"xld10", "+62878123456", "Gagal 54", ``},
		{"S5", "081212345678", "Sukses 00", `^\d{16}$`},
		{"byu10", "085112345678", "Sukses 00", `^\d{16}$`},
		{"tri5", "089512345678", "Sukses 00", `^\d{16}$`},
		{"smart10", "088112345678", "Sukses 00", `^\d{16}$`},
		{"isat10", "085612345678", "Sukses 00", `^\d{16}$`},
		{"xldata1", xl, "Sukses 00", `^\d{16}$`},
		{"axis5", "083112345678", "Sukses 00", `^\d{16}$`},
		{"axis10", "083112345678", "Gagal 53", ``},
		{"axis10", xl, "Gagal 52", ``},
		{"isat25", "085612345678", "Gagal 43", ``},
		{"tri10", "089512345678", "Gagal 68", ``},
		{"nothing", xl, "Gagal 43", ``},
		{"pln", "530000000001", "Gagal 43", ``},
		{"pln20", "12345678901", "Sukses 00", `^(\d{4}-){4}\d{4}/NAMA PELANGGAN PERTAMA/R1/1300VA/13\.8KWH$`},
		{"pln50", "123456789012", "Sukses 00", `^(\d{4}-){4}\d{4}/[^/]+/R1/1300VA/34\.5KWH$`},
		{"pln20", "1234567890", "Gagal 57", ``},
		{"dana20", "081212345678", "Sukses 00", `^[A-Z]+/20260115100000\d{6}$`},
		{"dana20", "181212345678", "Gagal 52", ``},
		{"game50", "12.34", "Gagal 54", ``},
		{"game50", "123", "Gagal 57", ``},
		{"game50", "1234", "Sukses 00", `^\d{16}$`},
	} {
		ref := fmt.Sprint("T", i)
		got := w.want(c.want, w.buy(ref, c.sku, c.customer))
		if sn := got.text("sn"); !regexp.MustCompile(c.serial).MatchString(sn) || (c.serial == "") != (sn == "") {
			t.Errorf("%s to %s: sn %q, want %s", c.sku, c.customer, sn, c.serial)
		}
	}
	w.want("Sukses 00", w.buy("dot", "game50", "12.34", object{"allow_dot": true}))
	if a, b := w.buy("one", "pln20", "12345678901").text("sn"), w.buy("two", "pln20", "12345678901").text("sn"); a == b {
		t.Errorf("two purchases have one token: %s", a)
	}
}

// TestSameReference is the rule that a purchase is looked up by: the same
// request again, once a minute.
func TestSameReference(t *testing.T) {
	t.Parallel()
	w := open(t)
	first := w.want("Sukses 00", w.buy("R", "xld10", xl))
	for i, step := range []struct {
		after               time.Duration
		sku, customer, want string
	}{
		{0, "xld10", xl, "Gagal 85"},
		{59 * time.Second, "xld10", xl, "Gagal 85"},
		{time.Second, "xld10", xl, "Sukses 00"},
		{time.Second, "xld10", xl, "Gagal 85"},
		{0, "xld25", xl, "Gagal 49"},
		{0, "xld10", "087812345679", "Gagal 49"},
		{59 * time.Second, "xld10", xl, "Sukses 00"},
		{90*24*time.Hour - 2*time.Minute - 1, "xld10", xl, "Sukses 00"},
	} {
		w.clock.Advance(step.after)
		got := w.want(step.want, w.buy("R", step.sku, step.customer))
		if step.want == "Sukses 00" && got.text("sn") != first.text("sn") {
			t.Errorf("step %d: %v, first %v", i, got, first)
		}
	}
	if w.states("R") != "Sukses" || w.spent() != 10_850 {
		t.Errorf("witness %s, spent %d", w.states("R"), w.spent())
	}
	// 90 days after the purchase, not after the last look, it is another one.
	w.clock.Advance(1)
	w.want("Sukses 00", w.buy("R", "xld10", xl))
	if w.states("R") != "Sukses Sukses" || w.spent() != 2*10_850 {
		t.Errorf("witness %s, spent %d", w.states("R"), w.spent())
	}
	w.want("Gagal 85", w.buy("R", "xld10", xl))
}

func TestSameReferenceOfTwoAccounts(t *testing.T) {
	t.Parallel()
	w := open(t)
	other := sandbox.Buyer{Username: "other", APIKey: "dev-other"}
	if err := w.up.Open(other); err != nil {
		t.Fatal(err)
	}
	w.want("Sukses 00", w.buy("R", "xld10", xl))
	w.want("Sukses 00", w.buy("R", "xld25", xl, object{"username": other.Username, "sign": other.Sign("R")}))
	if w.spent() != 10_850 || w.states("R") != "Sukses Sukses" {
		t.Errorf("spent %d, witness %s", w.spent(), w.states("R"))
	}
}

func TestPollsWithoutLimit(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.PollEvery = 0 })
	w.want("Pending 03", w.buy("R", "xld10", "087800001233"))
	w.want("Pending 03", w.buy("R", "xld10", "087800001233"))
	w.clock.Advance(2 * time.Second)
	w.next()
	w.want("Sukses 00", w.buy("R", "xld10", "087800001233"))
}

// TestEqualPurchasesAtOnce: however they race, one is bought.
func TestEqualPurchasesAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	results := make(chan string, 50)
	var group sync.WaitGroup
	for range cap(results) {
		group.Go(func() { results <- w.buy("R", "xld10", xl).result() })
	}
	group.Wait()
	close(results)
	count := map[string]int{}
	for r := range results {
		count[r]++
	}
	if count["Sukses 00"] != 1 || count["Gagal 85"] != 49 || w.states("R") != "Sukses" || w.spent() != 10_850 {
		t.Errorf("%v, witness %s, spent %d", count, w.states("R"), w.spent())
	}
}

// TestDeposit is exact at the last rupiah, and a refusal leaves the reference
// free.
func TestDeposit(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.order(200, "deposit", object{"amount": 10_849})
	w.want("Gagal 44", w.buy("R", "xld10", xl))
	w.order(200, "deposit", object{"amount": 10_850, "username": username})
	if got := w.want("Sukses 00", w.buy("R", "xld10", xl)); got["buyer_last_saldo"] != 0.0 {
		t.Errorf("%v", got)
	}
	w.want("Gagal 44", w.buy("R2", "xld10", xl))
	if w.deposit() != 0 || w.states("R2") != "" {
		t.Errorf("deposit %d, witness %s", w.deposit(), w.states("R2"))
	}
	w.order(404, "deposit", object{"amount": 1, "username": "nobody"})
}

func TestPrice(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.want("Sukses 00", w.buy("R1", "xld10", xl, object{"max_price": 10_850}))
	w.order(200, "product", object{"sku": "xld10", "price": 11_000})
	w.want("Gagal 69", w.buy("R2", "xld10", xl, object{"max_price": 10_850}))
	w.kill()
	w.want("Gagal 69", w.buy("R2", "xld10", xl, object{"max_price": 10_999}))
	w.want("Sukses 00", w.buy("R2", "xld10", xl))
	if w.spent() != 10_850+11_000 || w.states("R2") != "Sukses" {
		t.Errorf("spent %d, witness %s", w.spent(), w.states("R2"))
	}
}

// TestStock counts down, and up when a purchase fails.
func TestStock(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.order(200, "product", object{"sku": "xld10", "stock": 1})
	w.want("Pending 03", w.buy("R1", "xld10", "087800001234"))
	w.want("Gagal 68", w.buy("R2", "xld10", xl))
	w.clock.Advance(2 * time.Second)
	w.next()
	w.want("Sukses 00", w.buy("R2", "xld10", xl))
	w.want("Gagal 68", w.buy("R3", "xld10", xl))
}
