package host

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// fickle offers a stream of calls and ends it when it is told to.
type fickle struct {
	pluginpb.UnimplementedProviderServer

	end chan struct{}
}

func (fickle) Describe(context.Context, *pluginpb.DescribeRequest) (*pluginpb.DescribeResponse, error) {
	return &pluginpb.DescribeResponse{Streams: true, Manifest: []byte(`{
		"manifest": 1, "name": "one", "title": "One", "version": "1.0.0", "connection": {"type": "object", "properties": {}}, "operations": [{"path": "/one/rate", "kind": "query", "summary": "Asks", "timeout": "5s",
			"request": {"type": "object", "additionalProperties": false, "properties": {}}, "result": {"type": "object"}, "response": {"type": "object"}}]}`)}, nil
}

func (f fickle) Stream(wire grpc.BidiStreamingServer[pluginpb.StreamRequest, pluginpb.StreamResponse]) error {
	if err := wire.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	<-f.end
	return nil
}

// TestAStreamThatEndsIsTold: once, to the log, the plugin's last errors and its status.
func TestAStreamThatEndsIsTold(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, plugin := grpc.NewServer(), fickle{end: make(chan struct{})}
	pluginpb.RegisterProviderServer(server, plugin)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	running := &process{wire: heard{Client: sdk.NewClient(conn)}, conn: conn, program: &program{}, lost: make(chan struct{})}
	if _, err := running.wire.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	p := newProvider(Spec{Name: "one"}, slog.New(slog.NewTextHandler(&log, nil)), tuning{})
	p.current = running
	if !p.status().Streams {
		t.Error("it has no stream at first")
	}
	close(plugin.end)
	p.tellOfStream(running)
	if s := p.status(); s.Streams || len(s.Faults) != 1 || !strings.Contains(s.Faults[0].Why, "EOF") {
		t.Errorf("its status is %+v", s)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "EOF") {
		t.Errorf("the log says %q", text)
	}
	running.lose()
	p.tellOfStream(running) // nothing of one that has ended itself
	if s := p.status(); len(s.Faults) != 1 {
		t.Errorf("its status is %+v", s)
	}
}
