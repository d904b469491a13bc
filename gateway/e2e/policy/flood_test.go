package policy_test

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const (
	// floodKept is how many inputs a replica keeps in a second at most.
	floodKept = 100
	// floodDrops is how many are dropped before the flood ends, which takes floodLasts at least.
	floodDrops = 150
	floodLasts = time.Second
	floodAsked = 4  // requests at a time
	floodFound = 20 // refusals that the program is asked about
)

// floodOfDenials has a merchant send what the policy denies, as fast as it goes: what is
// kept is bounded, what is not is counted, each refusal is explained whether or not it was
// kept, and what another merchant asks for goes on.
func floodOfDenials(t *testing.T, r *replicaSet) {
	t.Helper()
	asked, p := r.replicas[0], r.replicas[2]
	flooding, other := r.newShop(t, p), r.newShop(t, p)
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	edit.Change(t, func(tiers map[string]map[string]any, amounts map[string]any) {
		amounts["/payments/create"] = map[string]any{"max": 20_000}
		tiers["scale"]["rate_per_second"], tiers["scale"]["burst"] = 1_000_000, 1_000_000
	})
	p.MustRun(t, "", nil, "policy", "push", filepath.Dir(edit.File), "--message", "small payments", "--activate", "--wait")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	refused := make([][]string, floodAsked)
	for client := range refused {
		load.Go(func() {
			for ctx.Err() == nil {
				refused[client] = append(refused[client], denied(t, flooding))
			}
		})
	}
	made := 0
	load.Go(func() {
		for ctx.Err() == nil {
			made++
			if a, err := other.Post(t.Context(), creates, other.PaymentBody(harness.Fields{"amount": 20_000})); err != nil || !a.Success {
				t.Errorf("another merchant's payment in the flood: %v %s", err, a)
			}
		}
	})
	log, began := lookInside(t, r.databaseURL, r.d.Dir), time.Now()
	harness.Await(t, 5*time.Minute, "a flood of which inputs are dropped", func() bool {
		return time.Since(began) >= floodLasts && dropped(t, p, "inputs_") >= floodDrops
	})
	stop()
	load.Wait()
	if made == 0 {
		t.Error("another merchant made no payment in the flood")
	}
	drops := dropped(t, p, "inputs_")
	if lost := dropped(t, p, ""); lost != 0 {
		t.Errorf("%d decisions were not counted", lost)
	}
	p.Stop(t) // it writes what is left
	r.replicas = r.replicas[:2]
	f := &flood{Program: asked, inside: log, who: flooding.MerchantID, refused: slices.Concat(refused...), kept: map[string]bool{}}
	counted := f.bounded(t, time.Since(began))
	if counted != len(f.refused) || len(f.kept)+int(drops) != counted {
		t.Errorf("of %d refusals %d are counted, %d kept and %d dropped", len(f.refused), counted, len(f.kept), drops)
	}
	f.explained(t)
	t.Logf("%d refusals, of which %d are kept; %d payments of another merchant", len(f.refused), len(f.kept), made)
}

// flood is what a merchant was refused, and what of it was kept.
type flood struct {
	*harness.Program // that explains it
	inside
	who     string
	refused []string
	kept    map[string]bool
}

