package adminapi

import (
	"context"
	"net/http"
	"net/url"
)

// KeyUse is a key of the keyset that a gateway has in force, and how many
// values it has sealed. A missing key is in no keyset any more, but still on a
// value; 0 is on one that names no key. State says it in a word: seals, opens,
// prepared or missing.
type KeyUse struct {
	Number   uint32 `json:"number"`
	Primary  bool   `json:"primary,omitempty"`
	Prepared bool   `json:"prepared,omitempty"`
	Missing  bool   `json:"missing,omitempty"`
	State    string `json:"state"`
	Values   int    `json:"values"`
}

// KeysetPage tells the keys with what each has sealed among some accounts. Next
// is what to ask after for the following ones, or "".
type KeysetPage struct {
	Keys []KeyUse `json:"keys"`
	Next string   `json:"next,omitempty"`
}

// Reseal says after which account to go on.
type Reseal struct {
	After string `json:"after,omitempty"`
}

// ResealPage is what was sealed anew with the primary key among some accounts,
// in connections and callback secrets. Replaced were changed by somebody else
// meanwhile, which sealed them anew, too; unopened could not be opened and are as
// they were.
type ResealPage struct {
	Primary  uint32        `json:"primary"`
	Resealed int           `json:"resealed"`
	Replaced int           `json:"replaced,omitempty"`
	Unopened []SealedPlace `json:"unopened,omitempty"`
	Next     string        `json:"next,omitempty"`
}

// SealedPlace names a connection, or without a provider a callback secret.
type SealedPlace struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode"`
	Provider   string `json:"provider,omitempty"`
}

// Keyset tells the keys that the gateway has in force, with what each has
// sealed. It walks through all accounts.
func (c *Client) Keyset(ctx context.Context) ([]KeyUse, error) {
	var keys []KeyUse
	place := map[uint32]int{}
	for after := ""; ; {
		page, err := do[KeysetPage](ctx, c, http.MethodGet, "/admin/keyset?"+url.Values{"after": {after}}.Encode(), nil)
		if err != nil {
			return nil, err
		}
		for _, key := range page.Keys {
			i, seen := place[key.Number]
			if !seen {
				place[key.Number] = len(keys)
				keys = append(keys, key)
				continue
			}
			key.Values += keys[i].Values
			keys[i] = key // as it is now
		}
		if after = page.Next; after == "" {
			return keys, nil
		}
	}
}

// Reseal seals anew, account by account, what other keys than the primary have
// sealed.
func (c *Client) Reseal(ctx context.Context) (ResealPage, error) {
	var all ResealPage
	for after := ""; ; {
		page, err := do[ResealPage](ctx, c, http.MethodPost, "/admin/keyset/reseal", Reseal{After: after})
		if err != nil {
			return all, err
		}
		all.Primary = page.Primary
		all.Resealed += page.Resealed
		all.Replaced += page.Replaced
		all.Unopened = append(all.Unopened, page.Unopened...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}
