package requestlog

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

var (
	noon  = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	shop  = Owner{"mer_shop", "live"}
	other = Owner{"mer_other", "live"}
)

// storage keeps parts in memory, as the store does.
type storage struct {
	parts []Part
	err   error
	reads []Range
	there map[string]bool // the keys of parts
}

func (s *storage) add(_ context.Context, parts []Part) error {
	if s.err != nil {
		return s.err
	}
	if s.there == nil {
		s.there = map[string]bool{}
	}
	for _, p := range parts {
		if key := fmt.Sprint(p.Owner, p.Span, p.Replica, p.Number); !s.there[key] {
			s.parts = append(s.parts, p)
			s.there[key] = true
		}
	}
	return nil
}

// backwards orders parts as they are read.
func backwards(a, b Part) int {
	return cmp.Or(b.Span.Compare(a.Span), bytes.Compare(b.Replica[:], a.Replica[:]), cmp.Compare(b.Number, a.Number))
}

// read is the query of the store.
func (s *storage) read(_ context.Context, r Range) ([]Part, error) {
	s.reads = append(s.reads, r)
	var found []Part
	for _, p := range s.parts {
		if p.Owner == r.Owner && !p.Span.Before(r.Since) && backwards(r.Below, p) < 0 && strings.Contains(p.Terms, Term(r.Operation)) &&
			strings.Contains(p.Terms, Term(r.Code)) && strings.Contains(p.Terms, Term(r.State)) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, backwards)
	return found[:min(len(found), r.Most)], nil
}

