package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// Handlers are the functions of a plugin. They must be exactly what the
// manifest declares: a Call for each operation that has a kind or ends a
// movement, a Quote for each that says so, Lookup where money moves, Notify
// where there are notifications, Verify where it says that it verifies,
// Statement where it says that there are statements or mutations.
// Handlers run concurrently and must return when their context ends.
type Handlers struct {
	Calls  map[string]func(context.Context, Call) Result  // by operation path
	Quotes map[string]func(context.Context, Quote) Quoted // likewise
	Lookup func(context.Context, Lookup) StatusUpdate
	Notify func(context.Context, Notification) Acknowledgement
	// Verify asks the upstream whether it takes the credentials of a connection
	// that is about to be stored: [Usable], a refusal in words for the operator
	// who gave them, or what a call would answer that could not be made. It moves
	// no money. The connection's version is 0, and nothing of it may be kept.
	Verify func(context.Context, Connection) Result
	// Statement reads a page of the upstream's own statement, from a cursor on. The
	// same cursor may be read any number of times. No line may be missed: lines that
	// appear late, or before others, come with a later cursor. Where the request has a
	// From it asks for the account's mutations, and nothing else.
	Statement func(context.Context, Statement) StatementPage
}

// maxMessage bounds a message in either direction, in bytes.
const maxMessage = 8 << 20

// streamWorkers is how many goroutines are kept for calls, which saves growing a
// new stack for each. A call that finds them all busy gets one of its own.
const streamWorkers = 8

// Handshake is what gateway and plugin show each other before the first call,
// so that a plugin started by hand explains itself instead of hanging.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "GERBANG_PLUGIN",
	MagicCookieValue: "gerbang.provider.v1",
}

// gcPercent trades memory for speed: a plugin keeps a few MiB and makes garbage with
// each call, so that the collector's default runs it many times a second.
const gcPercent = 400

// tuneGC lets the environment say otherwise. GOMEMLIMIT, which the gateway sets below
// what it lets the plugin use, bounds the heap either way.
func tuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// Serve runs a plugin until the gateway that started it ends. It does not
// return. Where manifest and handlers differ it refuses to start, and says
// on standard error what differs.
func Serve(manifestJSON []byte, handlers Handlers) {
	server, err := newServer(manifestJSON, handlers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
	go exitWithHost(hostPID())
	tuneGC()
	server.log = hclog.New(&hclog.LoggerOptions{Name: server.manifest.Name, Output: os.Stderr, JSONFormat: true, Level: hclog.Info})
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: Handshake,
		Plugins:         plugin.PluginSet{PluginName: &Plugin{server: server}},
		Logger:          server.log,
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options,
				grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.NumStreamWorkers(streamWorkers))...)
		},
	})
	os.Exit(0)
}

// PluginName is the name of the one service that a plugin process dispenses.
const PluginName = "provider"

// Plugin binds the wire contract to go-plugin. The gateway passes the zero
// value; [Serve] fills it.
type Plugin struct {
	plugin.NetRPCUnsupportedPlugin
	server *server
}

// GRPCServer registers the plugin's side.
func (p *Plugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if p.server == nil {
		return errors.New("sdk: this plugin value is the gateway's side")
	}
	pluginpb.RegisterProviderServer(s, p.server)
	return nil
}

// GRPCClient gives the gateway's side, a [*Client].
func (p *Plugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return NewClient(conn), nil
}

// newServer checks that the handlers are those that the manifest declares.
func newServer(manifestJSON []byte, h Handlers) (*server, error) {
	m, err := manifest.Parse(manifestJSON)
	if err != nil {
		return nil, err
	}
	var faults []error
	money := false
	for _, op := range m.Operations {
		money = money || op.Money()
		if has := h.Quotes[op.Path] != nil; has != op.Quote {
			faults = append(faults, fmt.Errorf("operation %s: manifest and handlers differ: needs a quote handler %v, has one %v", op.Path, op.Quote, has))
		}
		needsCall := op.Kind != "" || op.CancelOf != ""
		if has := h.Calls[op.Path] != nil; has != needsCall {
			faults = append(faults, fmt.Errorf("operation %s: manifest and handlers differ: needs a call handler %v, has one %v", op.Path, needsCall, has))
		}
	}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(h.Calls)), slices.Collect(maps.Keys(h.Quotes))) {
		if _, declared := m.Operation(path); !declared {
			faults = append(faults, fmt.Errorf("handler %s: the manifest has no such operation", path))
		}
	}
	if money != (h.Lookup != nil) {
		faults = append(faults, fmt.Errorf("lookup: manifest and handlers differ: needs a handler %v, has one %v", money, h.Lookup != nil))
	}
	if m.Notifications != (h.Notify != nil) {
		faults = append(faults, fmt.Errorf("notifications: manifest and handlers differ: needs a handler %v, has one %v", m.Notifications, h.Notify != nil))
	}
	if m.Verifies != (h.Verify != nil) {
		faults = append(faults, fmt.Errorf("verifies: manifest and handlers differ: needs a handler %v, has one %v", m.Verifies, h.Verify != nil))
	}
	if needed := m.Statements || m.Mutations; needed != (h.Statement != nil) {
		faults = append(faults, fmt.Errorf("statements: manifest and handlers differ: needs a handler %v, has one %v", needed, h.Statement != nil))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("manifest %q: %w", m.Name, err)
	}
	return &server{manifest: m, document: manifestJSON, handlers: h, log: hclog.NewNullLogger(), lines: slog.New(slog.NewJSONHandler(os.Stderr, nil))}, nil
}
