package merchants

import (
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// listedKey is a key with from where it was used, the last first.
type listedKey struct {
	adminapi.Key

	Uses []tenants.KeyUse
}

func (c *Console) keys(r *room) error {
	merchant, err := adminapi.ShowMerchant.Call(r.Request.Context(), r.admin, adminapi.MerchantID{Merchant: r.id()})
	if err != nil {
		return err
	}
	uses, err := c.deps.Records.KeyUses(r.Request.Context(), r.Member.MerchantID)
	if err != nil {
		return err
	}
	var rows []listedKey
	for _, key := range merchant.Keys {
		if key.Mode != string(r.Mode) {
			continue
		}
		rows = append(rows, listedKey{key, slices.DeleteFunc(slices.Clone(uses), func(u tenants.KeyUse) bool { return string(u.KeyID) != key.KeyID })})
	}
	slices.SortStableFunc(rows, func(a, b listedKey) int {
		if a.Usable != b.Usable {
			return map[bool]int{true: -1, false: 1}[a.Usable]
		}
		return b.CreatedAt.Compare(a.CreatedAt)
	})
	return r.Show("keys.html", r.T("Developer API keys"), map[string]any{"Room": r, "Rows": rows, "API": c.config.APIURL})
}

// scopes are what a key may do, as the contract names them.
var scopes = []tenants.Scope{tenants.ScopeRead, tenants.ScopeCollect, tenants.ScopeOrder, tenants.ScopeTransfer, tenants.ScopeRefund}

func (c *Console) newKey(r *room) error {
	return r.Show("newkey.html", r.T("New key"), map[string]any{"Room": r, "Scopes": scopes})
}

func (c *Console) createKey(r *room) error {
	if err := r.Request.ParseForm(); err != nil {
		return err
	}
	created, err := adminapi.CreateKey.Call(r.Request.Context(), r.admin, adminapi.NewKey{
		Merchant: r.id(),
		Mode:     string(r.Mode), Name: strings.TrimSpace(r.Form("name")), Scopes: r.Request.PostForm["scope"],
		IPs: strings.FieldsFunc(r.Form("ips"), func(c rune) bool { return c == ',' || c == '\n' || c == ' ' || c == '\r' }),
	})
	if err != nil {
		return err
	}
	return c.showKey(r, created, "Put it where your server reads its secrets.")
}

func (c *Console) showKey(r *room, k adminapi.CreatedKey, text string) error {
	return r.Show("secret.html", r.T("New key"), map[string]any{"Room": r, "Secret": k.SecretKey, "Back": r.Path("/keys"), "Text": text})
}

func (c *Console) askRotation(r *room) error {
	return r.Show("rotate.html", r.T("Rotate the key"), map[string]any{"Room": r, "Key": r.Request.PathValue("key")})
}

// ownKey refuses a key of the other mode: what a page of test mode does is about test keys.
func (r *room) ownKey() error {
	merchant, err := adminapi.ShowMerchant.Call(r.Request.Context(), r.admin, adminapi.MerchantID{Merchant: r.id()})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(merchant.Keys, func(k adminapi.Key) bool { return k.KeyID == r.Request.PathValue("key") && k.Mode == string(r.Mode) }) {
		return tenants.ErrNotFound
	}
	return nil
}

func (c *Console) rotateKey(r *room) error {
	if err := r.ownKey(); err != nil {
		return err
	}
	created, err := adminapi.RotateKey.Call(r.Request.Context(), r.admin, adminapi.KeyRotation{Merchant: r.id(), Key: r.Request.PathValue("key"), Overlap: r.Form("overlap")})
	if err != nil {
		return err
	}
	return c.showKey(r, created, "The old key goes on until its overlap ends. The list of keys tells when and from where each was used last.")
}

func (c *Console) renameKey(r *room) error {
	if err := r.ownKey(); err != nil {
		return err
	}
	if _, err := adminapi.RenameKey.Call(r.Request.Context(), r.admin, adminapi.KeyName{Merchant: r.id(), Key: r.Request.PathValue("key"), Name: strings.TrimSpace(r.Form("name"))}); err != nil {
		return err
	}
	return r.Go(r.Path("/keys"), "The key has its new name.")
}

func (c *Console) revokeKey(r *room) error {
	if err := r.ownKey(); err != nil {
		return err
	}
	if _, err := adminapi.RevokeKey.Call(r.Request.Context(), r.admin, adminapi.KeyRevocation{Merchant: r.id(), Key: r.Request.PathValue("key"), Reason: r.Form("reason")}); err != nil {
		return err
	}
	return r.Go(r.Path("/keys"), "The key is revoked.")
}
