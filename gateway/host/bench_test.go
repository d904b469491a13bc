package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// BenchmarkHop measures a call through the host (mutual TLS, breaker, bulkhead,
// conversion) beside bare unary gRPC with messages of the same size over a unix
// socket to a process of its own, with one and with 64 calls in flight. The
// two take turns in one run, since a machine's speed drifts; the median of their
// ratios is reported as host/bare, of which the budget is 0.85.
func BenchmarkHop(b *testing.B) {
	h, err := start(b.Context(), Config{Specs: []Spec{testSpec("one")}, Log: slog.New(slog.DiscardHandler)}, standard)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close(context.Background()) })
	bare := bareClient(b)
	call := callTo("accept")
	call.Connection.Mode = live // in test mode one merchant has fewer than 64 places
	call.Body, err = json.Marshal(order{Do: "accept", Text: strings.Repeat("x", 350)})
	if err != nil {
		b.Fatal(err)
	}
	through := map[string]func() error{
		"host": func() error {
			if r := h.Call(b.Context(), ofOne, call, 15*time.Second); r.Outcome != sdk.Pending {
				return fmt.Errorf("%+v", r)
			}
			return nil
		},
		"bare": func() error { _, err := bare.Call(b.Context(), bareRequest(call)); return err },
	}
	for _, inFlight := range []int{1, 64} {
		b.Run(fmt.Sprintf("in-flight-%d", inFlight), func(b *testing.B) {
			const rounds = 20
			n := max(b.N/rounds, inFlight)
			speed := map[string][]float64{}
			for range rounds {
				for _, which := range []string{"host", "bare"} {
					began := time.Now()
					if err := hammer(inFlight, n, through[which]); err != nil {
						b.Fatal(err)
					}
					speed[which] = append(speed[which], float64(n)/time.Since(began).Seconds())
				}
			}
			ratios := make([]float64, rounds)
			for i := range ratios {
				ratios[i] = speed["host"][i] / speed["bare"][i]
			}
			b.ReportMetric(median(speed["host"]), "host-calls/s")
			b.ReportMetric(median(speed["bare"]), "bare-calls/s")
			b.ReportMetric(median(ratios), "host/bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// hammer makes n calls, a number of them in flight.
func hammer(inFlight, n int, call func() error) error {
	var group sync.WaitGroup
	faults := make(chan error, inFlight)
	for range inFlight {
		group.Go(func() {
			for range n / inFlight {
				if err := call(); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(faults)
	return <-faults
}

// bareRequest has the size of what the host sends.
func bareRequest(c sdk.Call) *pluginpb.CallRequest {
	return &pluginpb.CallRequest{
		Operation: c.Operation, Reference: c.Reference, Amount: int64(c.Amount), Body: c.Body,
		Connection: &pluginpb.Connection{MerchantId: c.Connection.MerchantID, Mode: c.Connection.Mode, Credentials: c.Connection.Credentials},
	}
}

// bareServer answers as the test plugin does.
type bareServer struct {
	pluginpb.UnimplementedProviderServer
}

func (bareServer) Call(_ context.Context, r *pluginpb.CallRequest) (*pluginpb.CallResponse, error) {
	var o order
	if err := json.Unmarshal(r.GetBody(), &o); err != nil {
		return nil, err
	}
	data, err := json.Marshal(o)
	return &pluginpb.CallResponse{Outcome: pluginpb.Outcome_OUTCOME_PENDING, ProviderReference: "p-" + r.GetReference(), Data: data}, err
}

func serveBare(path string) error {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pluginpb.RegisterProviderServer(server, bareServer{})
	fmt.Println("ready")
	return server.Serve(listener)
}

func bareClient(b *testing.B) pluginpb.ProviderClient {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bare")
	runChild(b, envRole+"=bare", envDial+"="+path)
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return pluginpb.NewProviderClient(conn)
}
