package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// keepsCall keeps a call of a merchant in live mode, as a replica does.
func (w *world) keepsCall(merchant string, e requestlog.Entry, change ...func(*requestlog.Call)) {
	w.Helper()
	log := requestlog.NewLog()
	c := requestlog.Call{Entry: e, Owner: requestlog.Owner{Merchant: merchant, Mode: "live"}, From: netip.MustParseAddr("192.0.2.7")}
	for _, also := range change {
		also(&c)
	}
	log.Keep(c)
	requestlog.NewWriter(log, func(ctx context.Context, parts []requestlog.Part) error {
		return w.store.AddRequests(ctx, uuid.New(), parts)
	},
		func(of requestlog.Owner, calls []byte) ([]byte, error) {
			return w.vault.SealRequests(tenants.MerchantID(of.Merchant), tenants.Mode(of.Mode), calls)
		}, time.Now, slog.New(slog.DiscardHandler)).Write(w.Context())
}

// TestRequestLog: a merchant's calls are listed as they were answered, filtered and page by page, one is shown with its bodies, and nobody
// is shown another's.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchant, other := w.merchant(), w.merchant().MerchantID
	key, err := tenants.ParseKey(merchant.LiveKey)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().UTC().Truncate(time.Millisecond).Add(-time.Hour)
	var ids []string
	for i := range 5 {
		at := began.Add(time.Duration(i) * 13 * time.Second)
		e := requestlog.Entry{
			ID: madeAt(t, at), At: at, Ended: at.Add(1500 * time.Microsecond), KeyID: string(key.ID), Method: "POST", Operation: "/bank/name", Status: 200, Code: "OK",
			Reference: fmt.Sprintf("INV-%d", i), Agent: "gerbang-go/1",
		}
		if i%2 == 1 {
			e.Status, e.Code, e.Message, e.Sent, e.Retry, e.KeyName = 400, "INVALID_REQUEST", "amount is required", "no", "after_change", "till 7"
		}
		ids = append(ids, e.ID)
		w.keepsCall(merchant.MerchantID, e, func(c *requestlog.Call) {
			c.Asked, c.Answered = []byte(`{"secret_key":"sk_live_x","phone":"081234567890","amount":5}`), []byte(`{"success":true}`)
		})
		w.keepsCall(other, e)
		w.keepsCall(merchant.MerchantID, e, func(c *requestlog.Call) { c.Owner.Mode = "test" })
	}
	list := func(f adminapi.RequestLogFilter) (told []string) {
		t.Helper()
		f.Merchant, f.Mode, f.Limit = merchant.MerchantID, "live", 2
		for {
			page, err := adminapi.ListRequestLog.Call(t.Context(), w, f)
			if err != nil || len(page.Requests) > 2 {
				t.Fatalf("%+v, %v", page, err)
			}
			for _, r := range page.Requests {
				told = append(told, r.RequestID)
			}
			if f.After = page.Next; f.After == "" {
				return told
			}
		}
	}
	for _, c := range []struct {
		filter adminapi.RequestLogFilter
		want   []int
	}{
		{adminapi.RequestLogFilter{}, []int{4, 3, 2, 1, 0}}, {adminapi.RequestLogFilter{State: "failed"}, []int{3, 1}}, {adminapi.RequestLogFilter{State: "succeeded"}, []int{4, 2, 0}},
		{adminapi.RequestLogFilter{Code: "INVALID_REQUEST", Operation: "/bank/name"}, []int{3, 1}}, {adminapi.RequestLogFilter{Operation: "/bank"}, nil},
		{adminapi.RequestLogFilter{ID: "INV-2"}, []int{2}}, {adminapi.RequestLogFilter{ID: ids[3]}, []int{3}}, {adminapi.RequestLogFilter{ID: ids[3], State: "succeeded"}, nil},
	} {
		var want []string
		for _, i := range c.want {
			want = append(want, ids[i])
		}
		if got := list(c.filter); !slices.Equal(got, want) {
			t.Errorf("%+v lists %q, want %q", c.filter, got, want)
		}
	}
	shown, err := adminapi.ShowLoggedRequest.Call(t.Context(), w, adminapi.LoggedRequestID{Merchant: merchant.MerchantID, Mode: "live", Request: ids[1]})
	if err != nil || shown.KeyName != "till 7" || shown.DurationMS != 1.5 || shown.Address != "192.0.2.7" || shown.Agent != "gerbang-go/1" || shown.Sent != "no" || shown.Retry != "after_change" ||
		string(shown.Asked) != `{"secret_key":"[removed]","phone":"***7890","amount":5}` || string(shown.Answered) != `{"success":true}` {
		t.Errorf("shown is %+v; %v", shown, err)
	}
	if unnamed, err := adminapi.ShowLoggedRequest.Call(t.Context(), w, adminapi.LoggedRequestID{Merchant: merchant.MerchantID, Mode: "live", Request: ids[0]}); err != nil || !strings.HasPrefix(unnamed.KeyName, "live 20") {
		t.Errorf("a key without a name is shown as %q; %v", unnamed.KeyName, err)
	}
	for _, id := range []string{uuid.NewString(), madeAt(t, began), "INV-1", "x"} {
		_, err := adminapi.ShowLoggedRequest.Call(t.Context(), w, adminapi.LoggedRequestID{Merchant: merchant.MerchantID, Mode: "live", Request: id})
		w.refused(err, http.StatusNotFound, "")
	}
	stranger := w.merchant().MerchantID
	_, err = adminapi.ShowLoggedRequest.Call(t.Context(), w, adminapi.LoggedRequestID{Merchant: stranger, Mode: "live", Request: ids[1]})
	w.refused(err, http.StatusNotFound, "")
	for field, f := range map[string]adminapi.RequestLogFilter{"after": {After: "yesterday"}, "state": {State: "done"}, "code": {Code: "\x00"}, "operation": {Operation: "/a\x00"}, "id": {ID: "\x00"}} {
		f.Merchant, f.Mode, f.Limit = stranger, "live", 2
		_, err := adminapi.ListRequestLog.Call(t.Context(), w, f)
		w.refused(err, http.StatusBadRequest, field)
	}
}

