package decision_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
)

var noon = time.Date(2026, 11, 20, 5, 0, 0, 0, time.UTC)

const version = "fedcba9876543210"

func TestAnIDTellsWhatWasDecided(t *testing.T) {
	t.Parallel()
	key := decision.NewKey([]byte("an installation's key"))
	for _, f := range []decision.Facts{
		{At: noon},
		{At: noon, Replica: 65535, Version: 1<<20 - 1, Rule: decision.Policy(1776), Live: true, Merchant: 1<<24 - 1, Operation: 511, Serial: 65535},
		{At: noon.AddDate(60, 0, 0), Replica: 1, Version: 2, Rule: decision.Quota(3), Merchant: 4, Operation: 5, Serial: 6},
		{At: noon, Version: 0b1001, Rule: decision.DestinationCount, Live: true, Operation: 1},
	} {
		got, err := key.Open(key.Seal(f).String(), f.At)
		if err != nil || got != f {
			t.Errorf("%+v became %+v, %v", f, got, err)
		}
	}
	namer := decision.NewNamer(key, 77)
	id := namer.Name(noon.Add(999*time.Millisecond), version, "mer_a", true, "/payments/create", decision.Rate(2))
	got, err := key.Open(id.String(), noon)
	if err != nil || !got.At.Equal(noon) || got.Replica != 77 || got.Version != 0xfedcb || !got.Live || got.Rule != decision.Rate(2) ||
		got.Merchant != decision.MerchantDigest("mer_a") || got.Operation != decision.OperationDigest("/payments/create") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestIDsAreUniqueAndTellStrangersNothing(t *testing.T) {
	t.Parallel()
	key := decision.NewKey([]byte("an installation's key"))
	namer := decision.NewNamer(key, 1)
	seen := map[decision.ID]bool{}
	const many = 65_536
	for range many {
		seen[namer.Name(noon, version, "mer_a", false, "/balance", decision.Rate(0))] = true
	}
	if len(seen) != many {
		t.Errorf("%d of %d ids of one second are unique", len(seen), many)
	}
	a, b := namer.Name(noon, version, "mer_a", false, "/balance", 0), namer.Name(noon, version, "mer_a", false, "/balance", 0)
	same := 0
	for i := range a {
		if a[i] == b[i] {
			same++
		}
	}
	if same > 8 {
		t.Errorf("two ids in a row share %d of 16 bytes: %s and %s", same, a, b)
	}
}

func TestWhatIsNoIDOfOurs(t *testing.T) {
	t.Parallel()
	key, other := decision.NewKey([]byte("one")), decision.NewKey([]byte("two"))
	id := decision.NewNamer(other, 1).Name(noon, version, "mer_a", true, "/balance", 0)
	if f, err := key.Open(id.String(), noon); err == nil && f.Merchant == decision.MerchantDigest("mer_a") {
		t.Errorf("another installation's id is read: %+v", f)
	}
	for _, text := range []string{"", "INV/1", "urn:uuid:" + id.String(), "{" + id.String() + "}"} {
		if f, err := key.Open(text, noon); err == nil {
			t.Errorf("%q is read: %+v", text, f)
		}
	}
	late := decision.NewNamer(key, 1).Name(noon.Add(time.Hour), version, "mer_a", true, "/balance", 0)
	if f, err := key.Open(late.String(), noon); err == nil {
		t.Errorf("what will be decided is read: %+v", f)
	}
}

func TestNumbersOfRules(t *testing.T) {
	t.Parallel()
	for rule, want := range map[decision.Rule]struct{ text, verdict string }{
		decision.Admitted:                 {"none", "admitted"},
		decision.Unjudged:                 {"the policy could not be evaluated", "unjudged"},
		decision.Rate(0):                  {"rate 1", "slowed"},
		decision.Rate(1000):               {"rate 128", "slowed"},
		decision.Quota(0):                 {"quota 1", "over_quota"},
		decision.Quota(1000):              {"quota 128", "over_quota"},
		decision.Policy(1):                {"rule 1", "denied"},
		decision.Policy(1776):             {"rule 1776", "denied"},
		decision.Policy(1777):             {"a rule without a number", "denied"},
		decision.Policy(0):                {"a rule without a number", "denied"},
		decision.Payout("out.count"):      {"daily number of transfers", "denied"},
		decision.Payout("out.amount"):     {"daily amount of transfers", "denied"},
		decision.Payout("to.00ff.amount"): {"daily amount to a destination", "denied"},
		decision.Payout("to.00ff.count"):  {"daily number to a destination", "denied"},
		decision.Rule(12):                 {"unknown rule 12", "denied"},
	} {
		if rule.String() != want.text || rule.Verdict() != want.verdict || rule.Refuses() == (want.verdict == "admitted") {
			t.Errorf("rule %d is %q, %q; want %+v", uint16(rule), rule, rule.Verdict(), want)
		}
	}
	if number, ok := decision.Policy(5).PolicyNumber(); number != 5 || !ok {
		t.Errorf("the fifth rule is %d, %t", number, ok)
	}
	if place, ok := decision.Quota(5).QuotaPlace(); place != 5 || !ok {
		t.Errorf("the sixth quota is at %d, %t", place, ok)
	}
	if _, ok := decision.Quota(5).RatePlace(); ok {
		t.Error("a quota is a rate")
	}
}

func BenchmarkName(b *testing.B) {
	namer := decision.NewNamer(decision.NewKey([]byte("key")), 1)
	b.ReportAllocs()
	for b.Loop() {
		_ = namer.Name(noon, version, "mer_0193f6a0-7c3e-7c3e-8c3e-0193f6a07c3e", true, "/wallet1/transfer/bank", decision.Rate(0)).String()
	}
}

func BenchmarkUUIDv7(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = uuid.Must(uuid.NewV7()).String()
	}
}
