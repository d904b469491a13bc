package callback

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
)

// TestMain has the resolver read its configuration before any bubble of time: it makes
// a channel then, which those outside of a bubble can't use when it was made inside.
func TestMain(m *testing.M) {
	nowhere := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("nobody is asked")
	}}
	_, _ = nowhere.LookupHost(context.Background(), "shop.example")
	os.Exit(m.Run())
}
