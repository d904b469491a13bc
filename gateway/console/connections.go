package console

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) setConnection(x *call, spec adminapi.ConnectionSpec) (out adminapi.Connection, err error) {
	account, err := c.account(x)
	if err != nil {
		return out, err
	}
	wanted, credentials, err := c.checkConnection(x, account, spec)
	if err != nil {
		return out, err
	}
	if now, ok := account.Connection(wanted.Mode, wanted.Provider); ok && c.sameConnection(now, wanted, credentials) {
		return c.connectionDocument(now), nil
	}
	if err := c.checkHolder(x, wanted, credentials); err != nil {
		return out, err
	}
	checked, err := c.verify(x, wanted, credentials, spec.Unverified)
	if err != nil {
		return out, err
	}
	if wanted.Sealed, err = c.deps.Vault.SealCredentials(wanted.MerchantID, wanted.Mode, wanted.Provider, credentials); err != nil {
		return out, err
	}
	if wanted.NotifyToken, err = tenants.NewNotifyToken(rand.Reader); err != nil {
		return out, err
	}
	detail := fmt.Sprintf("provider %s, mode %s, owner %s", wanted.Provider, wanted.Mode, wanted.Owner)
	if checked.Verified == unverified {
		detail += ", unverified"
	}
	stored, err := c.deps.Secrets.PutConnection(x.request.Context(), x.audit("connection.set", detail), wanted)
	c.deps.Directory.Invalidate(wanted.MerchantID)
	if errors.Is(err, store.ErrPluginRemoved) {
		return out, fault.New(fault.NotFound, "There is no such provider any more: its plugin was removed.")
	}
	if err != nil {
		return out, err
	}
	document := c.connectionDocument(stored)
	document.Verified, document.Account = checked.Verified, checked.Account
	return document, nil
}

// checkConnection turns what was asked into a connection without its sealed
// part, and the credentials in their compact form.
func (c *Console) checkConnection(x *call, account *tenants.Account, spec adminapi.ConnectionSpec) (tenants.Connection, []byte, error) {
	id := account.ID()
	provider := tenants.Provider(spec.Provider)
	schema, ok := c.offered.Load().schemas[provider]
	if !ok {
		return tenants.Connection{}, nil, fault.New(fault.NotFound, "There is no such provider.")
	}
	mode, err := tenants.ParseMode(spec.Mode)
	if err != nil {
		return tenants.Connection{}, nil, fault.Invalid("mode", "must be live or test")
	}
	owner, err := c.ownerFor(id, provider, spec.Owner)
	if err != nil {
		return tenants.Connection{}, nil, err
	}
	if len(spec.Credentials) == 0 {
		return tenants.Connection{}, nil, credentialsMissing(provider, schema)
	}
	if x.operator.Of != "" {
		if spec.Credentials, err = c.withOperators(account, mode, provider, schema, spec.Credentials); err != nil {
			return tenants.Connection{}, nil, err
		}
	}
	if wrong := schema.Check(spec.Credentials); len(wrong) > 0 {
		for i := range wrong {
			wrong[i].Field = strings.TrimSuffix("credentials."+wrong[i].Field, ".")
		}
		return tenants.Connection{}, nil, fault.New(fault.InvalidRequest, "The credentials do not fit what "+string(provider)+" asks for: "+asked(schema)+".", wrong...)
	}
	credentials, err := ordered(spec.Credentials)
	if err != nil {
		return tenants.Connection{}, nil, fault.Invalid("credentials", "must be a JSON object")
	}
	if err := c.checkReach(provider, credentials); err != nil {
		return tenants.Connection{}, nil, err
	}
	return tenants.Connection{MerchantID: id, Mode: mode, Provider: provider, Owner: owner}, credentials, nil
}

// withOperators gives a merchant's credentials the fields that operators alone set, as they
// are stored: whoever renews a key must not send its calls elsewhere.
func (c *Console) withOperators(account *tenants.Account, mode tenants.Mode, provider tenants.Provider, schema *catalog.ConnectionSchema, given []byte) ([]byte, error) {
	var stored, wanted map[string]json.RawMessage
	if err := json.Unmarshal(given, &wanted); err != nil || wanted == nil {
		return nil, fault.Invalid("credentials", "must be a JSON object")
	}
	if now, ok := account.Connection(mode, provider); ok {
		opened, err := c.deps.Vault.OpenCredentials(now)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(opened, &stored); err != nil {
			return nil, err
		}
		if sandbox.Simulated(opened) { // whose address is not where a key of the provider's goes
			stored = nil
		}
	}
	for _, ask := range schema.Asks() {
		if !ask.Operators {
			continue
		}
		delete(wanted, ask.Name)
		if value, ok := stored[ask.Name]; ok {
			wanted[ask.Name] = value
		}
	}
	return json.Marshal(wanted)
}

