package callback

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/mask"
)

const (
	// maxBody is how much of the body of a receiver's answer is read, and maxAnswer how much of an answer is kept.
	maxBody   = 2 << 10
	maxAnswer = 3 << 10
	maxHeader = 100 // bytes of one that is kept
)

// told are the headers of a receiver's answer that help to find out why it has failed.
var told = [...]string{"Content-Type", "Location", "Retry-After", "Server", "Via", "Www-Authenticate", "X-Request-Id", "Cf-Ray"}

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
// URL and no address, and of people only what package mask leaves, so they may be
// shown to the merchant.
type Attempt struct {
	At       time.Time
	Duration time.Duration // until its place was free again
	Status   int           // 0 when there was no answer
	Outcome  Outcome
	Error    string // empty when delivered
	Answer   string // as HTTP has it: some headers, an empty line and the beginning of the body; UTF-8 without control characters
}

func (a *Attempt) end(o Outcome, text string) { a.Outcome, a.Error = o, text }

// answerOf is what is kept of an answer.
func answerOf(header http.Header, body []byte) string {
	var kept strings.Builder
	for _, name := range told {
		if value := header.Get(name); value != "" {
			kept.WriteString(name + ": " + mask.Beginning(value, maxHeader) + "\n")
		}
	}
	text, _ := mask.JSON(body)
	if text == "" {
		text = mask.Text(string(whole(body)))
	}
	if text != "" && kept.Len() > 0 {
		kept.WriteString("\n")
	}
	kept.WriteString(text)
	return mask.Clean(kept.String(), maxAnswer)
}

// whole leaves out what reading has cut: half of a secret looks like none.
func whole(body []byte) []byte {
	if len(body) < maxBody {
		return body
	}
	return body[:max(bytes.LastIndexAny(body, " \t\r\n"), 0)]
}
