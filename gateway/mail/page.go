package mail

import (
	_ "embed"
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("mail").Parse(pageHTML))

// part is a paragraph of a mail, or rows where each of its lines is one, or a link.
type part struct {
	Text string
	Rows []row
	Link string
}

type row struct{ Name, Value string }

// links are those of our own: a text of others is never a paragraph.
var links = regexp.MustCompile(`^https?://\S+$`)

var rowLine = regexp.MustCompile(`^([^\s:]{1,20}): +(\S.*)$`)

// htmlOf sets a mail's plain text as a page. It says what the text says and loads
// nothing, so it is made when the mail is sent and not kept beside the text.
func htmlOf(m Message) (string, error) {
	var parts []part
	for text := range strings.SplitSeq(strings.TrimSpace(m.Text), "\n\n") {
		parts = append(parts, partOf(text))
	}
	var out strings.Builder
	if err := page.Execute(&out, map[string]any{"Language": languageOf(m.Text), "Subject": line(m.Subject), "Parts": parts}); err != nil {
		return "", fmt.Errorf("mail: page: %w", err)
	}
	return out.String(), nil
}

// languageOf is the language of a mail's text, by its foot.
func languageOf(text string) string {
	if strings.HasSuffix(text, foot(English)) {
		return English
	}
	return Indonesian
}

func partOf(text string) part {
	if links.MatchString(text) {
		return part{Link: text}
	}
	var rows []row
	for l := range strings.SplitSeq(text, "\n") {
		found := rowLine.FindStringSubmatch(l)
		if found == nil {
			return part{Text: text}
		}
		rows = append(rows, row{found[1], found[2]})
	}
	return part{Rows: rows}
}
