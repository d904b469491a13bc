package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

const aboutCallbacks = "Any 2xx within 10 seconds is success; redirects are not followed. Anything else is tried again until the event is 30 days old, " +
	"under the same webhook-id: handle an id that you have seen as seen."

// occasions are the callback events, in the words of the document.
var occasions = []struct {
	name    func(movement.Events) string
	summary string
}{
	{func(e movement.Events) string { return e.Ended }, "A final state was reached."},
	{func(e movement.Events) string { return e.PaidLate }, "Money came after the end; the state stays. paid_late_at is set."},
	{func(e movement.Events) string { return e.Reversed }, "The provider took a success back; the state stays. reversed_at is set."},
}

// describeWebhooks describes the callbacks by the names of their events.
func describeWebhooks(operations []*Operation) (object, error) {
	webhooks := object{}
	for _, occasion := range occasions {
		bodies := map[string][]any{} // more than one where several providers have operations of one kind
		for _, op := range operations {
			name := occasion.name(op.Rules.Events)
			if name == "" || op.Status == nil {
				continue
			}
			data, err := describeEvent(op.Status)
			if err != nil {
				return nil, fmt.Errorf("%s: response: %w", op.Status.Path, err)
			}
			bodies[name] = append(bodies[name], data)
		}
		for name, data := range bodies {
			webhooks[name] = object{"post": describeWebhook(name, occasion.summary, data)}
		}
	}
	return webhooks, nil
}

// describeEvent describes a callback's data: the status answer and its time.
func describeEvent(status *Operation) (object, error) {
	var schema object
	if err := json.Unmarshal(status.Response, &schema); err != nil {
		return nil, err
	}
	properties, _ := schema["properties"].(object)
	if properties == nil {
		properties = object{}
	}
	required, _ := schema["required"].([]any)
	// A callback never carries what is left of a quota.
	delete(properties, "remaining_quota")
	required = slices.DeleteFunc(slices.Clone(required), func(name any) bool { return name == "remaining_quota" })
	for _, name := range status.Target.Rules.Reports {
		if _, declared := properties[name]; !declared {
			properties[name] = object{"type": "string"}
		}
		required = append(slices.Clone(required), name)
	}
	properties["timestamp"] = object{"type": "string", "format": "date-time", "description": "When the event happened."}
	schema["properties"], schema["required"] = properties, append(slices.Clone(required), "timestamp")
	return schema, nil
}

func describeWebhook(name, summary string, data []any) object {
	schema := data[0]
	if len(data) > 1 {
		schema = object{"anyOf": data}
	}
	parameters := make([]any, len(callbackHeaders))
	for i, header := range callbackHeaders {
		parameters[i] = object{
			"name": header.name, "in": "header", "required": true, "description": header.description,
			"schema": object{"type": "string"},
		}
	}
	return object{
		"summary":     summary,
		"description": aboutCallbacks,
		"tags":        []any{strings.Split(name, ".")[0]},
		"security":    []any{object{}},
		"parameters":  parameters,
		"requestBody": object{
			"required": true,
			"content": object{"application/json": object{"schema": object{
				"type":       "object",
				"required":   []any{"event", "data"},
				"properties": object{"event": object{"const": name}, "data": schema},
			}}},
		},
		"responses": object{
			"2XX": object{"description": "The callback was taken."},
			"410": object{"description": "The receiver is gone: this callback is not tried again."},
		},
	}
}

// callbackHeaders are the headers of each callback.
var callbackHeaders = []struct{ name, description string }{
	{"webhook-id", "The event's id, the same on every try and in /events."},
	{"webhook-timestamp", "When this try was made, in seconds since 1970."},
	{"webhook-signature", "The signature of Standard Webhooks, of id, timestamp and body; more than one, with spaces between, while the secret is rotated. " +
		"The key is what the part of the callback secret after whsec_ is in base64."},
	{"X-Svc-Signature", "The HMAC-SHA256 of the raw body in lower-case hex. The key is the whole text of the callback secret, whsec_ included."},
	{"X-Svc-Event-Sequence", "The event's place in the story of its payment, order or transfer; a lower one is older news."},
}
