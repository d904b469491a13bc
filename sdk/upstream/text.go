package upstream

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
)

const maxText = 400

// Printable makes foreign text fit to be shown: at most 400 characters, printable,
// and without the secrets, which an upstream might quote.
func Printable(text string, secrets ...string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, Hide(text, secrets...))
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return text
}

// Hide cuts secrets out of a text; an empty one is none.
func Hide(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	return text
}

// Text is a JSON string that an upstream may also write as a number, or not at all.
type Text string

// UnmarshalJSON takes whatever is there; what is no text is none.
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = ""
	switch {
	case bytes.HasPrefix(data, []byte(`"`)):
		return json.Unmarshal(data, (*string)(t))
	case data[0] == '-' || data[0] >= '0' && data[0] <= '9':
		*t = Text(data)
	}
	return nil
}

// Time is a JSON time that may be missing. What can't be read counts as missing, so
// that a date's format never hides that money moved.
type Time struct{ time.Time }

// UnmarshalJSON reads RFC 3339.
func (m *Time) UnmarshalJSON(data []byte) error {
	var t time.Time
	if json.Unmarshal(data, &t) != nil {
		t = time.Time{}
	}
	m.Time = t
	return nil
}
