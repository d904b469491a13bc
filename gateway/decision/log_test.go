package decision_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
)

func series(merchant string, rule decision.Rule) decision.Series {
	return decision.Series{Merchant: merchant, Operation: "/payments/create", Version: version, Record: 3, Live: true, Rule: rule}
}

func TestCountsAreWhatWasDecided(t *testing.T) {
	t.Parallel()
	log := decision.NewLog()
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 1000 {
				log.Count(noon.Add(time.Duration((i*7+worker)%120)*time.Second), series("mer_a", decision.Rule(i%2)))
			}
		})
	}
	group.Wait()
	log.Count(noon, series("mer_b", decision.Quota(0)))
	total := map[string]int{}
	minutes := log.Take()
	for _, m := range minutes {
		unpacked, err := decision.Unpack(decision.Pack(m.Counted))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range unpacked {
			if !slices.IsSortedFunc(c.Counts, func(a, b decision.Count) int { return int(a.Second) - int(b.Second) }) {
				t.Errorf("%v is not in the order of time: %v", c.Series, c.Counts)
			}
			for _, of := range c.Counts {
				total[c.Series.String()] += int(of.N)
			}
		}
	}
	want := map[string]int{"mer_a live /payments/create none": 2000, "mer_a live /payments/create the policy could not be evaluated": 2000, "mer_b live /payments/create quota 1": 1}
	if len(minutes) != 2 || !reflect.DeepEqual(total, want) {
		t.Errorf("%d minutes, %v", len(minutes), total)
	}
	if again := log.Take(); len(again) != 0 {
		t.Errorf("taken twice: %v", again)
	}
}

func TestPackIsTheSameForTheSame(t *testing.T) {
	t.Parallel()
	all := []decision.Counted{
		{Series: series("mer_b", decision.Policy(4)), Counts: []decision.Count{{0, 1}, {59, 4_000_000_000}}},
		{Series: series("mer_a", decision.Admitted), Counts: []decision.Count{{7, 300}}},
		{Series: decision.Series{Merchant: "mer_a", Operation: "/balance", Outcome: decision.Later}, Counts: []decision.Count{}},
	}
	first := decision.Pack(all)
	slices.Reverse(all)
	if second := decision.Pack(all); string(first) != string(second) {
		t.Error("another order packs otherwise")
	}
	got, err := decision.Unpack(first)
	if err != nil || len(got) != 3 || got[0].Operation != "/payments/create" || got[0].Merchant != "mer_a" || got[2].Counts[1].N != 4_000_000_000 {
		t.Errorf("got %+v, %v", got, err)
	}
	for cut := range len(first) {
		if got, err := decision.Unpack(first[:cut]); err == nil && len(got) == 3 {
			t.Errorf("cut after %d of %d bytes it is read", cut, len(first))
		}
	}
}

// TestAFloodIsBounded: of what has no room only the number is known.
func TestAFloodIsBounded(t *testing.T) {
	t.Parallel()
	log := decision.NewLog()
	const many = 200_000
	for i := range many {
		s := series(fmt.Sprintf("mer_%06d", i), decision.Policy(1))
		log.Count(noon, s)
		log.Keep(decision.Input{At: noon.Add(time.Duration(i) * time.Microsecond), Series: s})
	}
	counts, inputs := log.Dropped()
	minutes := log.Take()
	if len(minutes) != 1 || len(minutes[0].Counted)+int(counts) != many || len(minutes[0].Counted) != 1<<17 ||
		len(minutes[0].Inputs) != 100 || inputs != many-100 {
		t.Errorf("%d series and %d inputs are kept, %d and %d dropped", len(minutes[0].Counted), len(minutes[0].Inputs), counts, inputs)
	}
	for i := range 1000 {
		for range 200 {
			log.Keep(decision.Input{At: noon.Add(time.Duration(i+1) * time.Second)})
		}
	}
	if _, after := log.Dropped(); after != inputs+200_000-6000 {
		t.Errorf("while nobody takes them %d are dropped", after-inputs)
	}
	var none *decision.Log
	none.Count(noon, series("mer_a", 0))
	none.Keep(decision.Input{})
	none.Answered(decision.ID{})
	if taken := none.Take(); len(taken) != 0 {
		t.Errorf("no log has %v", taken)
	}
	if counts, inputs := none.Dropped(); counts+inputs != 0 {
		t.Error("no log drops something")
	}
}

func BenchmarkCount(b *testing.B) {
	log := decision.NewLog()
	s := series("mer_0193f6a0-7c3e-7c3e-8c3e-0193f6a07c3e", decision.Admitted)
	s.Version = strings.Repeat("ab", 32)
	at := noon
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(time.Millisecond)
		log.Count(at, s)
	}
}

func BenchmarkKeepAndWrite(b *testing.B) {
	log := decision.NewLog()
	in := decision.Input{At: noon, Series: series("mer_0193f6a0-7c3e-7c3e-8c3e-0193f6a07c3e", decision.Policy(3)), Amount: new(int64(5000)),
		Fields: map[string]any{"bank_code": "014", "account_no": "1234567890"}}
	at := noon
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at = at.Add(10 * time.Millisecond)
		in.At = at
		log.Keep(in)
		if i%1000 == 999 {
			for _, m := range log.Take() {
				if _, err := decision.PackInputs(m.Inputs); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
