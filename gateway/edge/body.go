package edge

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
)

// maxNotification is the largest body of a provider's notification.
const maxNotification = 1 << 20

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads and parses a merchant's body and, where the operation has them,
// the query's parameters. What it returns shares nothing with the buffer that it
// was read into.
func readBody(x *exchange) (body, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	defer buffers.Put(buffer)
	defer x.giveBack()
	if err := x.receive(buffer, jsonbody.Max); err != nil {
		return body{}, err
	}
	encoding := x.request.Header.Get("Content-Encoding")
	if encoding != "" && !strings.EqualFold(encoding, "identity") {
		return body{}, fault.New(fault.UnsupportedMediaType, "The body must not be compressed or otherwise encoded.")
	}
	b, err := x.parse(buffer.Bytes())
	if err == nil && x.parameters != nil {
		err = x.parameters.join(&b, x.request.URL.RawQuery)
	}
	return b, err
}

// parse reads the text of a body. There may be none where the key comes in the
// header, or all in the query.
func (x *exchange) parse(text []byte) (body, error) {
	switch {
	case len(text) == 0 && (x.parameters != nil || x.request.Header.Get("Authorization") != ""):
		return body{document: catalog.Document{}}, nil
	case x.request.Method == http.MethodGet:
		return body{}, fault.New(fault.InvalidRequest, "A GET has its parameters in the query of the URL, not in a body.")
	}
	b, err := decode(text)
	if err != nil && declaredOtherwise(x.request.Header, text) {
		return b, fault.New(fault.UnsupportedMediaType, "The body must be a JSON object; declare it as application/json.")
	}
	return b, err
}

// receive reads a body of at most limit bytes, which count as held until they are
// given back.
func (x *exchange) receive(buffer *bytes.Buffer, limit int64) error {
	// The plain writer, which closes a connection whose body was not read to its
	// end.
	_, err := buffer.ReadFrom(holding{x, http.MaxBytesReader(x.ResponseWriter, x.request.Body, limit)})
	if errors.Is(err, errNoRoom) {
		x.Header().Set("Connection", "close")
		return fault.New(fault.RateLimited, "Too much is being received from this address at once.").After(x.started, time.Second).Because(errNoRoom)
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return fault.Newf(fault.PayloadTooLarge, "The body is larger than %d KiB.", limit>>10)
	}
	if err != nil {
		return fault.New(fault.InvalidRequest, "The body did not arrive completely.").Because(err)
	}
	return nil
}

// declaredOtherwise reports whether a body that could not be read as JSON was not
// meant as JSON either. PHP and curl declare forms by default, so a body that begins
// as an object counts as JSON, whatever its declared type, and its fault is named.
func declaredOtherwise(header http.Header, text []byte) bool {
	declared := header.Get("Content-Type")
	if declared == "" || bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return false
	}
	media, _, err := mime.ParseMediaType(declared)
	return err != nil || media != "application/json" && !strings.HasSuffix(media, "+json")
}

// readNotification reads a provider's body, whatever it is.
func (x *exchange) readNotification() ([]byte, error) {
	var buffer bytes.Buffer
	if err := x.receive(&buffer, maxNotification); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

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
	if err := callback.CheckURL(values[0], e.config.AllowHTTPCallbacks); err != nil {
		return "", wrongCallback(err.Error())
	}
	return values[0], nil
}

func wrongCallback(what string) *fault.Field {
	return &fault.Field{Field: "X-Callback-URL", Message: what}
}
