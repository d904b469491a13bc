package console

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) setConnection(x *call) (any, error) {
	var spec ConnectionSpec
	if err := decode(x, &spec); err != nil {
		return nil, err
	}
	account, err := c.account(x)
	if err != nil {
		return nil, err
	}
	wanted, credentials, err := c.checkConnection(x, account.ID(), spec)
	if err != nil {
		return nil, err
	}
	if now, ok := account.Connection(wanted.Mode, wanted.Provider); ok && c.sameConnection(now, wanted, credentials) {
		return c.connectionDocument(now), nil
	}
	if wanted.Sealed, err = c.deps.Vault.SealCredentials(wanted.MerchantID, wanted.Mode, wanted.Provider, credentials); err != nil {
		return nil, err
	}
	if wanted.NotifyToken, err = tenants.NewNotifyToken(rand.Reader); err != nil {
		return nil, err
	}
	detail := fmt.Sprintf("provider %s, mode %s, owner %s", wanted.Provider, wanted.Mode, wanted.Owner)
	stored, err := c.deps.Connections.PutConnection(x.request.Context(), x.audit("connection.set", detail), wanted)
	c.deps.Directory.Invalidate(wanted.MerchantID)
	if err != nil {
		return nil, err
	}
	return c.connectionDocument(stored), nil
}

// checkConnection turns what was asked into a connection without its sealed
// part, and the credentials in their compact form.
func (c *Console) checkConnection(x *call, id tenants.MerchantID, spec ConnectionSpec) (tenants.Connection, []byte, error) {
	provider := tenants.Provider(x.request.PathValue("provider"))
	schema, ok := c.schemas[provider]
	if !ok {
		return tenants.Connection{}, nil, fault.New(fault.NotFound, "There is no such provider.")
	}
	mode, err := tenants.ParseMode(spec.Mode)
	if err != nil {
		return tenants.Connection{}, nil, fault.Invalid("mode", "must be live or test")
	}
	owner := tenants.OwnerMerchant
	if spec.Owner != "" {
		if owner, err = tenants.ParseOwner(spec.Owner); err != nil {
			return tenants.Connection{}, nil, fault.Invalid("owner", "must be merchant or platform")
		}
	}
	if len(spec.Credentials) == 0 {
		return tenants.Connection{}, nil, fault.Invalid("credentials", "is required")
	}
	if wrong := schema.Check(spec.Credentials); len(wrong) > 0 {
		for i := range wrong {
			wrong[i].Field = strings.TrimSuffix("credentials."+wrong[i].Field, ".")
		}
		return tenants.Connection{}, nil, fault.New(fault.InvalidRequest, "The credentials do not fit what "+string(provider)+" asks for.", wrong...)
	}
	credentials, err := ordered(spec.Credentials)
	if err != nil {
		return tenants.Connection{}, nil, fault.Invalid("credentials", "must be a JSON object")
	}
	return tenants.Connection{MerchantID: id, Mode: mode, Provider: provider, Owner: owner}, credentials, nil
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

func (c *Console) connectionDocument(of tenants.Connection) Connection {
	path := "/notify/" + string(of.Provider) + "/" + string(of.NotifyToken)
	return Connection{
		Provider: string(of.Provider), Mode: string(of.Mode), Owner: string(of.Owner), Version: of.Version,
		NotifyPath: path, NotifyURL: c.config.PublicURL + path,
	}
}
