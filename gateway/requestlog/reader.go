package requestlog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kept is how long calls are kept.
const Kept = 7 * 24 * time.Hour

// Range names parts of an owner's log: those whose spans begin in a time, both ends with it, and hold what a filter wants. The last
// ones are read first.
type Range struct {
	Filter

	Owner        Owner
	Since, Until time.Time
	Most         int
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
	// mostReads bounds the reads for a page: what is seldom is not in most of a log.
	mostReads = 40
)

// AllParts is more parts than there are in minutes.
const AllParts = 1 << 20

// Page reads calls below a place that a filter wants, the last first, and where the next page goes on. Each call that was there when the
// first page was read is on one page. A page may have none where there is a next one; the last has no next. Calls that can't be opened,
// because their key is gone, are left out.
func (r *Reader) Page(ctx context.Context, of Owner, f Filter, from Place, oldest time.Time, most int) (page []Entry, next Place, err error) {
	until := from.At.Truncate(Span)
	for range mostReads {
		parts, err := r.Parts(ctx, Range{Filter: f, Owner: of, Since: oldest, Until: until, Most: partsAtOnce})
		if err != nil {
			return nil, Place{}, err
		}
		ended := len(parts) < partsAtOnce
		if !ended { // the last span may be cut
			last := parts[len(parts)-1].Span
			if whole := slices.IndexFunc(parts, func(p Part) bool { return p.Span.Equal(last) }); whole > 0 {
				parts = parts[:whole]
			} else if parts, err = r.Parts(ctx, Range{Filter: f, Owner: of, Since: last, Until: last, Most: AllParts}); err != nil {
				return nil, Place{}, err
			}
		}
		var found []Entry
		for _, p := range parts {
			entries, err := r.entries(p)
			if err != nil {
				return nil, Place{}, err
			}
			found = append(found, slices.DeleteFunc(entries, func(e Entry) bool { return !f.Fits(e) || !from.above(e) })...)
		}
		slices.SortFunc(found, Newest)
		if page = append(page, found...); len(page) > most {
			last := page[most-1]
			return page[:most], Place{last.Ended, last.ID}, nil
		}
		if ended {
			return page, Place{}, nil
		}
		until = parts[len(parts)-1].Span.Add(-Span)
		next = Place{At: until.Add(Span)} // no id is below ""
		if len(page) == most {
			break
		}
	}
	return page, next, nil
}

// All are the calls of parts that fit.
func (r *Reader) All(parts []Part, fits func(Entry) bool) (found []Entry, err error) {
	for _, p := range parts {
		entries, err := r.entries(p)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(entries, func(e Entry) bool { return !fits(e) })...)
	}
	return found, nil
}

func (r *Reader) entries(p Part) ([]Entry, error) {
	opened, err := r.Open(p.Owner, p.Calls)
	if err != nil {
		return nil, nil //nolint:nilerr // its key is gone
	}
	return Unpack(opened)
}
