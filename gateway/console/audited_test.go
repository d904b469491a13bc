package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/approval"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// changesNothing are routes that take a body and change nothing, so that nothing is audited.
var changesNothing = []string{"POST /admin/lists/{list}/find", "POST /admin/policy/test", "POST /admin/policy/try", "POST /admin/policy/impact"}

// audited is a change that is ready to be made: at whom it is audited, as what, and how it is made.
type audited struct {
	at, action string
	make       func(ayu *adminapi.Client) error
}

const platform = string(tenants.Platform)

// changes make each change ready, by its route. What a second operator decides was asked for by the other one.
func (w *world) changes() map[string]func() audited {
	ctx, budi := w.Context(), adminapi.NewClient(w.url, otherToken)
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
	}
	shop := func() string { return w.merchant().MerchantID }
	connected := func() string {
		id := shop()
		must(failed(adminapi.SetConnection.Call(ctx, budi, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(`{"api_key":"k-secret"}`)})))
		return id
	}
	large := func(merchant string) adminapi.NewAdjustment {
		return adminapi.NewAdjustment{Merchant: merchant, Mode: "test", Amount: 999_999_999, Reference: "r", Reason: "why"}
	}
	waits := func() string {
		id := shop()
		must(failed(adminapi.Credit.Call(ctx, budi, large(id))))
		return id
	}
	pause := tenants.Pause{MerchantID: tenants.Platform, What: "transfers", Mode: "test"}
	listed := adminapi.NewListEntries{List: "blocked_products", Entries: []adminapi.NewListEntry{{Value: "xld10"}}, Reason: "sold out"}
	limits := func(merchant string) adminapi.LimitChange {
		return adminapi.LimitChange{Merchant: merchant, Limits: []adminapi.NewLimit{{Name: adminapi.LimitDay, Amount: new(int64(5))}}, Reason: "why"}
	}
	pushed := func() string {
		v, err := adminapi.PushPolicy.Call(ctx, budi, adminapi.NewPolicy{Files: map[string]string{"data.json": "{}"}, Message: "why"})
		must(err)
		return v.Version
	}
	bare := adminapi.NewApproval{SHA256: hexOf("binary"), Manifest: []byte(bank)}
	approved := func() adminapi.PluginApproval {
		a, err := adminapi.ApprovePlugin.Call(ctx, budi, bare)
		must(err)
		return a
	}
	key := func() (merchant, key string) {
		id := shop()
		made, err := adminapi.CreateKey.Call(ctx, budi, adminapi.NewKey{Merchant: id, Mode: "test"})
		must(err)
		return id, made.KeyID
	}
	of := func(at, action string, change func(*adminapi.Client) error) audited {
		return audited{at, action, change}
	}

	return map[string]func() audited{
		"POST /admin/merchants": func() audited {
			return of("", "merchant.create", func(a *adminapi.Client) error {
				return failed(adminapi.CreateMerchant.Call(ctx, a, adminapi.NewMerchant{Name: "New", Tier: "starter"}))
			})
		},
		"POST /admin/merchants/{merchant}/suspend": func() audited {
			id := shop()
			return of(id, "merchant.suspend", func(a *adminapi.Client) error {
				return failed(adminapi.SuspendMerchant.Call(ctx, a, adminapi.StatusChange{Merchant: id, Reason: "why"}))
			})
		},
		"POST /admin/merchants/{merchant}/invitations": func() audited {
			id := shop()
			return of(id, "member.invite", func(a *adminapi.Client) error {
				return failed(adminapi.InvitePerson.Call(ctx, a, adminapi.NewInvitation{Merchant: id, Email: "owner@example.com"}))
			})
		},
		"POST /admin/merchants/{merchant}/invitations/revoke": func() audited {
			id := shop()
			must(failed(adminapi.InvitePerson.Call(ctx, budi, adminapi.NewInvitation{Merchant: id, Email: "owner@example.com"})))
			return of(id, "member.uninvite", func(a *adminapi.Client) error {
				return failed(adminapi.RevokeInvitation.Call(ctx, a, adminapi.Uninvitation{Merchant: id, Email: "owner@example.com"}))
			})
		},
		"POST /admin/merchants/{merchant}/resume": func() audited {
			id := shop()
			must(failed(adminapi.SuspendMerchant.Call(ctx, budi, adminapi.StatusChange{Merchant: id, Reason: "why"})))
			return of(id, "merchant.resume", func(a *adminapi.Client) error {
				return failed(adminapi.ResumeMerchant.Call(ctx, a, adminapi.StatusChange{Merchant: id, Reason: "why"}))
			})
		},
		"POST /admin/merchants/{merchant}/tier": func() audited {
			id := shop()
			return of(id, "merchant.tier", func(a *adminapi.Client) error {
				return failed(adminapi.SetTier.Call(ctx, a, adminapi.TierChange{Merchant: id, Tier: "growth", Reason: "why"}))
			})
		},
		"POST /admin/merchants/{merchant}/labels": func() audited {
			id := shop()
			return of(id, "merchant.labels", func(a *adminapi.Client) error {
				return failed(adminapi.SetLabels.Call(ctx, a, adminapi.LabelChange{Merchant: id, Labels: map[string]*string{"segment": new("travel")}}))
			})
		},
		"POST /admin/merchants/{merchant}/limits": func() audited {
			id := shop()
			return of(id, "merchant.limit", func(a *adminapi.Client) error {
				return failed(adminapi.SetLimits.Call(ctx, a, limits(id)))
			})
		},
		"POST /admin/merchants/{merchant}/limits/{limit}/remove": func() audited {
			id := shop()
			must(failed(adminapi.SetLimits.Call(ctx, budi, limits(id))))
			return of(id, "merchant.limit.remove", func(a *adminapi.Client) error {
				return failed(adminapi.RemoveLimit.Call(ctx, a, adminapi.LimitRemoval{Merchant: id, Name: adminapi.LimitDay, Reason: "why"}))
			})
		},
		"POST /admin/merchants/{merchant}/keys": func() audited {
			id := shop()
			return of(id, "key.create", func(a *adminapi.Client) error {
				return failed(adminapi.CreateKey.Call(ctx, a, adminapi.NewKey{Merchant: id, Mode: "test"}))
			})
		},
		"POST /admin/merchants/{merchant}/keys/{key}/rotate": func() audited {
			id, k := key()
			return of(id, "key.rotate", func(a *adminapi.Client) error {
				return failed(adminapi.RotateKey.Call(ctx, a, adminapi.KeyRotation{Merchant: id, Key: k}))
			})
		},
		"POST /admin/merchants/{merchant}/keys/{key}/name": func() audited {
			id, k := key()
			return of(id, "key.rename", func(a *adminapi.Client) error {
				return failed(adminapi.RenameKey.Call(ctx, a, adminapi.KeyName{Merchant: id, Key: k, Name: "shop"}))
			})
		},
		"POST /admin/merchants/{merchant}/keys/{key}/revoke": func() audited {
			id, k := key()
			return of(id, "key.revoke", func(a *adminapi.Client) error {
				return failed(adminapi.RevokeKey.Call(ctx, a, adminapi.KeyRevocation{Merchant: id, Key: k, Reason: "why"}))
			})
		},
		"PUT /admin/merchants/{merchant}/connections/{provider}": func() audited {
			id := shop()
			return of(id, "connection.set", func(a *adminapi.Client) error {
				return failed(adminapi.SetConnection.Call(ctx, a, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(`{"api_key":"k-secret"}`)}))
			})
		},
		"POST /admin/merchants/{merchant}/connections/{provider}/remove": func() audited {
			id := connected()
			must(failed(adminapi.SetPause.Call(ctx, budi, tenants.Pause{MerchantID: tenants.MerchantID(id), What: "connection", Provider: "bank", Mode: "live", Reason: "why"})))
			w.ahead.Add(int64(10 * time.Second)) // until all replicas know it
			return of(id, "connection.remove", func(a *adminapi.Client) error {
				return failed(adminapi.RemoveConnection.Call(ctx, a, adminapi.ConnectionRemoval{Merchant: id, Provider: "bank", Mode: "live", Reason: "why"}))
			})
		},
		"PUT /admin/merchants/{merchant}/callbacks/url": func() audited {
			id := shop()
			return of(id, "callback.url", func(a *adminapi.Client) error {
				return failed(adminapi.SetCallbackURL.Call(ctx, a, adminapi.CallbackURL{Merchant: id, Mode: "test", URL: new("https://shop.example/cb")}))
			})
		},
		"POST /admin/merchants/{merchant}/callbacks/secret": func() audited {
			id := shop()
			return of(id, "callback.secret.rotate", func(a *adminapi.Client) error {
				return failed(adminapi.ChangeCallbackSecret.Call(ctx, a, adminapi.SecretChange{Merchant: id, Mode: "test", Action: "rotate"}))
			})
		},
		"POST /admin/merchants/{merchant}/callbacks/test": func() audited {
			id := shop()
			return of(id, "callback.test", func(a *adminapi.Client) error {
				return failed(adminapi.TestCallback.Call(ctx, a, adminapi.TestOrder{Merchant: id, Mode: "test", URL: "https://shop.example/cb"}))
			})
		},
		"POST /admin/merchants/{merchant}/callbacks/verify": func() audited {
			id := shop()
			return of(id, "callback.verify", func(a *adminapi.Client) error {
				return failed(adminapi.VerifyCallback.Call(ctx, a, adminapi.TestOrder{Merchant: id, Mode: "test", URL: "https://careless.example/cb"}))
			})
		},
		"POST /admin/merchants/{merchant}/callbacks/resend": func() audited {
			id := shop()
			return of(id, "callback.resend", func(a *adminapi.Client) error {
				return failed(adminapi.ResendCallbacks.Call(ctx, a, adminapi.ResendOrder{Merchant: id, Mode: "test", Failed: true}))
			})
		},
		"POST /admin/merchants/{merchant}/credit": func() audited {
			id := shop()
			return of(id, "merchant.credit", func(a *adminapi.Client) error {
				return failed(adminapi.Credit.Call(ctx, a, large(id)))
			})
		},
		"POST /admin/merchants/{merchant}/debit": func() audited {
			id := shop()
			return of(id, "merchant.debit", func(a *adminapi.Client) error { return failed(adminapi.Debit.Call(ctx, a, large(id))) })
		},
		"POST /admin/ledger/approve": func() audited {
			id := waits()
			return of(id, "ledger.approve", func(a *adminapi.Client) error {
				return failed(adminapi.ApproveAdjustment.Call(ctx, a, adminapi.AdjustmentKey{MerchantID: id, Mode: "test", Reference: "r"}))
			})
		},
		"POST /admin/ledger/reject": func() audited {
			id := waits()
			return of(id, "ledger.reject", func(a *adminapi.Client) error {
				return failed(adminapi.RejectAdjustment.Call(ctx, a, adminapi.AdjustmentKey{MerchantID: id, Mode: "test", Reference: "r"}))
			})
		},
		"POST /admin/lists/{list}/entries": func() audited {
			return of(platform, "list.add", func(a *adminapi.Client) error { return failed(adminapi.AddToList.Call(ctx, a, listed)) })
		},
		"POST /admin/lists/{list}/remove": func() audited {
			must(failed(adminapi.AddToList.Call(ctx, budi, listed)))
			return of(platform, "list.remove", func(a *adminapi.Client) error {
				return failed(adminapi.RemoveFromList.Call(ctx, a, adminapi.ListRemoval{List: listed.List, Values: []string{"xld10"}, Reason: "back in stock"}))
			})
		},
		"POST /admin/pauses": func() audited {
			return of(platform, "transfers.pause", func(a *adminapi.Client) error { return failed(adminapi.SetPause.Call(ctx, a, pause)) })
		},
		"POST /admin/pauses/end": func() audited {
			must(failed(adminapi.SetPause.Call(ctx, budi, pause)))
			return of(platform, "transfers.resume", func(a *adminapi.Client) error { return failed(adminapi.EndPause.Call(ctx, a, pause)) })
		},
		"POST /admin/exceptions/resolve": func() audited {
			id := shop()
			must(failed(w.store.AddException(ctx, movement.Exception{
				Owner: movement.Owner{MerchantID: id, Mode: "live"}, Subject: "inv-1", Reason: "amount_differs", FactID: "evt-1", At: time.Now(),
			})))
			return of(id, "exception.resolve", func(a *adminapi.Client) error {
				return failed(adminapi.ResolveException.Call(ctx, a, adminapi.Resolution{MerchantID: id, Mode: "live", Subject: "inv-1", Reason: "amount_differs", FactID: "evt-1", Resolution: "refunded"}))
			})
		},
		"POST /admin/movements/{movement}/override": func() audited {
			m := w.transfers(25*time.Hour, nil)
			return of(m.Owner.MerchantID, "movement.propose", func(a *adminapi.Client) error {
				return failed(adminapi.OverrideMovement.Call(ctx, a, adminapi.NewOverride{Movement: m.ID.String(), As: "success", Reason: "why"}))
			})
		},
		"POST /admin/movements/{movement}/assign": func() audited {
			id, now := shop(), time.Now().UTC().Truncate(time.Second)
			m := w.collects(id, "ID10300", now, "INV/1")
			must(failed(w.store.Apply(ctx, movement.Change{Movement: m, At: now, Transition: movement.Transition{
				Effect: movement.Move, From: []movement.State{movement.Submitting}, To: movement.Pending, Event: "pending", Detail: `{"source":"call"}`,
			}})))
			statement, err := w.store.Statement(ctx, m.Account())
			must(err)
			line := movement.ImportedLine{Payment: "rrn-1", ID: "row-1", Amount: 9_000, Currency: "IDR", At: now, Paid: true}
			must(failed(w.store.Import(ctx, now, statement, []movement.ImportedLine{line}, "1", now)))
			must(failed(w.store.Match(ctx, now, statement, []movement.Match{{Payment: "rrn-1", State: movement.LineUnmatched}})))
			return of(id, "statement.assign", func(a *adminapi.Client) error {
				return failed(adminapi.AssignStatementLine.Call(ctx, a, adminapi.NewAssignment{Movement: m.ID.String(), Payment: "rrn-1", Reason: "why"}))
			})
		},
		"POST /admin/movements/{movement}/play": func() audited {
			m := w.transfers(0, func(m *movement.Movement) { m.Owner.Mode = string(tenants.Test) })
			return of(m.Owner.MerchantID, "movement.play", func(a *adminapi.Client) error {
				return failed(adminapi.PlayMovement.Call(ctx, a, adminapi.NewPlay{Movement: m.ID.String(), Play: "notify"}))
			})
		},
		"POST /admin/movements/{movement}/refund": func() audited {
			m := w.transfers(0, nil)
			return of(m.Owner.MerchantID, "payment.refund", func(a *adminapi.Client) error { // the entry comes before anything is found out
				order := adminapi.NewRefund{Movement: m.ID.String(), RefundID: "R-1", Reason: "why", Amount: new(money.Amount)}
				_, err := adminapi.RefundPayment.Call(ctx, a, order)
				if refused, ok := errors.AsType[*adminapi.Failure](err); !ok || refused.Status != http.StatusBadRequest {
					return fmt.Errorf("nothing was given back, and all of it: %w", err)
				}
				order.Amount = nil
				_, err = adminapi.RefundPayment.Call(ctx, a, order)
				if refused, ok := errors.AsType[*adminapi.Failure](err); !ok || refused.Status != http.StatusNotFound {
					return fmt.Errorf("a transfer was given back: %w", err)
				}
				return nil
			})
		},
		"POST /admin/recovery/open": func() audited {
			must(w.store.BeginRecovery(ctx, time.Now()))
			return of(platform, "recovery.open", func(a *adminapi.Client) error {
				return failed(adminapi.OpenRecovery.Call(ctx, a, adminapi.RecoveryOpening{Reason: "why"}))
			})
		},
		"POST /admin/keyset/reseal": func() audited {
			id := shop()
			w.rotate()
			return of(id, "keyset.reseal", func(a *adminapi.Client) error { return failed(a.Reseal(ctx)) })
		},
		"POST /admin/operator-tokens": func() audited {
			return of(platform, "operator.token.create", func(a *adminapi.Client) error {
				return failed(adminapi.CreateOperatorToken.Call(ctx, a, adminapi.NewOperatorToken{Name: "citra", Role: "read"}))
			})
		},
		"POST /admin/operator-tokens/{operator}/rotate": func() audited {
			must(failed(adminapi.CreateOperatorToken.Call(ctx, budi, adminapi.NewOperatorToken{Name: "dewi", Role: "read"})))
			return of(platform, "operator.token.rotate", func(a *adminapi.Client) error {
				return failed(adminapi.RotateOperatorToken.Call(ctx, a, adminapi.OperatorRotation{Name: "dewi"}))
			})
		},
		"POST /admin/operator-tokens/{operator}/revoke": func() audited {
			must(failed(adminapi.CreateOperatorToken.Call(ctx, budi, adminapi.NewOperatorToken{Name: "eka", Role: "read"})))
			return of(platform, "operator.token.revoke", func(a *adminapi.Client) error {
				return failed(adminapi.RevokeOperatorTokens.Call(ctx, a, adminapi.OperatorRevocation{Name: "eka", Reason: "why"}))
			})
		},
		"POST /admin/policies": func() audited {
			return of(platform, "policy.push", func(a *adminapi.Client) error {
				return failed(adminapi.PushPolicy.Call(ctx, a, adminapi.NewPolicy{Files: map[string]string{"data.json": " {}"}, Message: "why"}))
			})
		},
		"POST /admin/policies/{version}/activate": func() audited {
			v := pushed()
			return of(platform, "policy.activate", func(a *adminapi.Client) error {
				return failed(adminapi.ActivatePolicy.Call(ctx, a, adminapi.ActivatedPolicy{Version: v, Wish: adminapi.Wish{Reason: "why"}}))
			})
		},
		"POST /admin/policies/rollback": func() audited {
			v := pushed()
			must(failed(adminapi.ActivatePolicy.Call(ctx, budi, adminapi.ActivatedPolicy{Version: v, Wish: adminapi.Wish{Reason: "why"}})))
			w.decide()
			return of(platform, "policy.rollback", func(a *adminapi.Client) error {
				return failed(adminapi.RollBackPolicy.Call(ctx, a, adminapi.Wish{Replaces: v, Reason: "why"}))
			})
		},
		"POST /admin/plugin-approvals": func() audited {
			return of(platform, "plugin.approve", func(a *adminapi.Client) error { return failed(adminapi.ApprovePlugin.Call(ctx, a, bare)) })
		},
		"POST /admin/plugin-approvals/{approval}/confirm": func() audited {
			id := approved().ApprovalID
			return of(platform, "plugin.confirm", func(a *adminapi.Client) error {
				return failed(adminapi.ConfirmPlugin.Call(ctx, a, adminapi.ApprovalID{Approval: id}))
			})
		},
		"POST /admin/plugins/{provider}/activate": func() audited {
			must(failed(adminapi.ConfirmPlugin.Call(ctx, w, adminapi.ApprovalID{Approval: approved().ApprovalID})))
			must(os.WriteFile(filepath.Join(w.files, bare.SHA256), []byte("binary"), 0o600))
			return of(platform, "plugin.activate", func(a *adminapi.Client) error {
				return failed(adminapi.ActivatePlugin.Call(ctx, a, adminapi.PluginActivation{Provider: "bank", SHA256: bare.SHA256}))
			})
		},
		"POST /admin/plugins/{provider}/rollback": func() audited {
			must(failed(adminapi.ConfirmPlugin.Call(ctx, w, adminapi.ApprovalID{Approval: approved().ApprovalID})))
			must(os.WriteFile(filepath.Join(w.files, bare.SHA256), []byte("binary"), 0o600))
			must(failed(adminapi.ActivatePlugin.Call(ctx, budi, adminapi.PluginActivation{Provider: "bank", SHA256: bare.SHA256})))
			return of(platform, "plugin.rollback", func(a *adminapi.Client) error {
				return failed(adminapi.RollBackPlugin.Call(ctx, a, adminapi.ProviderName{Provider: "bank"}))
			})
		},
		"POST /admin/plugins/{provider}/remove": func() audited {
			return of(platform, "plugin.remove", func(a *adminapi.Client) error {
				return failed(adminapi.RemovePlugin.Call(ctx, a, adminapi.PluginRemoval{Provider: "bank"}))
			})
		},
		"POST /admin/plugins/{provider}/restart": func() audited {
			return of(platform, "plugin.restart", func(a *adminapi.Client) error {
				return failed(adminapi.RestartPlugin.Call(ctx, a, adminapi.ProviderName{Provider: "bank"}))
			})
		},
	}
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// throughProxy sends requests over the network as an operator behind a trusted proxy, and notes those that may change
// something.
type throughProxy struct {
	to   string
	sent *[]string
}

