package qrwallet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// TestNoRowIsLost: files that come late under earlier names, that grow, that are
// replaced or taken away.
func TestNoRowIsLost(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.write("b.csv", header+settled("s2", 2))
	r := b.mustRead("the first file", "", "s2")
	b.write("a.csv", header+settled("s1", 1))
	r = b.mustRead("a file that comes late", r.Cursor, "s1")
	b.write("b.csv", header+settled("s2", 2)+settled("s3", 3))
	r = b.mustRead("a file that grows", r.Cursor, "s3")
	b.write("a.csv", header+settled("s4", 4))
	r = b.mustRead("another file of the same length", r.Cursor, "s4")
	if err := os.Remove(filepath.Join(b.dir, "b.csv")); err != nil {
		t.Fatal(err)
	}
	r = b.mustRead("a file that is gone", r.Cursor)
	b.write("readme.txt", "no report")
	b.write(".hidden.csv", "no report")
	b.write("c.csv.part", "no report yet")
	b.mustRead("other files", r.Cursor)
}

// TestHalfALine waits for its rest: it is read once, and whole.
func TestHalfALine(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	at := time.Now().Add(-5 * time.Hour)
	whole := header + settled("s1", 1) + settled("s2", 22222)
	b.write(named(at), whole[:len(whole)-30])
	r := b.mustRead("half a line", "", "s1")
	if !r.Through.IsZero() || !strings.Contains(r.Detail, "has no end yet") || r.More {
		t.Errorf("got %+v", r)
	}
	b.write(named(at), whole[:len(whole)-1])
	r = b.mustRead("all but its end", r.Cursor)
	b.write(named(at), whole)
	if r = b.mustRead("the whole", r.Cursor, "s2"); r.Through.IsZero() || r.Detail != "" {
		t.Errorf("got %+v", r)
	}
	half := newBooks(t)
	half.write("a.csv", header[:20])
	half.mustRead("half a header", "")
}

// TestThroughIsWhatTheReportsPromise: their own time, less how late rows may be,
// once everything is read.
func TestThroughIsWhatTheReportsPromise(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	if r := b.mustRead("nothing", ""); !r.Through.IsZero() {
		t.Errorf("nothing is complete until %v", r.Through)
	}
	b.write("without-a-time.csv", header+settled("s1", 1))
	r := b.mustRead("a file without a time", "", "s1")
	if !r.Through.IsZero() {
		t.Errorf("complete until %v", r.Through)
	}
	at := time.Now().UTC().Add(-3 * time.Hour).Truncate(time.Second)
	b.write(named(at), header)
	if r = b.mustRead("an empty report", r.Cursor); !r.Through.Equal(at.Add(-reportsLate)) {
		t.Errorf("complete until %v, want two hours before %v", r.Through, at)
	}
	if r = b.mustRead("nothing new", r.Cursor); !r.Through.Equal(at.Add(-reportsLate)) {
		t.Errorf("complete until %v", r.Through)
	}
	b.write(named(at.Add(time.Hour)), header+settled("s2", 2)+settled("s3", 3))
	if page := b.read(r.Cursor, 1); !page.More || !page.Through.IsZero() {
		t.Errorf("a page says complete until %v, more %v", page.Through, page.More)
	}
	b.write(named(time.Now().Add(99*time.Hour)), header)
	if r = b.mustRead("a report of the future", r.Cursor, "s2", "s3"); r.Through.After(time.Now().Add(-reportsLate)) {
		t.Errorf("complete until %v", r.Through)
	}
}

