package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// The lengths of what operators write, in characters.
const (
	maxName   = 200
	maxReason = 500
	maxLabels = 50
)

// defaultPage is the length of a list whose length is not given.
const defaultPage = 100

func (c *Console) createMerchant(x *call, wanted adminapi.NewMerchant) (out adminapi.CreatedMerchant, err error) {
	m := tenants.Merchant{
		ID: tenants.NewMerchantID(), Name: strings.TrimSpace(wanted.Name), Tier: tenants.Tier(wanted.Tier),
		Status: tenants.Active, Labels: wanted.Labels, CreatedAt: x.now,
	}
	if err := c.checkMerchant(x.request.Context(), m, x.now); err != nil {
		return out, err
	}
	out = adminapi.CreatedMerchant{MerchantID: string(m.ID), Name: m.Name, Tier: wanted.Tier, Status: string(m.Status)}
	var keys []tenants.Key
	var secrets []tenants.CallbackSecret
	for _, of := range []struct {
		mode        tenants.Mode
		key, secret *string
	}{{tenants.Live, &out.LiveKey, &out.CallbackSecret}, {tenants.Test, &out.TestKey, &out.TestCallbackSecret}} {
		issued, err := tenants.IssueKey(rand.Reader, tenants.KeySpec{MerchantID: m.ID, Mode: of.mode}, x.now)
		if err != nil {
			return out, err
		}
		secret, err := tenants.NewCallbackSecret(rand.Reader)
		if err != nil {
			return out, err
		}
		sealed, err := c.deps.Vault.SealCallbackSecret(m.ID, of.mode, secret)
		if err != nil {
			return out, err
		}
		keys, secrets = append(keys, issued.Key), append(secrets, sealed)
		*of.key, *of.secret = issued.Secret.Reveal(), secret.Reveal()
	}
	detail := fmt.Sprintf("name %q, tier %s, keys %s and %s", m.Name, m.Tier, keys[0].ID, keys[1].ID)
	if err := c.deps.Merchants.CreateMerchant(x.request.Context(), x.audit("merchant.create", detail), m, keys, secrets); err != nil {
		return out, err
	}
	c.deps.Directory.Invalidate(m.ID) // a lookup of the id may have been remembered as missing
	return out, nil
}

func (c *Console) checkMerchant(ctx context.Context, m tenants.Merchant, now time.Time) error {
	if !plain(m.Name, 1, maxName) {
		return fault.Invalid("name", "must have 1 to 200 characters, without control characters")
	}
	if err := checkLabels(m); err != nil {
		return err
	}
	return c.checkTier(ctx, m, now)
}

func checkLabels(m tenants.Merchant) error {
	if len(m.Labels) > maxLabels {
		return fault.Invalid("labels", "must have at most 50 entries")
	}
	for name, value := range m.Labels {
		if !plain(name, 1, maxName) || !plain(value, 0, maxName) {
			return fault.Invalid("labels", "must have names and values of at most 200 characters, without control characters")
		}
	}
	if _, err := admission.Zone(m.Labels); err != nil {
		return fault.Invalid("labels", "must name a known zone as time_zone, such as Asia/Jayapura")
	}
	if err := tenants.CheckLabels(m.Labels); err != nil {
		return fault.Invalid("labels", err.Error())
	}
	return nil
}

// checkTier refuses a tier that the policy in force has no limits for, because
// every request of its merchants would be denied: a slip of the pen must not
// lock a merchant out.
func (c *Console) checkTier(ctx context.Context, m tenants.Merchant, now time.Time) error {
	if m.Tier == "" {
		return fault.Invalid("tier", "is required")
	}
	in := policy.LimitsInput{Mode: string(tenants.Live), Now: now, Merchant: policy.Merchant{
		ID: string(m.ID), Tier: string(m.Tier), Status: string(tenants.Active), Labels: m.Labels,
		Version: -now.UnixNano(), // of no record: the answer must not be kept for one
	}}
	set := c.deps.Policy()
	for _, provider := range c.deps.Plugins.Manifests() {
		for _, op := range provider.Operations {
			in.Operation = policy.Operation{Path: op.Path, Kind: string(op.Kind), Provider: provider.Name}
			_, err := set.Limits(ctx, in)
			if err == nil {
				return nil
			}
			if !errors.Is(err, policy.ErrNoAnswer) {
				return err
			}
		}
	}
	return fault.Invalid("tier", "has no limits in the policy in force")
}

func (c *Console) listMerchants(x *call, wanted adminapi.MerchantFilter) (out adminapi.MerchantPage, err error) {
	most := cmp.Or(wanted.Limit, defaultPage)
	merchants, err := c.deps.Merchants.Merchants(x.request.Context(), tenants.MerchantID(wanted.After), most)
	if err != nil {
		return out, err
	}
	page := adminapi.MerchantPage{Merchants: make([]adminapi.Merchant, len(merchants))}
	for i, m := range merchants {
		page.Merchants[i] = merchantDocument(m)
	}
	if len(merchants) == most {
		page.Next = string(merchants[most-1].ID)
	}
	return page, nil
}

func (c *Console) showMerchant(x *call, wanted adminapi.MerchantID) (out adminapi.Merchant, err error) {
	account, err := c.account(x)
	if err != nil {
		return out, err
	}
	return c.accountDocument(account, x.now), nil
}