// all are the calls of all parts.
func (s *storage) all(t *testing.T) (all []Entry) {
	t.Helper()
	for _, p := range s.parts {
		if _, err := reader(s).entries(p, func(e Entry) { all = append(all, e) }); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// seal puts the owner before what is sealed.
func seal(of Owner, calls []byte) ([]byte, error) {
	return append([]byte(of.Merchant+of.Mode), calls...), nil
}

func open(of Owner, sealed []byte) ([]byte, error) {
	calls, found := bytes.CutPrefix(sealed, []byte(of.Merchant+of.Mode))
	if !found {
		return nil, errors.New("another's")
	}
	return calls, nil
}

func writing(l *Log, s *storage) *Writer {
	return NewWriter(l, s.add, seal, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
}

// call is a call of the shop that ended so many milliseconds after noon.
func call(n int, code string) Call {
	return Call{
		Owner: shop, From: netip.MustParseAddr("192.0.2.1"), Asked: []byte(`{"secret_key":"sk_live_x","amount":1}`), Answered: []byte(`{"success":true}`),
		Entry: Entry{ID: fmt.Sprintf("r%07d", n), At: noon, Ended: noon.Add(time.Duration(n) * time.Millisecond), Method: "POST", Operation: "/payments/create", Code: code, Reference: fmt.Sprintf("INV-%d", n)},
	}
}

func reader(s *storage) *Reader { return &Reader{Parts: s.read, Open: open} }

// pages reads all pages, and between each two lets something happen.
func pages(t *testing.T, s *storage, of Owner, f Filter, most int, between func()) (ids []string) {
	t.Helper()
	from := Place{At: noon.Add(time.Hour)}
	for {
		page, err := reader(s).Page(t.Context(), of, f, from, noon.AddDate(0, 0, -7), most)
		if err != nil || len(page.Entries) > most {
			t.Fatalf("%d calls on a page of %d; %v", len(page.Entries), most, err)
		}
		for _, e := range page.Entries {
			ids = append(ids, e.ID)
		}
		if page.Next == (Place{}) {
			return ids
		}
		if from, err = ParsePlace(page.Next.String()); err != nil {
			t.Fatal(err)
		}
		between()
	}
}

// TestPages: whatever the filter and the size of a page, each call is on one page, the last first, also while others are written.
func TestPages(t *testing.T) {
	t.Parallel()
	l, s := NewLog(), &storage{}
	w := writing(l, s)
	const calls = 160
	var all []string
	for n := range calls {
		at := n * 97 % calls * 1500 // of all spans in turn
		c := call(at, "OK")
		if n%3 == 0 {
			c = call(at, "RATE_LIMITED")
		}
		if n%5 == 0 {
			c.Operation = "/payments/status"
		}
		l.Keep(c)
		all = append(all, c.ID)
		l.Keep(Call{Owner: other, Entry: c.Entry})
		if n%2 == 0 {
			w.Write(t.Context())
		}
	}
	w.Write(t.Context())
	slices.Sort(all)
	slices.Reverse(all)
	every := map[string]Entry{}
	for _, e := range s.all(t) {
		every[e.ID] = e
	}
	newer := calls * 1500
	for _, f := range []Filter{
		{}, {State: "failed"}, {State: "succeeded"}, {Code: "RATE_LIMITED"}, {Operation: "/payments/status"}, {Code: "OK", Operation: "/payments/status"}, {Code: "INTERNAL"},
		{Code: "OK", State: "failed"}, {ID: "INV-3000"}, {ID: "r0003000"}, {ID: "nobody's"},
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !f.Fits(every[id]) })
		for _, most := range []int{3, 40, 1000} {
			got := pages(t, s, shop, f, most, func() {
				newer++
				l.Keep(call(newer, "OK"))
				w.Write(t.Context())
			})
			got = slices.DeleteFunc(got, func(id string) bool { return every[id].ID == "" }) // those that were written before the first page
			if !slices.Equal(got, want) {
				t.Errorf("%+v by %d: %d calls, want %d", f, most, len(got), len(want))
			}
		}
	}
}

// TestPagesAreBounded: who looks for what is not there reads a part of the log at a time, and comes to its end.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := &storage{}
	packer, _ := flate.NewWriter(nil, flate.BestSpeed)
	body := `{"description":"` + strings.Repeat("x", 1<<20) + `"}`
	for n := range 70 { // of which many are in a span
		packed, err := pack(packer, []Entry{{ID: fmt.Sprint("r", n), Ended: noon.Add(-time.Duration(n/10) * Span), Code: "OK", Asked: body}})
		if err != nil {
			t.Fatal(err)
		}
		sealed, _ := seal(shop, packed)
		s.parts = append(s.parts, Part{Owner: shop, Span: noon.Add(-time.Duration(n/10) * Span), Number: int64(n), Calls: sealed})
	}
	read := func(f Filter, most int) (pages, calls int) {
		for from := (Place{At: noon.Add(time.Hour)}); ; pages++ {
			s.reads = nil
			page, err := reader(s).Page(t.Context(), shop, f, from, noon.AddDate(0, 0, -7), most)
			if err != nil || len(s.reads) > mostReads || !page.Next.At.Before(from.At) {
				t.Fatalf("after %v: %d reads, next %v, %v", from, len(s.reads), page.Next, err)
			}
			for _, r := range s.reads {
				if r.Most != partsAtOnce || r.Below.Span.Sub(r.Since) > mostOfRead+Span {
					t.Errorf("%d parts are read from %v to %v", r.Most, r.Since, r.Below.Span)
				}
			}
			calls += len(page.Entries)
			if from = page.Next; from == (Place{}) {
				return pages + 1, calls
			}
		}
	}
	if pages, calls := read(Filter{ID: "nobody's"}, 100); pages != 2 || calls != 0 {
		t.Errorf("%d calls are found on %d pages, want none on 2", calls, pages)
	}
	if _, calls := read(Filter{}, 100); calls != len(s.parts) {
		t.Errorf("%d calls are found, want %d", calls, len(s.parts))
	}
	s.parts[5].Calls, _ = seal(shop, []byte("x"))
	page, err := reader(s).Page(t.Context(), shop, Filter{}, Place{At: noon.Add(time.Hour)}, noon.Add(-time.Second), 100)
	if err != nil || len(page.Entries) != 9 || page.Unread != 1 {
		t.Errorf("beside one that can't be read %d calls are found, %d parts unread; %v", len(page.Entries), page.Unread, err)
	}
}

