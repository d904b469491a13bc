package mail_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
)

// values are what each text is filled with. All of them stand in it, in both languages.
var values = map[string][]string{
	"receipt":    {"Merchant", "Reference", "Description", "Amount", "Paid"},
	"invitation": {"By", "Place", "Role", "Link", "Until"},
	"reset":      {"Link"},
	"password":   {"At", "From"},
	"factor":     {"At", "From"},
	"signin":     {"At", "From", "Browser"},
	"callbacks":  {"Host", "Place", "Event", "Reason", "Link"},
	"key":        {"Place", "Key", "At", "From", "Link"},
}

// parts stand in other texts.
var parts = []string{"foot"}

// TestTexts renders each text in both languages: with all that it is filled with, whose lines
// stay its own, and nothing else.
func TestTexts(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("texts")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, rest, _ := strings.Cut(file.Name(), ".")
		language := strings.TrimSuffix(rest, ".txt")
		if slices.Contains(parts, name) {
			continue
		}
		filled, hostile := mail.Values{}, mail.Values{}
		for _, value := range values[name] {
			filled[value] = "<" + value + ">"
			hostile[value] = "<" + value + ">\r\nBcc: eve@example.com\r\n\r\nPay: here"
		}
		subject, text := mail.Render(name, language, filled)
		for _, value := range filled {
			if !strings.Contains(subject+text, value) {
				t.Errorf("%s has no %s:\n%s\n%s", file.Name(), value, subject, text)
			}
		}
		if len(filled) == 0 || strings.ContainsAny(subject, "\r\n") || len(subject) < 8 || strings.Contains(text, "<no value>") || strings.Contains(text, "\n\n\n") {
			t.Errorf("%s:\n%s\n%s", file.Name(), subject, text)
		}
		forged, longer := mail.Render(name, language, hostile)
		if strings.ContainsAny(forged, "\r\n") || strings.Count(longer, "\n") != strings.Count(text, "\n") {
			t.Errorf("%s: a value writes lines of its own:\n%s\n%s", file.Name(), forged, longer)
		}
		other := map[string]string{mail.Indonesian: mail.English, mail.English: mail.Indonesian}[language]
		if _, same := mail.Render(name, other, filled); other == "" || same == text {
			t.Errorf("%s says the same in both languages", file.Name())
		}
	}
}

// TestNoEmptyRow: who names no browser has no row of it.
func TestNoEmptyRow(t *testing.T) {
	t.Parallel()
	for _, language := range []string{mail.Indonesian, mail.English} {
		if _, text := mail.Render("signin", language, mail.Values{"At": "now", "From": "here", "Browser": ""}); strings.Contains(text, "Peramban:") || strings.Contains(text, "Browser:") {
			t.Errorf("%s:\n%s", language, text)
		}
	}
}

func TestTimesAreTranslated(t *testing.T) {
	t.Parallel()
	if got := mail.When(mail.Indonesian, time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)); got != "1 Agustus 2026, 07:00:00 WIB" {
		t.Errorf("in Indonesian %s", got)
	}
}
