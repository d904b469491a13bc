package tenants

import (
	"errors"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

func TestAccountGivesBackWhatWentIn(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.merchant.Labels = map[string]string{"city": "Bandung", "note": ""}
	n.merchant.Status, n.merchant.Version = Suspended, 1<<40
	n.merchant.Limits = []Limit{
		{Name: "default", RatePerSecond: 0.1, Burst: 1 << 40, Reason: "a fair", SetBy: "ayu", SetAt: epoch, ExpiresAt: epoch.Add(time.Hour)},
		{Name: "wallet2", Quota: new(int64(0)), Reason: "stopped", SetBy: "budi", SetAt: epoch.Add(time.Minute)},
	}
	n.issue(t, KeySpec{Mode: Live, Scopes: 2, IPs: []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32"),
	}})
	expires, revoked := epoch.Add(time.Hour), epoch.Add(time.Minute+time.Microsecond)
	n.keys[1].ExpiresAt, n.keys[1].RevokedAt = &expires, &revoked
	n.connect(t, Test, "payments")
	n.connect(t, Live, "ppob")
	n.conns[2].Owner, n.conns[2].NotifyToken, n.conns[2].Version = OwnerPlatform, "", 300
	n.secrets = []CallbackSecret{{MerchantID: n.merchant.ID, Mode: Test, Sealed: []byte{1, 2, 3}}}
	a := n.account(t)

	if got := a.Merchant(); !reflect.DeepEqual(got, n.merchant) {
		t.Errorf("merchant = %+v, want %+v", got, n.merchant)
	}
	if got := a.Keys(); !reflect.DeepEqual(got, n.keys) {
		t.Errorf("keys = %+v, want %+v", got, n.keys)
	}
	if got := a.Connections(); !reflect.DeepEqual(got, n.conns) {
		t.Errorf("connections = %+v, want %+v", got, n.conns)
	}
	if a.ID() != n.merchant.ID || a.Version() != 1<<40 {
		t.Errorf("id, version = %s, %d", a.ID(), a.Version())
	}
	for _, k := range n.keys {
		if got, ok := a.Key(k.ID); !ok || !reflect.DeepEqual(got, k) {
			t.Errorf("key %s = %+v, %v", k.ID, got, ok)
		}
	}
	for _, c := range n.conns {
		if got, ok := a.Connection(c.Mode, c.Provider); !ok || !reflect.DeepEqual(got, c) {
			t.Errorf("connection %s %s = %+v, %v", c.Mode, c.Provider, got, ok)
		}
	}
	if got, ok := a.CallbackSecret(Test); !ok || !reflect.DeepEqual(got, n.secrets[0]) {
		t.Errorf("callback secret = %+v, %v", got, ok)
	}
}

func TestAccountKeepsModesApart(t *testing.T) {
	t.Parallel()
	n := newTenant(t) // connected in live mode only
	n.secrets = []CallbackSecret{{MerchantID: n.merchant.ID, Mode: Live, Sealed: []byte{1}}}
	a := n.account(t)
	if _, ok := a.Connection(Test, "payments"); ok {
		t.Error("the live connection answers in test mode")
	}
	if _, ok := a.CallbackSecret(Test); ok {
		t.Error("the live callback secret answers in test mode")
	}
	if _, ok := a.Key("0000000000000000"); ok {
		t.Error("an unknown key is found")
	}
	if _, ok := a.connectionAt("wallet2", n.conns[0].NotifyToken); ok {
		t.Error("a token answers at another provider")
	}
}

func TestAccountIsNotItsCallers(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	n.merchant.Labels = map[string]string{"a": "1"}
	a := n.account(t)
	want := a.Merchant()
	n.merchant.Labels["a"], n.conns[0].Sealed[0] = "changed", '!'
	got := a.Merchant()
	got.Labels["a"] = "changed too"
	given, _ := a.Connection(Live, "payments")
	given.Sealed[1] = '!'
	if !maps.Equal(a.Merchant().Labels, want.Labels) {
		t.Errorf("labels became %v", a.Merchant().Labels)
	}
	if c, _ := a.Connection(Live, "payments"); string(c.Sealed) != "sealed elsewhere" {
		t.Errorf("sealed became %q", c.Sealed)
	}
}

func TestNewAccountRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*tenant){
		"no id":                    func(n *tenant) { *n = tenant{merchant: Merchant{Status: Active}} },
		"unknown status":           func(n *tenant) { n.merchant.Status = "closed" },
		"unknown mode of a key":    func(n *tenant) { n.keys[0].Mode = "" },
		"key without scopes":       func(n *tenant) { n.keys[0].Scopes = 0 },
		"invalid range":            func(n *tenant) { n.keys[0].IPs = []netip.Prefix{{}} },
		"unknown owner":            func(n *tenant) { n.conns[0].Owner = "nobody" },
		"unknown mode":             func(n *tenant) { n.conns[0].Mode = "both" },
		"token of another form":    func(n *tenant) { n.conns[0].NotifyToken = "guessable" },
		"another's key":            func(n *tenant) { n.keys[1].MerchantID = "mer_other" },
		"another's connection":     func(n *tenant) { n.conns[0].MerchantID = "mer_other" },
		"another's secret":         func(n *tenant) { n.secrets = []CallbackSecret{{MerchantID: "mer_other", Mode: Live}} },
		"unknown mode of secret":   func(n *tenant) { n.secrets = []CallbackSecret{{MerchantID: n.merchant.ID}} },
		"a limit twice":            func(n *tenant) { n.merchant.Limits = []Limit{{Name: "a"}, {Name: "a"}} },
		"a limit of nothing":       func(n *tenant) { n.merchant.Limits = []Limit{{Burst: 1}} },
		"a rate below zero":        func(n *tenant) { n.merchant.Limits = []Limit{{Name: "a", RatePerSecond: -1}} },
		"a rate of nothing":        func(n *tenant) { n.merchant.Limits = []Limit{{Name: "a", RatePerSecond: math.NaN()}} },
		"a markup by another name": func(n *tenant) { n.merchant.Limits = []Limit{{Name: "a", Markup: new(int64(1))}} },
		"a markup of nothing":      func(n *tenant) { n.merchant.Limits = []Limit{{Name: LimitMarkup}} },
		"a markup too high":        func(n *tenant) { n.merchant.Limits = []Limit{{Name: LimitMarkup, Markup: new(int64(1_000_000_001))}} },
		"an amount below zero":     func(n *tenant) { n.merchant.Limits = []Limit{{Name: LimitDay, Amount: new(int64(-1))}} },
		"a repeat beyond a day": func(n *tenant) {
			n.merchant.Limits = []Limit{{Name: LimitRepeatWithin, RepeatWithin: new(25 * time.Hour)}}
		},
		"a quota below zero": func(n *tenant) { n.merchant.Limits = []Limit{{Name: "a", Quota: new(int64(-1))}} },
		"a key twice":        func(n *tenant) { n.keys = append(n.keys, n.keys[0]) },
		"a connection twice": func(n *tenant) { n.conns = append(n.conns, n.conns[0]) },
		"a secret twice": func(n *tenant) {
			s := CallbackSecret{MerchantID: n.merchant.ID, Mode: Live}
			n.secrets = []CallbackSecret{s, s}
		},
	}
	for name, breakIt := range cases {
		n := newTenant(t)
		breakIt(n)
		if _, err := NewAccount(n.merchant, n.keys, n.conns, n.secrets); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func TestParseClosedSets(t *testing.T) {
	t.Parallel()
	if m, err := ParseMode("test"); m != Test || err != nil {
		t.Errorf("ParseMode = %s, %v", m, err)
	}
	for _, wrong := range []string{"", "Live", "live "} {
		if _, err := ParseMode(wrong); !errors.Is(err, ErrInvalid) {
			t.Errorf("mode %q: %v, want ErrInvalid", wrong, err)
		}
	}
}
