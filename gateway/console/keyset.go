package console

import (
	"errors"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// keysetPage is how many accounts one request looks at, well within the time
// that a client waits.
const keysetPage = 100

// sealedPage reads accounts with what is sealed of them, and tells what to ask after
// for the next, or "".
func (c *Console) sealedPage(x *call, after string) (accounts []store.Sealed, next string, err error) {
	accounts, err = c.deps.Secrets.SealedAfter(x.request.Context(), tenants.MerchantID(after), keysetPage)
	if len(accounts) == keysetPage {
		next = string(accounts[keysetPage-1].MerchantID)
	}
	return accounts, next, err
}

// showKeyset counts what each key has sealed, among some accounts.
func (c *Console) showKeyset(x *call, wanted adminapi.KeysetFilter) (out adminapi.KeysetPage, err error) {
	accounts, next, err := c.sealedPage(x, wanted.After)
	if err != nil {
		return out, err
	}
	values := map[tenants.KeyNumber]int{}
	for _, account := range accounts {
		for _, connection := range account.Connections {
			values[tenants.SealedBy(connection.Sealed)]++
		}
		for _, secret := range account.Secrets {
			values[tenants.SealedBy(secret.Sealed)]++
			if secret.Next != nil {
				values[tenants.SealedBy(secret.Next)]++
			}
		}
		if account.NameKey != nil {
			values[tenants.SealedBy(account.NameKey)]++
		}
		for _, one := range account.Policies {
			values[tenants.SealedBy(one.MAC)]++
		}
		for _, one := range account.People {
			values[tenants.SealedBy(one.TOTP)]++
		}
	}
	page := adminapi.KeysetPage{Keys: []adminapi.KeyUse{}, Next: next}
	for _, key := range c.deps.Vault.Keys() {
		page.Keys = append(page.Keys, adminapi.KeyUse{Number: uint32(key.Number), Primary: key.Primary, Prepared: key.Prepared, Values: values[key.Number]})
		delete(values, key.Number)
	}
	for number, count := range values {
		page.Keys = append(page.Keys, adminapi.KeyUse{Number: uint32(number), Missing: true, Values: count})
	}
	for i, key := range page.Keys {
		page.Keys[i].State = stateOf(key)
	}
	return page, nil
}

func stateOf(key adminapi.KeyUse) string {
	switch {
	case key.Primary:
		return "seals"
	case key.Prepared:
		return "prepared"
	case key.Missing:
		return "missing"
	}
	return "opens"
}

// reseal seals anew what other keys than the primary have sealed, of some
// accounts. An account is committed as a whole, with its audit entry.
func (c *Console) reseal(x *call, from adminapi.Reseal) (out adminapi.ResealPage, err error) {
	accounts, next, err := c.sealedPage(x, from.After)
	if err != nil {
		return out, err
	}
	page := adminapi.ResealPage{Next: next}
	for _, key := range c.deps.Vault.Keys() { // looks for a rotation of this moment, too
		if key.Primary {
			page.Primary = uint32(key.Number)
		}
	}
	for _, account := range accounts {
		was, becomes, err := c.sealedAnew(account, &page)
		if err != nil {
			return out, unsealed(err, "What was sealed anew before stays so; what is left is done by running it again.")
		}
		values, detail := len(was.Connections)+len(was.Secrets), fmt.Sprintf("%d connections, %d callback secrets", len(was.Connections), len(was.Secrets))
		if was.NameKey != nil {
			values, detail = values+1, detail+", the key of names"
		}
		if n := len(was.Policies); n > 0 {
			values, detail = values+n, fmt.Sprintf("%s, %d MACs of policies", detail, n)
		}
		if n := len(was.People); n > 0 {
			values, detail = values+n, fmt.Sprintf("%s, %d second factors", detail, n)
		}
		if values == 0 {
			continue
		}
		changed, err := c.deps.Secrets.Reseal(x.request.Context(), x.audit("keyset.reseal", detail), was, becomes)
		if err != nil {
			return out, err
		}
		c.deps.Directory.Invalidate(account.MerchantID)
		page.Resealed += int(changed)
		page.Replaced += values - int(changed)
	}
	return page, nil
}

// sealedAnew gives what of an account has to change, before and after. What
// can't be opened is put on the page and left as it is.
func (c *Console) sealedAnew(account store.Sealed, page *adminapi.ResealPage) (was, becomes store.Sealed, err error) {
	was.MerchantID, becomes.MerchantID = account.MerchantID, account.MerchantID
	for _, old := range account.Connections {
		again, changed, err := c.deps.Vault.ResealConnection(old)
		if errors.Is(err, tenants.ErrSealed) {
			page.Unopened = append(page.Unopened, adminapi.SealedPlace{MerchantID: string(old.MerchantID), Mode: string(old.Mode), Provider: string(old.Provider)})
			continue
		}
		if err != nil {
			return was, becomes, err
		}
		if changed {
			was.Connections, becomes.Connections = append(was.Connections, old), append(becomes.Connections, again)
		}
	}
	for _, old := range account.Secrets {
		again, changed, err := c.deps.Vault.ResealCallbackSecret(old)
		if errors.Is(err, tenants.ErrSealed) {
			page.Unopened = append(page.Unopened, adminapi.SealedPlace{MerchantID: string(old.MerchantID), Mode: string(old.Mode)})
			continue
		}
		if err != nil {
			return was, becomes, err
		}
		if changed {
			was.Secrets, becomes.Secrets = append(was.Secrets, old), append(becomes.Secrets, again)
		}
	}
	for _, old := range account.Policies {
		again, changed, err := c.deps.Vault.ResealPolicy(old.MAC)
		if errors.Is(err, tenants.ErrSealed) { // written by hand: no gateway loads it, and nothing is lost with its key
			continue
		}
		if err != nil {
			return was, becomes, err
		}
		if changed {
			was.Policies = append(was.Policies, old)
			becomes.Policies = append(becomes.Policies, store.PolicyMAC{
				Version: old.Version, Activation: old.Activation, Approval: old.Approval, Plugin: old.Plugin, Operator: old.Operator, MAC: again,
			})
		}
	}
	for _, old := range account.People {
		again, changed, err := c.deps.Vault.ResealTOTP(old.ID.String(), old.TOTP)
		if errors.Is(err, tenants.ErrSealed) {
			page.Unopened = append(page.Unopened, adminapi.SealedPlace{MerchantID: string(account.MerchantID), Person: old.ID.String()})
			continue
		}
		if err != nil {
			return was, becomes, err
		}
		if changed {
			was.People, becomes.People = append(was.People, old), append(becomes.People, tenants.Person{ID: old.ID, TOTP: again})
		}
	}
	if account.NameKey == nil {
		return was, becomes, nil
	}
	again, changed, err := c.deps.Vault.ResealNameKey(account.NameKey)
	switch {
	case errors.Is(err, tenants.ErrSealed):
		page.Unopened = append(page.Unopened, adminapi.SealedPlace{MerchantID: string(account.MerchantID)})
	case err != nil:
		return was, becomes, err
	case changed:
		was.NameKey, becomes.NameKey = account.NameKey, again
	}
	return was, becomes, nil
}
