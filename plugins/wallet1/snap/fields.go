package snap

import (
	"encoding/json"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
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
type text = upstream.Text

// isAnother reports whether a number is given and differs from this one. Providers
// mask numbers; what is not digits alone is not compared.
func isAnother(given text, number string) bool {
	return given != "" && strings.Trim(string(given), "0123456789") == "" && string(given) != number
}
