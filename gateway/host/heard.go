package host

import (
	"context"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// maxDetail is the longest text for operators that is taken from an answer, in bytes.
const maxDetail = 4 << 10

// heard is the wire to a plugin. What an answer tells operators leaves here fit for logs
// and exceptions, and nowhere else: without the secrets that are known, valid, and cut.
type heard struct {
	*sdk.Client
	secrets *secrets
}

func (w heard) fit(detail string) string {
	if detail == "" {
		return ""
	}
	return strings.ToValidUTF8(w.secrets.clean(detail, maxDetail), "")
}

// failure is an error of the transport, whose words may be the plugin's own.
type failure struct {
	error
	text string
}

func (f failure) Error() string { return f.text }
func (f failure) Unwrap() error { return f.error }

func (w heard) failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{err, w.fit(err.Error())}
}

// Call is [sdk.Client.Call].
func (w heard) Call(ctx context.Context, c sdk.Call) (sdk.Result, error) {
	r, err := w.Client.Call(ctx, c)
	r.Detail = w.fit(r.Detail)
	return r, w.failed(err)
}

// Quote is [sdk.Client.Quote].
func (w heard) Quote(ctx context.Context, q sdk.Quote) (sdk.Quoted, error) {
	r, err := w.Client.Quote(ctx, q)
	r.Detail = w.fit(r.Detail)
	return r, w.failed(err)
}

// Lookup is [sdk.Client.Lookup].
func (w heard) Lookup(ctx context.Context, l sdk.Lookup) (sdk.StatusUpdate, error) {
	u, err := w.Client.Lookup(ctx, l)
	u.Detail = w.fit(u.Detail)
	return u, w.failed(err)
}

// Verify is [sdk.Client.Verify].
func (w heard) Verify(ctx context.Context, c sdk.Connection) (sdk.Result, error) {
	r, err := w.Client.Verify(ctx, c)
	r.Detail = w.fit(r.Detail)
	return r, w.failed(err)
}

// Statement is [sdk.Client.Statement].
func (w heard) Statement(ctx context.Context, s sdk.Statement) (sdk.StatementPage, error) {
	page, err := w.Client.Statement(ctx, s)
	page.Detail = w.fit(page.Detail)
	return page, w.failed(err)
}

// Notify is [sdk.Client.Notify].
func (w heard) Notify(ctx context.Context, n sdk.Notification) (sdk.Acknowledgement, error) {
	ack, err := w.Client.Notify(ctx, n)
	ack.Detail = w.fit(ack.Detail)
	for i := range ack.Updates {
		ack.Updates[i].Detail = w.fit(ack.Updates[i].Detail)
	}
	return ack, w.failed(err)
}
