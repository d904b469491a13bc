package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// secretName tells a credential that nobody may see by its name in the connection;
// a public key and the number of an account are none.
var secretName = regexp.MustCompile(`(?i)(secret|token|password|private|api_?key|server_?key|^key$|_key$|pin$)`)

// secrets are the credentials in use, in each form in which they could be shown.
type secrets struct {
	mu    sync.Mutex
	forms map[string]string // name by form
}

// learn takes the secrets out of a connection's credentials.
func (s *secrets) learn(credentials json.RawMessage) {
	var members map[string]any
	if json.Unmarshal(credentials, &members) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, value := range members {
		text, ok := value.(string)
		if !ok || !secretName.MatchString(name) || strings.Contains(strings.ToLower(name), "public") {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") { // of a PEM block any line tells
			if line = strings.TrimSpace(line); len(line) < 6 || strings.HasPrefix(line, "-----") {
				continue
			}
			for _, form := range []string{
				line, url.QueryEscape(line),
				base64.StdEncoding.EncodeToString([]byte(line)), base64.StdEncoding.EncodeToString([]byte(line + ":")),
			} {
				s.forms[form] = name
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

// plainSecrets are those of a connection that its upstream knows: it has no private key.
func plainSecrets(credentials json.RawMessage) (texts []string) {
	var members map[string]any
	if json.Unmarshal(credentials, &members) != nil {
		return nil
	}
	for name, value := range members {
		if text, ok := value.(string); ok && secretName.MatchString(name) && !strings.Contains(text, "-----") {
			texts = append(texts, text)
		}
	}
	return texts
}
