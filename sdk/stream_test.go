package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// bothWays gives a client of a plugin that uses the stream, one that does not, and how
// many calls came without it.
func bothWays(t *testing.T, pay func(context.Context, Call) Result) (stream, unary *Client, without *atomic.Int64) {
	t.Helper()
	h := rightHandlers()
	h.Calls["/shop/pay"] = pay
	s, err := newServer([]byte(payManifest), h)
	if err != nil {
		t.Fatal(err)
	}
	without = &atomic.Int64{}
	stream = dial(t, s, grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if strings.HasSuffix(info.FullMethod, "/Call") {
			without.Add(1)
		}
		return handle(ctx, request)
	}))
	if _, err := stream.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stream.stream.Load() == nil {
		t.Fatal("the plugin has no stream")
	}
	return stream, NewClient(stream.conn), without
}

func pay(reference string) Call {
	return Call{Operation: "/shop/pay", Reference: reference, Body: json.RawMessage(`{}`)}
}

// TestStreamKeepsCallsApart: each of many calls at a time gets its own answer, made with
// its own credentials, while one of them takes long.
func TestStreamKeepsCallsApart(t *testing.T) {
	t.Parallel()
	// In a bubble no time passes while anything runs: however busy the machine is, no call
	// waits too long for the stream, and none runs out of time early.
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stream, _, without := bothWays(t, func(_ context.Context, c Call) Result {
			if c.Reference == "slow" {
				<-release
			}
			return Accepted(c.Reference+" of "+c.Connection.MerchantID+" "+string(c.Connection.Credentials), time.Time{}, c.Body)
		})
		call := func(reference string) {
			c := pay(reference)
			c.Connection = Connection{MerchantID: "m-" + reference, Credentials: json.RawMessage(`"k-` + reference + `"`)}
			c.Body = json.RawMessage(`"` + strings.Repeat("b", len(reference)*100) + `"`)
			want := fmt.Sprintf("%[1]s of m-%[1]s %[2]q", reference, "k-"+reference)
			if r, err := stream.Call(t.Context(), c); err != nil || r.ProviderReference != want || string(r.Data) != string(c.Body) {
				t.Errorf("got %+v, %v, want %s", r, err, want)
			}
		}
		var slow, group sync.WaitGroup
		slow.Go(func() { call("slow") })
		for worker := range 64 {
			group.Go(func() {
				for n := range 50 {
					call(fmt.Sprintf("%d-%d", worker, n))
				}
			})
		}
		group.Wait()
		close(release)
		slow.Wait()
		if n := without.Load(); n != 0 {
			t.Errorf("%d calls came without the stream", n)
		}
	})
}

// TestStreamSaysWhatUnarySays: whatever becomes of a call, its caller and its handler
// learn the same with and without the stream.
func TestStreamSaysWhatUnarySays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string, 2)
		stream, unary, without := bothWays(t, func(ctx context.Context, c Call) Result {
			switch c.Reference {
			case "panics":
				panic("secret")
			case "hangs":
				deadline, ok := ctx.Deadline()
				<-ctx.Done()
				said <- fmt.Sprint(ok && time.Until(deadline) < time.Minute)
				return DidNotSend(BlameUpstream, "no token in time")
			case "is deaf":
				<-ctx.Done()
				said <- ctx.Err().Error()
				<-t.Context().Done()
			case "is huge":
				return Finished("", strings.Repeat("x", maxMessage))
			case "is refused":
				return Refuse(RefuseProduct, "gone", FieldFault{"sku", "is gone"})
			}
			return Finished(c.SendBy.Location().String(), c.Quote)
		})
		for reference, c := range map[string]struct {
			limit  time.Duration
			cancel bool
			want   codes.Code
		}{
			"is done": {time.Minute, false, codes.OK}, "is refused": {time.Minute, false, codes.OK}, "panics": {time.Minute, false, codes.OK},
			"hangs": {500 * time.Millisecond, false, codes.OK}, "is huge": {time.Minute, false, codes.ResourceExhausted},
			"is deaf": {time.Minute, true, codes.Canceled}, "is late": {-time.Second, false, codes.DeadlineExceeded},
			"is no text \xff": {time.Minute, false, codes.Internal},
		} {
			heard := map[string]string{}
			for which, client := range map[string]*Client{"stream": stream, "unary": unary} {
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				if c.cancel {
					time.AfterFunc(50*time.Millisecond, cancel) // its handler waits by then, or no time would pass
				}
				r, err := client.Call(ctx, pay(reference))
				if status.Code(err) != c.want {
					t.Errorf("a call that %s, %s: %v", reference, which, err)
				}
				heard[which] = fmt.Sprintf("%+v", r)
				if c.cancel || reference == "hangs" {
					heard[which] += <-said
				}
				cancel()
			}
			if heard["stream"] != heard["unary"] {
				t.Errorf("a call that %s: got %s, without the stream %s", reference, heard["stream"], heard["unary"])
			}
		}
		if _, err := stream.Call(t.Context(), pay("is done")); err != nil || stream.stream.Load().ended {
			t.Errorf("the stream has ended: %v", err)
		}
		if n := without.Load(); n != 6 { // of the other client, but for the one that is late and the one that is no text
			t.Errorf("%d calls came without the stream", n)
		}
	})
}

