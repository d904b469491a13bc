package decision

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Outcome says which of a request's steps a count is of.
type Outcome uint8

// The outcomes. Each request is counted once as Decided or Spent; the others are of some of these.
const (
	// Decided is a decision on a request whose body fits its schema.
	Decided Outcome = 0
	// Spent is one on a request that is refused whatever the policy says, because it is invalid, its merchant suspended or its
	// key without the scope. It takes tokens of the rates and nothing else.
	Spent Outcome = 1
	// Unused is a decided request that used no unit of a quota: it was a replay, or nothing was sent.
	Unused Outcome = 2
	// Later is an admitted request that was refused after that: for its quote, or by a payout limit.
	Later Outcome = 3
)

// Series is what is counted as one: whose request, for what, under which policy and record, and what became of it.
type Series struct {
	Merchant  string
	Operation string // its path
	Version   string // of the policy
	Record    int64  // version of the merchant's record
	Live      bool
	Rule      Rule
	Outcome   Outcome
}

// compare is the order of series in the log.
func (s Series) compare(o Series) int {
	live := 0
	if s.Live != o.Live {
		live = 1
		if s.Live {
			live = -1
		}
	}
	return cmp.Or(cmp.Compare(s.Merchant, o.Merchant), live, cmp.Compare(s.Operation, o.Operation), cmp.Compare(s.Version, o.Version),
		cmp.Compare(s.Record, o.Record), cmp.Compare(s.Rule, o.Rule), cmp.Compare(s.Outcome, o.Outcome))
}

// Count is how many of a series there were in a second.
type Count struct {
	Second uint8 // of the minute
	N      uint32
}

// Counted is a series with its counts in a minute, in the order of the seconds.
type Counted struct {
	Series
	Counts []Count
}

// packing is the first byte of what Pack makes.
const packing = 1

// Pack writes the counts of a minute, as few bytes as it can. The same counts are the same bytes.
func Pack(counted []Counted) []byte {
	counted = slices.Clone(counted)
	slices.SortFunc(counted, func(a, b Counted) int { return a.compare(b.Series) })
	var texts []string
	place := map[string]uint64{}
	text := func(s string) uint64 {
		at, known := place[s]
		if !known {
			at = uint64(len(texts))
			place[s], texts = at, append(texts, s)
		}
		return at
	}
	var body []byte
	for _, c := range counted {
		flags := uint64(c.Outcome) << 1
		if c.Live {
			flags |= 1
		}
		for _, n := range []uint64{text(c.Merchant), text(c.Operation), text(c.Version), uint64(c.Record), uint64(c.Rule), flags, uint64(len(c.Counts))} { //nolint:gosec // versions are above zero
			body = binary.AppendUvarint(body, n)
		}
		for _, of := range c.Counts {
			body = binary.AppendUvarint(append(body, of.Second), uint64(of.N))
		}
	}
	head := binary.AppendUvarint(nil, uint64(len(texts)))
	for _, s := range texts {
		head = append(binary.AppendUvarint(head, uint64(len(s))), s...)
	}
	head = binary.AppendUvarint(head, uint64(len(counted)))
	out := bytes.NewBuffer([]byte{packing})
	to, _ := flate.NewWriter(out, flate.BestSpeed) // the level is right
	_, _ = to.Write(head)                          // into memory
	_, _ = to.Write(body)
	_ = to.Close()
	return out.Bytes()
}

// mostUnpacked bounds what a row may unpack to.
const mostUnpacked = 64 << 20

var errPacked = errors.New("decision: these are no counts of a minute")

// Unpack reads what Pack wrote.
func Unpack(packed []byte) ([]Counted, error) {
	if len(packed) == 0 || packed[0] != packing {
		return nil, errPacked
	}
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed[1:])), mostUnpacked))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	r := reader{raw: raw}
	texts := make([]string, r.many())
	for i := range texts {
		texts[i] = string(r.take(r.number()))
	}
	counted := make([]Counted, r.many())
	for i := range counted {
		c := &counted[i]
		c.Merchant, c.Operation, c.Version = r.text(texts), r.text(texts), r.text(texts)
		//nolint:gosec // written from these types
		c.Record, c.Rule = int64(r.number()), Rule(r.number())
		flags := r.number()
		c.Live, c.Outcome = flags&1 == 1, Outcome(flags>>1) //nolint:gosec // as above
		c.Counts = make([]Count, r.many())
		for j := range c.Counts {
			second := r.take(1)
			if r.bad {
				return nil, errPacked
			}
			c.Counts[j] = Count{second[0], uint32(r.number())} //nolint:gosec // as above
		}
	}
	if r.bad {
		return nil, errPacked
	}
	return counted, nil
}

// reader reads numbers and texts; bad says that it came to an end.
type reader struct {
	raw []byte
	bad bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.raw)
	if size <= 0 {
		r.bad, r.raw = true, nil
		return 0
	}
	r.raw = r.raw[size:]
	return n
}

// many is a number of things, each of which takes a byte at least.
func (r *reader) many() int {
	n := r.number()
	if n > uint64(len(r.raw)) {
		r.bad, r.raw = true, nil
		return 0
	}
	return int(n) //nolint:gosec // bounded above
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.raw)) {
		r.bad, r.raw = true, nil
		return nil
	}
	taken := r.raw[:n]
	r.raw = r.raw[n:]
	return taken
}

func (r *reader) text(texts []string) string {
	at := r.number()
	if at >= uint64(len(texts)) {
		r.bad, r.raw = true, nil
		return ""
	}
	return texts[at]
}

// Mode is the mode of a series.
func (s Series) Mode() string { return ModeOf(s.Live) }

// ModeOf is live or test.
func ModeOf(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

// String names a series for people.
func (s Series) String() string {
	return strings.Join([]string{s.Merchant, s.Mode(), s.Operation, s.Rule.String()}, " ")
}
