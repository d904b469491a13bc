package merchants

import (
	"encoding/json"
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
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
	merchant, err := r.admin.Merchant(r.Request.Context(), r.id())
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

// credential is a field of a provider's credentials.
type credential struct {
	Name, Description, Default string
	Required, Secret           bool
	Choices                    []string
	Number                     bool
	URL                        bool
	Truth                      bool
}

func (c *Console) connection(r *room) error {
	m, err := c.provider(r)
	if err != nil {
		return err
	}
	fields, err := credentialsOf(m)
	if err != nil {
		return err
	}
	return r.Show("connection.html", m.Title, map[string]any{"Room": r, "M": m, "Fields": fields, "Operators": ofOperators(fields)})
}

func (c *Console) provider(r *room) (*manifest.Manifest, error) {
	for _, m := range c.deps.Manifests() {
		if m.Name == r.Request.PathValue("provider") && tenants.Owner(m.Owner) != tenants.OwnerPlatform {
			return m, nil
		}
	}
	return nil, tenants.ErrNotFound
}

func credentialsOf(m *manifest.Manifest) ([]credential, error) {
	var schema struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type        string   `json:"type"`
			Description string   `json:"description"`
			Enum        []string `json:"enum"`
			Format      string   `json:"format"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(m.Connection, &schema); err != nil {
		return nil, err
	}
	var fields []credential
	for name, p := range schema.Properties {
		required := slices.Contains(schema.Required, name)
		if p.Format == "uri" && !required {
			continue // where the gateway connects to is operators' affair
		}
		fields = append(fields, credential{
			Name: name, Description: p.Description, Required: required, Secret: required && p.Format == "" && len(p.Enum) == 0, Choices: p.Enum,
			URL: p.Format == "uri", Number: p.Type == "integer" || p.Type == "number", Truth: p.Type == "boolean",
		})
	}
	slices.SortFunc(fields, func(a, b credential) int {
		if a.Required != b.Required {
			return map[bool]int{true: -1, false: 1}[a.Required]
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return fields, nil
}

// ofOperators tells a connection that needs a URL: where the gateway connects to is
// operators' affair, so they set it up.
func ofOperators(fields []credential) bool {
	return slices.ContainsFunc(fields, func(f credential) bool { return f.URL })
}

func (c *Console) setConnection(r *room) error {
	m, err := c.provider(r)
	if err != nil {
		return err
	}
	fields, err := credentialsOf(m)
	if err != nil {
		return err
	}
	if ofOperators(fields) {
		return tenants.ErrNotFound
	}
	given := map[string]any{}
	for _, f := range fields {
		text := r.Form("credential." + f.Name)
		switch {
		case text == "":
		case f.Number:
			given[f.Name] = json.Number(text)
		case f.Truth:
			given[f.Name] = text == "true"
		default:
			given[f.Name] = text
		}
	}
	credentials, err := json.Marshal(given)
	if err != nil {
		return err
	}
	stored, err := r.admin.SetConnection(r.Request.Context(), r.id(), m.Name, adminapi.ConnectionSpec{Mode: string(r.Mode), Credentials: credentials})
	if err != nil {
		return err
	}
	return r.Show("connected.html", m.Title, map[string]any{"Room": r, "M": m, "Stored": stored})
}