// TestReplicasOfOneSpan: parts of one span are on several pages and in several reads.
func TestReplicasOfOneSpan(t *testing.T) {
	t.Parallel()
	l, s := NewLog(), &storage{}
	w := writing(l, s)
	var want []string
	for n := range 300 {
		l.Keep(call(n*33, "OK"))
		w.Write(t.Context())
		s.parts[n].Replica, s.parts[n].Number = uuid.UUID{byte(n % 7)}, int64(n/7)
		want = append(want, fmt.Sprintf("r%07d", n*33))
	}
	slices.Reverse(want)
	for _, most := range []int{7, 100, 1000} {
		if got := pages(t, s, shop, Filter{}, most, func() {}); !slices.Equal(got, want) {
			t.Errorf("by %d: %d calls, want %d", most, len(got), len(want))
		}
	}
}

// TestTenantsApart: nobody reads another's calls, nor their own as another's.
func TestTenantsApart(t *testing.T) {
	t.Parallel()
	l, s := NewLog(), &storage{}
	l.Keep(call(1, "OK"))
	writing(l, s).Write(t.Context())
	for _, of := range []Owner{other, {shop.Merchant, "test"}} {
		if got := pages(t, s, of, Filter{}, 10, func() {}); len(got) != 0 {
			t.Errorf("%v reads %q", of, got)
		}
		moved := s.parts[0]
		moved.Owner = of
		found, err := reader(&storage{parts: []Part{moved}}).Page(t.Context(), of, Filter{}, Place{At: noon.Add(time.Hour)}, noon.Add(-24*time.Hour), 10)
		if err != nil || len(found.Entries) != 0 || found.Unread != 1 { // it is not said that there was nothing
			t.Errorf("%v opens %+v; %v", of, found, err)
		}
	}
}

func TestMasked(t *testing.T) {
	t.Parallel()
	c := call(1, "INVALID_REQUEST")
	c.Message, c.Agent = "phone 081234567890 is not known", "shop\x1b 081234567890123 "+strings.Repeat("x ", 500)
	e := c.masked()
	if e.Asked != `{"secret_key":"[removed]","amount":1}` || e.Answered != `{"success":true}` || e.Message != "phone ***7890 is not known" || e.Address != "192.0.2.1" || len(e.Agent) > mostAgent || strings.Contains(e.Agent, "\x1b") || strings.Contains(e.Agent, "7890123") {
		t.Errorf("kept %+v", e)
	}
	c.Asked, c.Method, c.Query = nil, "GET", "secret_key=sk_live_x&limit=5&phone=081234567890&phone=1"
	if got := c.masked().Asked; got != `{"limit":"5","phone":["***7890","***"],"secret_key":"[removed]"}` {
		t.Errorf("a query is kept as %s", got)
	}
	c.Asked, c.Query = []byte("secret_key=sk_live_x"), ""
	if got := c.masked().Asked; got != "" {
		t.Errorf("what is no JSON is kept as %s", got)
	}
}

// TestWhatDoesNotFitIsCounted: a merchant's flood costs neither another's calls nor memory, successes leave room to failures, and the
// next part tells how many are missing.
func TestWhatDoesNotFitIsCounted(t *testing.T) {
	t.Parallel()
	l, s := NewLog(), &storage{}
	w := writing(l, s)
	const flood = 2000
	for n := range flood {
		l.Keep(call(n, "OK"))
	}
	kept := len(l.of[shop].calls)
	l.Keep(call(flood, "RATE_LIMITED"))
	c := call(1, "OK")
	c.Owner = other
	l.Keep(c)
	if kept == flood || len(l.of[shop].calls) != kept+1 || len(l.of[other].calls) != 1 || l.Dropped() != int64(flood-kept) || l.bytes > mostOfOwner+c.size() {
		t.Errorf("of %d calls %d are kept in %d bytes, %d dropped", flood, kept, l.bytes, l.Dropped())
	}
	w.Write(t.Context())
	dropped := 0
	for _, p := range s.parts {
		dropped += p.Dropped
	}
	if dropped != flood-kept || l.bytes != 0 {
		t.Errorf("the parts tell %d dropped calls, want %d; %d bytes are still counted", dropped, flood-kept, l.bytes)
	}
}

