package requestlog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Range names parts of an owner's log: those that hold what a filter wants, whose spans begin since a time, and that stand below one: by
// span, replica and number. The last ones are read first.
type Range struct {
	Filter

	Owner Owner
	Since time.Time
	Below Part
	Most  int
}

// Place is where a page goes on: below the call that ended at a time and has an id.
type Place struct {
	At time.Time
	ID string
}

// String is the place for a URL.
func (p Place) String() string { return strconv.FormatInt(p.At.UnixMicro(), 10) + "_" + p.ID }

// ParsePlace reads what String has written.
func ParsePlace(text string) (Place, error) {
	at, id, found := strings.Cut(text, "_")
	micro, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil {
		return Place{}, fmt.Errorf("requestlog: %q is no place", text)
	}
	return Place{time.UnixMicro(micro).UTC(), id}, nil
}

// above reports whether a page that goes on here has a call before it.
func (p Place) above(e Entry) bool { return Newest(Entry{ID: p.ID, Ended: p.At}, e) < 0 }

// Reader reads an owner's log.
type Reader struct {
	Parts func(ctx context.Context, r Range) ([]Part, error)
	Open  func(of Owner, sealed []byte) ([]byte, error)
}

const (
	partsAtOnce = 64
	// mostOfRead bounds the time that one read goes through: of what is seldom there may be none in all of a log.
	mostOfRead = 6 * time.Hour
	// mostReads and mostRead bound what is read for a page: reads, and bytes as they were unpacked.
	mostReads = 40
	mostRead  = 32 << 20
)

// Found is a page of calls, the last first, and where the next one goes on, nowhere at the end. A page may have no calls where there is a next
// one. Unread counts the parts that could not be read.
type Found struct {
	Entries []Entry
	Next    Place
	Unread  int
}

// Page reads calls below a place that a filter wants. Each call that was there when the first page was read is on one page. It stops where
// the page is full or enough was read, at the end of a span. Calls that can't be opened, because their key is gone, are left out.
func (r *Reader) Page(ctx context.Context, of Owner, f Filter, from Place, oldest time.Time, most int) (found Found, err error) {
	below, read := Part{Span: from.At.Truncate(Span)}, 0
	if from != (Place{At: below.Span}) { // of its span something is below it
		below.Span = below.Span.Add(time.Microsecond)
	}
	for reads := 1; ; reads++ {
		since := below.Span.Add(-mostOfRead).Truncate(Span)
		if since.Before(oldest) {
			since = oldest
		}
		parts, err := r.Parts(ctx, Range{Filter: f, Owner: of, Since: since, Below: below, Most: partsAtOnce})
		if err != nil {
			return Found{}, err
		}
		enough := func() bool { return len(found.Entries) >= most || read > mostRead || reads >= mostReads }
		for _, p := range parts {
			if p.Span.Before(below.Span.Truncate(Span)) && enough() {
				return found.until(most, below.Span.Truncate(Span)), nil
			}
			bytes, bad := r.entries(p, func(e Entry) {
				if f.Fits(e) && from.above(e) {
					found.Entries = append(found.Entries, e)
				}
			})
			if read += bytes; bad != nil {
				found.Unread++
			}
			found.keep(most + 1)
			below = p
		}
		if len(parts) == partsAtOnce {
			continue
		}
		if !since.After(oldest) {
			return found.until(most, time.Time{}), nil
		}
		if enough() {
			return found.until(most, since), nil
		}
		below = Part{Span: since}
	}
}

// keep leaves the last calls, in order.
func (f *Found) keep(most int) {
	slices.SortFunc(f.Entries, Newest)
	f.Entries = slices.Delete(f.Entries, min(len(f.Entries), most), len(f.Entries))
}

// until is a page of what was found back to the begin of a span, the zero time for all.
func (f Found) until(most int, span time.Time) Found {
	if len(f.Entries) > most {
		last := f.Entries[most-1]
		f.Entries, f.Next = f.Entries[:most], Place{last.Ended, last.ID}
	} else if !span.IsZero() {
		f.Next = Place{At: span}
	}
	return f
}

// entries gives the calls of a part, and tells how many bytes they have unpacked.
func (r *Reader) entries(p Part, give func(Entry)) (int, error) {
	opened, err := r.Open(p.Owner, p.Calls)
	if err != nil {
		return 0, err // its key is gone, or is not this replica's yet
	}
	entries, bytes, err := unpack(opened)
	for _, e := range entries {
		give(e)
	}
	return bytes, err
}
