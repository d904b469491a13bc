package text

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/text/language"
)

//go:embed id.json
var catalogue []byte

// Sections are the Indonesian of all texts by their English. Those in "faults" refuse something, and may have values in
// them: %s in both languages.
var Sections = func() (sections map[string]map[string]string) {
	if err := json.Unmarshal(catalogue, &sections); err != nil { // also where a text stands twice
		panic("text: id.json: " + err.Error())
	}
	return sections
}()

// indonesian is all of them.
var indonesian = func() map[string]string {
	all := map[string]string{}
	for _, section := range Sections {
		maps.Copy(all, section)
	}
	return all
}()

// Language is one that is spoken here.
type Language struct{ Code, Name string }

// Languages are all, the first unless somebody wishes otherwise.
var Languages = []Language{{"id", "Bahasa Indonesia"}, {"en", "English"}}

var matcher = language.NewMatcher([]language.Tag{language.Indonesian, language.English})

// Choose is the code of the language that fits the first wish that names one: a code, or what a browser says that it
// accepts.
func Choose(wishes ...string) string {
	_, index := language.MatchStrings(matcher, wishes...)
	return Languages[index].Code
}

// In is a text in a language, with values in it as in Sprintf.
func In(code, english string, values ...any) string {
	said := english
	if code == "id" {
		said = cmp.Or(indonesian[english], english)
	}
	if len(values) > 0 {
		return fmt.Sprintf(said, values...)
	}
	return said
}

// form is a refusal with values in it: how it is found, and its Indonesian.
type form struct {
	english *regexp.Regexp
	said    string
}

// forms are the refusals with values, the longest first: the others are parts of them.
var forms = func() (all []form) {
	faults := Sections["faults"]
	for _, english := range slices.SortedFunc(maps.Keys(faults), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }) {
		if strings.Contains(english, "%s") {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(english), "%s", "(.*)")
			all = append(all, form{regexp.MustCompile("(?s)^" + pattern + "$"), faults[english]})
		}
	}
	return all
}()

// Refusal is why something is refused, in a language: a text of the catalogue, perhaps with values in it, or any other.
func Refusal(code, english string) string {
	if code != "id" || indonesian[english] != "" {
		return In(code, english)
	}
	for _, f := range forms {
		if found := f.english.FindStringSubmatch(english); found != nil {
			values := make([]any, len(found)-1)
			for i := range values {
				values[i] = found[i+1]
			}
			return fmt.Sprintf(f.said, values...)
		}
	}
	return english
}

var months = map[string][12]string{
	"id": {"Jan", "Feb", "Mar", "Apr", "Mei", "Jun", "Jul", "Agu", "Sep", "Okt", "Nov", "Des"},
	"en": {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
}

// Day is the day of a time, in its own zone.
func Day(code string, at time.Time) string {
	return fmt.Sprintf("%s %d", ShortDay(code, at), at.Year())
}

// ShortDay is the day of a time without its year.
func ShortDay(code string, at time.Time) string {
	return fmt.Sprintf("%d %s", at.Day(), months[code][at.Month()-1])
}
