package policy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

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

// Moment is the beginning of the time within which all answers are the same, whatever else they depend on: a minute, unless a
// rule looks at seconds.
func (s *Set) Moment(now time.Time) time.Time {
	if s.reads.seconds {
		return now
	}
	return now.Truncate(time.Minute)
}

// alikeKey finds what is kept of all records that are alike, in a mode, of an operation.
type alikeKey struct {
	record    Alike
	mode      string
	operation Operation
}

// mayRead reports whether a reference to the input may look at what has these names: by them, or at all of what it is a part of.
func mayRead(ref ast.Ref, names ...*ast.Term) bool {
	for i, name := range names {
		if len(ref) <= i+1 {
			return true
		}
		if _, text := ref[i+1].Value.(ast.String); text && !ref[i+1].Equal(name) {
			return false
		}
	}
	return true
}
