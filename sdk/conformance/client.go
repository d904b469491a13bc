package conformance

import (
	"context"
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// client asks the plugin, and looks for credentials in each reply.
type client struct {
	*process
	tr *trial
}

func (c client) seen(what string, reply any, more ...[]byte) {
	encoded, err := json.Marshal(reply)
	if err != nil {
		c.tr.Errorf("%s answers what can't be shown: %v", what, err)
	}
	for _, text := range append(more, encoded) {
		if name := c.tr.suite.secrets.in(text); name != "" {
			c.tr.Errorf("the reply to a %s has the credential %s in it", what, name)
		}
	}
}

// Call implements the method of [sdk.Client].
func (c client) Call(ctx context.Context, call sdk.Call) (sdk.Result, error) {
	r, err := c.process.Call(ctx, call)
	c.seen("call", struct {
		sdk.Result
		Error string
	}{r, textOf(err)}, r.Data)
	return r, err
}

// Quote implements the method of [sdk.Client].
func (c client) Quote(ctx context.Context, q sdk.Quote) (sdk.Quoted, error) {
	r, err := c.process.Quote(ctx, q)
	c.seen("quote", r, r.Data, []byte(textOf(err)))
	return r, err
}

// Lookup implements the method of [sdk.Client].
func (c client) Lookup(ctx context.Context, l sdk.Lookup) (sdk.StatusUpdate, error) {
	r, err := c.process.Lookup(ctx, l)
	c.seen("lookup", r, r.Data, []byte(textOf(err)))
	return r, err
}

// Notify implements the method of [sdk.Client].
func (c client) Notify(ctx context.Context, n sdk.Notification) (sdk.Acknowledgement, error) {
	r, err := c.process.Notify(ctx, n)
	c.seen("notification", r, r.Body, []byte(textOf(err)))
	return r, err
}

// Verify implements the method of [sdk.Client].
func (c client) Verify(ctx context.Context, of sdk.Connection) (sdk.Result, error) {
	r, err := c.process.Verify(ctx, of)
	c.seen("verification", r, []byte(textOf(err)))
	return r, err
}

// Statement implements the method of [sdk.Client].
func (c client) Statement(ctx context.Context, s sdk.Statement) (sdk.StatementPage, error) {
	r, err := c.process.Statement(ctx, s)
	c.seen("statement", r, []byte(textOf(err)))
	return r, err
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
