package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// BenchmarkStream measures unary gRPC beside calls that share one stream, to the same
// process over the same socket. Each call on the stream has an id, by which its answer
// is found, because answers come in any order. They take turns; the median of
// their ratios is reported as stream/unary. Plugins speak unary gRPC.
func BenchmarkStream(b *testing.B) {
	conn := bareConn(b)
	unary, stream := pluginpb.NewProviderClient(conn), openCalls(b, conn)
	call := callTo("accept")
	var err error
	call.Body, err = json.Marshal(order{Do: "accept", Text: strings.Repeat("x", 350)})
	if err != nil {
		b.Fatal(err)
	}
	through := map[string]func() error{
		"unary": func() error { _, err := unary.Call(b.Context(), bareRequest(call)); return err },
		"stream": func() error {
			answer, err := stream.call(b.Context(), call)
			if err == nil && answer.GetOutcome() != pluginpb.Outcome_OUTCOME_PENDING {
				err = fmt.Errorf("%v", answer)
			}
			return err
		},
	}
	for _, inFlight := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("in-flight-%d", inFlight), func(b *testing.B) {
			const rounds = 20
			n := max(b.N/rounds, inFlight)
			speed := map[string][]float64{}
			for range rounds {
				for _, which := range []string{"unary", "stream"} {
					began := time.Now()
					if err := hammer(inFlight, n, through[which]); err != nil {
						b.Fatal(err)
					}
					speed[which] = append(speed[which], float64(n)/time.Since(began).Seconds())
				}
			}
			ratios := make([]float64, rounds)
			for i := range ratios {
				ratios[i] = speed["stream"][i] / speed["unary"][i]
			}
			b.ReportMetric(median(speed["unary"]), "unary-calls/s")
			b.ReportMetric(median(speed["stream"]), "stream-calls/s")
			b.ReportMetric(median(ratios), "stream/unary")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// callsName is a stream of calls that no plugin serves.
const callsName = "/gerbang.test.Calls/Calls"

// callsService answers each call of a stream on a goroutine of its own, as unary gRPC
// does. An answer has its call's id in front of the provider's reference.
var callsService = grpc.ServiceDesc{
	ServiceName: "gerbang.test.Calls", HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Calls", ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, stream grpc.ServerStream) error {
			var sending sync.Mutex
			for {
				request := &pluginpb.CallRequest{}
				if err := stream.RecvMsg(request); err != nil {
					return err
				}
				go func() {
					answer, err := bareServer{}.Call(stream.Context(), request)
					if err != nil {
						answer = &pluginpb.CallResponse{}
					}
					answer.ProviderReference = request.GetRequestId()
					sending.Lock()
					defer sending.Unlock()
					_ = stream.SendMsg(answer) // the caller notices
				}()
			}
		},
	}},
}

// calls are calls that share a stream.
type calls struct {
	stream  grpc.ClientStream
	sending sync.Mutex
	next    atomic.Int64
	waiting sync.Map // id to chan *pluginpb.CallResponse
}

func openCalls(b *testing.B, conn *grpc.ClientConn) *calls {
	b.Helper()
	stream, err := conn.NewStream(b.Context(), &callsService.Streams[0], callsName)
	if err != nil {
		b.Fatal(err)
	}
	c := &calls{stream: stream}
	go func() {
		for {
			answer := &pluginpb.CallResponse{}
			if stream.RecvMsg(answer) != nil {
				return
			}
			if waits, ok := c.waiting.LoadAndDelete(answer.GetProviderReference()); ok {
				waits.(chan *pluginpb.CallResponse) <- answer
			}
		}
	}()
	return c
}

func (c *calls) call(ctx context.Context, call sdk.Call) (*pluginpb.CallResponse, error) {
	request, answered := bareRequest(call), make(chan *pluginpb.CallResponse, 1)
	request.RequestId = strconv.FormatInt(c.next.Add(1), 36)
	c.waiting.Store(request.GetRequestId(), answered)
	c.sending.Lock()
	err := c.stream.SendMsg(request)
	c.sending.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case answer := <-answered:
		return answer, nil
	case <-ctx.Done():
		return nil, errors.New("the stream did not answer")
	}
}
