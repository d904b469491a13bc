package snap

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"
)

const (
	externalIDDigits = 36
	// Of the bytes, those from here on would make some digits likelier.
	evenBytes = 250
)

// newExternalID names one HTTP attempt: digits alone, and never the same twice
// in a day, whoever else makes one. The time stands first for people; 23 random
// digits make it unique over replicas and restarts.
func newExternalID(at time.Time) string {
	var b strings.Builder
	b.Grow(externalIDDigits)
	b.WriteString(strconv.FormatInt(at.UnixMilli(), 10))
	random := make([]byte, externalIDDigits)
	for b.Len() < externalIDDigits {
		_, _ = rand.Read(random) // it never fails: the process would end
		for _, r := range random {
			if r < evenBytes && b.Len() < externalIDDigits {
				b.WriteByte('0' + r%10)
			}
		}
	}
	return b.String()
}