// TestNoReportTellsOfWhatCameAfterIt, whatever its name says: one of an hour is
// written before the hour is over, and added to in it.
func TestNoReportTellsOfWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	b, now := newBooks(t), time.Now().UTC().Truncate(time.Second)
	hourly, document := named(now.Add(time.Hour)), header+settled("s1", 1)
	b.write(hourly, document)
	b.touch(hourly, now.Add(-30*time.Minute))
	r := b.mustRead("one of this hour", "", "s1")
	if want := now.Add(-30*time.Minute - reportsLate); !r.Through.Equal(want) {
		t.Errorf("complete until %v, want %v", r.Through, want)
	}
	b.write(hourly, document+settled("s2", 2))
	b.touch(hourly, now.Add(-10*time.Minute))
	r = b.mustRead("what was added", r.Cursor, "s2")
	if want := now.Add(-10*time.Minute - reportsLate); !r.Through.Equal(want) {
		t.Errorf("complete until %v, want %v", r.Through, want)
	}
	b.write(hourly, document+settled("s2", 2))
	b.touch(hourly, now.Add(9*time.Hour)) // by a clock that is ahead
	if r = b.mustRead("one of the future", r.Cursor); r.Through.IsZero() || r.Through.After(time.Now().Add(-reportsLate)) {
		t.Errorf("complete until %v", r.Through)
	}
	copied := newBooks(t)
	copied.write(named(now.Add(-time.Hour)), document)
	copied.touch(named(now.Add(-time.Hour)), now.Add(-5*time.Hour))
	if r := copied.mustRead("a copy with its old time", "", "s1"); !r.Through.Equal(now.Add(-5*time.Hour - reportsLate)) {
		t.Errorf("complete until %v", r.Through)
	}
}

// TestNoServerTellsOfWhatIsToCome, also where its clock is ahead of ours.
func TestNoServerTellsOfWhatIsToCome(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		modified, date string // as times of the day
		want           time.Time
	}{
		"not told":                  {"", "12:00:00", time.Time{}},
		"not a time":                {"noon", "12:00:00", time.Time{}},
		"an hour ago":               {"11:00:00", "12:00:00", now.Add(-time.Hour)},
		"no date":                   {"11:00:00", "", now.Add(-time.Hour)},
		"after the answer":          {"11:30:00", "11:00:00", now.Add(-time.Hour)},
		"to come":                   {"13:00:00", "", now},
		"by a clock that is ahead":  {"12:30:00", "13:00:00", now.Add(-30 * time.Minute)},
		"by a clock that is behind": {"10:30:00", "11:00:00", now.Add(-90 * time.Minute)},
	} {
		header := http.Header{}
		for field, at := range map[string]string{"Last-Modified": c.modified, "Date": c.date} {
			if at != "" {
				header.Set(field, "Fri, 02 Jan 2026 "+at+" GMT")
			}
		}
		if got := modified(header, now); !got.Equal(c.want) {
			t.Errorf("%s: until %v, want %v", name, got, c.want)
		}
	}
}

// TestABrokenFileHoldsUpNoOther: what is whole before and after it is read, it is
// told again and again, and nothing is complete until it is mended or gone.
func TestABrokenFileHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.write("a.csv", header+settled("s1", 1))
	b.write("b.csv", "broken\n")
	b.write(named(time.Now()), header+settled("s3", 3))
	r := b.mustRead("the whole", "", "s1", "s3")
	for _, id := range []string{"s4", "s5"} {
		if r.More || !r.Through.IsZero() || r.Blame != sdk.BlameAccount || !strings.Contains(r.Detail, "b.csv: line 1") {
			t.Errorf("got %+v", r)
		}
		b.write(id+".csv", header+settled(id, 4)) // what comes meanwhile
		r = b.mustRead("the next", r.Cursor, id)
		if next := b.read(r.Cursor, 100); next.Known || !strings.Contains(next.Detail, "b.csv: line 1") {
			t.Errorf("nothing new: %+v", next)
		}
	}
	b.write("b.csv", header+settled("s2", 2))
	if mended := b.mustRead("the mended", r.Cursor, "s2"); mended.Through.IsZero() || mended.Detail != "" {
		t.Errorf("got %+v", mended)
	}
	if err := os.Remove(filepath.Join(b.dir, "b.csv")); err != nil {
		t.Fatal(err)
	}
	if gone := b.mustRead("without it", r.Cursor); gone.Through.IsZero() || gone.Detail != "" {
		t.Errorf("got %+v", gone)
	}
}

