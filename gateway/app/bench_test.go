package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

const (
	benchClients = 64
	// benchRounds is how often what is compared takes turns, because a machine's
	// speed drifts; the first round warms up and is not counted.
	benchRounds = 6
	benchRound  = time.Second
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
	wantDurable(b)
	edit := &limits{file: filepath.Join(b.TempDir(), "data.json")}
	edit.lift(b)
	p := start(b, settings{flags: []string{"--policy-dir", filepath.Dir(edit.file)}})
	var shops []shop
	for merchant := range p.Merchants {
		for _, mode := range []string{"live", "test"} {
			shops = append(shops, p.shop(merchant, mode))
		}
	}
	alone, grpcCalls := openAlone(b, true), bareCalls(b)
	together := openAlone(b, false)
	b.Run("create", func(b *testing.B) {
		p.inTurns(b, func(client int) error { return benchCreate(b.Context(), shops[client%len(shops)], client) },
			map[string]func(int) error{"db": alone.twoCommits, "store": together.twoCommits, "grpc": grpcCalls})
	})
	b.Run("status", func(b *testing.B) {
		references := make([]string, benchClients)
		for i := range references {
			references[i] = shops[i%len(shops)].create(b, nil).ExternalID
		}
		p.inTurns(b, func(client int) error {
			return wantOK(shops[client%len(shops)].post(b.Context(), "/payments/status", fields{"external_id": references[client]}))
		}, map[string]func(int) error{"db": alone.oneRead, "grpc": grpcCalls})
	})
}

// wantDurable refuses to measure commits that cost nothing.
func wantDurable(b *testing.B) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), dbtest.New(b, "", nil))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	var fsync string
	if err := conn.QueryRow(b.Context(), "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
		b.Skipf("fsync is %q (%v): make bench measures on a server whose commits are durable", fsync, err)
	}
}

func benchCreate(ctx context.Context, s shop, client int) error {
	kind := []string{"payment_link", "qris"}[client/4%2]
	return wantOK(s.post(ctx, "/payments/create", s.order(fields{"type": kind, "amount": 25000, "description": "Two coffees"})))
}

func wantOK(a answer, err error) error {
	if err == nil && !a.Success {
		err = fmt.Errorf("answered %s", a)
	}
	return err
}

// measured is what one contestant did in all rounds that count.
type measured struct {
	took    []time.Duration
	elapsed time.Duration
}

func (m *measured) perSecond() float64 { return float64(len(m.took)) / m.elapsed.Seconds() }

func (m *measured) quantile(q float64) float64 {
	return m.took[min(int(q*float64(len(m.took))), len(m.took)-1)].Seconds() * 1000
}

// inTurns measures the program and what it is compared with, and reports both
// with their ratios. Its time is its own, so it runs once whatever b.N is.
func (p *program) inTurns(b *testing.B, own func(int) error, compared map[string]func(int) error) {
	b.Helper()
	contestants := maps.Clone(compared)
	contestants[""] = own
	results, used := map[string]*measured{}, map[string]time.Duration{}
	for round := range benchRounds {
		for name, op := range contestants {
			before := p.processorTimes(b)
			m, err := hammer(op)
			if err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			if round == 0 {
				results[name] = &measured{}
				continue
			}
			results[name].took = append(results[name].took, m.took...)
			results[name].elapsed += m.elapsed
			if name == "" {
				for who, until := range p.processorTimes(b) {
					used[who] += until - before[who]
				}
			}
		}
	}
	report(b, results, used)
}

func report(b *testing.B, results map[string]*measured, used map[string]time.Duration) {
	b.Helper()
	own := results[""]
	slices.Sort(own.took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(own.perSecond(), "req/s")
	b.ReportMetric(own.quantile(0.5), "p50-ms")
	b.ReportMetric(own.quantile(0.99), "p99-ms")
	for name, m := range results {
		if name != "" {
			slices.Sort(m.took)
			b.ReportMetric(m.quantile(0.99), name+"-p99-ms")
			b.ReportMetric(m.perSecond(), name+"/s")
			b.ReportMetric(own.perSecond()/m.perSecond(), "of-"+name)
		}
	}
	for who, time := range used {
		b.ReportMetric(float64(time.Microseconds())/float64(len(own.took)), who+"-cpu-µs/req")
	}
}

// processorTimes are what the program's processes have used so far; nothing
// where the machine has no /proc to tell.
func (p *program) processorTimes(b *testing.B) map[string]time.Duration {
	b.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return nil
	}
	used := map[string]time.Duration{
		"gateway": processorTime(b, p.command.Process.Pid), "clients": processorTime(b, os.Getpid()),
	}
	for _, provider := range []string{"payments", "ppob", "wallet1"} { // those that are not measured do nothing
		used["plugin"] += processorTime(b, p.one(b, "the plugin", func(one process) bool { return one.plays(provider, false) }).pid)
		used["sandbox"] += processorTime(b, p.one(b, "the simulator", func(one process) bool { return one.plays(provider, true) }).pid)
	}
	return used
}

// hammer lets all clients do something for a round.
func hammer(op func(client int) error) (measured, error) {
	var group sync.WaitGroup
	took, faults := make([][]time.Duration, benchClients), make([]error, benchClients)
	began := time.Now()
	for client := range benchClients {
		group.Go(func() {
			for at := time.Now(); at.Sub(began) < benchRound && faults[client] == nil; {
				faults[client] = op(client)
				now := time.Now()
				took[client] = append(took[client], now.Sub(at))
				at = now
			}
		})
	}
	group.Wait()
	elapsed := time.Since(began)
	for _, err := range faults {
		if err != nil {
			return measured{}, err
		}
	}
	return measured{slices.Concat(took...), elapsed}, nil
}

// alone is the gateway's store with nothing around it, on a database of its own
// on the same server.
type alone struct {
	b     *testing.B
	url   string
	store *store.Store
	known [benchClients]movement.Key // one that each client has created
}

// openAlone opens a store whose writes have commits of their own, or as the
// gateway's.
func openAlone(b *testing.B, ownCommits bool) *alone {
	b.Helper()
	url := dbtest.New(b, "", nil)
	if err := store.Migrate(b.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		b.Fatal(err)
	}
	options := store.Options{OwnCommits: ownCommits}
	if ownCommits {
		options.MaxConns = benchClients // nobody waits for a connection
	}
	s, err := store.Open(b.Context(), url, options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return &alone{b: b, url: url, store: s}
}

// twoCommits is a creation's claim and settlement.
func (a *alone) twoCommits(client int) error {
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
	claimed, _, err := a.store.Reserve(a.b.Context(), m)
	if err != nil {
		return err
	}
	a.known[client] = m.Key
	_, err = a.store.Move(a.b.Context(), time.Now(), store.Move{
		Movement: claimed, To: movement.Pending, Event: "accepted", Detail: `{"source":"call"}`,
		Result:            json.RawMessage(benchResult),
		Answer:            json.RawMessage(`{"external_id":"` + m.Reference + `","checkout_url":"http://127.0.0.1:8080/checkout/` + m.ID.String() + `","status":"PENDING","amount":25000}`),
		ProviderReference: uuid.NewString(), ExpiresAt: now.Add(24 * time.Hour), DueAt: now.Add(time.Minute),
	})
	return err
}

// oneRead is a status's read of what the client has created before.
func (a *alone) oneRead(client int) error {
	_, err := a.store.MovementByKey(a.b.Context(), a.known[client])
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
