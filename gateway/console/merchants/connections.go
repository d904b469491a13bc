package merchants

import (
	"encoding/json"
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// offer is a provider with this merchant's account at it, if there is one.
type offer struct {
	Name, Title string
	Mine        bool // its accounts are merchants'
	Stored      *adminapi.Connection
}

func (c *Console) connections(r *room) error {
	merchant, err := adminapi.ShowMerchant.Call(r.Request.Context(), r.admin, adminapi.MerchantID{Merchant: r.id()})
	if err != nil {
		return err
	}
	var offers []offer
	for _, m := range c.deps.Manifests() {
		o := offer{Name: m.Name, Title: m.Title, Mine: tenants.Owner(m.Owner) != tenants.OwnerPlatform}
		if i := slices.IndexFunc(merchant.Connections, func(s adminapi.Connection) bool { return s.Provider == m.Name && s.Mode == string(r.Mode) }); i >= 0 {
			o.Stored = &merchant.Connections[i]
		}
		offers = append(offers, o)
	}
	return r.Show("connections.html", r.T("Connections"), map[string]any{"Room": r, "Offers": offers})
}

func (c *Console) connection(r *room) error {
	m, err := c.provider(r)
	if err != nil {
		return err
	}
	fields, operators, err := credentialsOf(m)
	if err != nil {
		return err
	}
	return r.Show("connection.html", m.Title, map[string]any{"Room": r, "M": m, "Fields": fields, "Operators": operators})
}

func (c *Console) provider(r *room) (*manifest.Manifest, error) {
	for _, m := range c.deps.Manifests() {
		if m.Name == r.Request.PathValue("provider") && tenants.Owner(m.Owner) != tenants.OwnerPlatform {
			return m, nil
		}
	}
	return nil, tenants.ErrNotFound
}

// field is what a form asks for.
type field struct {
	catalog.Ask

	Masked bool
}

// credentialsOf are the fields that a merchant gives, and whether operators must give others:
// then they set the connection up.
func credentialsOf(m *manifest.Manifest) (fields []field, operators bool, err error) {
	schema, err := catalog.NewConnectionSchema(m)
	if err != nil {
		return nil, false, err
	}
	asks := schema.Asks()
	says := slices.ContainsFunc(asks, func(a catalog.Ask) bool { return a.Secret })
	for _, ask := range asks {
		if ask.Operators {
			operators = operators || ask.Required
			continue
		}
		guessed := !says && ask.Required && ask.Type == "string" && len(ask.Choices) == 0
		fields = append(fields, field{ask, ask.Secret || guessed})
	}
	return fields, operators, nil
}

func (c *Console) setConnection(r *room) error {
	m, err := c.provider(r)
	if err != nil {
		return err
	}
	fields, operators, err := credentialsOf(m)
	if err != nil {
		return err
	}
	if operators {
		return tenants.ErrNotFound
	}
	credentials, err := given(fields, r.Form)
	if err != nil {
		return err
	}
	stored, err := adminapi.SetConnection.Call(r.Request.Context(), r.admin, adminapi.ConnectionSpec{Merchant: r.id(), Provider: m.Name, Mode: string(r.Mode), Credentials: credentials})
	if err != nil {
		return err
	}
	return r.Show("connected.html", m.Title, map[string]any{"Room": r, "M": m, "Stored": stored})
}

// given is a form as JSON; what was left empty is left out.
func given(fields []field, form func(name string) string) ([]byte, error) {
	values := map[string]any{}
	for _, f := range fields {
		text := form("credential." + f.Name)
		if text == "" {
			continue
		}
		switch f.Type {
		case "integer", "number":
			if !json.Valid([]byte(text)) {
				return nil, fault.Invalid("credentials."+f.Name, "must be a number")
			}
			values[f.Name] = json.RawMessage(text)
		case "boolean":
			values[f.Name] = text == "true"
		default:
			values[f.Name] = text
		}
	}
	return json.Marshal(values)
}
