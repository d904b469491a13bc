package host

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// shortest is the length of a text that is taken for a secret. Shorter ones would
// take ordinary words out of the log.
const shortest = 8

// mostAccounts bounds how many accounts' secrets are remembered. Beyond it all are
// forgotten, and each is learned again with its next call.
const mostAccounts = 100_000

// secrets are the credentials that a plugin was handed, to be removed from what it
// writes. The zero value knows none.
type secrets struct {
	mu       sync.RWMutex
	accounts map[account]bool
	texts    map[[shortest]byte][]string // by how they begin
}

// account is a connection's credentials, as of a version.
type account struct {
	merchant, mode string
	version        int64
	credentials    string // of those that are not stored yet, which have no version
}

// learn takes in what a call hands to the plugin.
func (s *secrets) learn(c sdk.Connection) {
	of := account{merchant: c.MerchantID, mode: c.Mode, version: c.Version}
	if c.Version == 0 {
		of.credentials = string(c.Credentials)
	}
	s.mu.RLock()
	known := s.accounts[of]
	s.mu.RUnlock()
	if known {
		return
	}
	var document any
	_ = json.Unmarshal(c.Credentials, &document) // what is no JSON has no fields
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts == nil || len(s.accounts) >= mostAccounts {
		s.accounts, s.texts = map[account]bool{}, map[[shortest]byte][]string{}
	}
	s.accounts[of] = true
	s.add(document)
}

// add takes in the texts of a document, line by line, because a log has lines.
// Addresses are none: operators need them.
func (s *secrets) add(document any) {
	switch value := document.(type) {
	case map[string]any:
		for _, member := range value {
			s.add(member)
		}
	case []any:
		for _, member := range value {
			s.add(member)
		}
	case string:
		if strings.Contains(value, "://") {
			return
		}
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			s.addText(line)
			if quoted, err := json.Marshal(line); err == nil && string(quoted[1:len(quoted)-1]) != line {
				s.addText(string(quoted[1 : len(quoted)-1])) // as it stands in a line of JSON
			}
		}
	}
}

func (s *secrets) addText(text string) {
	if len(text) < shortest {
		return
	}
	start := [shortest]byte([]byte(text))
	for _, known := range s.texts[start] {
		if known == text {
			return
		}
	}
	s.texts[start] = append(s.texts[start], text)
}

// maxText is the longest text that is kept of what a plugin says, in bytes.
const maxText = 4 << 10

// clean takes all known secrets out of the first part of a text, and cuts it there. Nil
// secrets are none.
func (s *secrets) clean(text string) string {
	if s != nil {
		text = s.remove(text, maxText)
	}
	return text[:min(len(text), maxText)]
}

// remove takes all known secrets out of the first part of a text. What comes after it
// shows how a secret goes on; one that the text's end cuts is recognised, too.
func (s *secrets) remove(text string, part int) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var clean strings.Builder
	kept := 0 // what of the text is in clean already
	for i := 0; i < part && i+shortest <= len(text); {
		found := 0
		for _, secret := range s.texts[[shortest]byte([]byte(text[i:i+shortest]))] {
			if strings.HasPrefix(text[i:], secret) || strings.HasPrefix(secret, text[i:]) {
				found = max(found, min(len(secret), len(text)-i))
			}
		}
		if found == 0 {
			i++
			continue
		}
		clean.WriteString(text[kept:i] + "[removed]")
		i += found
		kept = i
	}
	return clean.String() + text[kept:max(kept, min(part, len(text)))]
}