// TestAFileThatGrewBrokenIsReadOn: what was read of it stays read, and its rest is
// read when it is mended, once.
func TestAFileThatGrewBrokenIsReadOn(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.write("a.csv", header+settled("s1", 1))
	r := b.mustRead("the whole", "", "s1")
	b.write("a.csv", header+settled("s1", 1)+settled("s2", 2)+"broken\n")
	b.write("b.csv", header+settled("s3", 3))
	r = b.mustRead("beside the broken", r.Cursor, "s3")
	b.write("a.csv", header+settled("s1", 1)+settled("s2", 2))
	b.mustRead("the mended", r.Cursor, "s2")
}

// TestALineWithoutAnEndIsAFaultInTheEnd: somebody must see to a report that is not
// being written any more.
func TestALineWithoutAnEndIsAFaultInTheEnd(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.write("a.csv", header+settled("s1", 1)+"s2,2026")
	r := b.mustRead("half a line", "", "s1")
	if r.Blame != sdk.BlameNone || !strings.Contains(r.Detail, "has no end yet") {
		t.Errorf("while it is written: %+v", r)
	}
	b.touch("a.csv", time.Now().Add(-unendedFor-time.Minute))
	if r = b.read(r.Cursor, 10); r.Known || r.Blame != sdk.BlameAccount || r.Detail != "a.csv: the last line has no end" {
		t.Errorf("after a while: %+v", r)
	}
}

// TestAConnectionSaysHowLate shortens the wait for what is complete.
func TestAConnectionSaysHowLate(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	at := time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
	b.write(named(at), header)
	for text, want := range map[string]time.Duration{"": reportsLate, "90s": 90 * time.Second, "15m": 15 * time.Minute, "2h": 2 * time.Hour} {
		r := statement(t.Context(), sdk.Statement{Connection: b.connection(func(c *credentials) { c.ReportsLate = text })})
		if !r.Through.Equal(at.Add(-want)) {
			t.Errorf("%q: complete until %v, want %v before %v", text, r.Through, want, at)
		}
	}
	for _, text := range []string{"0s", "3h", "soon", "-5m"} {
		r := verify(t.Context(), b.connection(func(c *credentials) { c.ReportsLate = text }))
		if r.Outcome != sdk.Refused || !strings.Contains(r.Refusal.Message, "reports_late: ") {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func TestReportsOverHTTP(t *testing.T) {
	t.Parallel()
	document, status := header+settled("s1", 1), http.StatusOK
	changed := time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			status = http.StatusUnauthorized
		}
		w.Header().Set("Last-Modified", changed.Format(http.TimeFormat))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(document))
	}))
	defer server.Close()
	at := reportsAt{URL: server.URL + "/r?secret=s3cret", Token: "t0ken"}
	read := func(cursor string) sdk.StatementPage {
		return statement(t.Context(), sdk.Statement{Connection: connection(t, func(c *credentials) { c.Reports = at }), Cursor: cursor})
	}
	r := read("")
	if got := ids(r.Lines); len(got) != 1 || got[0] != "s1" || !r.Through.Equal(changed.Add(-reportsLate)) {
		t.Fatalf("got %+v", r)
	}
	document += settled("s2", 2)
	if r = read(r.Cursor); len(r.Lines) != 1 || r.Lines[0].ID != "s2" {
		t.Errorf("grown: %+v", r)
	}
	document = header + settled("s9", 9)
	if r = read(r.Cursor); len(r.Lines) != 1 || r.Lines[0].ID != "s9" {
		t.Errorf("replaced: %+v", r)
	}
	for code, blame := range map[int]sdk.Blame{500: sdk.BlameUpstream, 429: sdk.BlameLimit, 404: sdk.BlameAccount, 302: sdk.BlameAccount} {
		status = code
		if r := read(""); r.Known || r.Blame != blame || !strings.Contains(r.Detail, fmt.Sprint(code)) {
			t.Errorf("%d: %+v", code, r)
		}
	}
	status, at.Token = http.StatusOK, "other"
	if r := read(""); r.Known || r.Blame != sdk.BlameAccount {
		t.Errorf("with a wrong token: %+v", r)
	}
	at.URL = "http://127.0.0.1:1/r?secret=s3cret" // a port that no other test is given
	if r := read(""); r.Known || r.Blame != sdk.BlameUpstream || strings.Contains(r.Detail, "s3cret") || strings.Contains(r.Detail, "t0ken") {
		t.Errorf("nobody there: %+v", r)
	}
	if r := verify(t.Context(), connection(t, func(c *credentials) { c.Reports = at })); r.Outcome != sdk.Unknown || r.Blame != sdk.BlameUpstream {
		t.Errorf("verified where nobody is: %+v", r)
	}
}

