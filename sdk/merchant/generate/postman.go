package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

type members = map[string]any

// postman is the collection of the same calls for Postman, v2.1: a folder for each tag, a
// request for each example, with its answer. What makes something comes before what asks.
func (d document) postman() ([]byte, error) {
	paths := slices.SortedFunc(maps.Keys(d.Paths), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.Paths[a].rank(), d.Paths[b].rank()), cmp.Compare(a, b))
	})
	var folders []any
	for _, tag := range d.Tags {
		var items []any
		for _, path := range paths {
			if op := d.Paths[path].Post; op != nil && slices.Contains(op.Tags, tag.Name) {
				items = append(items, op.items(path)...)
			}
		}
		if len(items) > 0 {
			folders = append(folders, members{"name": tag.Name, "description": tag.Description, "item": items})
		}
	}
	variable := func(key, value, about string) members {
		return members{"key": key, "value": value, "type": "string", "description": about}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(members{
		"info": members{
			"name": d.Info.Title + " " + d.Info.Version, "description": d.Info.Description,
			"schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
		},
		"auth": members{"type": "bearer", "bearer": []any{members{"key": "token", "value": "{{key}}", "type": "string"}}},
		"variable": []any{
			variable("base_url", "http://127.0.0.1:8080", "Where the gateway is; this is make run's."),
			variable("key", "", "Your secret key: sk_test_..."),
			variable("merchant_id", "", "Your merchant id: mer_..."),
			variable("callback_url", "", "Where callbacks go, of requests whose header X-Callback-URL is switched on."),
		},
		"item": folders,
	})
	return out.Bytes(), err
}

// rank is 0 for what moves money, 1 for the rest.
func (p path) rank() int {
	if p.Post != nil && p.Post.money() {
		return 0
	}
	return 1
}

// items are a request for each of an operation's examples.
func (op *operation) items(path string) []any {
	const kind = "application/json"
	examples := op.RequestBody.Content[kind].Examples
	var items []any
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		title := op.Summary
		if summary := examples[name].Summary; summary != "" {
			title += ": " + summary
		}
		headers := []any{members{"key": "Content-Type", "value": kind}}
		if op.money() {
			headers = append(headers, members{"key": "X-Callback-URL", "value": "{{callback_url}}", "disabled": true})
		}
		request := members{
			"method": "POST", "header": headers, "description": op.Description,
			"url":  members{"raw": "{{base_url}}" + path, "host": []any{"{{base_url}}"}, "path": strings.Split(path[1:], "/")},
			"body": members{"mode": "raw", "raw": own(examples[name].Value), "options": members{"raw": members{"language": "json"}}},
		}
		items = append(items, members{
			"name": title, "request": request,
			"response": []any{members{
				"name": "Success", "originalRequest": request, "status": "OK", "code": 200, "_postman_previewlanguage": "json",
				"header": []any{members{"key": "Content-Type", "value": kind}},
				"body":   indented(op.Responses["200"].Content[kind].Examples[name].Value),
			}},
		})
	}
	return items
}

var merchantID = regexp.MustCompile(`"merchant_id": "[^"]*"`)

// own is an example with the reader's own merchant id.
func own(value json.RawMessage) string {
	return merchantID.ReplaceAllString(indented(value), `"merchant_id": "{{merchant_id}}"`)
}

func indented(value json.RawMessage) string {
	var out bytes.Buffer
	_ = json.Indent(&out, value, "", "  ") // it is part of a document that was read
	return out.String()
}
