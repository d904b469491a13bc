package kind

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// titles are words around an Indonesian name that are no part of it, as people
// and banks write them with or without dots.
var titles = []string{
	"BAPAK", "BPK", "IBU", "SDR", "SDRI", "SAUDARA", "SAUDARI", "TN", "TUAN", "NY", "NYONYA", "NN", "NONA", "MR", "MRS", "MS",
	"H", "HJ", "HAJI", "HAJJAH", "KH", "PROF", "DR", "DRS", "DRA", "DRG", "IR", "RADEN", "RD",
	"SH", "SE", "ST", "SKOM", "SPD", "SSOS", "SSI", "SKED", "SIP", "SAG", "AMD", "MM", "MH", "MSI", "MT", "MPD", "MKOM", "MBA", "MSC", "PHD", "BSC",
	"PT", "CV", "UD", "TBK",
}

const (
	mask = '*'
	// leastVisible is how many letters of a masked or cut name must be there to say
	// anything.
	leastVisible = 3
	// leastCut is how long a name is at least that was cut off by somebody's limit.
	leastCut = 10
)

var masked = regexp.MustCompile(`[*#•●]+`)

// matchNames tells whether the name of a destination's holder as the caller has
// it is the one that the provider tells; nil where one of them says nothing, or
// both hide letters. It forgives case, accents, punctuation, titles, a name cut
// off at its end, and letters that one of them masks.
func matchNames(given, told string) *bool {
	ours, theirs := plainName(given), plainName(told)
	if letters(ours) == 0 || masks(ours) && letters(ours) < leastVisible || letters(theirs) < leastVisible {
		return nil
	}
	if ours != theirs && masks(ours) && masks(theirs) {
		return nil
	}
	return new(ours == theirs || cutOff(ours, theirs) || cutOff(theirs, ours) ||
		masks(theirs) && unmasks(theirs, ours) || masks(ours) && unmasks(ours, theirs))
}

func masks(name string) bool { return strings.ContainsRune(name, mask) }

// plainName is a name in capitals without what is forgiven.
func plainName(name string) string {
	name = masked.ReplaceAllString(name, string(mask))
	accents := transform.Chain(norm.NFKD, runes.Remove(runes.In(unicode.Mn)))
	if plain, _, err := transform.String(accents, name); err == nil {
		name = plain
	}
	name = strings.ReplaceAll(strings.ToUpper(name), ".", "") // S.H. is SH
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != mask })
	kept := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return slices.Contains(titles, word) })
	if len(kept) == 0 {
		kept = words // somebody is called so
	}
	return strings.Join(kept, " ")
}

func letters(name string) int {
	return strings.Count(name, "") - 1 - strings.Count(name, string(mask)) - strings.Count(name, " ")
}

// cutOff tells whether one name is the beginning of the other, long enough to be
// somebody's limit and not another name.
func cutOff(short, long string) bool {
	return len(short) >= leastCut && len(short) < len(long) && strings.HasPrefix(long, short)
}

// unmasks tells whether a name fits one with masked letters.
func unmasks(masked, name string) bool {
	parts := strings.Split(masked, string(mask))
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	fits, err := regexp.MatchString("^"+strings.Join(parts, `[\p{L}\p{N} ]*`)+"$", name)
	return err == nil && fits
}
