package tenants

import (
	"fmt"
	"regexp"
)

// The labels of a merchant that the gateway itself reads. All others are for policies.
const (
	// LabelTimeZone is the zone whose days and months its limits follow, such as
	// Asia/Jayapura.
	LabelTimeZone = "time_zone"
	// LabelColour is the colour of its payers' pages, such as #0a5.
	LabelColour = "colour"
	// LabelLanguage is what its payers read unless they ask otherwise: id or en.
	LabelLanguage = "language"
	// LabelReceipts is ReceiptsPayments where payers of payments are mailed a receipt.
	LabelReceipts = "receipts"
)

// ReceiptsPayments is the value of LabelReceipts.
const ReceiptsPayments = "payments"

// labelForms are the values that the gateway can use, in the order they are checked.
var labelForms = []struct {
	name, hint string
	form       *regexp.Regexp
}{
	{LabelColour, "a colour, such as #0a5", regexp.MustCompile(`^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$`)},
	{LabelLanguage, "id or en", regexp.MustCompile(`^(id|en)$`)},
	{LabelReceipts, ReceiptsPayments, regexp.MustCompile(`^` + ReceiptsPayments + `$`)},
}

// CheckLabels says which value the gateway could not use, but for a time zone's.
func CheckLabels(labels map[string]string) error {
	for _, l := range labelForms {
		if value, given := labels[l.name]; given && !l.form.MatchString(value) {
			return fmt.Errorf("%s must be %s", l.name, l.hint)
		}
	}
	return nil
}
