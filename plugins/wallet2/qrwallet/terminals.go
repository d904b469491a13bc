package qrwallet

import (
	"maps"
	"time"
)

// leftFor is how long money that comes by a terminal's code is ours after the
// connection has moved to another: far longer than the last sale by that code
// lives, and than money is late.
const leftFor = 24 * time.Hour

// terminals are those whose rows are ours, and when the connection moved from each
// to another: never from the one that it has. One without a name is any.
type terminals map[string]time.Time

// ours reports whether a row of a terminal, of some time, is ours. A row that names
// no terminal is of each.
func (t terminals) ours(name string, at time.Time) bool {
	for known, left := range t {
		if (known == "" || name == "" || known == name) && (left.IsZero() || at.Before(left.Add(leftFor))) {
			return true
		}
	}
	return false
}

// moved are the terminals once the connection has another.
func (t terminals) moved(to string, now time.Time) terminals {
	next := maps.Clone(t)
	if next == nil {
		next = terminals{}
	}
	for name, left := range next {
		if left.IsZero() {
			next[name] = now
		}
	}
	next[to] = time.Time{}
	return next
}

// cursor is how far an account's reports were read.
type cursor struct {
	Terminals terminals `json:"terminals"` // whose rows were taken
	Files     marks     `json:"files"`
}

// turn is the cursor for a connection with a terminal. All terminals of a shop are
// one account, so a connection may move from one to another and go on where it
// was, with sales open by the codes of both. Rows by the old code stay ours for a
// while, or those sales would seem unpaid. Rows by the new one may have been passed
// over already, by a reader that had not heard of the move, so reading begins anew:
// rows that are read twice do no harm, and a missed one is money.
func (c cursor) turn(terminal string, now time.Time) cursor {
	if left, known := c.Terminals[terminal]; known && left.IsZero() {
		return c
	}
	return cursor{Terminals: c.Terminals.moved(terminal, now), Files: marks{}}
}