// TestLargeCallsGoAlone: what is large holds up nobody on the stream.
func TestLargeCallsGoAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stream, _, without := bothWays(t, func(_ context.Context, c Call) Result {
			return Finished("", strings.Repeat("x", int(c.Amount)))
		})
		for _, c := range []struct {
			body, answer int
			without      int64 // calls so far
		}{{10, 10, 0}, {largeCall, 10, 1}, {10, largeAnswer - 10, 1}, {10, largeAnswer, 1}, {10, 10, 2}} {
			call := pay("r")
			call.Body, call.Amount = json.RawMessage(strings.Repeat("1", c.body)), money.Amount(c.answer)
			if r, err := stream.Call(t.Context(), call); err != nil || len(r.Data) != c.answer+2 || without.Load() != c.without {
				t.Errorf("%+v: %d bytes, %v, %d calls without the stream", c, len(r.Data), err, without.Load())
			}
		}
	})
}

type offeredStream = grpc.BidiStreamingServer[pluginpb.StreamRequest, pluginpb.StreamResponse]

// offered is a plugin that offers a stream and does with it what a test says.
type offered struct {
	pluginpb.UnimplementedProviderServer
	stream func(offeredStream) error
	unary  atomic.Int64
}

func (*offered) Describe(context.Context, *pluginpb.DescribeRequest) (*pluginpb.DescribeResponse, error) {
	return &pluginpb.DescribeResponse{Manifest: []byte(payManifest), Streams: true}, nil
}

func (o *offered) Call(context.Context, *pluginpb.CallRequest) (*pluginpb.CallResponse, error) {
	o.unary.Add(1)
	return &pluginpb.CallResponse{Outcome: pluginpb.Outcome_OUTCOME_DONE}, nil
}

func (o *offered) Stream(wire offeredStream) error {
	if o.stream == nil {
		return o.UnimplementedProviderServer.Stream(wire)
	}
	if err := wire.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	return o.stream(wire)
}

// take receives calls until there are as many.
func take(wire offeredStream, n int) (calls []*pluginpb.StreamedCall) {
	for len(calls) < n {
		message, err := wire.Recv()
		if err != nil {
			return calls
		}
		calls = append(calls, message.GetCalls()...)
	}
	return calls
}

func answersTo(ids ...uint64) *pluginpb.StreamResponse {
	message := &pluginpb.StreamResponse{}
	for _, id := range ids {
		message.Answers = append(message.Answers, &pluginpb.StreamedAnswer{Id: id, Response: &pluginpb.CallResponse{Outcome: pluginpb.Outcome_OUTCOME_PENDING}})
	}
	return message
}

// TestStreamThatBreaksIsUnknown: calls that were written to a stream which ends, for
// whatever reason, are never made again, and later ones go without it.
func TestStreamThatBreaksIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(offeredStream, uint64) error{
			"ended": func(offeredStream, uint64) error { return nil },
			"fails": func(offeredStream, uint64) error { return errors.New("no") },
			"an answer that nobody asked for": func(wire offeredStream, last uint64) error {
				_ = wire.Send(answersTo(last + 100))
				<-wire.Context().Done()
				return nil
			},
			"an answer that names another request": func(wire offeredStream, last uint64) error {
				message := answersTo(last)
				message.Answers[0].RequestId = "another"
				_ = wire.Send(message)
				<-wire.Context().Done()
				return nil
			},
			"a message without answers": func(wire offeredStream, _ uint64) error {
				for { // a flood of them
					if err := wire.Send(&pluginpb.StreamResponse{}); err != nil {
						return err
					}
				}
			},
			"a message that can't be read": func(wire offeredStream, last uint64) error {
				_ = wire.SendMsg(&pluginpb.DescribeResponse{Manifest: []byte{0xff}})
				_ = last
				<-wire.Context().Done()
				return nil
			},
		} {
			const inFlight = 20
			seen := make(chan int, 1)
			plugin := &offered{stream: func(wire offeredStream) error {
				calls := take(wire, inFlight)
				seen <- len(calls)
				return end(wire, calls[len(calls)-1].GetId())
			}}
			c := dial(t, plugin)
			if _, err := c.Describe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !c.Streams() {
				t.Errorf("%s: it has not begun: %v", name, c.WhyStreamOver())
			}
			var group sync.WaitGroup
			for range inFlight {
				group.Go(func() {
					if r, err := c.Call(t.Context(), pay("r")); status.Code(err) != codes.Unavailable || !errors.Is(err, ErrStreamEnded) {
						t.Errorf("%s: %+v, %v", name, r, err)
					}
				})
			}
			group.Wait()
			if <-c.StreamOver(); c.Streams() || c.WhyStreamOver() == nil {
				t.Errorf("%s: it is over because %v", name, c.WhyStreamOver())
			}
			if n := <-seen; n != inFlight || plugin.unary.Load() != 0 {
				t.Errorf("%s: %d calls on the stream and %d without it", name, n, plugin.unary.Load())
			}
			if r, err := c.Call(t.Context(), pay("r")); err != nil || r.Outcome != Done || plugin.unary.Load() != 1 {
				t.Errorf("%s, the next call: %+v, %v", name, r, err)
			}
		}
	})
}

