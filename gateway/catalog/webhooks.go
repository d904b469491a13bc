package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

const aboutCallbacks = "Any 2xx within 10 seconds is success; redirects are not followed. Anything else is tried again until the event is 30 days old, " +
	"under the same webhook-id: handle an id that you have seen as seen."

// occasion is why a callback is sent, in the words of the document, and what its example
// says otherwise than that of a status; nil leaves a property out
// that is not required.
type occasion struct {
	name    func(movement.Events) string
	summary string
	differs object
}

var occasions = []occasion{
	{func(e movement.Events) string { return e.Ended }, "A final state was reached", nil},
	{
		func(e movement.Events) string { return e.PaidLate }, "Money came after the end",
		object{"status": "EXPIRED", "paid_at": nil, "paid_late_at": exampleTime},
	},
	{
		func(e movement.Events) string { return e.AmountDiffers }, "Another amount than the one asked for has arrived",
		object{"status": "PENDING", "paid_at": nil, "paid_amount": 24000},
	},
	{
		func(e movement.Events) string { return e.Returned }, "Money of a success went back, or came again; the status says whether any of it is left",
		object{"returned_amount": 5000, "return": object{"id": "rfd-1", "sort": "refund", "amount": 5000, "at": exampleTime}},
	},
}

// describeWebhooks describes the callbacks by the names of their events.
func (d *describer) describeWebhooks(operations []*Operation) (object, error) {
	webhooks := object{}
	for _, o := range occasions {
		about := map[string][]*Operation{} // the status operations; several where several providers have operations of one kind
		for _, op := range operations {
			name := o.name(op.Rules.Events)
			if name != "" && op.Status != nil && !slices.Contains(about[name], op.Status) {
				about[name] = append(about[name], op.Status)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(about)) {
			described, err := d.describeWebhook(name, o, about[name])
			if err != nil {
				return nil, fmt.Errorf("event %s: %w", name, err)
			}
			webhooks[name] = object{"post": described}
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
	if err := echoed(status, schema); err != nil {
		return nil, err
	}
	opened(schema)
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
	properties["return"] = object{
		"type": "object", "required": []any{"id", "sort", "amount", "at"},
		"description": "Of an event that tells of money that went back: what it was.",
		"properties": object{
			"id":        object{"type": "string", "description": "The provider's id of it; empty where the provider told no more than that all of it went back."},
			"sort":      object{"type": "string", "enum": []any{"refund", "void", "chargeback", "reversal"}},
			"amount":    object{"type": "integer"},
			"at":        object{"type": "string", "format": "date-time"},
			"undone_at": object{"type": "string", "format": "date-time", "description": "When the money came again: a dispute was won, a refund failed."},
			"refund_id": object{"type": "string", "description": "Of your refund that it was, where it was one."},
		},
	}
	properties["timestamp"] = object{"type": "string", "format": "date-time", "description": "When the event happened."}
	schema["properties"], schema["required"] = properties, append(slices.Clone(required), "timestamp")
	return schema, nil
}

// eventExample is a callback's body with the data of a status example; nil where that
// does not fit.
func (d *describer) eventExample(name string, o occasion, status *Operation, schema object) (object, error) {
	examples, err := examplesOf(status, d.Operations[status.Path])
	if err != nil || len(examples) == 0 {
		return nil, err
	}
	data := object{}
	if err := json.Unmarshal(examples[0].Data, &data); err != nil {
		return nil, err
	}
	properties, _ := schema["properties"].(object)
	for _, report := range status.Target.Rules.Reports {
		if _, told := data[report]; !told {
			data[report] = examples[0].Message
		}
	}
	maps.Copy(data, o.differs)
	data["timestamp"] = exampleTime
	required, _ := schema["required"].([]any)
	maps.DeleteFunc(data, func(name string, value any) bool {
		return properties[name] == nil || value == nil && !slices.Contains(required, any(name))
	})
	return object{"event": name, "data": data}, nil
}

func (d *describer) describeWebhook(name string, o occasion, about []*Operation) (object, error) {
	var data []any
	var example object
	for _, status := range about {
		schema, err := describeEvent(status)
		if err != nil {
			return nil, err
		}
		if example == nil {
			if example, err = d.eventExample(name, o, status, schema); err != nil {
				return nil, err
			}
		}
		kind := title(string(status.Target.Kind)) + "EventData"
		data = append(data, d.schemas.add(kind, title(operationID(status.Path))+"EventData", schema))
	}
	one := data[0]
	if len(data) > 1 {
		one = object{"anyOf": data}
	}
	body := object{
		"type":       "object",
		"required":   []any{"event", "data"},
		"properties": object{"event": object{"type": "string", "const": name}, "data": one},
	}
	id := title(operationID(strings.NewReplacer(".", "/").Replace(name)))
	content := object{"schema": d.schemas.add(id, id+"Event", body)}
	if example != nil {
		content["example"] = example
	}
	parameters := make([]any, len(callbackHeaders))
	for i, header := range callbackHeaders {
		parameters[i] = object{
			"name": header.name, "in": "header", "required": true, "description": header.description,
			"schema": object{"type": "string"}, "example": header.example,
		}
	}
	return object{
		"operationId": "on" + id,
		"summary":     o.summary,
		"description": aboutCallbacks,
		"tags":        d.tag(strings.Split(name, ".")[0], "Callbacks."),
		"security":    []any{object{}},
		"parameters":  parameters,
		"requestBody": object{
			"required": true,
			"content":  object{"application/json": content},
		},
		"responses": object{
			"2XX": object{"description": "The callback was taken."},
			"410": object{"description": "The receiver is gone: this callback is not tried again."},
		},
	}, nil
}

// callbackHeaders are the headers of each callback.
var callbackHeaders = []struct{ name, description, example string }{
	{"webhook-id", "The event's id, the same on every try and in /events.", "7c1d3a52-0a41-4a0e-8f6e-2f4c5f0f7d11"},
	{"webhook-timestamp", "When this try was made, in seconds since 1970.", "1795185000"},
	{"webhook-signature", "The signature of Standard Webhooks, of id, timestamp and body; more than one, with spaces between, while the secret is rotated. " +
		"The key is what the part of the callback secret after whsec_ is in base64.", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="},
	{"X-Svc-Signature", "The HMAC-SHA256 of the raw body in lower-case hex. The key is the whole text of the callback secret, whsec_ included.", "2b99e39f7dcd95f5515aed44b1f4267d53508679199da8fda3d34337f1ffa48e"},
	{"X-Svc-Event-Sequence", "The event's place in the history of its payment, order or transfer; a lower one is older news.", "2"},
}
