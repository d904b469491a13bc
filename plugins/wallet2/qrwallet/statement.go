package qrwallet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	// reportsLate is how late rows may be at most, as the manifest says, and how late
	// they may be where a connection does not differ.
	reportsLate = 2 * time.Hour
	// unendedFor is how long the last line of a report may lack its end before
	// nobody is writing it any more.
	unendedFor = 10 * time.Minute
	// heldFor is how long a row that can't be read keeps the statement from being complete.
	heldFor = 24 * time.Hour
	// maxLines keeps a page well below the largest message.
	maxLines = 4000
)

// mark is how far a file was read. A cursor has the marks of all files that are
// there, so that one which comes late under an earlier name is read, too.
type mark struct {
	Offset  int    `json:"o"`
	Digest  string `json:"d"`           // of what was read
	Changed int64  `json:"c,omitempty"` // of the file, once it was read whole
}

type marks map[string]mark

// readCursor reads one of ours. From anything else reading begins anew: rows
// that are read twice do no harm, and a missed one is money.
func readCursor(text string) cursor {
	var read cursor
	if json.Unmarshal([]byte(text), &read) != nil {
		return cursor{}
	}
	return read
}

func (c cursor) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return "" // a map of plain fields always can be
	}
	return string(text)
}

// reading is one walk over the files.
type reading struct {
	account account
	now     time.Time
	limit   int
	before  marks
	after   marks
	answer  sdk.StatementPage
	until   time.Time
	open    bool // something was left unread, so nothing is complete
	refused bool // a file was
}

// read reads a page of the statement from a cursor on. A report that can't be read, or a row, holds up no
// other; but while there is one nothing is complete, for it may hold any row.
func (a account) read(ctx context.Context, from string, limit int) sdk.StatementPage {
	if limit < 1 || limit > maxLines {
		limit = maxLines
	}
	files, err := a.reports.list(ctx)
	if err != nil {
		return unread(err)
	}
	now := time.Now()
	before := readCursor(from).turn(a.terminal, now)
	r := reading{account: a, now: now, limit: limit, before: before.Files, after: marks{}}
	r.account.terminals = before.Terminals
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return unread(unreachable{err})
		}
		full, err := r.file(f)
		if err != nil {
			r.refuse(f, err)
		}
		if full {
			r.answer.More = true
			r.keep(files[i:])
			break
		}
	}
	if reading, ok := a.reports.(once); ok && r.answer.More {
		documents.keep(reading, files)
	}
	return r.page()
}

// unread is the page of a statement that can't be read.
func unread(err error) sdk.StatementPage { return sdk.NoStatement(blameOf(err), err.Error()) }

func blameOf(err error) sdk.Blame {
	if _, ok := errors.AsType[unreachable](err); ok {
		return sdk.BlameUpstream
	}
	if _, ok := errors.AsType[limited](err); ok {
		return sdk.BlameLimit
	}
	return sdk.BlameAccount
}

// refuse leaves a file unread, and reports the fault of the first such file.
func (r *reading) refuse(f file, err error) {
	r.open, r.refused = true, true
	r.keep([]file{f})
	r.fault(blameOf(err), err)
}

// fault tells of the first thing that is wrong.
func (r *reading) fault(blame sdk.Blame, err error) {
	if r.answer.Blame == sdk.BlameNone {
		r.answer.Blame, r.answer.Detail = blame, err.Error()
	}
}

// keep takes the marks of files that this walk did not reach.
func (r *reading) keep(files []file) {
	for _, f := range files {
		if _, moved := r.after[f.name]; moved {
			continue
		}
		if m, ok := r.before[f.name]; ok {
			r.after[f.name] = m
		}
	}
}

// file reads on in one file, and reports whether the answer is full before it ends.
func (r *reading) file(f file) (full bool, err error) {
	if f.until.After(r.until) {
		r.until = f.until
	}
	done := r.before[f.name]
	if done.Changed != 0 && done.Changed == f.changed && int64(done.Offset) == f.size {
		r.after[f.name] = done
		return false, nil
	}
	body, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		r.open = true // taken away meanwhile; the next list has what is left
		return false, nil
	}
	if err != nil {
		return false, err
	}
	start := done.Offset
	if start > len(body) || digest(body[:start]) != done.Digest {
		start = 0 // another file under the same name, or an edited one
		if done.Offset > 0 {
			r.fault(sdk.BlameAccount, fmt.Errorf("%s: what had been read of it has changed, or is gone: rows that it has no more stay as they were read", f.name))
		}
	}
	content, err := r.account.parse(f.name, body, part{start, r.limit - len(r.answer.Lines)})
	if err != nil {
		return false, err
	}
	reached := start
	for _, row := range content.rows {
		r.answer.Lines = append(r.answer.Lines, row.line)
		reached = row.end
	}
	if content.more {
		r.after[f.name] = mark{Offset: reached, Digest: digest(body[:reached])}
		return true, nil
	}
	made := mark{Offset: content.end, Digest: digest(body[:content.end]), Changed: f.changed}
	if len(content.bad) > 0 {
		r.fault(sdk.BlameAccount, content.bad[0])
		if r.now.Sub(f.written()) < heldFor { // it may be any payment: nothing ends unpaid meanwhile
			made.Changed, r.open = 0, true
		}
	}
	if content.half {
		made.Changed, r.open = 0, true
	}
	r.after[f.name] = made
	switch {
	case !content.half:
	case r.now.Sub(f.written()) > unendedFor:
		return false, fmt.Errorf("%s: the last line has no end", f.name)
	case r.answer.Detail == "": // its rest is under way
		r.answer.Detail = fmt.Sprintf("%s: the last line has no end yet", f.name)
	}
	return false, nil
}

// page is what the walk has found.
func (r *reading) page() sdk.StatementPage {
	if r.refused && len(r.answer.Lines) == 0 {
		return sdk.NoStatement(r.answer.Blame, r.answer.Detail) // there is nothing new beside what is broken
	}
	r.answer.Known, r.answer.Cursor = true, cursor{Terminals: r.account.terminals, Files: r.after}.String()
	if complete := !r.answer.More && !r.open; complete && !r.until.IsZero() {
		if r.until.After(r.now) {
			r.until = r.now
		}
		r.answer.Through = r.until.Add(-r.account.late)
	}
	return r.answer
}

func digest(read []byte) string {
	sum := sha256.Sum256(read)
	return hex.EncodeToString(sum[:8])
}
