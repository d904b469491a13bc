package sdk

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

const (
	// largeCall is how many bytes of a call travel on the stream at most, and a larger
	// answer is the last of its operation there: the others would wait behind them.
	largeCall, largeAnswer = 32 << 10, 64 << 10
	// batch is about how many bytes of calls, or of answers, one message has.
	batch = 64 << 10
	// stuck is how long a message may wait for a plugin that does not read before no more
	// calls are put on the stream, where a call's time ends behind it.
	stuck = time.Second
	// fresh is how long a call may wait to be written. What it says of its time was measured
	// before, so a later one is made without the stream, and measured anew.
	fresh = 50 * time.Millisecond
	// greeting is how long a plugin may take to open the stream that it offers.
	greeting = 5 * time.Second
)

// errUnwritten is of a call of which nothing was handed to the transport, so that it can
// still be made without the stream.
var errUnwritten = errors.New("sdk: the call was not written to the stream")

// ErrStreamEnded is of a call that was on its way when the stream of calls ended, while
// the process may well live. It says nothing of the call, nor of the upstream.
var ErrStreamEnded = errors.New("sdk: the stream of calls ended")

// streamEnded has the status of a connection that is lost.
type streamEnded struct{ why error }

func (e streamEnded) Error() string              { return ErrStreamEnded.Error() + ": " + e.why.Error() }
func (e streamEnded) Is(target error) bool       { return target == ErrStreamEnded }
func (e streamEnded) GRPCStatus() *status.Status { return status.New(codes.Unavailable, e.Error()) }

// callStream is the gateway's side of [pluginpb.ProviderClient]'s Stream. Whatever is
// wrong with it ends it for good: calls go without it then. A call that was taken from the queue
// is never made again.
type callStream struct {
	wire grpc.ClientStream
	end  context.CancelFunc
	last atomic.Uint64 // id
	wake chan struct{} // that there is something to send
	over chan struct{} // closed once no more calls are put on it

	mu        sync.Mutex
	why       error // that it is over
	retired   bool  // no call is begun any more, and those that are on their way end as they do
	ended     bool
	queue     []*streamedCall // nothing of them was handed to the transport
	cancelled []uint64        // that the plugin was not told of yet
	waiting   map[uint64]*streamedCall
	abandoned int       // calls whose answers will come and find nobody
	sending   time.Time // since when the message that is being sent is; zero when there is none
	large     map[string]bool
}

// streamedCall is a call on its way.
type streamedCall struct {
	id        uint64
	operation string
	requestID string
	begun     time.Time
	encoded   []byte // a StreamRequest with this call: a message with several is one after the other
	done      chan struct{}
	response  *pluginpb.CallResponse
	err       error
}

func (c *streamedCall) finish(response *pluginpb.CallResponse, err error) {
	c.response, c.err = response, err
	close(c.done)
}

// openCallStream gives a stream that is over where the plugin does not open it.
func openCallStream(ctx context.Context, wire pluginpb.ProviderClient) *callStream {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s := &callStream{
		end: end, wake: make(chan struct{}, 1), over: make(chan struct{}), waiting: map[uint64]*streamedCall{}, large: map[string]bool{},
	}
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	inTime := context.AfterFunc(ctx, end)
	var err error
	if s.wire, err = wire.Stream(life, grpc.ForceCodecV2(encodedCalls{encoding.GetCodecV2(proto.Name)})); err == nil {
		err = greeted(s.wire)
	}
	if !inTime() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		end()
		s.fail(fmt.Errorf("the plugin does not open it: %w", err))
		return s
	}
	go s.send()
	go s.receive()
	return s
}

// greeted waits for the plugin's header. A plugin without the method ends the stream and
// sends none.
func greeted(wire grpc.ClientStream) error {
	header, err := wire.Header()
	if err == nil && header == nil {
		err = errors.New("it sends no header")
	}
	return err
}

// call makes a call. Nothing was sent where the error is [errUnwritten].
func (s *callStream) call(ctx context.Context, request *pluginpb.CallRequest) (*pluginpb.CallResponse, error) {
	c, err := s.begin(ctx, request)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		s.abandon(c, status.FromContextError(ctx.Err()).Err())
	}
	return c.response, c.err
}

