package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// server answers the wire with an author's handlers.
type server struct {
	pluginpb.UnimplementedProviderServer
	manifest *manifest.Manifest
	document []byte
	handlers Handlers
	log      hclog.Logger
	lines    *slog.Logger // the handlers' own
}

func (s *server) Describe(context.Context, *pluginpb.DescribeRequest) (*pluginpb.DescribeResponse, error) {
	return &pluginpb.DescribeResponse{Manifest: s.document, Streams: true}, nil
}

func (s *server) Call(ctx context.Context, req *pluginpb.CallRequest) (*pluginpb.CallResponse, error) {
	handler, ok := s.handlers.Calls[req.GetOperation()]
	if !ok {
		return resultToWire(DidNotSend(BlameNone, "this plugin has no operation "+req.GetOperation())), nil
	}
	call := callFromWire(req)
	call.SendBy = deadline(req.GetSendWithin(), req.GetSendByUptime(), call.SendBy)
	if !call.SendBy.IsZero() && time.Now().After(call.SendBy) {
		return resultToWire(DidNotSend(BlameNone, "send_by had passed when the call arrived")), nil
	}
	ctx, cancel := s.about(ctx, req.GetRequestId(), req.GetTraceParent())
	defer cancel()
	var result Result
	if fault := s.guard(ctx, req.GetOperation(), func() { result = handler(ctx, call) }); fault != "" {
		result = DontKnow(BlameNone, fault)
	}
	response := resultToWire(result)
	response.Exchanges = told(ctx)
	return response, nil
}

func (s *server) Quote(ctx context.Context, req *pluginpb.QuoteRequest) (*pluginpb.QuoteResponse, error) {
	handler, ok := s.handlers.Quotes[req.GetOperation()]
	if !ok {
		return nil, status.Error(codes.Unimplemented, "this plugin has no quote for "+req.GetOperation())
	}
	ctx, cancel := s.about(ctx, req.GetRequestId(), req.GetTraceParent())
	defer cancel()
	var quoted Quoted
	if fault := s.guard(ctx, "quote of "+req.GetOperation(), func() { quoted = handler(ctx, quoteFromWire(req)) }); fault != "" {
		quoted = NoQuote(DontKnow(BlameNone, fault))
	}
	response := quotedToWire(quoted)
	response.Exchanges = told(ctx)
	return response, nil
}

func (s *server) Lookup(ctx context.Context, req *pluginpb.LookupRequest) (*pluginpb.LookupResponse, error) {
	if s.handlers.Lookup == nil {
		return nil, status.Error(codes.Unimplemented, "this provider moves no money")
	}
	lookup := lookupFromWire(req)
	lookup.SendBy = deadline(req.GetSendWithin(), req.GetSendByUptime(), lookup.SendBy)
	if !lookup.SendBy.IsZero() && time.Now().After(lookup.SendBy) {
		return &pluginpb.LookupResponse{Update: statusUpdateToWire(NoStatus(BlameNone, "send_by had passed when the lookup arrived"))}, nil
	}
	ctx, cancel := s.about(ctx, req.GetRequestId(), req.GetTraceParent())
	defer cancel()
	var update StatusUpdate
	if fault := s.guard(ctx, "lookup", func() { update = s.handlers.Lookup(ctx, lookup) }); fault != "" {
		update = NoStatus(BlameNone, fault)
	}
	response := &pluginpb.LookupResponse{Update: statusUpdateToWire(update)}
	response.Exchanges = told(ctx)
	return response, nil
}

func (s *server) Notify(ctx context.Context, req *pluginpb.NotifyRequest) (*pluginpb.NotifyResponse, error) {
	if s.handlers.Notify == nil {
		return nil, status.Error(codes.Unimplemented, "this provider has no notifications")
	}
	ctx, cancel := s.about(ctx, req.GetRequestId(), req.GetTraceParent())
	defer cancel()
	var ack Acknowledgement
	if fault := s.guard(ctx, "notify", func() { ack = s.handlers.Notify(ctx, notificationFromWire(req)) }); fault != "" {
		ack = Acknowledgement{Status: http.StatusInternalServerError, Detail: fault}
	}
	response := acknowledgementToWire(ack)
	response.Exchanges = told(ctx)
	return response, nil
}

func (s *server) Verify(ctx context.Context, req *pluginpb.VerifyRequest) (*pluginpb.VerifyResponse, error) {
	if s.handlers.Verify == nil {
		return nil, status.Error(codes.Unimplemented, "this provider can't verify a connection")
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	var result Result
	if fault := s.guard(ctx, "verify", func() { result = s.handlers.Verify(ctx, connectionFromWire(req.GetConnection())) }); fault != "" {
		result = DontKnow(BlameNone, fault)
	}
	return verifiedToWire(result), nil
}

func (s *server) Statement(ctx context.Context, req *pluginpb.StatementRequest) (*pluginpb.StatementResponse, error) {
	if s.handlers.Statement == nil {
		return nil, status.Error(codes.Unimplemented, "this provider has no statements")
	}
	ctx, cancel := s.about(ctx, req.GetRequestId(), "")
	defer cancel()
	var page StatementPage
	if fault := s.guard(ctx, "statement", func() { page = s.handlers.Statement(ctx, statementFromWire(req)) }); fault != "" {
		page = NoStatement(BlameNone, fault)
	}
	return pageToWire(page), nil
}

// maxMargin is the most that a handler's deadline comes before the gateway's.
const maxMargin = 250 * time.Millisecond

// withMargin ends a handler's context a little before the gateway stops
// waiting, so that the handler's own word on a timeout (not sent, whose fault)
// still arrives.
func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(time.Until(deadline)/10, maxMargin)))
}

// guard keeps a handler's panic to its own call: what was sent then is
// unknown, and the other calls of this process go on. A panic's value may hold
// what the handler was working on, so only the runtime's own are logged.
func (s *server) guard(ctx context.Context, what string, handler func()) (fault string) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		reason := fmt.Sprintf("a %T", p)
		if err, ok := p.(runtime.Error); ok {
			reason = err.Error()
		}
		id := ""
		if about, ok := ctx.Value(requestKey{}).(*request); ok {
			id = about.id
		}
		s.log.Error("handler panicked", "request_id", id, "handler", what, "reason", reason, "stack", string(debug.Stack()))
		fault = fmt.Sprintf("the handler of %s panicked", what)
	}()
	handler()
	return ""
}