// TestIDsAreFoundHoweverTheyLook: an id of a decision may look like one of a request, and so may a reference, which belongs to several
// calls.
func TestIDsAreFoundHoweverTheyLook(t *testing.T) {
	t.Parallel()
	key := decision.NewKey([]byte("the installation's"))
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Decisions.Key = key })
	merchant := w.merchant().MerchantID
	began := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	looksLikeARequests := func(id string) bool {
		parsed := uuid.MustParse(id)
		return parsed.Version() == 7 && parsed.Variant() == uuid.RFC4122
	}
	namer := decision.NewNamer(key, 7)
	reference := madeAt(t, began)
	var calls []requestlog.Entry
	for i := range 5 {
		at := began.Add(time.Duration(i) * 10 * time.Minute)
		e := requestlog.Entry{ID: madeAt(t, at), At: at, Ended: at.Add(time.Second), Operation: "/bank/name", Code: "OK", Reference: reference}
		for e.DecisionID == "" || !looksLikeARequests(e.DecisionID) {
			e.DecisionID = namer.Name(at, "v", merchant, true, e.Operation, 0).String()
		}
		calls = append(calls, e)
		w.keepsCall(merchant, e)
	}
	list := func(id string, most int) (told []string) {
		t.Helper()
		f := adminapi.RequestLogFilter{Merchant: merchant, Mode: "live", ID: id, Limit: most}
		for {
			page, err := adminapi.ListRequestLog.Call(t.Context(), w, f)
			if err != nil || len(page.Requests) > most {
				t.Fatalf("%d calls, %v", len(page.Requests), err)
			}
			for _, r := range page.Requests {
				told = append(told, r.RequestID)
			}
			if f.After = page.Next; f.After == "" {
				return told
			}
		}
	}
	for _, e := range calls {
		for _, id := range []string{e.ID, e.DecisionID} {
			if got := list(id, 2); !slices.Equal(got, []string{e.ID}) {
				t.Errorf("%s lists %q, want %s", id, got, e.ID)
			}
			shown, err := adminapi.ShowLoggedRequest.Call(t.Context(), w, adminapi.LoggedRequestID{Merchant: merchant, Mode: "live", Request: id})
			if err != nil || shown.RequestID != e.ID {
				t.Errorf("%s shows %s, want %s; %v", id, shown.RequestID, e.ID, err)
			}
		}
	}
	for _, most := range []int{1, 2, 10} {
		if got := list(reference, most); !slices.Equal(got, []string{calls[4].ID, calls[3].ID, calls[2].ID, calls[1].ID, calls[0].ID}) {
			t.Errorf("a reference lists %q by %d", got, most)
		}
	}
	_, err := adminapi.ShowLoggedRequest.Call(t.Context(), w, adminapi.LoggedRequestID{Merchant: merchant, Mode: "live", Request: reference})
	w.refused(err, http.StatusNotFound, "")
}

// countedRequests counts reads of the log and counts of what was not kept.
type countedRequests struct {
	*store.Store

	reads, counts *atomic.Int64
}

