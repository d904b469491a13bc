package list_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/list"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// kept is a store of changes, in order.
type kept []store.ListChange

func (k kept) ListVersion(context.Context) (int64, error) {
	if len(k) == 0 {
		return 0, nil
	}
	return k[len(k)-1].Version, nil
}

func (k kept) ListChanges(_ context.Context, after store.ListChange, until int64, most int) ([]store.ListChange, error) {
	behind := func(c store.ListChange) bool {
		if c.Version != after.Version {
			return c.Version > after.Version
		}
		if c.List != after.List {
			return c.List > after.List
		}
		return string(c.Digest[:]) > string(after.Digest[:])
	}
	start := slices.IndexFunc(k, behind)
	if start < 0 {
		return nil, nil
	}
	page := k[start:min(len(k), start+most)]
	if end := slices.IndexFunc(page, func(c store.ListChange) bool { return c.Version > until }); end >= 0 {
		page = page[:end]
	}
	return page, nil
}

var (
	key  = list.NewKey(movement.NameKey{1})
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func digest(t testing.TB, name, value string) store.ListDigest {
	t.Helper()
	kind, err := list.KindOf(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	plain, err := kind.Plain(value)
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return key.Digest(kind, plain)
}

// TestListsHold looks up requests in lists of each kind, however their values are spelt, until an entry ends or is taken off.
func TestListsHold(t *testing.T) {
	t.Parallel()
	merchant := "mer_00000000-0000-4000-8000-000000000001"
	records := kept{
		{List: "blocked_destinations", Digest: digest(t, "blocked_destinations", "014:2460 888 509"), Version: 1},
		{List: "watched_destinations", Digest: digest(t, "watched_destinations", "0811-742-234"), Version: 2, EndsAt: noon.Add(time.Minute)},
		{List: "blocked_payers", Digest: digest(t, "blocked_payers", "Ayu@Mail.Example"), Version: 3},
		{List: "blocked_products", Digest: digest(t, "blocked_products", "XLD10"), Version: 3},
		{List: "trusted_merchants", Digest: digest(t, "trusted_merchants", merchant), Version: 4},
		{List: "blocked_addresses", Digest: digest(t, "blocked_addresses", "::ffff:203.0.113.7"), Version: 4},
	}
	lists := list.New(&records, key, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	if lists.Fresh(noon) {
		t.Error("it is fresh before it was read")
	}
	read := func() {
		t.Helper()
		if err := lists.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if !lists.Fresh(noon.Add(30*time.Second)) || lists.Fresh(noon.Add(31*time.Second)) {
		t.Error("what was read is fresh for half a minute")
	}
	want := func(in policy.AdmitInput, at time.Time, names ...string) {
		t.Helper()
		in.Now = at
		if got := lists.Of(in); !slices.Equal(got, names) {
			t.Errorf("%+v is on %v, want %v", in, got, names)
		}
	}
	to := func(destination string) policy.AdmitInput {
		return policy.AdmitInput{Parties: policy.Parties{Destination: movement.Destination(destination)}}
	}
	want(to("bank/014/2460888509"), noon, "blocked_destinations")
	want(to("+62 811 742 234"), noon, "watched_destinations")
	want(to("+62 811 742 234"), noon.Add(time.Minute))
	want(to("014/2460888508"), noon)
	want(policy.AdmitInput{
		Merchant: policy.Merchant{ID: merchant}, Parties: policy.Parties{Payer: "ayu@mail.example", Product: "XLD10"}, Address: netip.MustParseAddr("203.0.113.7"),
	}, noon, "blocked_addresses", "blocked_payers", "blocked_products", "trusted_merchants")
	want(policy.AdmitInput{Parties: policy.Parties{Product: "xld10"}}, noon)

	records = append(records, store.ListChange{List: "blocked_destinations", Digest: digest(t, "blocked_destinations", "014/2460888509"), Version: 5, Removed: true})
	read()
	want(to("014/2460888509"), noon)
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]list.Kind{
		"blocked_destinations": list.Destinations, "vip_2_payers": list.Payers, "destinations": "", "_payers": "", "Blocked_payers": "", "blocked": "", "a__payers": "", "blocked_payers_": "",
	} {
		if got, err := list.KindOf(name); got != kind || (err == nil) != (kind != "") {
			t.Errorf("%s is a list of %q, %v", name, got, err)
		}
	}
	for kind, values := range map[list.Kind][]string{list.Destinations: {" ", "\u200b"}, list.Payers: {"ayu"}, list.Merchants: {"mer_1", "platform"}, list.Addresses: {"10.0.0.0/8", "x"}, list.Products: {""}} {
		for _, value := range values {
			if plain, err := kind.Plain(value); err == nil {
				t.Errorf("%q is one of the %s: %q", value, kind, plain)
			}
		}
	}
	for kind, shown := range map[list.Kind][2]string{
		list.Destinations: {"014/2460888509", "014/***8509"}, list.Payers: {"ayu@mail.example", "a***@m***.example"}, list.Products: {"xld10", "xld10"},
	} {
		if got := kind.Masked(shown[0]); got != shown[1] {
			t.Errorf("%s is shown as %s, want %s", shown[0], got, shown[1])
		}
	}
	if got := list.Destinations.Masked("62811742234"); got != "***2234" {
		t.Errorf("a phone is shown as %s", got)
	}
	d := digest(t, "blocked_products", "x")
	if back, err := list.ParseID(list.ID(d)); back != d || err != nil {
		t.Errorf("%s is read as %s, %v", d, back, err)
	}
	for _, text := range []string{"", "zz", list.ID(d) + "00", list.ID(d)[2:]} {
		if _, err := list.ParseID(text); err == nil {
			t.Errorf("%q is an id", text)
		}
	}
}

// TestManyEntries are read page by page, over versions that fill a page and versions that don't.
func TestManyEntries(t *testing.T) {
	t.Parallel()
	lists := filled(t, 12_345)
	for _, n := range []int{0, 1, 999, 1000, 4999, 5000, 5001, 12_344, 12_345} {
		in := policy.AdmitInput{Now: noon, Parties: policy.Parties{Destination: fmt.Sprintf("014/%010d", n)}}
		if got := lists.Of(in); (len(got) == 1) != (n < 12_345) {
			t.Errorf("%d is on %v", n, got)
		}
	}
}

func filled(t testing.TB, n int) *list.Lists {
	t.Helper()
	records := make(kept, n)
	for i := range records {
		records[i] = store.ListChange{List: "blocked_destinations", Digest: key.Digest(list.Destinations, fmt.Sprintf("014/%010d", i)), Version: int64(1 + i/1000)}
	}
	slices.SortFunc(records, func(a, b store.ListChange) int {
		if a.Version != b.Version {
			return int(a.Version - b.Version)
		}
		return slices.Compare(a.Digest[:], b.Digest[:])
	})
	lists := list.New(records, key, time.Now, slog.New(slog.DiscardHandler))
	if err := lists.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return lists
}

// BenchmarkOf looks a destination up among a million, and tells what they take of memory.
func BenchmarkOf(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	lists := filled(b, 1_000_000)
	runtime.GC()
	runtime.ReadMemStats(&after)
	in := policy.AdmitInput{Now: noon, Parties: policy.Parties{Destination: "014/0000500000"}}
	b.ReportAllocs()
	for b.Loop() {
		lists.Of(in)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
}
