package adminapi

import (
	"context"
)

// KeyUse is a key of the keyset that the gateway has in force, and how many values
// it has sealed. A missing key is not in the keyset but has sealed a value; number
// 0 stands for values that name no key.
type KeyUse struct {
	Number   uint32 `json:"number" column:"KEY"`
	Primary  bool   `json:"primary,omitempty"`
	Prepared bool   `json:"prepared,omitempty"`
	Missing  bool   `json:"missing,omitempty"`
	State    string `json:"state" column:"STATE"` // seals, opens, prepared or missing
	Values   int    `json:"values" column:"VALUES"`
}

// KeysetPage is the keys with what each has sealed among some accounts. Next is the
// after of the following accounts, or "" with the last ones.
type KeysetPage struct {
	Keys []KeyUse `json:"keys"`
	Next string   `json:"next,omitempty"`
}

// Reseal asks to seal the secrets of the accounts after one of them anew.
type Reseal struct {
	After string `json:"after,omitempty"`
}

// KeysetFilter asks for the keys' use among the accounts after one of them.
type KeysetFilter struct {
	After string `query:"after"`
}

// The acts on the keyset, account by account. Keyset and Reseal of a Client go through all of them.
var (
	ShowKeyset   = Endpoint[KeysetFilter, KeysetPage]{Act{Route: "GET /admin/keyset", Takes: Read, Text: "List the keys in force, and count what each has sealed."}}
	ResealKeyset = Endpoint[Reseal, ResealPage]{Act{Route: "POST /admin/keyset/reseal", Takes: Administer, Text: "Seal anew what older keys have sealed."}}
)

// ResealPage is what was sealed anew with the primary key among some accounts: in
// connections, callback secrets, and the platform's key of names.
type ResealPage struct {
	Primary  uint32        `json:"primary"`
	Resealed int           `json:"resealed"`
	Replaced int           `json:"replaced,omitempty"` // changed by somebody else meanwhile, and so sealed anew
	Unopened []SealedPlace `json:"unopened,omitempty"` // could not be opened, and are left as they were
	Next     string        `json:"next,omitempty"`
}

// SealedPlace names a connection, without a provider a callback secret, and without a
// mode the platform's key of names.
type SealedPlace struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode,omitempty"`
	Provider   string `json:"provider,omitempty"`
	Person     string `json:"person,omitempty"` // whose second factor it is
}

// Keyset lists the keys that the gateway has in force, with what each has sealed in
// all accounts.
func (c *Client) Keyset(ctx context.Context) ([]KeyUse, error) {
	var keys []KeyUse
	place := map[uint32]int{}
	for after := ""; ; {
		page, err := ShowKeyset.Call(ctx, c, KeysetFilter{After: after})
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

// Reseal seals anew, account by account, what older keys have sealed. With an error
// it returns what was done before.
func (c *Client) Reseal(ctx context.Context) (ResealPage, error) {
	var all ResealPage
	for after := ""; ; {
		page, err := ResealKeyset.Call(ctx, c, Reseal{After: after})
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