// TestUnwritten: while nothing can be written all waits, within its bound, and then is written once. What was kept since the last write
// is all that a replica loses when it dies.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	l, s := NewLog(), &storage{err: errors.New("the database is away")}
	w := writing(l, s)
	large := call(0, "OK")
	large.Asked = []byte(`{"description":"` + strings.Repeat("x", MostBody-100) + `"}`)
	var asked int
	for round := range 130 {
		for n := range 20 {
			c := large
			c.Owner.Merchant = fmt.Sprint("mer_", round%12)
			c.ID = fmt.Sprint(round, " ", n)
			l.Keep(c)
			asked++
		}
		w.Write(t.Context())
		if l.bytes > mostWaiting || len(w.waiting) > 130 {
			t.Fatalf("%d bytes and %d parts wait", l.bytes, len(w.waiting))
		}
	}
	s.err = nil
	w.Write(t.Context())
	w.Write(t.Context())
	found, dropped := s.all(t), 0
	for _, p := range s.parts {
		dropped += p.Dropped
	}
	if len(found)+dropped != asked || dropped == 0 || int64(dropped) != l.Dropped() || l.bytes != 0 {
		t.Errorf("of %d calls %d are kept and %d are told to be dropped; %d bytes left", asked, len(found), dropped, l.bytes)
	}
	l.Keep(call(1, "OK"))
	before := len(s.parts)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Run(ended); err != nil || len(s.parts) != before+1 {
		t.Errorf("what is left is not written at the end: %v", err)
	}
}

// TestKilled: of a replica that dies between it takes its calls and writes them exactly those are lost. A write whose answer is lost is not
// made twice.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := &storage{}
	first, second := NewLog(), NewLog()
	on := func(replica byte, before func() error, after func() error) func(context.Context, []Part) error {
		return func(ctx context.Context, parts []Part) error {
			if err := before(); err != nil {
				return err
			}
			parts = slices.Clone(parts)
			for i := range parts {
				parts[i].Replica = uuid.UUID{replica}
			}
			return errors.Join(s.add(ctx, parts), after())
		}
	}
	var before, after error
	w := NewWriter(first, on(1, func() error { return before }, func() error { return after }), seal, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	keeps := func(l *Log, from, to int) {
		for n := from; n < to; n++ {
			l.Keep(call(n*100, "OK"))
		}
	}
	keeps(first, 0, 10)
	after = context.DeadlineExceeded // it is written all the same
	w.Write(t.Context())
	after = nil
	keeps(first, 10, 20)
	w.Write(t.Context())
	keeps(first, 20, 30)
	before = context.Canceled // and then it dies
	w.Write(t.Context())
	keeps(second, 30, 40)
	NewWriter(second, on(2, func() error { return nil }, func() error { return nil }), seal, func() time.Time { return noon }, slog.New(slog.DiscardHandler)).Write(t.Context())
	var want []string
	for n := 39; n >= 0; n-- {
		if n < 20 || n >= 30 {
			want = append(want, fmt.Sprintf("r%07d", n*100))
		}
	}
	if got := pages(t, s, shop, Filter{}, 7, func() {}); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
}

