package limit

import (
	"strconv"
	"time"
)

// maxInteger is the greatest integer of a structured field (RFC 9651).
const maxInteger = 999_999_999_999_999

// AppendPolicy appends a rate to the value of the field RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers): its burst,
// and the seconds in which that is granted anew. The field is a list: `"default";q=10;w=2`.
func AppendPolicy(dst []byte, name string, v Verdict) []byte {
	dst = appendItem(dst, name)
	dst = appendParameter(dst, ";q=", int64(v.Limit))
	return appendParameter(dst, ";w=", max(1, seconds(v.Window)))
}

// AppendLimit appends a verdict to the value of the field RateLimit: what remains, and the seconds until all of it is
// there again: `"default";r=9;t=1`.
func AppendLimit(dst []byte, name string, v Verdict) []byte {
	dst = appendItem(dst, name)
	dst = appendParameter(dst, ";r=", int64(v.Remaining))
	return appendParameter(dst, ";t=", seconds(v.Reset))
}

// appendItem starts a list's next item, a string. What such a string can't hold becomes a question mark.
func appendItem(dst []byte, name string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ", "...)
	}
	dst = append(dst, '"')
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~':
			dst = append(dst, '?')
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// appendParameter appends a whole number with its name.
func appendParameter(dst []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(dst, name...), min(value, maxInteger), 10)
}

// seconds rounds up to whole seconds: a merchant that waits so long has waited long enough.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}
