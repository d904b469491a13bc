package tenants

import "context"

// Origin is where an action is done from: a client's address, the command line or the
// gateway itself.
type Origin string

// The origins that are no address.
const (
	CommandLine Origin = "command line"
	Itself      Origin = "gateway"
)

// originKey is the context's place for where a request comes from.
type originKey struct{}

// From is a context of what is done from an origin.
func From(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf is where something is done from: by the gateway itself, unless From says more.
func OriginOf(ctx context.Context) Origin {
	if o, ok := ctx.Value(originKey{}).(Origin); ok {
		return o
	}
	return Itself
}
