package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/policy"
)

// slowBurst is how many requests the candidate lets a merchant make at once before it slows it.
const slowBurst = 12

// impactIsWhatHappens tries a candidate on what merchants have done in live mode, puts it in force, and has them do the
// same in test mode, where quotas, daily amounts and rates are as they were: rules, quotas and amounts deny and allow
// exactly what was told, and a rate what was told within one burst.
func impactIsWhatHappens(t *testing.T, p *harness.Program) {
	t.Helper()
	w := newImpactWorld(t, p)
	base, candidate := w.sets(t)
	p.MustRun(t, "", nil, "policy", "push", base, "-m", "base", "--activate", "--wait")
	for _, mode := range []string{"live", "test"} {
		w.create(t, mode)
		transfer := harness.Fields{"amount": 20_000, "phone": "081234567890", "external_id": harness.NewReference()}
		if a := w.shops[mode][large].Ask(t, toWallet, transfer); !a.Success {
			t.Fatal(a)
		}
	}
	since := afterThisSecond(t)
	was := w.send(t, "live")
	until := afterThisSecond(t)
	w.create(t, "live") // what is used after the span was not used before it
	w.tell(t, candidate, until, afterThisSecond(t), created)

	told := w.tell(t, candidate, since, until, len(was))
	text := w.printed(t, candidate, since, until, "--recorded")
	impactExits(t, p, told.NewlyDenied, "policy", "impact", candidate, "--since", stamp(since), "--until", stamp(until))
	p.MustRun(t, "", nil, "policy", "push", candidate, "-m", "candidate", "--activate", "--wait")
	is := w.send(t, "test")

	w.compare(t, told, was, is)
	if again := w.printed(t, candidate, since, until, "--recorded"); again != text {
		t.Errorf("the same span tells\n%sand later, under the candidate,\n%s", text, again)
	}
	// The gate of the handbook: what is in force denies nobody newly, whatever was decided before it was.
	for _, name := range []string{"active", candidate} {
		if same := w.printed(t, name, since, until, "--max-newly-denied", "0"); !strings.Contains(same, `"verdict": "equal"`) || !strings.Contains(same, `"unknown": 0`) {
			t.Errorf("against itself %s tells %s", name, same)
		}
	}
}

// impactWorld is merchants with what each of them does, the same in each mode.
type impactWorld struct {
	*harness.Program
	shops map[string]map[string]harness.Shop // by mode and by what the merchant is for
	first map[string]map[string]string       // the reference of its first payment, by the same
	steps []step
}

// step is one request. It is a new one, but where it sends the first payment again.
type step struct {
	who, path string
	body      harness.Fields
	reference string // the name of the field
	again     bool
	rupiah    int64
}

const (
	large, small, buyer = "large", "small", "buyer"

	creates  = "/payments/create"
	statuses = "/payments/status"
	toWallet = "/wallet1/transfer/wallet"
	toBank   = "/wallet1/transfer/bank"
	orders   = "/ppob/order"
)

func newImpactWorld(t *testing.T, p *harness.Program) *impactWorld {
	t.Helper()
	of := map[string]harness.Merchant{
		large: harness.NewMerchant(t, p, "payments", "wallet1"), small: harness.NewMerchant(t, p, "payments"), buyer: harness.NewMerchant(t, p),
	}
	if _, err := adminapi.SetTier.Call(t.Context(), p.Admin(), adminapi.TierChange{Merchant: of[small].MerchantID, Tier: "starter"}); err != nil {
		t.Fatal(err)
	}
	w := &impactWorld{Program: p, shops: map[string]map[string]harness.Shop{}, first: map[string]map[string]string{}}
	for _, mode := range []string{"live", "test"} {
		w.shops[mode], w.first[mode] = map[string]harness.Shop{}, map[string]string{}
		for who, m := range of {
			w.shops[mode][who] = p.Of(m, mode)
		}
	}
	zone := "Asia/Jayapura"
	if _, err := adminapi.SetLabels.Call(t.Context(), p.Admin(), adminapi.LabelChange{Merchant: of[large].MerchantID, Labels: map[string]*string{"time_zone": &zone}, Reason: "two hours east of the gateway"}); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(14, 1))
	// What counts to the same limit is of one amount: a correction of the clock may put two
	// reservations in another order than they were sent in.
	amounts := []int64{30_000, 30_000, 30_000, 47_000, 57_000} // admitted by both, by the base, and by neither
	add := func(n int, one func() step) {
		for range n {
			w.steps = append(w.steps, one())
		}
	}
	add(30, func() step {
		n := amounts[random.IntN(len(amounts))]
		return step{who: large, path: creates, body: harness.Fields{"amount": n}, reference: "external_id", rupiah: n}
	})
	add(16, func() step { return step{who: large, path: statuses, reference: "external_id", again: true} })
	add(14, func() step {
		const n = 20_000
		return step{who: large, path: toWallet, body: harness.Fields{"amount": n, "phone": "081234567890"}, reference: "external_id", rupiah: n}
	})
	add(4, func() step {
		const n = 21_000
		return step{who: large, path: toBank, body: harness.Fields{"amount": n, "bank_code": "014", "account_no": "2460888509"}, reference: "external_id", rupiah: n}
	})
	add(5, func() step { return step{who: large, path: creates, reference: "external_id", again: true} })
	add(20, func() step {
		return step{who: small, path: creates, body: harness.Fields{"amount": 15_000}, reference: "external_id", rupiah: 15_000}
	})
	add(20, func() step { return step{who: small, path: creates, reference: "external_id", again: true} })
	for _, product := range []struct {
		sku   string
		price int64 // the base lets buy the first, and the candidate none
	}{{"xld10", 10_850}, {"pln20", 20_150}} {
		add(4, func() step {
			return step{who: buyer, path: orders, body: harness.Fields{"sku": product.sku, "target": "087800001230"}, reference: "ref_id", rupiah: product.price}
		})
	}
	random.Shuffle(len(w.steps), func(i, j int) { w.steps[i], w.steps[j] = w.steps[j], w.steps[i] })
	return w
}