// TestAnswerTwice: a second answer ends the stream, and is nobody else's.
func TestAnswerTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, &offered{stream: func(wire offeredStream) error {
			first := take(wire, 1)[0].GetId()
			_ = wire.Send(answersTo(first))
			take(wire, 1)
			_ = wire.Send(answersTo(first))
			<-wire.Context().Done()
			return nil
		}})
		if _, err := c.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, err := c.Call(t.Context(), pay("r")); err != nil || r.Outcome != Pending {
			t.Errorf("the first: %+v, %v", r, err)
		}
		if r, err := c.Call(t.Context(), pay("s")); status.Code(err) != codes.Unavailable {
			t.Errorf("the second: %+v, %v", r, err)
		}
	})
}

// TestCancelledCallsAreForgotten: nothing is kept of calls whose callers have gone, their
// late answers do no harm, and whoever answers more than that is not listened to.
func TestCancelledCallsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := make(chan []uint64)
		answer := make(chan *pluginpb.StreamResponse)
		c := dial(t, &offered{stream: func(wire offeredStream) error {
			go func() {
				for message := range answer {
					_ = wire.Send(message)
				}
			}()
			for {
				message, err := wire.Recv()
				if err != nil {
					return err
				}
				for _, call := range message.GetCalls() {
					told <- []uint64{call.GetId()}
				}
				if cancelled := message.GetCancelled(); cancelled != nil {
					told <- cancelled
				}
			}
		}})
		defer close(answer)
		if _, err := c.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := func(ctx context.Context) <-chan error {
			ended := make(chan error, 1)
			go func() {
				_, err := c.Call(ctx, pay("r"))
				ended <- err
			}()
			return ended
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := begin(ctx)
		id := (<-told)[0]
		cancel()
		if err := <-gone; status.Code(err) != codes.Canceled {
			t.Errorf("a call that was cancelled: %v", err)
		}
		if cancelled := <-told; len(cancelled) != 1 || cancelled[0] != id {
			t.Errorf("cancelled %v, want %d", cancelled, id)
		}
		stays := begin(t.Context())
		next := (<-told)[0]
		answer <- answersTo(id, next)
		if err := <-stays; err != nil {
			t.Errorf("a call beside it: %v", err)
		}
		s := c.stream.Load()
		s.mu.Lock()
		if len(s.waiting)+len(s.queue)+len(s.cancelled)+s.abandoned != 0 {
			t.Errorf("it remembers %d, %d, %d, %d", len(s.waiting), len(s.queue), len(s.cancelled), s.abandoned)
		}
		s.mu.Unlock()
		cut := begin(t.Context())
		<-told
		answer <- answersTo(id)
		if err := <-cut; status.Code(err) != codes.Unavailable {
			t.Errorf("after the same answer again: %v", err)
		}
	})
}

// TestPluginThatDoesNotRead: calls that lie before a plugin which reads nothing take a
// bounded room, and once their time is over the others go without the stream.
func TestPluginThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plugin := &offered{stream: func(wire offeredStream) error {
			<-wire.Context().Done()
			return nil
		}}
		c := dial(t, plugin)
		if _, err := c.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		call := pay("r")
		call.Body = json.RawMessage(strings.Repeat("1", largeCall/2))
		var group sync.WaitGroup
		var late, done atomic.Int64
		for n := range 60 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), stuck+time.Duration(n)*50*time.Millisecond)
				defer cancel()
				switch r, err := c.Call(ctx, call); {
				case err == nil && r.Outcome == Done:
					done.Add(1)
				case err != nil:
					late.Add(1)
				}
			})
		}
		group.Wait()
		if done.Load() == 0 || done.Load() != plugin.unary.Load() || done.Load()+late.Load() != 60 {
			t.Errorf("%d were done, %d not, %d came without the stream", done.Load(), late.Load(), plugin.unary.Load())
		}
	})
}

