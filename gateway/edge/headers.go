package edge

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/delivery"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerCallbackURL    = "X-Callback-Url"

	// maxReference is a reference's length in characters, by the contract.
	maxReference = 255
)

// idempotencyKey is the header's value where the operation has a reference, and
// what is wrong with it. It counts as the reference where the body has none.
func (x *exchange) idempotencyKey(document catalog.Document) (string, []fault.Field) {
	name := x.operation.ReferenceField()
	values := x.request.Header[headerIdempotencyKey]
	if name == "" || len(values) == 0 || len(values) == 1 && values[0] == "" {
		return "", nil
	}
	key := values[0]
	if len(values) > 1 || !printable(key) {
		return "", []fault.Field{{Field: headerIdempotencyKey, Message: "must be given once, with 1 to 255 printable characters"}}
	}
	if reference, given := document[name]; given && reference != key {
		return "", []fault.Field{
			{Field: name, Message: "differs from the header " + headerIdempotencyKey},
			{Field: headerIdempotencyKey, Message: "differs from " + name},
		}
	}
	return key, nil
}

func printable(text string) bool {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxReference {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.C, r) })
}

// callbackURL is the checked header X-Callback-URL, or what is wrong with it.
// This is a courtesy: every delivery checks again the address that the name leads to.
func (e *Edge) callbackURL(header http.Header) (string, *fault.Field) {
	values := header[headerCallbackURL]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return "", nil
	}
	if len(values) > 1 {
		return "", wrongCallback("must be given once")
	}
	if err := delivery.CheckURL(values[0], e.config.AllowHTTPCallbacks); err != nil {
		return "", wrongCallback(err.Error())
	}
	return values[0], nil
}

func wrongCallback(what string) *fault.Field {
	return &fault.Field{Field: "X-Callback-URL", Message: what}
}
