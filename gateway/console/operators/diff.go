package operators

import (
	"maps"
	"slices"
	"strings"
)

// around is how many lines beside a change are shown, and mostCompared bounds the work:
// files that differ more are shown as replaced.
const (
	around       = 3
	mostCompared = 4 << 20
)

// line is a line of a difference: as it was (-), as it is (+), or in both.
type line struct {
	Sign byte
	Text string
}

// IsOld and IsNew tell templates the sign.
func (l line) IsOld() bool { return l.Sign == '-' }

// IsNew is a line that was not there.
func (l line) IsNew() bool { return l.Sign == '+' }

// change is what differs in a file.
type change struct {
	File  string
	Lines []line
}

// changes are what differs between two sets of files.
func changes(before, after map[string]string) []change {
	names := map[string]bool{}
	for _, files := range []map[string]string{before, after} {
		for name := range files {
			names[name] = true
		}
	}
	var all []change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			all = append(all, change{name, nearby(difference(lines(before[name]), lines(after[name])))})
		}
	}
	return all
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// difference is the shortest way from one text to another, by lines.
func difference(a, b []string) []line {
	if len(a)*len(b) > mostCompared {
		return append(signed('-', a), signed('+', b)...)
	}
	// common[i][j] is how many lines a[i:] and b[j:] have in common, in their order.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i, one := range slices.Backward(a) {
		for j, other := range slices.Backward(b) {
			if one == other {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []line
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, line{' ', a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, line{'-', a[i]})
			i++
		default:
			out = append(out, line{'+', b[j]})
			j++
		}
	}
	return append(append(out, signed('-', a[i:])...), signed('+', b[j:])...)
}

func signed(sign byte, texts []string) []line {
	out := make([]line, len(texts))
	for i, text := range texts {
		out[i] = line{sign, text}
	}
	return out
}

// nearby leaves out what is far from every change.
func nearby(all []line) []line {
	near := make([]bool, len(all))
	for i, l := range all {
		if l.Sign != ' ' {
			for j := max(0, i-around); j < min(len(all), i+around+1); j++ {
				near[j] = true
			}
		}
	}
	var out []line
	for i, l := range all {
		switch {
		case near[i]:
			out = append(out, l)
		case i == 0 || near[i-1]:
			out = append(out, line{' ', "…"})
		}
	}
	return out
}
