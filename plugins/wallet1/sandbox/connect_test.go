package sandbox_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// TestConnectOpensTheSameAccountAgain is what lets a development gateway start
// again without losing what its merchants have at the simulator.
func TestConnectOpensTheSameAccountAgain(t *testing.T) {
	t.Parallel()
	w := open(t)
	connect := func(merchant, mode string) object {
		return w.order(200, "connect", object{"merchant": merchant, "mode": mode})
	}
	first := connect("mer_1", "live")
	size := w.journalSize()
	if again := connect("mer_1", "live"); !reflect.DeepEqual(again, first) || w.journalSize() != size {
		t.Errorf("the account changed: %v, then %v", first, again)
	}
	address := w.api.URL
	w.kill()
	again := connect("mer_1", "live")
	credentials, _ := again["credentials"].(object)
	if text(credentials, "base_url") != w.api.URL {
		t.Errorf("base_url is %q", text(credentials, "base_url"))
	}
	credentials["base_url"] = address
	if !reflect.DeepEqual(again, first) {
		t.Errorf("the account changed in a restart: %v, then %v", first, again)
	}
	seen := map[string]string{}
	for _, other := range []object{connect("mer_1", "test"), connect("mer_2", "live"), first} {
		told, _ := other["credentials"].(object)
		for _, name := range []string{"client_id", "partner_id", "customer_number", "client_secret", "private_key"} {
			if owner := seen[text(told, name)]; owner != "" || text(told, name) == "" {
				t.Errorf("%s of %s is also another's: %q", name, text(other, "account"), owner)
			}
			seen[text(told, name)] = text(other, "account")
		}
	}
}

func (w *world) journalSize() int64 {
	w.t.Helper()
	info, err := os.Stat(filepath.Join(w.state, "journal.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Size()
}

// TestCredentials holds what Connect tells against the plugin's manifest.
func TestCredentials(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var declared struct {
		Connection json.RawMessage `json:"connection"`
	}
	if err := json.Unmarshal(document, &declared); err != nil {
		t.Fatal(err)
	}
	schema, err := manifest.CompileSchema("connection", declared.Connection)
	if err != nil {
		t.Fatal(err)
	}
	for _, signature := range []sandbox.Signature{sandbox.Symmetric, sandbox.Asymmetric} {
		w := open(t, func(o *sandbox.Options) { o.Signature = signature })
		data, err := json.Marshal(w.up.Connect("test", "key", "token", w.api.URL).Credentials)
		if err != nil {
			t.Fatal(err)
		}
		var told object
		if err := json.Unmarshal(data, &told); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(told); err != nil {
			t.Errorf("%s: %v", signature, err)
		}
		if _, has := told["client_secret"]; has != (signature == sandbox.Symmetric) || text(told, "signature") != string(signature) {
			t.Errorf("%v", told)
		}
	}
}

// TestNewSettings: an account that is opened with others signs by these, and
// keeps its key, its balance and its history.
func TestNewSettings(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.main.topup("R", good, 10_000)
	w.options.Signature = sandbox.Asymmetric
	w.kill()
	if got := inquiry(w.main); got != "2003700" {
		t.Errorf("before it is opened again: %s", got)
	}
	c := w.client(w.up.Connect("test", "key", "token", w.api.URL))
	if c.signature != "asymmetric" || !c.key.Equal(w.main.key) || !c.issuer.Equal(w.main.issuer) {
		t.Error("another key")
	}
	w.kill()
	c.external.Store(100)
	if c.spent() != 10_000 || len(c.history(object{})) != 2 {
		t.Errorf("spent %s", c.spent())
	}
	if got := inquiry(w.main); got != "4013700" {
		t.Errorf("the old way: %s", got)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	w := open(t)
	if _, err := w.up.Open(sandbox.Account{ClientID: "x", PartnerID: w.main.partnerID}); err == nil {
		t.Error("two accounts have one partner id")
	}
	if _, err := w.up.Open(sandbox.Account{ClientID: "x", PartnerID: "x", PrivateKey: "none"}); err == nil {
		t.Error("what is no key was taken")
	}
}

// TestFlags are refused as a whole before anything is opened.
func TestFlags(t *testing.T) {
	t.Parallel()
	token := func(name string) string { return map[string]string{"GERBANG_SANDBOX_TOKEN": "t"}[name] }
	for _, args := range []string{"-signature=none", "-signature-encoding=rot13", "-dialect=x", "-bank-fee=-1", "-opening=1.5", "-hang=long"} {
		if err := sandbox.Program().Run(t.Context(), []string{"-state", t.TempDir(), args}, token, io.Discard); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	args := "-signature=asymmetric -signature-encoding=hex -dialect=dana -bank-fee=0 -wallet-fee=1 -opening=5 -min-amount=1 -max-topup=2 " +
		"-max-bank=3 -delay=1s -hang=8s -token-life=1m -drift=1m -careless -not-found-07 -latency=9s"
	if err := sandbox.Program().Run(ctx, append(strings.Fields(args), "-state", t.TempDir()), token, io.Discard); err != nil {
		t.Error(err)
	}
}

// TestDescribe tells developers what there is to try.
func TestDescribe(t *testing.T) {
	t.Parallel()
	w := open(t)
	d := w.up.Describe(w.api.URL)
	told := map[string]string{}
	for _, m := range d.Magic {
		if told[m.Value] != "" {
			t.Errorf("%s is told twice", m.Value)
		}
		told[m.Value] = m.Effect
	}
	for value, part := range map[string]string{
		"628123456667": "inquiry: 403 case 05", "8551008794": "the money moves, and the answer is 500 case 01",
		"62878000012" + "41": "sent twice", "99000012" + "50": "knows nothing", "50000000000": "403 case 14",
	} {
		if !strings.Contains(told[value], part) {
			t.Errorf("%s: %q, want %q", value, told[value], part)
		}
	}
	var operations []string
	for _, o := range w.env.Faults.Operations() {
		if o.MovesMoney {
			operations = append(operations, o.Name)
		}
	}
	if strings.Join(operations, " ") != "topup transfer-bank" {
		t.Errorf("%v move money", operations)
	}
}
