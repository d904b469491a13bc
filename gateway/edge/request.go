package edge

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/tenants"
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
	if x.askedBytes = buffer.Len(); presented(b.key, x.request.Header) != "" {
		x.ask(buffer.Bytes())
	}
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

// authFailed is the one text for everything that can be wrong with a key.
func authFailed() *fault.Error {
	return fault.New(fault.AuthFailed, "The secret key is missing or not valid for this merchant.")
}

// authenticate identifies the merchant of a request. The key is verified first and
// only failures are slowed, so nobody can lock a merchant out.
func (x *exchange) authenticate(b body) error {
	begun := time.Now() // not the request's: a slow body would hide behind its own time
	key := presented(b.key, x.request.Header)
	identity, err := x.identify(key)
	if waits, tooLong := errors.AsType[*fault.Error](err); tooLong {
		return waits
	}
	switch {
	case errors.Is(err, tenants.ErrAddress):
		x.identity = identity
		return fault.New(fault.ScopeMissing, "This key may not be used from this address.")
	case errors.Is(err, tenants.ErrAuthFailed):
		x.hold(failureTakes - time.Since(begun))
		if blocked, wait := x.edge.Failures.Record(x.started, x.address); blocked {
			return x.slowed(wait)
		}
		return authFailed()
	case err != nil:
		return fault.New(fault.Internal, "The key could not be checked. Try again later.").Because(err)
	}
	x.identity = identity
	if moves := x.operation.Money() || x.operation.CancelOf != ""; moves && !x.fresh() {
		return fault.New(fault.Internal, "Operations that move money are paused for a moment. Try again later.").
			Because(errors.New("revocations of keys, or which policy version is in force, can't be learned of"))
	}
	return nil
}

// fresh reports whether this replica would know of a key revoked elsewhere, and of another
// policy version in force.
func (x *exchange) fresh() bool {
	return x.edge.Authenticator.Fresh(x.started) && x.edge.PolicyFresh(x.started)
}

// identify finds whose a key is. One that this replica does not remember waits for its turn.
func (x *exchange) identify(key string) (tenants.Identity, error) {
	if !x.edge.Authenticator.Remembers(key) {
		done, err := x.queue(x.edge.strangers)
		if err != nil {
			return tenants.Identity{}, err
		}
		defer done()
	}
	ctx, span := tracing.Start(x.ctx, "authenticate", tracing.Inside)
	defer span.End()
	return x.edge.Authenticator.Authenticate(ctx, x.started, key, x.address)
}

// failureTakes is how long a failed authentication takes: longer than the look-up of a
// key that nobody has, so that the time does not tell whether there is such a key.
const failureTakes = 25 * time.Millisecond

// hold waits, unless the caller hangs up.
func (x *exchange) hold(left time.Duration) {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.ctx.Done():
	}
}

// slowed refuses an address that has failed too often.
func (x *exchange) slowed(wait time.Duration) error {
	x.ticket.RateLimitPolicy = failuresPolicy
	x.ticket.RateLimit = `"authentication";r=0;t=` + strconv.Itoa(max(1, int(wait/time.Second)))
	return fault.New(fault.RateLimited, "Too many failed authentications from this address.").After(x.started, wait)
}

// failuresPolicy is how limit.Failures counts, as the RateLimit-Policy field
// says it.
const failuresPolicy = `"authentication";q=20;w=60`

// presented returns the key to check, from the body or the Authorization header. It
// returns "", which never passes, for a malformed key and for two keys that differ.
func presented(key credential, header http.Header) string {
	bearers, malformed := bearerTokens(header)
	if malformed || key.malformed {
		return ""
	}
	if key.given {
		bearers = append(bearers, key.text)
	}
	if len(bearers) == 0 {
		return ""
	}
	for _, bearer := range bearers[1:] {
		if bearer != bearers[0] {
			return ""
		}
	}
	return bearers[0]
}

// bearerTokens returns the tokens of the Authorization headers. It ignores other
// schemes, which may be a proxy's, but not Bearer without a token.
func bearerTokens(header http.Header) (tokens []string, malformed bool) {
	for _, value := range header["Authorization"] {
		scheme, token, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			continue
		}
		if token = strings.TrimSpace(token); token == "" {
			return nil, true
		}
		tokens = append(tokens, token)
	}
	return tokens, false
}

// checkMerchant refuses a merchant_id that is not the key's own. The key was
// right, so this is no failure of the address, and costs a token of the rate.
func (x *exchange) checkMerchant(c credential) error {
	if c.given && (c.malformed || c.text != string(x.identity.Account.ID())) {
		return authFailed()
	}
	return nil
}

// credential is secret_key or merchant_id as the body or the query has it. It is
// kept apart from the document, so that neither can travel further with it.
type credential struct {
	text      string
	given     bool // null and "" are not given
	malformed bool // it is not a string, or there are two that differ
}

// body is a request's body, parsed.
type body struct {
	document catalog.Document
	key      credential
	merchant credential
}

// decode reads a body with the credentials apart. Of one that can't be read there are
// those that stand before its fault.
func decode(text []byte) (b body, err error) {
	b.document, err = jsonbody.Read(text, b.apart)
	return b, err
}

func (b *body) apart(name string) func(jsontext.Value) error {
	switch name {
	case "secret_key":
		return b.key.read
	case "merchant_id":
		return b.merchant.read
	}
	return nil
}

// read takes a credential without judging it: whatever is wrong with it is
// AUTH_FAILED, and that is said later.
func (c *credential) read(value jsontext.Value) error {
	if value.Kind() == jsontext.KindNull {
		return nil
	}
	if value.Kind() != jsontext.KindString {
		c.given, c.malformed = true, true
		return nil
	}
	text, err := jsontext.AppendUnquote(nil, value)
	c.text, c.given = string(text), len(text) > 0
	return err
}

// join takes a credential of the query. It is false when the body has another.
func (c *credential) join(text string) bool {
	if c.given {
		return !c.malformed && c.text == text
	}
	*c = credential{text: text, given: true}
	return true
}
