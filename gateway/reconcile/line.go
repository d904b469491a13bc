package reconcile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"time"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// linesOf is what a page says of each payment, in the order in which it first says
// something of it.
func linesOf(told []sdk.StatementLine) []movement.ImportedLine {
	lines, at := make([]movement.ImportedLine, 0, len(told)), make(map[string]int, len(told))
	for _, t := range told {
		line := lineOf(t)
		i, known := at[line.Payment]
		if !known {
			at[line.Payment] = len(lines)
			lines = append(lines, line)
			continue
		}
		lines[i] = merged(lines[i], line)
	}
	return lines
}

func lineOf(told sdk.StatementLine) movement.ImportedLine {
	line := movement.ImportedLine{
		ID: nameOfLine(told.ID), Amount: told.Amount, Currency: lifecycle.Printable(cmp.Or(told.Currency, "IDR")), At: told.At,
		Paid: !told.Reversed && !told.Failed, Failed: told.Failed,
	}
	line.Payment = line.ID
	if told.Reference != "" {
		line.Payment = nameOfLine(told.Reference)
	}
	if utf8.Valid(told.Data) {
		line.Data = lifecycle.Printable(string(told.Data))
	}
	if told.At.IsZero() {
		line.At = time.Unix(0, 0) // in nobody's life
	}
	if told.Reversed || told.Failed {
		line.ReversedAt = line.At
	}
	return line
}

// merged adds what a later line says of the same payment. That it failed before it was paid
// says nothing.
func merged(first, then movement.ImportedLine) movement.ImportedLine {
	if first.Failed {
		return then
	}
	both := first
	both.Differs = first.Differs || then.Differs || first.Amount != then.Amount || first.Currency != then.Currency ||
		first.Paid && then.Paid && !first.At.Equal(then.At)
	if then.Paid && !first.Paid {
		both.ID, both.At, both.Data, both.Paid = then.ID, then.At, then.Data, true
		both.Amount, both.Currency = then.Amount, then.Currency
	}
	if both.ReversedAt.IsZero() {
		both.ReversedAt = then.ReversedAt
	}
	return both
}

// nameOfLine is a provider's name of a line as we keep it: itself, or where it can't
// be kept so, what only the same name becomes.
func nameOfLine(name string) string {
	if name != "" && lifecycle.NameOf(name) == name {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:])
}
