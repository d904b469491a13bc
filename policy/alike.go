package policy

import (
	"encoding/json"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Alike says what the set's answers depend on of a merchant's record. Records of which it says the same are answered
// alike, and there are few: thousands of merchants have a tier, labels and limits in common. Rules that look at
// input.merchant.id make each its own.
func (s *Set) Alike(m Merchant) string {
	if !s.reads.id {
		m.ID = ""
	}
	m.Version = 0 // rules don't see it
	text, err := json.Marshal(m)
	if err != nil {
		return m.ID // never: nothing in it can't be written
	}
	return string(text)
}

// alikeKey finds what is kept of all records that are alike, in a mode, of a path.
type alikeKey struct{ alike, mode, path string }

// readsID reports whether a reference may look at whose record it is: by its name, or at all of the record or the input.
func readsID(ref ast.Ref) bool {
	return (len(ref) < 2 || may(ref[1], termMerchant)) && (len(ref) < 3 || may(ref[2], termID))
}

// may reports whether a part of a reference may be a name.
func may(part, name *ast.Term) bool {
	_, text := part.Value.(ast.String)
	return !text || part.Equal(name)
}
