package snap

import (
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// separators are what people write between digits.
var separators = strings.NewReplacer(" ", "", "\u00a0", "", "-", "", "\u2011", "", "\u2013", "", ".", "", "(", "", ")", "")

func digits(text string, least, most int) bool {
	return len(text) >= least && len(text) <= most && strings.Trim(text, "0123456789") == ""
}

// Without the country's code or the zero in place of it.
const minNational, maxNational = 9, 12

// phone brings an Indonesian mobile number into the upstream's form, 628….
// Which operator it belongs to is nobody's business: numbers move.
func phone(text string) (string, bool) {
	number := separators.Replace(text)
	national := number
	for _, prefix := range []string{"+62", "62", "0"} {
		if rest, ok := strings.CutPrefix(number, prefix); ok {
			national = rest
			break
		}
	}
	if !strings.HasPrefix(national, "8") || !digits(national, minNational, maxNational) {
		return "", false
	}
	return "62" + national, true
}

func wrongPhone() sdk.Result {
	const lacks = "must be an Indonesian mobile number of 10 to 13 digits, like 081234567890 or +6281234567890"
	return wrongField("phone", lacks)
}

// wrongField refuses what reaches no upstream.
func wrongField(field, lacks string) sdk.Result {
	return sdk.Refuse(sdk.RefuseRequest, field+" "+lacks+".", sdk.FieldFault{Field: field, Message: lacks})
}
