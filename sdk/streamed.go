package sdk

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// Stream answers calls on one stream, each as Call does. How many run at a time is the
// gateway's to bound, as without the stream.
func (s *server) Stream(wire grpc.BidiStreamingServer[pluginpb.StreamRequest, pluginpb.StreamResponse]) error {
	if err := wire.SendHeader(metadata.MD{}); err != nil { // the gateway waits for it
		return err
	}
	ctx, cancel := context.WithCancel(wire.Context())
	defer cancel() // the handlers', too
	calls := &streamedCalls{
		server: s, life: ctx, work: make(chan begun), wake: make(chan struct{}, 1), running: map[uint64]context.CancelFunc{},
	}
	for range streamWorkers {
		go calls.run()
	}
	ended := make(chan error, 1)
	go func() { ended <- calls.receive(wire) }()
	for {
		select {
		case err := <-ended:
			return err
		case <-calls.wake:
			runtime.Gosched() // others add theirs to the message
		}
		for message := calls.take(); message != nil; message = calls.take() {
			if err := wire.Send(message); err != nil {
				return err
			}
		}
	}
}

// streamedCalls are the calls of one stream.
type streamedCalls struct {
	server *server
	life   context.Context //nolint:containedctx // the stream's
	work   chan begun      // for the goroutines that are kept
	wake   chan struct{}   // that there are answers

	mu      sync.Mutex
	running map[uint64]context.CancelFunc
	answers []sizedAnswer // to be sent
}

type sizedAnswer struct {
	answer *pluginpb.StreamedAnswer
	size   int // in bytes
}

// begun is a call with the context of its handler.
type begun struct {
	ctx    context.Context //nolint:containedctx // it goes to another goroutine
	cancel context.CancelFunc
	call   *pluginpb.StreamedCall
}

// receive begins calls and cancels them, until the gateway sends no more.
func (c *streamedCalls) receive(wire grpc.BidiStreamingServer[pluginpb.StreamRequest, pluginpb.StreamResponse]) error {
	for {
		message, err := wire.Recv()
		if err != nil {
			return err
		}
		for _, call := range message.GetCalls() {
			if err := c.begin(call); err != nil {
				return err
			}
		}
		c.mu.Lock()
		for _, id := range message.GetCancelled() {
			if cancel := c.running[id]; cancel != nil {
				cancel()
			}
		}
		c.mu.Unlock()
	}
}

func (c *streamedCalls) begin(call *pluginpb.StreamedCall) error {
	b := begun{call: call}
	if timeout := call.GetTimeout(); timeout != nil {
		b.ctx, b.cancel = context.WithTimeout(c.life, timeout.AsDuration())
	} else {
		b.ctx, b.cancel = context.WithCancel(c.life)
	}
	c.mu.Lock()
	twice := c.running[call.GetId()] != nil
	c.running[call.GetId()] = b.cancel
	c.mu.Unlock()
	if twice {
		return status.Errorf(codes.InvalidArgument, "call %d is under way already", call.GetId())
	}
	select {
	case c.work <- b:
	default:
		go c.answer(b)
	}
	return nil
}

func (c *streamedCalls) run() {
	for {
		select {
		case b := <-c.work:
			c.answer(b)
		case <-c.life.Done():
			return
		}
	}
}

func (c *streamedCalls) answer(b begun) {
	defer b.cancel()
	answer := &pluginpb.StreamedAnswer{Id: b.call.GetId(), RequestId: b.call.GetCall().GetRequestId()}
	var err error
	answer.Response, err = c.server.Call(b.ctx, b.call.GetCall())
	size := proto.Size(answer.GetResponse())
	if err == nil && size > maxMessage-batch {
		err = status.Errorf(codes.ResourceExhausted, "the answer has more than %d bytes", maxMessage-batch)
	}
	if err != nil {
		said := status.Convert(err)
		answer.Response, answer.Code, answer.Message = nil, int32(said.Code()), text(said.Message()) //nolint:gosec // a small number
		size = len(answer.GetMessage())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, b.call.GetId())
	c.answers = append(c.answers, sizedAnswer{answer, size})
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take makes a message of the answers that wait to be sent, nil where there is none. A
// large one has a message of its own.
func (c *streamedCalls) take() *pluginpb.StreamResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) == 0 {
		return nil
	}
	message := &pluginpb.StreamResponse{}
	n := 0
	for size := 0; n < len(c.answers); n++ {
		if size += c.answers[n].size; size > batch && n > 0 {
			break
		}
		message.Answers = append(message.Answers, c.answers[n].answer)
	}
	c.answers = slices.Delete(c.answers, 0, n) // which lets go of them
	return message
}
