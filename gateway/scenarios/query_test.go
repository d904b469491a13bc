package scenarios

import (
	"encoding/json"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestProviderRefusalUsesQuota is told from one that never reached it: it may
// tell that a number exists, and uses a quota.
func TestProviderRefusalUsesQuota(t *testing.T) {
	t.Parallel()
	bounds := sdk.Refuse(sdk.RefuseRequest, "qty must be at least 10000.", sdk.FieldFault{Field: "qty", Message: "must be at least 10000"})
	upstream := func(r sdk.Result) sdk.Result { r.Blame = sdk.BlameUpstream; return r }
	for name, c := range map[string]struct {
		list, inquiry sdk.Result
		code          fault.Code
		asked         bool
	}{
		"by the provider":       {inquiry: upstream(bounds), code: fault.InvalidRequest, asked: true},
		"nobody has it":         {inquiry: upstream(sdk.Refuse(sdk.RefuseDestination, "nobody")), code: fault.DestinationInvalid, asked: true},
		"by the plugin":         {inquiry: bounds, code: fault.InvalidRequest},
		"not sent":              {inquiry: sdk.DidNotSend(sdk.BlameUpstream, "down"), code: fault.ProviderUnavailable},
		"not answered":          {inquiry: sdk.DontKnow(sdk.BlameUpstream, "cut"), code: fault.ProviderTimeout},
		"only the list refused": {list: upstream(bounds), code: fault.ProviderUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, orders, func(w *world) {
				w.up.set(func() {
					w.up.ask = func(call sdk.Call) sdk.Result {
						switch {
						case call.Operation != productsPath:
							return c.inquiry
						case c.list.Outcome == sdk.Refused:
							return c.list
						}
						return sdk.Finished("", w.up.products)
					}
				})
				answer, err := w.Engine.Run(w.Context(), w.asks(inquiryPath, "sku", billSKU, "target", "53"))
				if f := fault.From(err); err == nil || f.Code != c.code || answer != (Answer{Refused: c.asked}) {
					t.Errorf("%+v, %v", answer, err)
				}
			})
		})
	}
}

// TestDuplicateReferenceUsesNoQuota says so: it has used its quota then.
func TestDuplicateReferenceUsesNoQuota(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		w.want(w.create("A"), "Pending")
		answer, err := w.Engine.Run(w.Context(), w.request("A", "target", "1"))
		if fault.From(err).Code != fault.DuplicateReference || answer != (Answer{Earlier: true}) {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

// TestProductListFollowsTheAccount: after the platform has moved to another account,
// nothing is sold at the prices of the one before, and the list is shared again.
func TestProductListFollowsTheAccount(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		lists := 0
		w.up.set(func() {
			w.up.ask = func(call sdk.Call) sdk.Result {
				var account struct{ Username string }
				if err := json.Unmarshal(call.Connection.Credentials, &account); err != nil {
					t.Error(err)
				}
				lists++
				items := append([]product{}, w.up.products...)
				if account.Username == "another" {
					items[0].Price = 7_000
				}
				return sdk.Finished("", items)
			}
		})
		priced := func() money.Amount {
			t.Helper()
			answer := w.run(w.asks(productsPath, "type", ""))
			var items []struct {
				SKU   string       `json:"buyer_sku_code"`
				Price money.Amount `json:"price"`
			}
			if err := json.Unmarshal([]byte(answer.data), &items); err != nil || len(items) == 0 {
				t.Fatalf("%s, %v, %v", answer.data, answer.err, err)
			}
			for _, i := range items {
				if i.SKU == w.up.products[0].SKU {
					return i.Price
				}
			}
			return 0
		}
		before := w.up.products[0].Price + markup
		for range 2 {
			if got := priced(); got != before || lists != 1 {
				t.Errorf("%v after %d lists, want %v after one", got, lists, before)
			}
		}
		w.connected(tenants.Platform, "another", 2)
		for range 2 {
			if got := priced(); got != 7_000+markup || lists != 2 {
				t.Errorf("%v after %d lists, want %v after two", got, lists, 7_000+markup)
			}
		}
		w.sku = w.up.products[0].SKU
		w.want(w.create("A"), "Pending")
		if quoted := w.up.quotes[len(w.up.quotes)-1]; lists != 2 || string(quoted.Product) == "" {
			t.Errorf("%d lists", lists)
		} else {
			var p product
			if err := json.Unmarshal(quoted.Product, &p); err != nil || p.Price != 7_000 {
				t.Errorf("ordered with the product %s, %v", quoted.Product, err)
			}
		}
	})
}