// TestRefused: a part that the database never takes is lost and counted, and holds up no other.
func TestRefused(t *testing.T) {
	t.Parallel()
	l, s := NewLog(), &storage{}
	tries := 0
	w := NewWriter(l, func(ctx context.Context, parts []Part) error {
		if tries++; slices.ContainsFunc(parts, func(p Part) bool { return p.Owner == other }) {
			return fmt.Errorf("add: %w", ErrRefused)
		}
		return s.add(ctx, parts)
	}, seal, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	for n := range 50 {
		c := call(n, "OK")
		c.Owner.Merchant = fmt.Sprint("mer_", n)
		l.Keep(c)
	}
	for n := range 3 {
		c := call(n, "OK")
		c.Owner = other
		l.Keep(c)
	}
	w.Write(t.Context())
	if len(s.parts) != 50 || len(w.waiting) != 0 || l.Dropped() != 3 || l.bytes != 0 || len(l.waits) != 0 || l.of[other].dropped != 3 || tries > 120 {
		t.Errorf("%d parts are written and %d wait after %d tries; %d are dropped, %d bytes left", len(s.parts), len(w.waiting), tries, l.Dropped(), l.bytes)
	}
}

// TestWritesAreBounded: neither many bytes nor a database that does not answer.
func TestWritesAreBounded(t *testing.T) {
	t.Parallel()
	l := NewLog()
	w := NewWriter(l, func(ctx context.Context, parts []Part) error {
		bytes := 0
		for _, p := range parts {
			bytes += len(p.Calls)
		}
		if end, bounded := ctx.Deadline(); bytes > mostBytes || !bounded || time.Until(end) > mostWrite {
			t.Errorf("%d bytes are written in one statement until %v", bytes, end)
		}
		return nil
	}, func(_ Owner, calls []byte) ([]byte, error) { return append(calls, make([]byte, 1<<20)...), nil }, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	for n := range 20 {
		c := call(n, "OK")
		c.Owner.Merchant = fmt.Sprint("mer_", n)
		l.Keep(c)
	}
	w.Write(t.Context())
	if l.bytes != 0 {
		t.Errorf("%d bytes are left", l.bytes)
	}
}

// TestOneMerchantInAnOutage takes an eighth of what waits, whatever it asks with, and what is too long is not kept.
func TestOneMerchantInAnOutage(t *testing.T) {
	t.Parallel()
	l, s := NewLog(), &storage{err: errors.New("the database is away")}
	w := writing(l, s)
	c := call(0, "INTERNAL")
	c.Asked, c.Method, c.Query, c.Agent, c.Message = nil, "GET", "q="+strings.Repeat("x", MostBody-2), strings.Repeat("a", mostText), strings.Repeat("m", mostText)
	for range 40 {
		for n := range 40 {
			c.Owner = []Owner{shop, {shop.Merchant, "test"}}[n%2] // in both modes
			l.Keep(c)
		}
		w.Write(t.Context())
	}
	if l.bytes > mostWaiting/8 || l.bytes < mostWaiting/8-mostOfOwner || l.waits[shop.Merchant] != l.bytes {
		t.Errorf("%d of %d bytes are one merchant's", l.bytes, mostWaiting)
	}
	c.Owner = other
	l.Keep(c)
	if len(l.of[other].calls) != 1 {
		t.Error("there is no room for another's")
	}
	c.Query, c.Agent, c.Message = c.Query+"x", c.Agent+"x", c.Message+"x"
	l.Keep(c)
	if kept := l.of[other].calls[1]; kept.Query+kept.Agent+kept.Message != "" {
		t.Errorf("%d bytes of texts are kept", kept.size())
	}
}

func TestUnsealed(t *testing.T) {
	t.Parallel()
	l, s := NewLog(), &storage{}
	w := NewWriter(l, s.add, func(Owner, []byte) ([]byte, error) { return nil, errors.New("no key") }, func() time.Time { return noon }, slog.New(slog.DiscardHandler))
	l.Keep(call(1, "OK"))
	w.Write(t.Context())
	w.Write(t.Context())
	if l.Dropped() != 1 || len(s.parts) != 0 || l.bytes != 0 {
		t.Errorf("%d are dropped, %d parts written, %d bytes left", l.Dropped(), len(s.parts), l.bytes)
	}
	w.seal = seal
	w.Write(t.Context())
	if len(s.parts) != 1 || s.parts[0].Dropped != 1 {
		t.Errorf("written %+v", s.parts)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "yesterday", "1", "x_1"} {
		if p, err := ParsePlace(text); err == nil {
			t.Errorf("%q is the place %v", text, p)
		}
	}
	if _, _, err := unpack([]byte("x")); err == nil {
		t.Error("anything is unpacked")
	}
}
