package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// secretName tells a credential that nobody may see by its name in the connection;
// a public key and the number of an account are none.
var secretName = regexp.MustCompile(`(?i)(secret|token|password|private|api_?key|server_?key|^key$|_key$|pin$)`)

func tellsSecret(name string) bool {
	return secretName.MatchString(name) && !strings.Contains(strings.ToLower(name), "public")
}

// secret is a text of a connection's credentials that nobody may see, by where it stands.
type secret struct{ name, text string }

// secretsOf are the texts that the connection's schema has as writeOnly, in whichever of its
// branches, and those whose name tells, at any depth.
func secretsOf(schema, credentials json.RawMessage) []secret {
	var root, document any
	if json.Unmarshal(schema, &root) != nil || json.Unmarshal(credentials, &document) != nil {
		return nil
	}
	w := &walk{root: root}
	w.visit("", document, w.branches(root, nil), false)
	return w.found
}

// walk goes through a document with all that its schema says of each place.
type walk struct {
	root  any
	found []secret
}

func (w *walk) visit(at string, value any, schemas []map[string]any, hidden bool) {
	hidden = hidden || slices.ContainsFunc(schemas, func(s map[string]any) bool { return s["writeOnly"] == true })
	switch v := value.(type) {
	case string:
		if hidden {
			w.found = append(w.found, secret{at, v})
		}
	case []any:
		var items []map[string]any
		for _, s := range schemas {
			items = append(items, w.branches(s["items"], nil)...)
		}
		for _, item := range v {
			w.visit(at, item, items, hidden)
		}
	case map[string]any:
		for name, member := range v {
			w.visit(strings.TrimPrefix(at+"/"+name, "/"), member, w.of(schemas, name), hidden || tellsSecret(name))
		}
	}
}

// of is what schemas of an object say of a member.
func (w *walk) of(schemas []map[string]any, name string) (of []map[string]any) {
	for _, s := range schemas {
		properties, _ := s["properties"].(map[string]any)
		if member, named := properties[name]; named {
			of = append(of, w.branches(member, nil)...)
		} else {
			of = append(of, w.branches(s["additionalProperties"], nil)...)
		}
	}
	return of
}

// branches are a schema and all that may hold beside it.
func (w *walk) branches(schema any, followed []string) []map[string]any {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	all := []map[string]any{s}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := s[keyword].([]any)
		for _, one := range list {
			all = append(all, w.branches(one, followed)...)
		}
	}
	for _, keyword := range []string{"then", "else"} {
		all = append(all, w.branches(s[keyword], followed)...)
	}
	if ref, given := s["$ref"].(string); given && strings.HasPrefix(ref, "#") && !slices.Contains(followed, ref) {
		all = append(all, w.branches(w.at(ref), append(followed, ref))...)
	}
	return all
}

// at is the place of the schema that a reference points to, nil for none.
func (w *walk) at(ref string) any {
	place := w.root
	for name := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if name == "" {
			continue
		}
		object, _ := place.(map[string]any)
		place = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return place
}

// secrets are the credentials in use, in each form in which they could be shown.
type secrets struct {
	schema json.RawMessage // of the connection
	mu     sync.Mutex
	forms  map[string]string // name by form
}

// learn takes the secrets out of a connection's credentials.
func (s *secrets) learn(credentials json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range secretsOf(s.schema, credentials) {
		for line := range strings.SplitSeq(one.text, "\n") { // of a PEM block any line tells
			if line = strings.TrimSpace(line); len(line) < 6 || strings.HasPrefix(line, "-----") {
				continue
			}
			for _, form := range []string{
				line, url.QueryEscape(line),
				base64.StdEncoding.EncodeToString([]byte(line)), base64.StdEncoding.EncodeToString([]byte(line + ":")),
			} {
				s.forms[form] = one.name
			}
		}
	}
}

// in names a secret that a text has in it, or "".
func (s *secrets) in(text []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for form, name := range s.forms {
		if bytes.Contains(text, []byte(form)) {
			return name
		}
	}
	return ""
}

// plain are those of a connection that its upstream knows: it has no private key.
func (s *secrets) plain(credentials json.RawMessage) (texts []string) {
	for _, one := range secretsOf(s.schema, credentials) {
		if !strings.Contains(one.text, "-----") {
			texts = append(texts, one.text)
		}
	}
	return texts
}