const behind = "203.0.113.7"

func (p throughProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		*p.sent = append(*p.sent, r.Method+" "+r.URL.Path)
	}
	host, err := url.Parse(p.to)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = host.Scheme, host.Host
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Forwarded-For", behind)
	return http.DefaultTransport.RoundTrip(r)
}

// TestEveryChangeIsAudited makes the change of every route that may change something, and finds it in the audit with who,
// what and from where. A route that is not among the changes fails it.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	shared := newAudited(t)
	of := shared.changes()
	for _, route := range shared.console.HandledRoutes() {
		ready, w := of[route], shared
		method, path, _ := strings.Cut(route, " ")
		if method == http.MethodGet || slices.Contains(changesNothing, route) {
			continue
		}
		if ready == nil {
			t.Errorf("%s: whether it is audited is not tested", route)
			continue
		}
		if strings.HasPrefix(path, "/admin/plugin") || strings.HasPrefix(path, "/admin/policies") { // what is in force is one for all
			w = newAudited(t)
			ready = w.changes()[route]
		}
		change, sent := ready(), []string{}
		before := 0
		if change.at != "" {
			before = len(w.auditOf(change.at))
		}
		if err := change.make(adminapi.NewClientOver(throughProxy{w.url, &sent})); err != nil {
			t.Errorf("%s: %v", route, err)
			continue
		}
		pattern := regexp.MustCompile("^" + inPattern.ReplaceAllString(regexp.QuoteMeta(route), "[^/]+") + "$")
		if len(sent) == 0 || slices.ContainsFunc(sent, func(request string) bool { return !pattern.MatchString(request) }) {
			t.Errorf("%s: the change was made by %q", route, sent)
		}
		entries := w.auditOf(change.at)
		added := entries[:len(entries)-before]
		if len(added) != 1 || added[0].Operator != "ayu" || added[0].Action != change.action || added[0].From != behind || added[0].At.IsZero() {
			t.Errorf("%s: audited as %+v, want %s by ayu from %s", route, added, change.action, behind)
		}
	}
	for route := range of {
		if !slices.Contains(shared.console.HandledRoutes(), route) {
			t.Errorf("there is no route %s", route)
		}
	}
}

