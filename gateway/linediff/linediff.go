// Package linediff tells how a text becomes another one, line by line. It owns the one
// comparison that command line, admin API and console show, in the form of `diff -u`. It
// must know nothing of what the texts are.
package linediff

import (
	"fmt"
	"strings"
)

const (
	// diffContext is how many equal lines stand around a change.
	diffContext = 3
	// mostCells bounds the table of a comparison; beyond it everything between the first
	// and the last difference counts as changed.
	mostCells = 16 << 20
)

// Of is how a text becomes another one, as `diff -u` writes it without the names; "" where
// they are the same.
func Of(a, b string) string {
	if a == b {
		return ""
	}
	edits := lineEdits(linesOf(a), linesOf(b))
	var out strings.Builder
	for first := nextChange(edits, 0); first < len(edits); {
		last := first
		for next := nextChange(edits, last+1); next < len(edits) && next-last <= 2*diffContext; next = nextChange(edits, last+1) {
			last = next
		}
		hunk := edits[max(0, first-diffContext):min(len(edits), last+1+diffContext)]
		var olds, news int
		for _, e := range hunk {
			if e.sign != '+' {
				olds++
			}
			if e.sign != '-' {
				news++
			}
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", hunk[0].a+1, olds, hunk[0].b+1, news)
		for _, e := range hunk {
			fmt.Fprintf(&out, "%c%s\n", e.sign, e.line)
		}
		first = nextChange(edits, last+1)
	}
	return out.String()
}

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// lineEdit is a line of either text: kept, '-' or '+'. A and b are how many lines of
// each come before it.
type lineEdit struct {
	sign byte
	line string
	a, b int
}

func nextChange(edits []lineEdit, from int) int {
	for from < len(edits) && edits[from].sign == ' ' {
		from++
	}
	return from
}

// lineEdits leads from a to b with as few changed lines as possible.
func lineEdits(a, b []string) (edits []lineEdit) {
	before := 0
	for before < len(a) && before < len(b) && a[before] == b[before] {
		before++
	}
	after := 0
	for after < len(a)-before && after < len(b)-before && a[len(a)-1-after] == b[len(b)-1-after] {
		after++
	}
	i, j := 0, 0
	add := func(sign byte) {
		e := lineEdit{sign: sign, a: i, b: j}
		if sign == '+' {
			e.line = b[j]
		} else {
			e.line = a[i]
		}
		edits = append(edits, e)
		if sign != '+' {
			i++
		}
		if sign != '-' {
			j++
		}
	}
	for i < before {
		add(' ')
	}
	endA, endB := len(a)-after, len(b)-after
	longest := commonLines(a[before:endA], b[before:endB])
	for i < endA || j < endB {
		x, y := i-before, j-before
		switch {
		case longest != nil && i < endA && j < endB && a[i] == b[j]:
			add(' ')
		case j == endB, i < endA && (longest == nil || longest[x+1][y] >= longest[x][y+1]):
			add('-')
		default:
			add('+')
		}
	}
	for i < len(a) {
		add(' ')
	}
	return edits
}

// commonLines is, for each two ends of the texts, how many lines they have in common in
// order; nil where that is too much to ask.
func commonLines(a, b []string) [][]int32 {
	if (len(a)+1)*(len(b)+1) > mostCells {
		return nil
	}
	longest := make([][]int32, len(a)+1)
	for i := range longest {
		longest[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	return longest
}
