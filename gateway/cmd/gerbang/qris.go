package main

import (
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

type qrisCommands struct {
	Inspect qrisInspect `cmd:"" help:"Print the fields of a QRIS code; for a broken one, the tag at fault."`
}

type qrisInspect struct {
	Code string `arg:"" name:"string" help:"The QR code's text, as a scanner reads it."`
}

// meanings of the tags that people ask for; the others stand for themselves.
var meanings = map[string]string{
	"00": "format", "01": "use", "51-00": "repository", "51-02": "national merchant id", "51-03": "criteria",
	"52": "merchant category", "53": "currency", "54": "amount", "55": "tip", "56": "fixed tip", "57": "tip in percent",
	"58": "country", "59": "merchant name", "60": "city", "61": "postal code",
	"62-01": "bill number", "62-02": "mobile number", "62-03": "store", "62-04": "loyalty number", "62-05": "reference",
	"62-06": "customer", "62-07": "terminal", "62-08": "purpose", "63": "checksum",
}

// Run prints a row for each field.
func (c *qrisInspect) Run(p *program) error {
	code, err := qris.Parse(c.Code)
	if err != nil {
		return err
	}
	rows := [][]string{{"TAG", "MEANING", "VALUE"}}
	for _, field := range code.Fields() {
		value := field.Value
		switch {
		case field.Tag == "01" && code.Point() == qris.Static:
			value += " (static, for any number of payments)"
		case field.Tag == "01":
			value += " (dynamic, for one payment)"
		}
		rows = append(rows, []string{field.Tag, meaningOf(field.Tag), value})
	}
	return p.show(code.Fields(), rows...)
}

func meaningOf(tag string) string {
	template, inner, nested := strings.Cut(tag, "-")
	if meaning, ok := meanings[tag]; ok || !nested || template > "45" {
		return meaning
	}
	return map[string]string{"00": "scheme", "01": "account number", "02": "merchant id", "03": "criteria"}[inner]
}