// TestListIsRenderedOncePerView: what is asked for again is not made
// again, and nobody sees another's prices.
func TestListIsRenderedOncePerView(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		shown := func(kind string, pays policy.Markup) *catalog.Finished {
			t.Helper()
			r := w.asks(productsPath, "type", kind)
			r.Limits.Markup = pays
			answer, err := w.Engine.Run(w.Context(), r)
			if err != nil || answer.Finished == nil {
				t.Fatalf("%+v, %v", answer, err)
			}
			return answer.Finished
		}
		sku := w.up.products[0].SKU
		named := func(added money.Amount) policy.Markup {
			return policy.Markup{Default: 100, Products: map[string]money.Amount{sku: added}}
		}
		first := shown("", named(7))
		w.Engine.Vault = openVault{locked: true} // nothing is opened for what is there
		if again := shown("", named(7)); again != first {
			t.Error("the same list was finished twice")
		}
		for name, other := range map[string]*catalog.Finished{
			"another product's price": shown("", named(8)), "another default": shown("", policy.Markup{Default: 200, Products: named(7).Products}),
			"no products": shown("", policy.Markup{Default: 100}), "a filter": shown("pasca", named(7)),
		} {
			if other == first || string(other.Plain) == string(first.Plain) {
				t.Errorf("%s: %.200s", name, other.Plain)
			}
		}
	})
}

// TestACommonListIsAskedForOnce: what is the same for every account is not asked for by
// each of them.
func TestACommonListIsAskedForOnce(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		lists := 0
		w.up.set(func() {
			w.up.ask = func(sdk.Call) sdk.Result {
				lists++
				return sdk.Finished("", w.up.products)
			}
		})
		r := w.asks(productsPath, "type", "")
		common := *r.Operation
		common.Common = true
		r.Operation = &common
		for version := range int64(3) {
			w.connected(tenants.Platform, "another", 2+version)
			if answer, err := w.Engine.Run(w.Context(), r); err != nil || answer.Finished == nil || lists != 1 {
				t.Errorf("account %d: %+v, %v after %d lists", version, answer, err, lists)
			}
		}
	})
}

// TestACommonListOutlivesAnAccount: where the account that was asked first answers
// nothing, others ask with their own.
func TestACommonListOutlivesAnAccount(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		w.up.set(func() {
			w.up.ask = func(call sdk.Call) sdk.Result {
				var account struct{ Username string }
				if err := json.Unmarshal(call.Connection.Credentials, &account); err != nil || account.Username == "dead" {
					return sdk.Result{Outcome: sdk.NotSent, Blame: sdk.BlameAccount, Detail: "refused"}
				}
				return sdk.Finished("", w.up.products)
			}
		})
		r := w.asks(productsPath, "type", "")
		common := *r.Operation
		common.Common = true
		r.Operation = &common
		w.connected(tenants.Platform, "dead", 2)
		if _, err := w.Engine.Run(w.Context(), r); err == nil {
			t.Error("a dead account has answered")
		}
		w.connected(tenants.Platform, "another", 3)
		if answer, err := w.Engine.Run(w.Context(), r); err != nil || answer.Finished == nil {
			t.Errorf("another account: %+v, %v", answer, err)
		}
	})
}