// TestACallThatWaitedIsMeasuredAnew: what a call says of its time was measured when it was
// put into the queue, so one that has waited there is made without the stream.
func TestACallThatWaitedIsMeasuredAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &callStream{end: func() {}, wake: make(chan struct{}, 1), waiting: map[uint64]*streamedCall{}, large: map[string]bool{}}
		var calls [2]*streamedCall
		for i := range calls {
			var err error
			if calls[i], err = s.begin(t.Context(), &pluginpb.CallRequest{Operation: "/shop/pay"}); err != nil {
				t.Fatal(err)
			}
		}
		calls[0].begun = calls[0].begun.Add(-2 * fresh)
		message, err := s.take()
		if err != nil || len(message) != 1 || len(s.queue) != 0 || s.waiting[calls[1].id] == nil || s.waiting[calls[0].id] != nil {
			t.Errorf("%d calls are written, %d are on their way, %v", len(message), len(s.waiting), err)
		}
		if <-calls[0].done; !errors.Is(calls[0].err, errUnwritten) {
			t.Errorf("the one that waited: %v", calls[0].err)
		}
	})
}

// TestAStreamThatIsNotReadIsRetired: no later call is put on it, and those that were written
// get their answers.
func TestAStreamThatIsNotReadIsRetired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended bool
		s := &callStream{
			end: func() { ended = true }, wake: make(chan struct{}, 1), over: make(chan struct{}),
			waiting: map[uint64]*streamedCall{}, large: map[string]bool{},
		}
		begin := func() *streamedCall {
			c, err := s.begin(t.Context(), &pluginpb.CallRequest{Operation: "/shop/pay"})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		written := begin()
		if _, err := s.take(); err != nil {
			t.Fatal(err)
		}
		s.sending = s.sending.Add(-2 * stuck)
		s.abandon(begin(), status.Error(codes.Canceled, "who asked has gone"))
		behind, over := begin(), begin()
		if s.abandon(over, status.Error(codes.DeadlineExceeded, "its time is over")); !s.retired || ended {
			t.Fatalf("retired %v, ended %v", s.retired, ended)
		}
		if <-s.over; !strings.Contains(s.why.Error(), "has read nothing for 2") {
			t.Errorf("it is over because %v", s.why)
		}
		if <-behind.done; !errors.Is(behind.err, errUnwritten) {
			t.Errorf("one that was not written: %v", behind.err)
		}
		if _, err := s.begin(t.Context(), &pluginpb.CallRequest{Operation: "/shop/pay"}); !errors.Is(err, errUnwritten) {
			t.Errorf("a later one: %v", err)
		}
		if err := s.deliver(answersTo(written.id)); err != nil || written.err != nil || !ended {
			t.Errorf("the one that was written: %v, %v; ended %v", err, written.err, ended)
		}
	})
}

// TestPluginWithoutItsStream: a plugin that offers what it does not have is called without.
func TestPluginWithoutItsStream(t *testing.T) {
	t.Parallel()
	plugin := &offered{}
	c := dial(t, plugin)
	if _, err := c.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Call(t.Context(), pay("r")); err != nil || r.Outcome != Done || plugin.unary.Load() != 1 {
		t.Errorf("got %+v, %v, %d calls without it", r, err, plugin.unary.Load())
	}
	if <-c.StreamOver(); c.Streams() || !strings.Contains(c.WhyStreamOver().Error(), "does not open it") {
		t.Errorf("it is over because %v", c.WhyStreamOver())
	}
}

// TestStreamEndsWithItsGateway: a plugin ends the stream of one that says an id twice, and
// the handlers' contexts with it.
func TestStreamEndsWithItsGateway(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 2)
	_, unary, _ := bothWays(t, func(ctx context.Context, _ Call) Result {
		<-ctx.Done()
		ended <- struct{}{}
		return Result{}
	})
	wire, err := unary.wire.Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		call := &pluginpb.StreamedCall{Id: 7, Call: &pluginpb.CallRequest{Operation: "/shop/pay"}}
		if err := wire.Send(&pluginpb.StreamRequest{Calls: []*pluginpb.StreamedCall{call}}); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if message, err := wire.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v, %v", message, err)
	}
	<-ended
}