// sets writes the policy that is in force while the merchants do what they do, and the candidate.
func (w *impactWorld) sets(t *testing.T) (base, candidate string) {
	t.Helper()
	write := func(data harness.Fields, rules string) string {
		source := policy.Default()
		content, err := json.MarshalIndent(data, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		source["data.json"] = content
		if rules != "" {
			source["closed.rego"] = []byte(rules)
		}
		dir := filepath.Join(t.TempDir(), "policy")
		if err := source.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	data := func(starter, quotas, amounts harness.Fields, day int64) harness.Fields {
		fast := harness.Fields{"rate_per_second": 1_000_000, "burst": 1_000_000}
		return harness.Fields{
			"tiers": harness.Fields{"starter": starter, "growth": fast, "scale": fast.With(harness.Fields{"quotas": quotas})},
			"quotas": harness.Fields{
				"sales": harness.Fields{"operations": []string{creates}}, "looks": harness.Fields{"operations": []string{statuses}},
			},
			"amounts":   amounts,
			"transfers": harness.Fields{"tiers": harness.Fields{"scale": harness.Fields{"day": harness.Fields{"amount": day}}}},
		}
	}
	limit := func(n int) harness.Fields { return harness.Fields{"limit": n} }
	most := func(n int) harness.Fields { return harness.Fields{"max": n} }
	base = write(data(harness.Fields{"rate_per_second": 1_000_000, "burst": 1_000_000}, harness.Fields{"sales": limit(40), "looks": limit(6)},
		harness.Fields{creates: most(55_000), "order": most(15_000)}, 250_000), "")
	hour := time.Now().In(harness.Jakarta).Hour()
	candidate = write(data(harness.Fields{"rate_per_second": 0.001, "burst": slowBurst}, harness.Fields{"sales": limit(14), "looks": limit(10)},
		harness.Fields{creates: most(40_000), "order": most(10_500)}, 150_000),
		fmt.Sprintf("package gerbang\n\nrefusals contains \"Not to banks at this hour.\" if {\n\tinput.operation.path == %q\n\tinput.clock.hour in {%d, %d}\n}\n", toBank, hour, (hour+1)%24))
	return base, candidate
}

// created is how many payments create makes, outside of the span.
const created = 6

func (w *impactWorld) create(t *testing.T, mode string) {
	t.Helper()
	for _, who := range []string{large, small} {
		for range created / 2 {
			w.first[mode][who] = w.shops[mode][who].Create(t, harness.Fields{"amount": 15_000}).ExternalID
		}
	}
}

// afterThisSecond is a second with one before and one after it in which nothing is done:
// decisions go by the gateway's clock, which is the database's as it was measured, and on a
// busy machine that is some milliseconds beside this one's.
func afterThisSecond(t *testing.T) time.Time {
	t.Helper()
	between := time.Now().Truncate(time.Second).Add(2 * time.Second)
	harness.Await(t, harness.ReadyWithin, "the second after", func() bool { return time.Now().After(between.Add(time.Second)) })
	return between
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// send has the merchants do what they do in a mode, and tells which decision refused each request, "" for none.
func (w *impactWorld) send(t *testing.T, mode string) []string {
	t.Helper()
	refused := make([]string, len(w.steps))
	for i, s := range w.steps {
		shop := w.shops[mode][s.who]
		body := harness.Fields{"merchant_id": shop.MerchantID, s.reference: harness.NewReference()}
		if s.again {
			body[s.reference] = w.first[mode][s.who]
		}
		if s.path == creates {
			body["payer_email"], body["amount"] = "payer@example.com", 15_000
		}
		a := shop.Ask(t, s.path, body.With(s.body))
		if !a.Success {
			refused[i] = a.Header.Get("X-Svc-Decision-Id")
		}
		if !a.Success && refused[i] == "" || s.again && s.path == creates && !a.Replayed() {
			t.Fatalf("%s %s in %s mode: %s", s.who, s.path, mode, a)
		}
	}
	return refused
}

// tell asks for the impact once the log has all decisions of the span.
func (w *impactWorld) tell(t *testing.T, candidate string, since, until time.Time, decisions int) (told adminapi.Impact) {
	t.Helper()
	wanted := adminapi.NewImpact{Files: filesOf(t, candidate), Since: since, Until: &until}
	harness.Await(t, 5*time.Minute, "the log of the span", func() bool {
		var err error
		told, err = w.Admin().Impact(t.Context(), wanted, nil)
		if err != nil && strings.Contains(err.Error(), "15 seconds ago at least") {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		return told.Until.Equal(until) && told.Decisions >= int64(decisions)
	})
	if told.Decisions != int64(decisions) || told.Unknown != 0 {
		t.Errorf("of %d decisions %d are told, %d of them unknown", decisions, told.Decisions, told.Unknown)
	}
	return told
}

// printed is the impact as its command prints it.
func (w *impactWorld) printed(t *testing.T, candidate string, since, until time.Time, flags ...string) string {
	t.Helper()
	out, err := w.Run(t, append([]string{"--json", "policy", "impact", candidate, "--since", stamp(since), "--until", stamp(until)}, flags...)...)
	if err != nil {
		t.Fatal(out, err)
	}
	return out
}

// filesOf are the files of a policy's directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	source, err := policy.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for name, content := range source {
		files[name] = string(content)
	}
	return files
}

// impactExits wants exit code 6 where more are denied than may be.
func impactExits(t *testing.T, p *harness.Program, denied int64, command ...string) {
	t.Helper()
	for most, want := range map[int64]int{denied - 1: 6, denied: 0} {
		out, err := p.Run(t, append(command, "--max-newly-denied", fmt.Sprint(most))...)
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		}
		if code != want || want != 0 && !strings.Contains(out, fmt.Sprintf("%d requests would have been denied newly", denied)) {
			t.Errorf("with at most %d of %d: exit code %d, want %d: %v\n%s", most, denied, code, want, err, out)
		}
	}
}

// changed is how many requests are decided otherwise, and their rupiah.
type changed struct{ denied, allowed, rupiah int64 }

// compare holds what was told beside what happens: by merchant, operation and rule.
func (w *impactWorld) compare(t *testing.T, told adminapi.Impact, was, is []string) {
	t.Helper()
	truth, tells := map[string]changed{}, map[string]changed{}
	for i, s := range w.steps {
		key := w.shops["live"][s.who].MerchantID + " " + s.path + " "
		switch {
		case was[i] == "" && is[i] != "":
			key += w.ruleOf(t, is[i])
			truth[key] = changed{truth[key].denied + 1, truth[key].allowed, truth[key].rupiah + s.rupiah}
		case was[i] != "" && is[i] == "":
			key += w.ruleOf(t, was[i])
			truth[key] = changed{truth[key].denied, truth[key].allowed + 1, truth[key].rupiah + s.rupiah}
		}
	}
	for _, row := range told.Rows {
		if row.Mode != "live" {
			t.Errorf("of %s mode: %+v", row.Mode, row)
		}
		tells[row.MerchantID+" "+row.Operation+" "+row.Rule] = changed{row.NewlyDenied, row.NewlyAllowed, row.Rupiah}
	}
	rate := w.shops["live"][small].MerchantID + " " + creates + " rate default"
	off := truth[rate].denied - tells[rate].denied
	t.Logf("by the rate %d are denied, and %d were told, with a burst of %d", truth[rate].denied, tells[rate].denied, slowBurst)
	if off < -slowBurst || off > slowBurst || tells[rate].denied == 0 {
		t.Errorf("by the rate %+v, told %+v", truth[rate], tells[rate])
	}
	delete(truth, rate)
	delete(tells, rate)
	for _, key := range slices.Sorted(maps.Keys(truth)) {
		t.Logf("%s: %+v", key, truth[key])
	}
	if !maps.Equal(truth, tells) {
		t.Errorf("impact tells %v,\nwhat happens is %v", tells, truth)
	}
	const differ = 6 // two bounds of amounts, an hour, two quotas and a daily amount
	if len(truth) < differ {
		t.Errorf("only these differ: %v", truth)
	}
}

// ruleOf names what refused, as impact names it, by a decision's id.
func (w *impactWorld) ruleOf(t *testing.T, id string) string {
	t.Helper()
	found, err := adminapi.Find.Call(t.Context(), w.Admin(), adminapi.Search{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if found.Decision == nil || found.Decision.Rule == "" {
		t.Fatalf("%s is not explained: %+v", id, found)
	}
	if d := found.Decision; len(d.Places) > 0 {
		return fmt.Sprintf("rule %s %s:%d", d.Places[0].Rule, d.Places[0].File, d.Places[0].Line)
	}
	return found.Decision.Rule
}
