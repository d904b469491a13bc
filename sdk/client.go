package sdk

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// Client is the gateway's side of one plugin process. Its errors are those of
// the transport; the outcome of a call that got one is unknown.
type Client struct {
	wire pluginpb.ProviderClient
	conn *grpc.ClientConn
}

// NewClient wraps a connection to a plugin.
func NewClient(conn *grpc.ClientConn) *Client {
	return &Client{wire: pluginpb.NewProviderClient(conn), conn: conn}
}

// Describe asks the plugin for its manifest and parses it.
func (c *Client) Describe(ctx context.Context) (*manifest.Manifest, error) {
	response, err := c.wire.Describe(ctx, &pluginpb.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	return manifest.Parse(response.GetManifest())
}

// Call runs an operation.
func (c *Client) Call(ctx context.Context, call Call) (Result, error) {
	response, err := c.wire.Call(ctx, callToWire(call))
	if err != nil {
		return Result{}, err
	}
	return resultFromWire(response), nil
}

// Quote asks what an operation would cost.
func (c *Client) Quote(ctx context.Context, quote Quote) (Quoted, error) {
	response, err := c.wire.Quote(ctx, quoteToWire(quote))
	if err != nil {
		return Quoted{}, err
	}
	return quotedFromWire(response), nil
}

// Lookup asks about a movement.
func (c *Client) Lookup(ctx context.Context, lookup Lookup) (StatusUpdate, error) {
	response, err := c.wire.Lookup(ctx, lookupToWire(lookup))
	if err != nil {
		return StatusUpdate{}, err
	}
	return statusUpdateFromWire(response.GetUpdate()), nil
}

// Notify hands an inbound notification over.
func (c *Client) Notify(ctx context.Context, n Notification) (Acknowledgement, error) {
	response, err := c.wire.Notify(ctx, notificationToWire(n))
	if err != nil {
		return Acknowledgement{}, err
	}
	return acknowledgementFromWire(response), nil
}

// Verify asks whether the upstream takes the credentials of a connection.
func (c *Client) Verify(ctx context.Context, connection Connection) (Result, error) {
	response, err := c.wire.Verify(ctx, &pluginpb.VerifyRequest{Connection: connectionToWire(connection)})
	if err != nil {
		return Result{}, err
	}
	return verifiedFromWire(response), nil
}

// Statement reads a page of the upstream's statement, from a cursor on.
func (c *Client) Statement(ctx context.Context, statement Statement) (StatementPage, error) {
	response, err := c.wire.Statement(ctx, statementToWire(statement))
	if err != nil {
		return StatementPage{}, err
	}
	return pageFromWire(response), nil
}

// Broken waits until the connection to the process is no longer usable, or the
// context ends. It notices the death of the process at once.
func (c *Client) Broken(ctx context.Context) error {
	for {
		state := c.conn.GetState()
		if state == connectivity.TransientFailure || state == connectivity.Shutdown || state == connectivity.Idle {
			return nil
		}
		if !c.conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
}
