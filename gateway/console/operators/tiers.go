package operators

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// inForce names the version of the policy that is in force.
const inForce = "active"

// dataFile is the file of a policy that has its numbers.
const dataFile = "data.json"

// tiersOf are the tiers that the policy in force has limits for.
func tiersOf(r *room) ([]string, error) {
	active, err := adminapi.ShowPolicy.Call(r.Request.Context(), r.admin, adminapi.PolicyName{Version: inForce})
	if err != nil {
		return nil, err
	}
	var data struct {
		Tiers map[string]json.RawMessage `json:"tiers"`
	}
	if err := json.Unmarshal([]byte(active.Files[dataFile]), &data); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(data.Tiers)), nil
}

// next is the link to the page after this one, "" where there is none.
func next(path, after string) string {
	if after == "" {
		return ""
	}
	mark := "?"
	if strings.Contains(path, "?") {
		mark = "&"
	}
	return path + mark + url.Values{"after": {after}}.Encode()
}
