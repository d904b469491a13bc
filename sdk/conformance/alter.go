package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// alterations changes each member of a JSON document that is a text, a number or a
// boolean, one at a time and nothing else: by their JSON pointers, the documents.
func alterations(document []byte) map[string][]byte {
	type level struct {
		object, key bool
		name        string
		index       int
	}
	changed := map[string][]byte{}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var levels []level
	value := func() { // one has ended
		if len(levels) == 0 {
			return
		}
		top := &levels[len(levels)-1]
		top.key, top.index = true, top.index+1
	}
	for {
		from := decoder.InputOffset()
		token, err := decoder.Token()
		if err != nil {
			return changed
		}
		to := decoder.InputOffset()
		if delim, ok := token.(json.Delim); ok {
			switch delim {
			case '{', '[':
				levels = append(levels, level{object: delim == '{', key: true})
			default:
				levels = levels[:len(levels)-1]
				value()
			}
			continue
		}
		if top := len(levels) - 1; top >= 0 && levels[top].object && levels[top].key {
			levels[top].name, _ = token.(string)
			levels[top].key = false
			continue
		}
		pointer := ""
		for _, l := range levels {
			if l.object {
				pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(l.name)
			} else {
				pointer += fmt.Sprint("/", l.index)
			}
		}
		raw := bytes.TrimLeft(document[from:to], " \t\r\n:,")
		if text := altered(string(raw)); text != "" {
			changed[pointer] = bytes.Join([][]byte{document[:int(to)-len(raw)], []byte(text), document[to:]}, nil)
		}
		value()
	}
}

// altered is another value of the same kind, as JSON; "" for null.
func altered(raw string) string {
	switch {
	case raw == "null":
		return ""
	case raw == "true":
		return "false"
	case raw == "false":
		return "true"
	case raw == `""`:
		return `"1"`
	case !strings.HasPrefix(raw, `"`):
		return raw[:len(raw)-1] + other(raw[len(raw)-1])
	case strings.Contains(raw, `\`):
		return raw[:len(raw)-1] + `1"`
	}
	last := raw[len(raw)-2]
	if last >= 0x80 {
		return raw[:len(raw)-1] + `1"`
	}
	return raw[:len(raw)-2] + other(last) + `"`
}

// other is a character that is not this one, and a digit where this one is.
func other(c byte) string {
	switch {
	case c >= '0' && c <= '9':
		return strconv.Itoa((int(c-'0') + 1) % 10)
	case c == 'a':
		return "b" // hexadecimal digits mean the same in either case
	case c > 'a' && c <= 'z':
		return "a"
	case c == 'A':
		return "B"
	}
	return "A"
}

// merged replaces members of a JSON object, at any depth.
func merged(document []byte, with map[string]json.RawMessage) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		return nil, err
	}
	for name, value := range with {
		if string(value) == "null" {
			delete(members, name)
			continue
		}
		members[name] = value
	}
	return json.Marshal(members)
}

// middleAltered changes a text in its middle: the last character of a signature may
// have bits that nobody looks at.
func middleAltered(text string) string {
	middle := len(text) / 2
	return text[:middle] + other(text[middle]) + text[middle+1:]
}
