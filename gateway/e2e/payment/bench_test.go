package payment_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

// BenchmarkProgram measures the whole program as it runs in production: the
// gateway, its plugin and the provider (here the simulator, which keeps its own
// books on disk) as processes of their own, and 64 clients in another. All
// share the machine's cores, so it also tells what each process used of them.
//
// Beside it, in turns and by as many clients: for a creation, its two commits
// alone on the same database server, each by itself (db) and by the store as
// the gateway has it, which lets those that arrive together share a commit
// (store); for a status, its one read alone (db); and bare unary gRPC with
// messages of a call's size over a unix socket (grpc).
func BenchmarkProgram(b *testing.B) {
	harness.RequireDurable(b)
	edit := &harness.PolicyData{File: filepath.Join(b.TempDir(), "data.json")}
	edit.LiftRates(b)
	p := harness.Start(b, harness.Settings{Flags: []string{"--policy-dir", filepath.Dir(edit.File)}})
	var shops []harness.Shop
	for merchant := range p.Merchants {
		for _, mode := range []string{"live", "test"} {
			shops = append(shops, p.Shop(merchant, mode))
		}
	}
	alone, grpcCalls := harness.OpenBareStore(b, true), bareCalls(b)
	together := harness.OpenBareStore(b, false)
	b.Run("create", func(b *testing.B) {
		p.InTurns(b, func(client int) error { return benchCreate(b.Context(), shops[client%len(shops)], client) },
			map[string]func(int) error{"db": func(client int) error { return storePayment(alone, client) }, "store": func(client int) error { return storePayment(together, client) }, "grpc": grpcCalls})
	})
	b.Run("status", func(b *testing.B) {
		references := make([]string, harness.BenchClients)
		for i := range references {
			references[i] = shops[i%len(shops)].Create(b, nil).ExternalID
		}
		p.InTurns(b, func(client int) error {
			return harness.WantOK(shops[client%len(shops)].Post(b.Context(), "/payments/status", harness.Fields{"external_id": references[client]}))
		}, map[string]func(int) error{"db": func(client int) error { return readPayment(alone, client) }, "grpc": grpcCalls})
	})
}

func benchCreate(ctx context.Context, s harness.Shop, client int) error {
	kind := []string{"payment_link", "qris"}[client/4%2]
	return harness.WantOK(s.Post(ctx, "/payments/create", s.PaymentBody(harness.Fields{"type": kind, "amount": 25000, "description": "Two coffees"})))
}

// storePayment is the reservation and the application of a payment.
func storePayment(a *harness.BareStore, client int) error {
	now := time.Now()
	m := movement.Movement{
		Key: movement.Key{
			Owner: movement.Owner{MerchantID: fmt.Sprintf("mer_%d", client%4), Mode: "live"}, Kind: manifest.Payment, Reference: uuid.NewString(),
		},
		ID: movement.NewID(), Operation: "/payments/create", Provider: "payments", Amount: 25000,
		Request:   json.RawMessage(`{"body":` + benchBody + `,"path":"/payments/create"}`),
		RequestID: uuid.NewString(), PolicyVersion: uuid.NewString(), DecisionID: uuid.NewString(),
		CreatedAt: now, SendBy: now.Add(5 * time.Second),
		Polled: movement.Polled{DueAt: now.Add(7 * time.Second)},
	}
	reserved, _, err := a.Store.Reserve(a.B.Context(), m)
	if err != nil {
		return err
	}
	a.Known[client] = m.Key
	_, err = a.Store.Apply(a.B.Context(), movement.Change{
		Movement: reserved, At: time.Now(),
		Transition: movement.Transition{
			Effect: movement.Move, From: []movement.State{movement.Submitting, movement.Acknowledged}, To: movement.Pending,
			Event: "accepted", Detail: `{"source":"call"}`, Result: json.RawMessage(benchResult),
			ProviderReference: uuid.NewString(), ExpiresAt: now.Add(24 * time.Hour), NextPoll: now.Add(time.Minute),
		},
		Answer: json.RawMessage(`{"external_id":"` + m.Reference + `","checkout_url":"http://127.0.0.1:8080/checkout/` + m.ID.String() + `","status":"PENDING","amount":25000}`),
	})
	return err
}

// readPayment is a status's read of what the client has created before.
func readPayment(a *harness.BareStore, client int) error {
	_, err := a.Store.MovementByKey(a.B.Context(), a.Known[client])
	return err
}

// What a creation's documents look like.
const (
	benchBody   = `{"amount":25000,"description":"Two coffees","external_id":"3d0f5a2e-6f0f-4c55-9d7c-1a9a3f0f6a11","payer_email":"payer@example.com","type":"payment_link"}`
	benchResult = `{"payment_url":"http://127.0.0.1:8082/web/6214e4d1f50ddf120bbaac5c"}`
)

// roleVariable makes this test binary serve bare gRPC at the path it holds.
const roleVariable = "GERBANG_TEST_BARE"

type bareServer struct {
	pluginpb.UnimplementedProviderServer
}

func (bareServer) Call(_ context.Context, r *pluginpb.CallRequest) (*pluginpb.CallResponse, error) {
	return &pluginpb.CallResponse{
		Outcome: pluginpb.Outcome_OUTCOME_PENDING, ProviderReference: r.GetReference(),
		Data: []byte(benchResult),
	}, nil
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

// bareCalls calls a server of another process, with the message of a creation.
func bareCalls(b *testing.B) func(int) error {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bare")
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), roleVariable+"="+path)
	stdout, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	client := pluginpb.NewProviderClient(conn)
	request := &pluginpb.CallRequest{
		Operation: "/payments/create", RequestId: uuid.NewString(), Reference: uuid.NewString() + "-1", Amount: 25000,
		Body: []byte(benchBody),
		Connection: &pluginpb.Connection{
			MerchantId: "mer_" + uuid.NewString(), Mode: "live", Version: 1,
			Credentials: []byte(`{"secret_key":"xnd_development_` + uuid.NewString() + `","callback_token":"` + uuid.NewString() + `","base_url":"http://127.0.0.1:8082"}`),
		},
	}
	return func(int) error {
		_, err := client.Call(b.Context(), request)
		return err
	}
}