// begin puts a call into the queue. It is encoded here, since the caller may go before
// it is sent, and change what it has lent.
func (s *callStream) begin(ctx context.Context, request *pluginpb.CallRequest) (*streamedCall, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	c := &streamedCall{id: s.last.Add(1), operation: request.GetOperation(), requestID: request.GetRequestId(), begun: time.Now(), done: make(chan struct{})}
	call := &pluginpb.StreamedCall{Id: c.id, Call: request}
	if deadline, ok := ctx.Deadline(); ok {
		call.Timeout = durationpb.New(time.Until(deadline))
	}
	var err error
	if c.encoded, err = protobuf.Marshal(&pluginpb.StreamRequest{Calls: []*pluginpb.StreamedCall{call}}); err != nil {
		return nil, status.Error(codes.Internal, err.Error()) // as a call without the stream fails
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.retired || s.large[c.operation] || len(c.encoded) > largeCall {
		return nil, errUnwritten
	}
	s.queue = append(s.queue, c)
	s.signal()
	return c, nil
}

func (s *callStream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// abandon ends a call for which nobody waits any more, unless it has just ended.
func (s *callStream) abandon(c *streamedCall, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch at := slices.Index(s.queue, c); {
	case at >= 0:
		s.queue = slices.Delete(s.queue, at, at+1)
		if status.Code(err) == codes.DeadlineExceeded && !s.sending.IsZero() && time.Since(s.sending) > stuck {
			s.retire(fmt.Errorf("the plugin has read nothing for %v", time.Since(s.sending).Round(time.Millisecond)))
		}
	case s.waiting[c.id] == nil:
		<-c.done
		return
	default:
		delete(s.waiting, c.id)
		s.abandoned++
		s.cancelled = append(s.cancelled, c.id)
		s.signal()
		s.endRetired()
	}
	c.finish(nil, err)
}

// retire has calls go without the stream from now on. Those that were written go on.
func (s *callStream) retire(why error) {
	s.retired = true
	s.close(why)
	for _, c := range s.queue {
		c.finish(nil, errUnwritten)
	}
	s.queue = nil
	s.endRetired()
}

// close says why no more calls are put on the stream; the first reason stays.
func (s *callStream) close(why error) {
	if s.why == nil {
		s.why = why
		close(s.over)
	}
}

// endRetired ends a stream that has no more to do.
func (s *callStream) endRetired() {
	if s.retired && len(s.waiting) == 0 {
		s.end()
	}
}

// send sends what there is, whenever there is something.
func (s *callStream) send() {
	for {
		select {
		case <-s.wake:
		case <-s.wire.Context().Done():
			return
		}
		for {
			runtime.Gosched() // others add theirs to the message
			message, err := s.take()
			if err == nil && message == nil {
				break
			}
			if err == nil {
				err = s.wire.SendMsg(message)
			}
			if err != nil {
				s.end() // the receiver learns why
				return
			}
		}
	}
}

// take makes a message of what waits to be sent, nil where nothing does.
func (s *callStream) take() (mem.BufferSlice, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = time.Time{}
	if len(s.queue) == 0 && len(s.cancelled) == 0 || s.ended {
		return nil, nil
	}
	var message mem.BufferSlice
	if len(s.cancelled) > 0 {
		encoded, err := protobuf.Marshal(&pluginpb.StreamRequest{Cancelled: s.cancelled})
		if err != nil {
			return nil, err
		}
		message, s.cancelled = append(message, mem.SliceBuffer(encoded)), nil
	}
	n := 0
	for size := 0; n < len(s.queue) && size < batch; n++ {
		c := s.queue[n]
		if time.Since(c.begun) > fresh {
			c.finish(nil, errUnwritten)
			continue
		}
		s.waiting[c.id] = c
		message, size = append(message, mem.SliceBuffer(c.encoded)), size+len(c.encoded)
	}
	s.queue = slices.Delete(s.queue, 0, n)
	if message != nil {
		s.sending = time.Now()
	}
	return message, nil
}

// receive hands answers to those who wait for them, until the stream ends.
func (s *callStream) receive() {
	for {
		message := &pluginpb.StreamResponse{}
		err := s.wire.RecvMsg(message)
		if err == nil {
			err = s.deliver(message)
		}
		if err != nil {
			s.end()
			s.fail(err)
			return
		}
	}
}

// deliver takes answers. Each call is answered once, so whoever says more than that
// could go on for ever, and is not listened to.
func (s *callStream) deliver(message *pluginpb.StreamResponse) error {
	if len(message.GetAnswers()) == 0 {
		return errors.New("the plugin sent a message without answers")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, answer := range message.GetAnswers() {
		c := s.waiting[answer.GetId()]
		if c == nil {
			if s.abandoned--; s.abandoned < 0 {
				return errors.New("the plugin answered what nobody asked")
			}
			continue
		}
		if answer.GetRequestId() != c.requestID {
			return errors.New("the plugin answered another call under this one's id")
		}
		delete(s.waiting, c.id)
		if len(answer.GetResponse().GetData()) > largeAnswer {
			s.large[c.operation] = true
		}
		if code := answer.GetCode(); code != 0 {
			c.finish(nil, status.Error(codes.Code(code), answer.GetMessage())) //nolint:gosec // whatever number it says is an error
			continue
		}
		c.finish(answer.GetResponse(), nil)
	}
	s.endRetired()
	return nil
}

// fail ends the calls that are on their way: those that were handed to the transport may
// have arrived.
func (s *callStream) fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.close(why)
	for _, c := range s.queue {
		c.finish(nil, errUnwritten)
	}
	for _, c := range s.waiting {
		c.finish(nil, streamEnded{why})
	}
	s.queue, s.waiting, s.cancelled = nil, nil, nil
}

// encodedCalls passes on the messages that are encoded already.
type encodedCalls struct{ encoding.CodecV2 }

// Marshal takes a message of [callStream.take].
func (c encodedCalls) Marshal(message any) (mem.BufferSlice, error) {
	encoded, ok := message.(mem.BufferSlice)
	if !ok {
		return c.CodecV2.Marshal(message)
	}
	return encoded, nil
}