// checkHolder refuses an account on which another merchant collects. The first
// collection makes it its merchant's, in its own commit; this tells operators before
// a collection is refused.
func (c *Console) checkHolder(x *call, wanted tenants.Connection, credentials []byte) error {
	manifests := c.deps.Plugins.Manifests()
	i := slices.IndexFunc(manifests, func(m *manifest.Manifest) bool { return m.Name == string(wanted.Provider) })
	if i < 0 || !manifests[i].Statements || len(manifests[i].AccountFields()) == 0 {
		return nil
	}
	name := manifests[i].AccountIn(credentials)
	statement, err := c.deps.Statements.Statement(x.request.Context(), movement.NewAccountID(string(wanted.Provider), string(wanted.Mode), name))
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && statement.MerchantID == string(wanted.MerchantID):
		return nil
	case err != nil:
		return err
	}
	whose := "another merchant"
	if identityOf(x.request).Of == "" {
		whose += ", " + statement.MerchantID + ","
	}
	return fault.Invalid("credentials."+manifests[i].AccountFields()[0], "names the account of "+whose+" who collects on it; nothing was stored")
}

// credentialsMissing names what a provider asks for, each field with what it is.
func credentialsMissing(provider tenants.Provider, schema *catalog.ConnectionSchema) error {
	fields := []fault.Field{{Field: "credentials", Message: "is required"}}
	for _, ask := range schema.Asks() {
		need := "is optional"
		if ask.Required {
			need = "is required"
		}
		if ask.Description != "" {
			need += ": " + ask.Description
		}
		fields = append(fields, fault.Field{Field: "credentials." + ask.Name, Message: need})
	}
	return fault.New(fault.InvalidRequest, "Credentials must be given. "+string(provider)+" asks for "+asked(schema)+".", fields...)
}

// listConnectionFields tells what a provider asks for in credentials, from its manifest.
func (c *Console) listConnectionFields(x *call, wanted adminapi.ProviderName) ([]catalog.Ask, error) {
	schema, ok := c.offered.Load().schemas[tenants.Provider(wanted.Provider)]
	if !ok {
		return nil, fault.New(fault.NotFound, "There is no such provider.")
	}
	return append([]catalog.Ask{}, schema.Asks()...), nil
}

// asked are the names of the fields that a provider asks for.
func asked(schema *catalog.ConnectionSchema) string {
	var required, optional []string
	for _, ask := range schema.Asks() {
		if ask.Required {
			required = append(required, ask.Name)
		} else {
			optional = append(optional, ask.Name)
		}
	}
	text := cmp.Or(strings.Join(required, ", "), "nothing")
	if len(optional) > 0 {
		text += "; optional: " + strings.Join(optional, ", ")
	}
	return text
}

// ownerFor is whose account a connection is: that of the one it hangs on. The
// platform has none at a provider where each merchant has its own.
func (c *Console) ownerFor(id tenants.MerchantID, provider tenants.Provider, given string) (tenants.Owner, error) {
	owner := tenants.OwnerMerchant
	if id == tenants.Platform {
		owner = tenants.OwnerPlatform
	}
	if given != "" && given != string(owner) {
		switch tenants.Owner(given) {
		case tenants.OwnerMerchant:
			return "", fault.Invalid("owner", "must be platform: the connections of platform are its own")
		case tenants.OwnerPlatform:
			return "", fault.Invalid("owner", "must be merchant: the platform's account belongs to platform, as in gerbang connection set platform "+string(provider))
		default:
			return "", fault.Invalid("owner", "must be merchant or platform")
		}
	}
	if owner == tenants.OwnerPlatform && c.offered.Load().owners[provider] != tenants.OwnerPlatform {
		return "", fault.New(fault.InvalidRequest, "Each merchant has an account of its own at "+string(provider)+"; the platform can't have one there.")
	}
	return owner, nil
}

// sameConnection tells whether there is nothing to write. Sealed bytes differ
// each time, so what they hold is compared; what can't be opened is replaced.
func (c *Console) sameConnection(now, wanted tenants.Connection, credentials []byte) bool {
	if now.Owner != wanted.Owner {
		return false
	}
	opened, err := c.deps.Vault.OpenCredentials(now)
	if err != nil {
		return false
	}
	if opened, err = ordered(opened); err != nil {
		return false
	}
	return bytes.Equal(opened, credentials)
}

// ordered writes JSON without spaces and with its names in order. Numbers stay
// as they were written.
func ordered(document []byte) ([]byte, error) {
	value := jsontext.Value(bytes.Clone(document))
	err := value.Compact(jsontext.ReorderRawObjects(true))
	return value, err
}

func (c *Console) connectionDocument(of tenants.Connection) adminapi.Connection {
	path := "/notify/" + string(of.Provider) + "/" + string(of.NotifyToken)
	return adminapi.Connection{
		Provider: string(of.Provider), Mode: string(of.Mode), Owner: string(of.Owner), Version: of.Version,
		NotifyPath: path, NotifyURL: c.config.PublicURL + path,
	}
}

// fieldsOf are the names of the credentials that are set, none where no key of this keyset
// opens them. Their values are shown to nobody.
func (c *Console) fieldsOf(of tenants.Connection) []string {
	opened, err := c.deps.Vault.OpenCredentials(of)
	if err != nil {
		return nil
	}
	var set map[string]json.RawMessage
	if json.Unmarshal(opened, &set) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(set))
}
