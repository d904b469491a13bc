package movement

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// written is an amount as people write one: 25000, 25.000 or Rp25.000.
var written = regexp.MustCompile(`^(?:Rp\s?)?(\d{1,15}|\d{1,3}(?:\.\d{3}){1,4})$`)

// Sought is what else a search looks for: an amount, 0 for none, and how the request has a
// payer's mail, in small letters, "" for none.
func (l Listing) Sought() (amount int64, mail string) {
	if found := written.FindStringSubmatch(l.Search); found != nil {
		amount, _ = strconv.ParseInt(strings.ReplaceAll(found[1], ".", ""), 10, 64) // at most 15 digits
	}
	if strings.Contains(l.Search, "@") {
		quoted, _ := jsontext.AppendQuote(nil, strings.ToLower(l.Search)) // as canonical JSON has it
		mail = `"payer_email":` + string(quoted)
	}
	return amount, mail
}

// Has tells whether a movement is one of the listing's, whatever page it is on.
func (l Listing) Has(m *Movement) bool {
	return m.Owner == l.Owner && m.Kind == l.Kind && slices.Contains(l.States, m.Listed()) && strings.HasPrefix(m.Reference, l.Prefix) &&
		!m.CreatedAt.Before(l.Since) && m.CreatedAt.Before(l.Before) && l.finds(m)
}

func (l Listing) finds(m *Movement) bool {
	amount, mail := l.Sought()
	return l.Search == "" || int64(m.Amount) == amount || m.ProviderReference == l.Search ||
		strings.Contains(m.CallersReference(), l.Search) || mail != "" && bytes.Contains(bytes.ToLower(m.Request), []byte(mail))
}

// Figures are a listing's movements in numbers, by spans of time in which they were
// created. TooMany: there are more than may be read, so no number is told.
type Figures struct {
	Counts  []Count
	Waits   []Wait
	TooMany bool
}

// Count is how many movements of a span stand in a state and were paid by a channel, and
// what they were asked for in sum.
type Count struct {
	Span      int
	State     State // as Listed says it
	Channel   string
	N, Amount int64
}

// Wait is how many movements of a span succeeded with a time at which they were paid, and
// within how many whole seconds half of them and 95 in 100 were. Of callbacks it is how
// many were delivered, and within how many milliseconds.
type Wait struct {
	Span            int
	N, Median, Most int64
}

// Tell counts movements by spans, each of which ends where the next one begins: what the
// database answers, said in Go.
func (l Listing) Tell(spans []time.Time, all []Movement) Figures {
	var f Figures
	counts, waits := map[Count]Count{}, map[int][]int64{}
	for i := range all {
		m := &all[i]
		span := -1
		for n, since := range spans[:len(spans)-1] {
			if !m.CreatedAt.Before(since) && m.CreatedAt.Before(spans[n+1]) {
				span = n
			}
		}
		if span < 0 {
			continue
		}
		key := Count{Span: span, State: m.Listed(), Channel: m.Channel}
		sum := counts[key]
		counts[key] = Count{span, key.State, key.Channel, sum.N + 1, sum.Amount + int64(m.Amount)}
		if m.Listed() == Succeeded && !m.PaidAt.IsZero() {
			waits[span] = append(waits[span], max(0, int64(m.PaidAt.Sub(m.CreatedAt)/time.Second)))
		}
	}
	for _, count := range counts {
		f.Counts = append(f.Counts, count)
	}
	for span, seconds := range waits {
		slices.Sort(seconds)
		n := len(seconds)
		f.Waits = append(f.Waits, Wait{span, int64(n), seconds[(n+1)/2-1], seconds[(n*95+99)/100-1]})
	}
	return f.Sorted()
}

// Sorted has the figures in an order of their own.
func (f Figures) Sorted() Figures {
	slices.SortFunc(f.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Span, b.Span), cmp.Compare(a.State, b.State), cmp.Compare(a.Channel, b.Channel))
	})
	slices.SortFunc(f.Waits, func(a, b Wait) int { return cmp.Compare(a.Span, b.Span) })
	return f
}