func (c countedRequests) Requests(ctx context.Context, r requestlog.Range) ([]requestlog.Part, error) {
	c.reads.Add(1)
	return c.Store.Requests(ctx, r)
}

func (c countedRequests) RequestsDropped(ctx context.Context, of requestlog.Owner, since time.Time) (int64, error) {
	c.counts.Add(1)
	return c.Store.RequestsDropped(ctx, of, since)
}

// TestACallIsReadOnce for the page that shows it with its decision. A search goes on where it stopped, and counts what was not kept once.
func TestACallIsReadOnce(t *testing.T) {
	t.Parallel()
	key := decision.NewKey([]byte("the installation's"))
	var reads, counts atomic.Int64
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		d.Requests = countedRequests{d.Requests.(*store.Store), &reads, &counts}
		d.Decisions = console.Decisions{
			Key: key, Policies: policiesOf(d.Policy), Past: d.Merchants.(*store.Store), Open: d.Vault.(*tenants.Vault).OpenDecisions,
			Replica: func(context.Context, uint16, time.Time) (string, error) { return "", nil },
		}
	})
	set, err := defaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	merchant := w.merchant().MerchantID
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	e := requestlog.Entry{
		ID: madeAt(t, at), At: at, Ended: at.Add(time.Second), Operation: "/bank/name", Code: "OK",
		DecisionID: decision.NewNamer(key, 7).Name(at, string(set.Version()), merchant, true, "/bank/name", 0).String(),
	}
	w.keepsCall(merchant, e)
	for _, id := range []string{e.ID, e.DecisionID} {
		reads.Store(0)
		found, err := adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: merchant, Mode: "live", ID: id})
		if err != nil || found.Request == nil || found.Request.RequestID != e.ID || found.Request.Address != "192.0.2.7" || found.Decision == nil || found.Decision.RequestID != e.ID || reads.Load() != 1 {
			t.Errorf("%s: %+v, %+v after %d reads, %v", id, found.Request, found.Decision, reads.Load(), err)
		}
	}
	f := adminapi.RequestLogFilter{Merchant: merchant, Mode: "live", ID: "nobody's", Limit: 10}
	if page, err := adminapi.ListRequestLog.Call(t.Context(), w, f); err != nil || page.Next != "" || counts.Load() != 1 {
		t.Errorf("a first page: %+v after %d counts, %v", page, counts.Load(), err)
	}
	f.After = requestlog.Place{At: time.Now().Add(-time.Minute)}.String()
	if _, err := adminapi.ListRequestLog.Call(t.Context(), w, f); err != nil || counts.Load() != 1 {
		t.Errorf("a second page: %d counts, %v", counts.Load(), err)
	}
}

