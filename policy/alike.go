package policy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Alike is a digest of what the set's answers depend on of a merchant's record. Records with the same one are answered
// alike, and there are few: thousands of merchants have a tier, labels and limits in common. Rules that look at
// input.merchant.id make each its own.
type Alike [sha256.Size]byte

// Alike digests a record.
func (s *Set) Alike(m Merchant) Alike {
	seen := m
	seen.Version = 0 // rules don't see it
	if !s.reads.id {
		seen.ID = ""
	}
	text, err := json.Marshal(seen)
	if err != nil { // a rate or a year that JSON has no number for
		text = fmt.Appendf(nil, "%s %d", m.ID, m.Version)
	}
	return sha256.Sum256(text)
}

// alikeKey finds what is kept of all records that are alike, in a mode, of an operation.
type alikeKey struct {
	record    Alike
	mode      string
	operation Operation
}

// readsID reports whether a reference may look at whose record it is: by its name, or at all of the record or the input.
func readsID(ref ast.Ref) bool {
	return (len(ref) < 2 || may(ref[1], termMerchant)) && (len(ref) < 3 || may(ref[2], termID))
}

// may reports whether a part of a reference may be a name.
func may(part, name *ast.Term) bool {
	_, text := part.Value.(ast.String)
	return !text || part.Equal(name)
}
