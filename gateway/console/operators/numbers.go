package operators

import (
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// number is one of a file's numbers, and where its text stands.
type number struct {
	Pointer  string // RFC 6901
	Text     string
	from, to int
}

// custom belongs to an operator's own rules: who wrote them knows what its numbers mean.
const custom = "/custom/"

// numbersOf are the numbers of a JSON file, as they stand in it.
func numbersOf(file string) ([]number, error) {
	var numbers []number
	for in := jsontext.NewDecoder(strings.NewReader(file)); ; {
		token, err := in.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return numbers, nil
		case err != nil:
			return nil, err
		}
		pointer := string(in.StackPointer())
		if token.Kind() != '0' || strings.HasPrefix(pointer, custom) {
			continue
		}
		to := int(in.InputOffset())
		text := token.String()
		numbers = append(numbers, number{Pointer: pointer, Text: text, from: to - len(text), to: to})
	}
}

var numeral = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// withNumbers is a file with the numbers of a form in place of its own. All else stays as
// it was written, so that a difference shows what was changed and no more.
func withNumbers(file string, form url.Values) (string, error) {
	numbers, err := numbersOf(file)
	if err != nil {
		return "", err
	}
	for _, n := range slices.Backward(numbers) {
		if !form.Has(n.Pointer) {
			continue
		}
		text := strings.TrimSpace(form.Get(n.Pointer))
		if !numeral.MatchString(text) {
			return "", fault.Invalid(n.Pointer, "must be a number, with a point before its decimals")
		}
		file = file[:n.from] + text + file[n.to:]
	}
	return file, nil
}

// group is the numbers under one name, and section the groups under one.
type (
	group struct {
		Name    string
		Numbers []field
	}
	section struct {
		Name   string
		Groups []group
	}
	// field is a number's input.
	field struct{ Pointer, Label, Text string }
)

// formOf arranges numbers as a form shows them: by the first two names above them.
func formOf(numbers []number) []section {
	var sections []section
	for _, n := range numbers {
		var names []string
		for name := range jsontext.Pointer(n.Pointer).Tokens() {
			names = append(names, name)
		}
		for len(names) < 3 {
			names = append(names, "")
		}
		i := slices.IndexFunc(sections, func(s section) bool { return s.Name == names[0] })
		if i < 0 {
			i, sections = len(sections), append(sections, section{Name: names[0]})
		}
		s := &sections[i]
		j := slices.IndexFunc(s.Groups, func(g group) bool { return g.Name == names[1] })
		if j < 0 {
			j, s.Groups = len(s.Groups), append(s.Groups, group{Name: names[1]})
		}
		s.Groups[j].Numbers = append(s.Groups[j].Numbers, field{n.Pointer, strings.Trim(strings.Join(names[2:], " "), " "), n.Text})
	}
	return sections
}
