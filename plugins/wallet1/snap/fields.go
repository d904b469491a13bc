package snap

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const rupiah = "IDR"

// sum is an amount as the upstream wants it.
type sum struct {
	Value    string `json:"value"`
	Currency string `json:"currency"`
}

func sumOf(a money.Amount) sum { return sum{a.Decimal2(), rupiah} }

// optionalAmount is an amount that the upstream may leave out.
type optionalAmount struct {
	money.Amount
	currency string
	is       bool
}

// UnmarshalJSON reads whole rupiah written with or without two decimals. Any
// other sum is an error: money is never guessed.
func (t *optionalAmount) UnmarshalJSON(data []byte) error {
	*t = optionalAmount{}
	if string(data) == "null" {
		return nil
	}
	var wire struct {
		Value    text   `json:"value"`
		Currency string `json:"currency"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	if wire.Value == "" {
		return nil
	}
	if strings.Trim(string(wire.Value), "0123456789.") != "" {
		return money.ErrSyntax // such as an exponent
	}
	parsed, err := money.Parse(string(wire.Value))
	if err != nil {
		return err
	}
	*t = optionalAmount{parsed, wire.Currency, true}
	return nil
}

// isNot reports whether an amount is given and differs from this one.
func (t optionalAmount) isNot(a money.Amount) bool {
	return t.is && (t.Amount != a || t.currency != "" && t.currency != rupiah)
}

// text is a string that the upstream may also write as a number, or not at all.
type text string

// UnmarshalJSON takes whatever is there; what is no text is none.
func (t *text) UnmarshalJSON(data []byte) error {
	*t = ""
	switch {
	case bytes.HasPrefix(data, []byte(`"`)):
		return json.Unmarshal(data, (*string)(t))
	case data[0] == '-' || data[0] >= '0' && data[0] <= '9':
		*t = text(data)
	}
	return nil
}

// isNot reports whether a number is given and differs from this one. Providers mask
// numbers; what is not digits alone is not compared.
func (t text) isNot(number string) bool {
	return t != "" && strings.Trim(string(t), "0123456789") == "" && string(t) != number
}

// moment is a time that may be missing. What can't be read counts as missing,
// so that a date's format never hides that money moved.
type moment struct{ time.Time }

// UnmarshalJSON reads RFC 3339.
func (m *moment) UnmarshalJSON(data []byte) error {
	var t time.Time
	if json.Unmarshal(data, &t) != nil {
		t = time.Time{}
	}
	m.Time = t
	return nil
}
