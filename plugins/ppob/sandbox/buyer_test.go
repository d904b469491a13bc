package sandbox_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/seed-f006e74d/gerbang/plugins/ppob/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// TestSignatures has the published account sign with published signatures, of
// which none is computed here.
func TestSignatures(t *testing.T) {
	t.Parallel()
	w := open(t)
	for name, c := range map[string]struct {
		path, sign string
		body       object
		accepted   string // what an accepted call answers
	}{
		"balance":     {"/v1/cek-saldo", "d9878ce50e212902e7917656d100b6f2", object{"cmd": "deposit"}, " "},
		"transaction": {"/v1/transaction", "76c3891377d2829857bcf37efb746be3", object{"ref_id": "some1d", "buyer_sku_code": "xld10", "customer_no": "087800001230"}, "Sukses 00"},
	} {
		c.body["username"], c.body["sign"] = username, c.sign
		if got := w.call(c.path, c.body); got.result() != c.accepted {
			t.Errorf("%s: %v, want %q", name, got, c.accepted)
		}
		c.body["sign"] = "0" + c.sign[1:]
		if got := w.call(c.path, c.body); got.result() != "Gagal 41" {
			t.Errorf("%s with a wrong signature: %v", name, got)
		}
		c.body["username"] = "nobody"
		if got := w.call(c.path, c.body); got.result() != "Gagal 42" {
			t.Errorf("%s of nobody: %v", name, got)
		}
	}
	_, text, err := w.send("/v1/price-list", "", object{"cmd": "prepaid", "username": username, "sign": "bad20720dea628bbedf6aa7055bf4bb5"})
	if err != nil || len(text) < 1000 {
		t.Errorf("price list: %s, %v", text, err)
	}
}

func TestPayload(t *testing.T) {
	t.Parallel()
	w := open(t)
	for name, c := range map[string]struct {
		path string
		body any
	}{
		"no object":         {"/v1/transaction", "text"},
		"wrong type":        {"/v1/transaction", object{"ref_id": 7}},
		"unknown commands":  {"/v1/transaction", object{"commands": "steal"}},
		"unknown list":      {"/v1/price-list", object{"cmd": "all"}},
		"balance of what":   {"/v1/cek-saldo", object{}},
		"no reference":      {"/v1/transaction", transaction("", "", "xld10", "087800001230")},
		"no customer":       {"/v1/transaction", transaction("", "R", "xld10", "")},
		"no product":        {"/v1/transaction", transaction("", "R", "", "087800001230")},
		"price of a string": {"/v1/transaction", transaction("", "R", "xld10", "087800001230", object{"max_price": "11000"})},
		"unknown path":      {"/v1/other", object{}},
	} {
		status, text, err := w.send(c.path, "", c.body)
		var answer struct{ Data object }
		if err != nil || json.Unmarshal(text, &answer) != nil || answer.Data.result() != "Gagal 40" || status < 400 {
			t.Errorf("%s: %d %s %v", name, status, text, err)
		}
	}
	if got := w.env.Movements.All(); len(got) != 0 {
		t.Errorf("bought %v", got)
	}
}

// TestConnect opens an account as a gateway in development does, twice, and
// uses it.
func TestConnect(t *testing.T) {
	t.Parallel()
	w := open(t)
	connect := func(mode string) object {
		return w.order(200, "connect", object{"merchant": "platform", "mode": mode})
	}
	opened := connect("live")
	credentials, _ := opened["credentials"].(map[string]any)
	c := object(credentials)
	if got := keys(credentials); len(got) != 4 || c.text("base_url") != w.api.URL+"/v1" ||
		opened.text("account") != c.text("username") || opened.text("callback_token") != c.text("webhook_secret") {
		t.Fatalf("connection %v", opened)
	}
	test, _ := connect("test")["credentials"].(map[string]any)
	for _, key := range []string{"username", "api_key", "webhook_secret"} {
		if c.text(key) == "" || test[key] == credentials[key] {
			t.Errorf("%s is %q in both modes", key, test[key])
		}
	}
	buyer := sandbox.Buyer{Username: c.text("username"), APIKey: c.text("api_key")}
	body := object{"cmd": "deposit", "username": buyer.Username, "sign": buyer.Sign("depo")}
	if got := w.call("/v1/cek-saldo", body); got["deposit"] != 1e9 {
		t.Errorf("deposit %v", got)
	}
	w.order(200, "deposit", object{"username": buyer.Username, "amount": 7})
	again, _ := connect("live")["credentials"].(map[string]any)
	w.kill()
	if got := w.call("/v1/cek-saldo", body); got["deposit"] != 7.0 || again["api_key"] != credentials["api_key"] {
		t.Errorf("after another connect and a kill: %v", got)
	}
	if got := w.deposit(); got != 1e9 {
		t.Errorf("another account has %d", got)
	}
}

// TestNewKey is of an account whose key was changed: the deposit stays.
func TestNewKey(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.buy("R", "xld10", "087800001230")
	if err := w.up.Open(sandbox.Buyer{Username: username, APIKey: "dev-other"}); err != nil {
		t.Fatal(err)
	}
	body := object{"cmd": "deposit", "username": username, "sign": sign("depo")}
	w.want("Gagal 41", w.call("/v1/cek-saldo", body))
	body["sign"] = sandbox.Buyer{Username: username, APIKey: "dev-other"}.Sign("depo")
	if got := w.call("/v1/cek-saldo", body); got["deposit"] != 999_989_150.0 {
		t.Errorf("deposit %v", got)
	}
	if account, _ := w.env.Accounts.Get(kit.AccountOf(username)); account.CallbackToken != secret {
		t.Error("the registered hook was replaced")
	}
}

func TestPay(t *testing.T) {
	t.Parallel()
	w := open(t)
	if status, text, err := w.send("/_sandbox/pay", "open", object{"url": w.api.URL}); status != http.StatusNotFound {
		t.Errorf("%d %s %v", status, text, err)
	}
}