// inPattern is a part of a route's path that differs from request to request.
var inPattern = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// auditOf is the audit of a merchant, or where that is empty of the one made last, the newest entry first.
func (w *world) auditOf(id string) []store.Audit {
	w.Helper()
	if id == "" {
		all, err := w.store.Merchants(w.Context(), "", 1000)
		if err != nil {
			w.Fatal(err)
		}
		id = string(slices.MaxFunc(all, func(a, b tenants.Merchant) int { return a.CreatedAt.Compare(b.CreatedAt) }).ID)
	}
	entries, err := w.store.AuditOf(w.Context(), store.AuditRange{MerchantID: tenants.MerchantID(id), Most: 1000})
	if err != nil {
		w.Fatal(err)
	}
	return entries
}

// newAudited is a world behind a proxy, in which two operators approve a binary.
func newAudited(t *testing.T) *world {
	t.Helper()
	files := t.TempDir()
	w := overriding(t, func(config *console.Config, d *console.Dependencies) {
		config.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		kept, vault := d.Merchants.(*store.Store), d.Vault.(*tenants.Vault)
		d.Recovery = kept
		approvals, _, err := approval.Open(t.Context(), approval.Dependencies{
			Store: kept, Vault: vault, Files: approval.NewFiles(files), Configured: []host.Spec{{Name: "bank"}}, SecondOperator: true, Now: d.Now, Log: d.Log,
		})
		if err != nil {
			t.Fatal(err)
		}
		approvals.Follow(d.Plugins.(*fakePlugins))
		d.Approvals = approvals
	})
	w.files = files
	return w
}