// TestADocumentIsFetchedOnceAReading, however many pages it has; the next reading
// fetches it anew.
func TestADocumentIsFetchedOnceAReading(t *testing.T) {
	t.Parallel()
	fetched := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched++
		_, _ = w.Write([]byte(header + settled("s1", 1) + settled("s2", 2) + settled("s3", 3) + settled("s4", 4)))
	}))
	defer server.Close()
	c := connection(t, func(c *credentials) { c.Reports = reportsAt{URL: server.URL} })
	for reading, want := range []int{1, 2, 3} {
		var read []string
		page := sdk.StatementPage{More: true}
		for page.More {
			page = statement(t.Context(), sdk.Statement{RequestID: fmt.Sprint(t.Name(), reading), Connection: c, Cursor: page.Cursor, Limit: 1})
			read = append(read, ids(page.Lines)...)
		}
		if !slices.Equal(read, []string{"s1", "s2", "s3", "s4"}) || fetched != want {
			t.Errorf("reading %d: %v, %d times fetched", reading, read, fetched)
		}
	}
	for range 2 { // of no reading
		if page := statement(t.Context(), sdk.Statement{Connection: c, Limit: 1}); len(page.Lines) != 1 {
			t.Errorf("%+v", page)
		}
	}
	if fetched != 5 {
		t.Errorf("%d times fetched", fetched)
	}
}

// TestLargeReports: 100,000 rows are read page by page, each once.
func TestLargeReports(t *testing.T) {
	t.Parallel()
	const rows = 100_000
	var document strings.Builder
	document.WriteString(header)
	for i := range rows {
		document.WriteString(settled(fmt.Sprintf("s%06d", i), money.Amount(i+1)))
	}
	b := newBooks(t)
	b.write("a.csv", document.String())
	seen, cursor := 0, ""
	for more := true; more; {
		r := b.read(cursor, 0)
		for _, e := range r.Lines {
			if e.ID != fmt.Sprintf("s%06d", seen) {
				t.Fatalf("row %d is %s", seen, e.ID)
			}
			seen++
		}
		if !r.Known || len(r.Lines) > maxLines {
			t.Fatalf("a page of %d, %s", len(r.Lines), r.Detail)
		}
		cursor, more = r.Cursor, r.More
	}
	if seen != rows {
		t.Errorf("read %d rows", seen)
	}
}

// vanishing is a source whose file goes away between the list and the read.
type vanishing struct{ directory }

func (v vanishing) list(ctx context.Context) ([]file, error) {
	files, err := v.directory.list(ctx)
	return files, errors.Join(err, os.RemoveAll(string(v.directory)))
}

func TestAFileThatGoesAwayIsNoFault(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.write(named(time.Now().Add(-3*time.Hour)), header+settled("s1", 1))
	a, err := open(b.connection())
	if err != nil {
		t.Fatal(err)
	}
	a.reports = vanishing{directory(b.dir)}
	if r := a.read(t.Context(), "", 10); !r.Known || len(r.Lines) > 0 || r.More || !r.Through.IsZero() {
		t.Errorf("got %+v", r)
	}
}