// explained has a program explain refusals, of which it knows what is stored: one that was
// kept and one that was not by the command.
func (f *flood) explained(t *testing.T) {
	t.Helper()
	told := map[bool]int{}
	for i, id := range f.refused {
		facts, err := f.key.Open(id, time.Now())
		if err != nil || facts.Merchant != decision.MerchantDigest(f.who) || facts.Operation != decision.OperationDigest(creates) || !facts.Rule.Refuses() {
			t.Fatalf("%s tells %+v, %v", id, facts, err)
		}
		kept := f.kept[id]
		if some := max(1, len(f.refused)/floodFound); i%some != 0 && told[kept] > 0 {
			continue
		}
		var found adminapi.FindResult
		if told[kept]++; told[kept] == 1 {
			f.MustRun(t, "", &found, "find", id)
		} else if found, err = adminapi.Find.Call(t.Context(), f.Admin(), adminapi.Search{ID: id}); err != nil {
			t.Fatal(err)
		}
		of := found.Decision
		if of == nil || of.Verdict != "denied" || !slices.Equal(of.MerchantIDs, []string{f.who}) || !slices.Equal(of.Operations, []string{creates}) ||
			len(of.Places) != 1 || of.Places[0].File != "admit.rego" || of.Places[0].Line == 0 || of.PolicyVersion == "" || of.Replica == "" {
			t.Fatalf("%s is explained by %+v", id, of)
		}
		if of.ErrorCode != "" && of.ErrorCode != string(fault.PolicyDenied) { // the log of requests has a bound of its own
			t.Errorf("%s is told with the error %q", id, of.ErrorCode)
		}
	}
	if told[true] == 0 || told[false] == 0 {
		t.Errorf("explained are %d of what was kept, and %d of what was not", told[true], told[false])
	}
}

// bounded wants few rows of few bytes, notes which inputs they hold, and returns how many
// refusals they count.
func (f *flood) bounded(t *testing.T, lasted time.Duration) (counted int) {
	t.Helper()
	parts, err := f.store.Decisions(t.Context(), time.Now().Add(-time.Hour), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bytes, rows, seconds := 0, 0, map[int64]bool{}
	for _, part := range parts {
		series, err := decision.Unpack(part.Counts)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(series, func(s decision.Counted) bool { return s.Merchant == f.who }) {
			continue // another story's
		}
		rows++
		bytes += len(part.Counts) + len(part.Inputs)
		for _, s := range series {
			for _, n := range s.Counts {
				if s.Merchant == f.who && s.Rule.Refuses() {
					counted += int(n.N)
				}
			}
		}
		if part.Inputs == nil {
			continue
		}
		opened, err := f.vault.OpenDecisions(part.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		inputs, err := decision.UnpackInputs(opened)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range inputs {
			if in.Merchant != f.who {
				continue
			}
			if in.Amount == nil {
				t.Errorf("kept is %+v", in)
			}
			seconds[in.At.Unix()], f.kept[in.ID.String()] = true, true
		}
	}
	if len(f.kept) > floodKept*len(seconds) { // one that comes late counts in the second after
		t.Errorf("%d inputs of %d seconds are kept", len(f.kept), len(seconds))
	}
	const rowsAtMost, bytesOfInput, bytesOfRow = 4, 1_000, 2_000 // two writes in ten seconds, each of two minutes
	if most := int(lasted/(10*time.Second)+1) * rowsAtMost; rows > most || bytes > len(f.kept)*bytesOfInput+rows*bytesOfRow {
		t.Errorf("%d rows of %d bytes are stored, with %d inputs", rows, bytes, len(f.kept))
	}
	return counted
}

// denied sends a request that the policy denies, and returns the decision's id.
func denied(t *testing.T, s harness.Shop) string {
	t.Helper()
	a, err := s.Post(t.Context(), creates, s.PaymentBody(harness.Fields{"amount": 20_001}))
	id := a.Header.Get("X-Svc-Decision-Id")
	if err != nil || a.Code != fault.PolicyDenied || id == "" {
		t.Errorf("in the flood: %v %s, decision %q", err, a, id)
	}
	return id
}

// dropped is what of decisions the log had no room for, as the metrics tell.
func dropped(t *testing.T, p *harness.Program, what string) int64 {
	t.Helper()
	name := "gerbang_decisions_dropped_total"
	if what != "" {
		name = "gerbang_decision_" + what + "dropped_total"
	}
	_, metrics, _ := p.Get(t, p.ConsoleURL+"/metrics")
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(metrics)
	if found == nil {
		t.Fatalf("/metrics has no %s", name)
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(n)
}
