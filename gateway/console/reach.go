package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// checkReach refuses an address whose port the provider's plugin may not connect to.
// No call of such a connection could ever reach its upstream.
func (c *Console) checkReach(provider tenants.Provider, credentials []byte) error {
	var document map[string]any
	if err := json.Unmarshal(credentials, &document); err != nil {
		return fault.Invalid("credentials", "must be a JSON object")
	}
	for _, status := range c.deps.Plugins.Status() {
		if status.Provider != string(provider) {
			continue
		}
		for _, a := range addresses("credentials", document) {
			if !slices.Contains(texts(status.Ports), a.port) {
				return fault.Invalid(a.field, fmt.Sprintf(
					"has port %s, which the plugin %s may not connect to; its ports stand in its approval (gerbang plugin approve --port), or without one in the gateway's configuration (plugins: ports)", a.port, provider))
			}
		}
	}
	return nil
}

// texts are ports as addresses have them.
func texts(ports []uint16) []string {
	all := make([]string, len(ports))
	for i, port := range ports {
		all[i] = strconv.Itoa(int(port))
	}
	return all
}

type address struct{ field, port string }

// addresses are the places of a document that a plugin connects to.
func addresses(at string, document map[string]any) []address {
	var found []address
	for _, name := range slices.Sorted(maps.Keys(document)) {
		field := at + "." + name
		switch value := document[name].(type) {
		case map[string]any:
			found = append(found, addresses(field, value)...)
		case string:
			if u, err := url.Parse(value); err == nil && strings.HasSuffix(name, "url") {
				found = append(found, address{field, port(u)})
			}
		}
	}
	return found
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}
