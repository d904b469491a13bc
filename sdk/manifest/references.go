package manifest

import (
	"fmt"
	"strings"
)

// The form of the references under which movements are asked for: so many characters,
// all of the alphabet. The same request has the same reference for ever.
const (
	ReferenceLength   = 40
	ReferenceAlphabet = "0123456789abcdef"
)

// References are those that an upstream takes as its caller's own name of a movement:
// how long at most, and of which characters. Two characters with a hyphen between them
// stand for all from one to the other; a hyphen of its own comes first or last. Unique
// promises that the upstream never lets two movements of one name be paid: a second one is
// refused, or is the first one again.
type References struct {
	Longest  int    `json:"longest"`
	Alphabet string `json:"alphabet"`
	Unique   bool   `json:"unique,omitempty"`
}

// check says why movements can't be named at the upstream, "" where they can.
func (r References) check() string {
	switch {
	case r.Longest == 0 || r.Alphabet == "":
		return `must be given with operations that move money: which names of movements the upstream takes, like {"longest": 64, "alphabet": "0-9a-f"}`
	case r.Longest < ReferenceLength:
		return fmt.Sprintf("the upstream takes at most %d characters, and movements are named by %d: they can't be asked for there", r.Longest, ReferenceLength)
	}
	for _, c := range ReferenceAlphabet {
		if !r.takes(c) {
			return fmt.Sprintf("the upstream does not take %q, and movements are named by %s: they can't be asked for there", c, ReferenceAlphabet)
		}
	}
	return ""
}

// takes tells whether a character is of the alphabet.
func (r References) takes(c rune) bool {
	if strings.ContainsRune(r.Alphabet, c) {
		return true
	}
	alphabet := []rune(r.Alphabet)
	for i := 1; i < len(alphabet)-1; i++ {
		if alphabet[i] == '-' && alphabet[i-1] <= c && c <= alphabet[i+1] {
			return true
		}
	}
	return false
}