// TestAMerchantSeesWhatRefusedItsRequests, and nothing of another merchant's.
func TestAMerchantSeesWhatRefusedItsRequests(t *testing.T) {
	t.Parallel()
	const rules = `package gerbang

refusals contains "Not to there." if input.fields.bank == "014"

refusals contains sprintf("Not %d.", [input.amount]) if input.fields.bank == "015"
`
	source := policy.Default()
	source["there.rego"] = []byte(rules)
	set, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	key := decision.NewKey([]byte("the installation's"))
	var sums []decision.Sum
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		d.Policy = func() *policy.Set { return set }
		d.Decisions = console.Decisions{
			Key: key, Policies: policiesOf(d.Policy), Past: d.Merchants.(*store.Store), Open: d.Vault.(*tenants.Vault).OpenDecisions,
			Policy: func(_ context.Context, v policy.Version) (*policy.Set, error) {
				if v == set.Version() {
					return set, nil
				}
				return nil, nil //nolint:nilnil // none
			},
			Replica: func(context.Context, uint16, time.Time) (string, error) { return "", nil },
		}
		d.Decided = func(context.Context, tenants.MerchantID) ([]decision.Sum, time.Time, error) {
			return sums, time.Now(), nil
		}
	})
	merchant, other := w.merchant().MerchantID, w.merchant().MerchantID
	record, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: merchant})
	if err != nil {
		t.Fatal(err)
	}
	number := map[bool]decision.Rule{}
	for _, r := range set.Rules() {
		if r.File == "there.rego" {
			number[r.Says != ""] = decision.Policy(r.Number)
		}
	}
	constant, computed := number[true], number[false]
	at := time.Now().UTC().Truncate(time.Minute).Add(-time.Hour)
	sum := func(rule decision.Rule, version policy.Version, n int64) decision.Sum {
		return decision.Sum{Operation: "/bank/name", Version: string(version), Live: true, Rule: rule, N: n, Last: at}
	}
	sums = []decision.Sum{
		sum(decision.Admitted, set.Version(), 100), sum(decision.Admitted, "gone", 10), sum(decision.Rate(0), set.Version(), 5),
		sum(constant, set.Version(), 4), sum(computed, set.Version(), 3), sum(constant, "gone", 2),
		{Operation: "/bank/name", Rule: decision.Admitted, N: 1000, Last: at},
		{Operation: "/bank/name", Version: string(set.Version()), Live: true, Rule: decision.Admitted, Invalid: true, N: 1, Last: at},
	}
	found, err := adminapi.ListRequests.Call(t.Context(), w, adminapi.InMode{Merchant: merchant, Mode: "live"})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, r := range found.Requests {
		told = append(told, r.Verdict+"|"+r.Rule+"|"+r.Reason)
		if slow := r.Verdict == "slowed"; slow && (r.Limit == nil || r.Limit.RatePerSecond != 5 || r.Limit.Limit != 10) || r.Verdict == "admitted" && r.N != 110 {
			t.Errorf("%+v, %+v", r, r.Limit)
		}
	}
	if want := []string{"slowed|rate default|", "denied|gerbang.refusals|Not to there.", "denied|gerbang.refusals|", "denied|" + constant.String() + "|", "invalid|the request is invalid|", "admitted||"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}

	request := madeAt(t, at.Add(200*time.Millisecond))
	series := decision.Series{Merchant: merchant, Operation: "/bank/name", Version: string(set.Version()), Record: record.Version, Live: true, Rule: computed}
	input := decision.Input{
		ID: decision.NewNamer(key, 7).Name(at, series.Version, merchant, true, series.Operation, computed), At: at, Series: series,
		Amount: new(int64(5000)), Fields: map[string]any{"bank": "015"},
	}
	packed, err := decision.PackInputs([]decision.Input{input})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := w.vault.SealDecisions(packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.AddDecisions(t.Context(), store.DecisionPart{
		Minute: at.Truncate(time.Minute), Part: 1, Counts: decision.Pack([]decision.Counted{{Series: series, Counts: []decision.Count{{Second: uint8(at.Second()), N: 1}}}}), Inputs: sealed,
	}); err != nil {
		t.Fatal(err)
	}
	w.keepsCall(merchant, requestlog.Entry{ID: request, At: at.Add(200 * time.Millisecond), Ended: at.Add(time.Second), Operation: series.Operation, Code: "POLICY_DENIED", DecisionID: input.ID.String()})
	for name, find := range map[string]func(id string) (adminapi.FindResult, error){
		"the merchant": func(id string) (adminapi.FindResult, error) {
			return adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: merchant, Mode: "live", ID: id})
		},
		"an operator": func(id string) (adminapi.FindResult, error) {
			return adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id})
		},
	} {
		for what, id := range map[string]string{"decision": input.ID.String(), "request": request} {
			found, err := find(id)
			if err != nil || found.Decision == nil || found.Decision.ID != input.ID.String() || len(found.Decision.Places) != 1 || found.Decision.Input != nil {
				t.Fatalf("%s by the %s's id: %+v, %v", name, what, found.Decision, err)
			}
			if reason := found.Decision.Places[0].Reason; (name == "the merchant") != (reason == "Not 5000.") {
				t.Errorf("%s is told %q", name, reason)
			}
		}
	}
	for _, of := range []struct{ merchant, mode string }{{other, "live"}, {merchant, "test"}} {
		for _, id := range []string{input.ID.String(), request} {
			if found, err := adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: of.merchant, Mode: of.mode, ID: id}); err != nil || found.Decision != nil || len(found.Movements) != 0 {
				t.Errorf("%s of another: %+v, %v", id, found, err)
			}
		}
	}
	made := w.transfers(time.Hour, func(m *movement.Movement) { m.RequestID = madeAt(t, time.Now().Add(-time.Hour)) })
	if found, err := adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: made.Owner.MerchantID, Mode: made.Owner.Mode, ID: made.RequestID}); err != nil || len(found.Movements) != 1 || found.Movements[0].ID != made.ID.String() {
		t.Errorf("a movement by its request: %+v, %v", found, err)
	}
	if found, err := adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: merchant, Mode: made.Owner.Mode, ID: made.RequestID}); err != nil || len(found.Movements) != 0 {
		t.Errorf("another's movement by its request: %+v, %v", found, err)
	}
	_, err = adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: merchant, Mode: "live"})
	w.refused(err, http.StatusBadRequest, "id")
}
