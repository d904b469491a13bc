package policy

import (
	"math"
	"testing"
	"time"
)

// TestAlike: records are alike but for whose they are, and that counts where a rule can see it.
func TestAlike(t *testing.T) {
	t.Parallel()
	limit := int64(5)
	record := func(change func(*Merchant)) Merchant {
		m := Merchant{
			ID: "m1", Tier: "starter", Status: "active", Version: 1, Labels: map[string]string{"a": "1", "b": "2"},
			Limits: []OwnLimit{{Name: "calls", Limit: &limit, ExpiresAt: noon}},
		}
		change(&m)
		return m
	}
	same := record(func(*Merchant) {})
	for rule, seen := range map[string]bool{
		`input.merchant.tier == "id"`:                            false,
		`input.mode == "id"`:                                     false,
		`input.fields.id == "x"`:                                 false,
		`input.merchant.labels.id == "x"`:                        false,
		`input.merchant.id == "x"`:                               true,
		`input["merchant"]["id"] == "x"`:                         true,
		`data.blocked[input.merchant.id]`:                        true,
		`object.get(input.merchant, "id", "") == "x"`:            true,
		`object.get(input, ["merchant", "id"], "") == "x"`:       true,
		`some field; input.merchant[field] == "x"`:               true,
		`some part; input[part].id == "x"`:                       true,
		`some part, field; input[part][field] == "x"`:            true,
		`whose := input.merchant; whose.id == "x"`:               true,
		`all := input; all.merchant.id == "x"`:                   true,
		`name := concat("", ["i", "d"]); input.merchant[name]`:   true,
		`{x | x := input.merchant.id} == {"x"}`:                  true,
		`every x in [input.merchant.id] { x == "y" }`:            true,
		`is_it(input.merchant)`:                                  true,
		`is_it({"id": "x"}) with input.merchant.id as "y"`:       true,
		`is_it({"id": "x"}) with data.x as input.merchant["id"]`: true,
	} {
		set := must(t, rulesOnly("package gerbang\n"+limitsRule+`
admit := {"allow": count(refusals) == 0, "reasons": refusals}

is_it(m) if m.id == "x"

refusals contains "No." if { `+rule+" }\n"))
		if other := record(func(m *Merchant) { m.ID = "m2" }); (set.Alike(same) != set.Alike(other)) != seen {
			t.Errorf("%s: whether it sees the id is not %t", rule, seen)
		}
		if other := record(func(m *Merchant) { m.Version = 2 }); set.Alike(same) != set.Alike(other) {
			t.Errorf("%s: records of two versions are not alike", rule)
		}
		for what, change := range map[string]func(*Merchant){
			"tier": func(m *Merchant) { m.Tier = "gold" }, "status": func(m *Merchant) { m.Status = "suspended" },
			"label": func(m *Merchant) { m.Labels = map[string]string{"a": "1", "b": "3"} }, "no limits": func(m *Merchant) { m.Limits = nil },
			"limit": func(m *Merchant) { m.Limits = []OwnLimit{{Name: "calls", Limit: new(int64(6)), ExpiresAt: noon}} },
			"expiry": func(m *Merchant) {
				m.Limits = []OwnLimit{{Name: "calls", Limit: &limit, ExpiresAt: noon.Add(time.Second)}}
			},
		} {
			if set.Alike(same) == set.Alike(record(change)) {
				t.Errorf("%s: of another %s, and alike", rule, what)
			}
		}
	}
}

// TestMoment: answers are the same for a minute, unless a rule can see seconds.
func TestMoment(t *testing.T) {
	t.Parallel()
	at := noon.Add(61 * time.Second)
	for rule, want := range map[string]time.Time{
		`input.merchant.tier == "unix"`:                         noon.Add(time.Minute),
		`input.clock.hour == 3; input.clock.minute > 5`:         noon.Add(time.Minute),
		`input.clock.weekday == "Sunday"`:                       noon.Add(time.Minute),
		`input.clock.unix > 3`:                                  at,
		`some part; input.clock[part] == 3`:                     at,
		`clock := input.clock; clock.unix > 3`:                  at,
		`startswith(input.now, "2026-03-05T12:00:1")`:           at,
		`object.get(input, ["clock", "unix"], 0) > 3`:           at,
		`some when in ["now", "mode"]; input[when] == "nobody"`: at,
	} {
		set := must(t, rulesOnly("package gerbang\n"+limitsRule+"\nadmit := {\"allow\": count(refusals) == 0, \"reasons\": refusals}\n\nrefusals contains \"No.\" if { "+rule+" }\n"))
		if got := set.Moment(at); !got.Equal(want) {
			t.Errorf("%s: %v", rule, got)
		}
	}
}

// TestRecordsThatCantBeWrittenAreAlikeNobody: JSON has no such number.
func TestRecordsThatCantBeWrittenAreAlikeNobody(t *testing.T) {
	t.Parallel()
	set := must(t, Default())
	seen := map[Alike]bool{}
	for _, m := range []Merchant{{ID: "m1", Version: 1}, {ID: "m1", Version: 2}, {ID: "m2", Version: 1}} {
		m.Limits = []OwnLimit{{Name: "default", RatePerSecond: math.Inf(1)}}
		seen[set.Alike(m)] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d of three", len(seen))
	}
}

// TestOneAnswerForAllWhoAreAlike: it is kept of a merchant that was never asked about.
func TestOneAnswerForAllWhoAreAlike(t *testing.T) {
	t.Parallel()
	set, in := must(t, Default()), request()
	set.study = time.Minute // whatever else the machine does
	for range studyAt {
		if _, err := set.AdmitAndKeep(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	in.Merchant.ID, in.Merchant.Version = "another", 7
	if _, kept := set.KeptAdmission(in); !kept {
		t.Error("it is not kept of a record that says the same")
	}
	in.Merchant.Tier, in.Merchant.Version = "scale", 8
	if _, kept := set.KeptAdmission(in); kept {
		t.Error("it is kept of another tier")
	}
}

// TestWhatVariesIsFoundOutOnce: what was not found out is tried again, and what was is not.
func TestWhatVariesIsFoundOutOnce(t *testing.T) {
	t.Parallel()
	set, in := must(t, rulesOnly("package gerbang\n"+limitsRule+"\nadmit := {\"allow\": input.amount < 5, \"reasons\": [\"No.\"]}\n")), request()
	in.Amount = new(int64(3))
	var of studied[Decision]
	for range studyAt {
		study(t.Context(), set, &of, &set.admit, in, Decision{})
	}
	if !of.varies.Load() || of.known.Load() != nil {
		t.Fatal("it is not found out that it depends on the amount")
	}
	same := request()
	for range studyAt {
		study(t.Context(), must(t, Default()), &of, &set.admit, same, Decision{})
	}
	if of.known.Load() != nil {
		t.Error("it is asked again")
	}
}
