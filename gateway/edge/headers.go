package edge

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerCallbackURL    = "X-Callback-Url"

	// maxReference is a reference's length in characters, by the contract.
	maxReference   = 255
	maxCallbackURL = 2048
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
// This is a courtesy: where the name leads is judged again at each delivery.
func (e *Edge) callbackURL(header http.Header) (string, *fault.Field) {
	values := header[headerCallbackURL]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return "", nil
	}
	if len(values) > 1 {
		return "", wrongCallback("must be given once")
	}
	if what := e.refuseCallback(values[0]); what != "" {
		return "", wrongCallback(what)
	}
	return values[0], nil
}

func wrongCallback(what string) *fault.Field {
	return &fault.Field{Field: "X-Callback-URL", Message: what}
}

// refuseCallback says what is wrong with a callback URL, or "".
func (e *Edge) refuseCallback(text string) string {
	if len(text) > maxCallbackURL || !printableASCII(text) {
		return "must be a URL of at most 2048 printable ASCII characters"
	}
	callback, err := url.Parse(text)
	switch {
	case err != nil || !callback.IsAbs() || callback.Hostname() == "" || callback.Opaque != "":
		return "must be an absolute https URL"
	case callback.Scheme != "https" && (callback.Scheme != "http" || !e.config.AllowHTTPCallbacks):
		return "must be an absolute https URL"
	case callback.User != nil:
		return "must not hold a user or password"
	case strings.Contains(text, "#"):
		return "must not have a fragment"
	case !validPort(callback.Port()):
		return "must have a port from 1 to 65535"
	case !e.config.AllowHTTPCallbacks && !mayBePublic(callback.Hostname()):
		return "must lead to a public address"
	}
	return ""
}

func printableASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}

// mayBePublic refuses the hosts of which no resolver has to be asked.
func mayBePublic(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host != "localhost" && !strings.HasSuffix(host, ".localhost")
	}
	address = address.Unmap()
	shared := netip.MustParsePrefix("100.64.0.0/10")
	return address.IsGlobalUnicast() && !address.IsPrivate() && !shared.Contains(address)
}
