package callback

import (
	"strings"
	"time"
	"unicode/utf8"
)

// maxAnswer is how much of a receiver's answer is read, and kept.
const maxAnswer = 1024

// Outcome is what became of one try.
type Outcome string

// The outcomes. Delivered and Gone end a delivery; Failed and Refused are tried
// again by the schedule.
const (
	Delivered Outcome = "delivered" // a 2xx in time
	Failed    Outcome = "failed"    // any other answer, or none
	Gone      Outcome = "gone"      // 410: the receiver wants no more of it
	Refused   Outcome = "refused"   // the guard let nothing through to the receiver
	// Aborted says nothing of the receiver: the gateway is stopping, or could not
	// sign. The try does not count, though the receiver may have got it.
	Aborted Outcome = "aborted"
)

// Ends tells whether the delivery needs no further try.
func (o Outcome) Ends() bool { return o == Delivered || o == Gone }

// Attempt is the record of one try. Its texts hold no secrets, no query of the
// URL and no address, so they may be shown to the merchant.
type Attempt struct {
	At       time.Time
	Duration time.Duration // until its place was free again
	Status   int           // 0 when there was no answer
	Outcome  Outcome
	Error    string // empty when delivered
	Answer   string // the beginning of the answer's body, at most 1 KiB of UTF-8 without control characters
}

func (a *Attempt) end(o Outcome, text string) { a.Outcome, a.Error = o, text }

// presentable makes a receiver's bytes fit for a database, a terminal and a
// page, and no longer than a limit.
func presentable(raw []byte, limit int) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(raw), "�"))
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
