package catalog

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// addLists adds the gateway's own list beside each status operation, so that every
// provider's movements can be listed and no manifest has to say so.
func (s *Snapshot) addLists(own *manifest.Manifest) error {
	for _, status := range slices.Clone(s.operations) {
		if status.StatusOf == "" {
			continue
		}
		declared, err := listOf(status)
		if err != nil {
			return fmt.Errorf("the list of %s: %w", status.Path, err)
		}
		if taken, ok := s.byPath[declared.Path]; ok {
			return fmt.Errorf("provider %s: operation %s: the path is the gateway's own", taken.Provider, taken.Path)
		}
		list, err := compile("", own, declared)
		if err != nil {
			return fmt.Errorf("%s: %w", declared.Path, err)
		}
		list.Lists = status
		s.byPath[list.Path] = list
		s.operations = append(s.operations, list)
	}
	return nil
}

// listOf declares the list beside a status operation: its items are status answers.
func listOf(status *Operation) (manifest.Operation, error) {
	words := []string{}
	for _, state := range status.Target.Rules.Listed("") {
		if word := status.Target.Rules.Word(state); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	var item object
	if err := json.Unmarshal(status.Response, &item); err != nil {
		return manifest.Operation{}, err
	}
	properties, _ := item["properties"].(object)
	required, _ := item["required"].([]any)
	delete(properties, "remaining_quota")
	properties["created_at"] = object{"type": "string", "format": "date-time"}
	required = slices.DeleteFunc(required, func(name any) bool { return name == "remaining_quota" || name == "created_at" })
	item["required"] = append(required, "created_at")
	response, err := json.Marshal(object{"type": "array", "maxItems": mostListed, "items": item})
	if err != nil {
		return manifest.Operation{}, err
	}
	request, err := json.Marshal(listRequest(words))
	if err != nil {
		return manifest.Operation{}, err
	}
	what := string(status.Target.Kind) + "s"
	return manifest.Operation{
		Path: path.Join(path.Dir(status.Path), "list"), Kind: manifest.Query, Timeout: listTimeout,
		Summary: "List your " + what, Request: request, Response: response,
		Description: "The newest first, each as " + status.Path + " tells it, by what is known without asking the provider. " +
			"What is being created at this moment is not listed yet. Read on with the last one of a list as after until a list is empty.",
	}, nil
}

const (
	mostListed  = 100
	listTimeout = manifest.Duration(5e9)
)

func listRequest(words []string) object {
	return object{"type": "object", "properties": object{
		"status": object{"enum": words, "description": "Only those that have it now."},
		"from":   object{"type": "string", "format": "date-time", "description": "Only those created at this time or later."},
		"to":     object{"type": "string", "format": "date-time", "description": "Only those created before this time."},
		"reference_prefix": object{
			"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\p{C}]*$",
			"description": "Only those whose reference begins so. It is searched in 31 days at most: without from, those before to.",
		},
		"after": object{
			"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\p{C}]*$",
			"description": "The reference of one, or our id of a transfer: the list goes on after it. It begins with the newest when omitted.",
		},
		"limit": object{"type": "integer", "minimum": 1, "maximum": mostListed, "default": 20, "description": "How many at most."},
	}}
}