func (c *Console) suspend(x *call, why adminapi.StatusChange) (out adminapi.Merchant, err error) {
	return c.setStatus(x, "merchant.suspend", tenants.Suspended, why)
}

func (c *Console) resume(x *call, why adminapi.StatusChange) (out adminapi.Merchant, err error) {
	return c.setStatus(x, "merchant.resume", tenants.Active, why)
}

func (c *Console) setStatus(x *call, action string, status tenants.Status, why adminapi.StatusChange) (out adminapi.Merchant, err error) {
	if err := checkReason(why.Reason); err != nil {
		return out, err
	}
	id := x.merchant()
	return c.changed(x, id, c.deps.Merchants.SetStatus(x.request.Context(), x.audit(action, why.Reason), id, status))
}

func (c *Console) setTier(x *call, change adminapi.TierChange) (out adminapi.Merchant, err error) {
	if err := checkReason(change.Reason); err != nil {
		return out, err
	}
	account, err := c.account(x)
	if err != nil {
		return out, err
	}
	m := account.Merchant()
	detail := fmt.Sprintf("from %s to %s", m.Tier, change.Tier)
	if change.Reason != "" {
		detail += ": " + change.Reason
	}
	m.Tier = tenants.Tier(change.Tier)
	if err := c.checkTier(x.request.Context(), m, x.now); err != nil {
		return out, err
	}
	return c.changed(x, m.ID, c.deps.Merchants.SetTier(x.request.Context(), x.audit("merchant.tier", detail), m.ID, m.Tier))
}

// setLabels gives a merchant labels, and takes away those that are given as null.
func (c *Console) setLabels(x *call, change adminapi.LabelChange) (out adminapi.Merchant, err error) {
	if err := checkReason(change.Reason); err != nil {
		return out, err
	}
	if len(change.Labels) == 0 {
		return out, fault.Invalid("labels", "is required")
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(change.Labels)) {
		if value := change.Labels[name]; value != nil {
			parts = append(parts, fmt.Sprintf("%s=%q", name, *value))
		} else {
			parts = append(parts, "without "+name)
		}
	}
	if change.Reason != "" {
		parts = append(parts, change.Reason)
	}
	id := x.merchant()
	return c.changed(x, id, c.deps.Merchants.SetLabels(x.request.Context(), x.audit("merchant.labels", strings.Join(parts, ", ")), id, func(m *tenants.Merchant) error {
		labels := maps.Clone(m.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		for name, value := range change.Labels {
			if value != nil {
				labels[name] = *value
			} else {
				delete(labels, name)
			}
		}
		m.Labels = labels
		return checkLabels(*m)
	}))
}

// changed ends a change of a merchant: it holds here at once, also when nobody
// knows whether it was committed, and the merchant is shown as it now is.
func (c *Console) changed(x *call, id tenants.MerchantID, err error) (adminapi.Merchant, error) {
	c.deps.Directory.Invalidate(id)
	if err != nil {
		return adminapi.Merchant{}, notFound(err, "merchant")
	}
	return c.showMerchant(x, adminapi.MerchantID{})
}

func (x *call) merchant() tenants.MerchantID {
	return tenants.MerchantID(x.request.PathValue("merchant"))
}

func (x *call) audit(action, detail string) store.Audit {
	return store.Audit{Operator: x.operator.Name, Action: action, Detail: detail, At: x.now}
}

// account is the merchant that the path names, as the database has it.
func (c *Console) account(x *call) (*tenants.Account, error) {
	account, err := c.deps.Merchants.AccountByID(x.request.Context(), x.merchant())
	return account, notFound(err, "merchant")
}

func checkReason(reason string) error {
	if !plain(reason, 0, maxReason) {
		return fault.Invalid("reason", "must have at most 500 characters, without control characters")
	}
	return nil
}

// plain tells whether a text can be shown on a line, and is no longer than it may be.
func plain(text string, least, most int) bool {
	n := utf8.RuneCountInString(text)
	return n >= least && n <= most && !strings.ContainsFunc(text, unicode.IsControl)
}

func merchantDocument(m tenants.Merchant) adminapi.Merchant {
	return adminapi.Merchant{
		MerchantID: string(m.ID), Name: m.Name, Tier: string(m.Tier), Status: string(m.Status),
		Labels: m.Labels, Version: m.Version, CreatedAt: m.CreatedAt,
	}
}

func (c *Console) accountDocument(a *tenants.Account, now time.Time) adminapi.Merchant {
	out := merchantDocument(a.Merchant())
	out.Limits = limitDocuments(a.Merchant(), now)
	for _, key := range a.Keys() {
		out.Keys = append(out.Keys, keyDocument(key, now))
	}
	out.Pauses = a.Merchant().Pauses
	for _, connection := range a.Connections() {
		shown := c.connectionDocument(connection)
		shown.Fields = c.fieldsOf(connection)
		_, shown.Paused = a.Paused(tenants.PauseConnection, connection.Provider, connection.Mode)
		out.Connections = append(out.Connections, shown)
	}
	for _, mode := range []tenants.Mode{tenants.Live, tenants.Test} {
		if secret, ok := a.CallbackSecret(mode); ok {
			out.Callbacks = append(out.Callbacks, setupDocument(secret))
		}
	}
	return out
}
