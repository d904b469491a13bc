package mail

import (
	"embed"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

// The texts are NAME.LANGUAGE.txt, the first line the subject. Each ends with the foot.
//
//go:embed texts/*.txt
var textFiles embed.FS

var texts = template.Must(template.ParseFS(textFiles, "texts/*.txt"))

// Indonesian and English are the languages of mails.
const (
	Indonesian = "id"
	English    = "en"
)

// Values fill a text. Each is made fit for one line, whoever has written it.
type Values map[string]string

// Render is a text's subject and its plain text: paragraphs, and rows of names and values.
// The HTML is made of it. A language that is not English is Indonesian.
func Render(name, language string, values Values) (subject, text string) {
	if language != English {
		language = Indonesian
	}
	fit := make(Values, len(values))
	for key, value := range values {
		fit[key] = line(value)
	}
	var out strings.Builder
	_ = texts.ExecuteTemplate(&out, name+"."+language+".txt", fit) // a test renders each
	out.WriteString("\n" + foot(language))
	subject, text, _ = strings.Cut(out.String(), "\n")
	return subject, text
}

// foot is the last line of each mail in a language.
func foot(language string) string {
	content, _ := textFiles.ReadFile("texts/foot." + language + ".txt") // it is embedded
	return string(content)
}

// jakarta is the time zone of mails, as of the contract.
var jakarta = time.FixedZone("WIB", 7*60*60)

var months = [12]string{
	"Januari", "Februari", "Maret", "April", "Mei", "Juni", "Juli", "Agustus", "September", "Oktober", "November", "Desember",
}

// When writes a time in a language.
func When(language string, at time.Time) string {
	at = at.In(jakarta)
	if language == English {
		return at.Format("2 January 2006, 15:04:05 MST")
	}
	return at.Format("2 ") + months[at.Month()-1] + at.Format(" 2006, 15:04:05 MST")
}

// longest bounds each text of others in a mail, in bytes.
const longest = 500

// line makes a text of others fit for one line, whatever it is: a line of their
// own would let them write the mail.
func line(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || !unicode.IsGraphic(r)
	}), " ")
	for len(text) > longest {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
