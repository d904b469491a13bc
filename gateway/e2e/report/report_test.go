package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// reportVariable names the file that gets the report; make bench-report sets it.
// Without it everything is measured briefly, so that each answer is checked.
const reportVariable = "GERBANG_BENCH_REPORT"

// products is how many the real list of a provider has, about.
const products = 10_000

// bench is the program and the floors beside it.
type bench struct {
	*testing.T
	program *harness.Program
	turns   int
	lasts   time.Duration
	floor   map[string]floor
	all     map[string]*contestant
	order   []*contestant

	profiles map[string]profile // of the gateway, by path; nil where none are taken
}

// TestReport measures each path of the program and each floor in turn.
func TestReport(t *testing.T) { //nolint:paralleltest // it measures
	tier.Long(t, "a whole report in small")
	file := os.Getenv(reportVariable)
	b := &bench{T: t, turns: 5, lasts: 2 * time.Second, floor: map[string]floor{}, all: map[string]*contestant{}, profiles: map[string]profile{}}
	if file == "" {
		b.turns, b.lasts = 1, 200*time.Millisecond
	}
	b.start()
	before := loadAverage()
	// What creations leave behind is asked for a minute later, so they come last.
	b.inTurns(b.reads()...)
	b.inTurns(b.again(echo), b.again(floorRead), b.orders())
	b.inTurns(b.again(echo), b.again(floorRead), b.payments())
	var deliveries backlogs
	if file != "" {
		deliveries = b.deliveries()
	}
	b.program.WantCleanLedger(t)
	text := b.report(before, deliveries)
	t.Logf("\n%s", text)
	if file != "" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts the program on a database of its own, with durable commits, and the
// floors on the same database.
func (b *bench) start() {
	quick := filepath.Join(b.TempDir(), "quick")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-o", quick, "./quick")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.startProgram(b.TempDir(), "--plugin", quick)
	b.provider("catalogue", harness.Fields{"more": products})
	owners := map[string]string{}
	for _, m := range b.program.Merchants {
		owners[m.LiveKey] = m.MerchantID
	}
	b.floor["haproxy"] = haproxy(b.T)
	b.floor["httprouter"] = router(b.T, "echo", nil)
	b.floor["httprouter, key, read"] = router(b.T, b.program.DatabaseURL, owners)
	_, packed, err := b.list("/ppob/products").once()
	if err != nil || !bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		b.Fatalf("the list of products is not packed: %.300q, %v", packed, err)
	}
	b.floor["nginx"] = nginx(b.T, packed)
}

// startProgram starts the program with a database of its own, durable commits, and rates
// that nobody meets.
func (b *bench) startProgram(policies string, flags ...string) {
	edit := &harness.PolicyData{File: filepath.Join(policies, "data.json")}
	edit.LiftRates(b)
	b.program = harness.Start(b, harness.Settings{DatabaseURL: harness.NoURL, Flags: append(flags, "--policy-dir", policies)})
	b.provider("deposit", harness.Fields{"amount": 1_000_000_000_000})
	b.provider("product", harness.Fields{"sku": "S5", "price": 100}) // one operator gives enough for all orders
}

// provider gives the simulator of digital products one of its own orders.
func (b *bench) provider(order string, body harness.Fields) {
	var done json.RawMessage
	if status := b.program.Sandbox(b, "/providers/ppob/"+order, body, &done); status != 200 {
		b.Fatalf("%s: %d %s", order, status, done)
	}
}

// inTurns lets contestants take turns. The first turn warms up and does not count.
func (b *bench) inTurns(contestants ...*contestant) {
	for round := range b.turns + 1 {
		for _, c := range contestants {
			before := c.roles()
			done, err := c.loop.run(b.lasts)
			if err != nil {
				b.Fatalf("%s: %v", c.name, err)
			}
			done.used = c.roles()
			for role := range done.used {
				done.used[role] -= before[role]
			}
			if c.holds != nil {
				done.holds = c.holds()
			}
			if round > 0 {
				c.turns = append(c.turns, done)
			}
		}
	}
	for _, c := range contestants {
		if b.profiles != nil && c.holds != nil {
			b.profiles[c.name] = b.profile(c)
		}
		c.beside = contestants
		b.all[c.name] = c
		b.order = append(b.order, c)
	}
}

// host is where the program listens.
func (b *bench) host() string {
	u, err := url.Parse(b.program.APIURL)
	if err != nil {
		b.Fatal(err)
	}
	return u.Host
}

// body is a request of a shop's.
func body(s harness.Shop, f harness.Fields) []byte {
	text, err := json.Marshal(harness.Fields{"secret_key": s.Key}.With(f))
	if err != nil {
		panic(err) // it is all text and numbers
	}
	return text
}

// ours are the roles that serve a request of the program.
var ours = []string{"gateway", "plugin", "database", "sandbox"}

// own is a path of the program.
func (b *bench) own(path string, check func(int, []byte) error, request func(client int) []byte) *contestant {
	return &contestant{
		name: path, loop: loop{b.host(), request, check}, server: ours,
		roles: func() map[string]time.Duration { return harness.ProcessorTimes(b, os.Getpid(), b.program.Role) },
		holds: func() map[string]int64 { return harness.Memories(b, os.Getpid(), b.program.Role) },
	}
}

// reading is a path whose answer is the same each time; headers are HTTP lines.
func (b *bench) reading(path string, fields harness.Fields, headers string) *contestant {
	text := post(path, headers, body(b.program.Shop(harness.Large, "live"), fields))
	c := b.own(path, success, func(int) []byte { return text })
	status, answered, err := c.loop.once()
	if err != nil || status != 200 {
		b.Fatalf("%s: %d %.300s, %v", path, status, answered, err)
	}
	c.loop.check = same(answered)
	return c
}

// list is a path that is asked for as browsers and libraries do.
func (b *bench) list(path string) loop { return b.reading(path, nil, "Accept-Encoding: gzip\r\n").loop }

// beneath is a floor, nil where it is not there.
func (b *bench) beneath(name, which string, request []byte) *contestant {
	f := b.floor[which]
	if f.missing != "" {
		return nil
	}
	l := loop{f.address, func(int) []byte { return request }, nil}
	status, answered, err := l.once()
	if err != nil || status != 200 {
		b.Fatalf("%s: %d %.300s, %v", name, status, answered, err)
	}
	l.check = same(answered)
	return &contestant{name: name, loop: l, server: []string{"floor", "database"}, roles: func() map[string]time.Duration {
		return harness.ProcessorTimes(b, os.Getpid(), func(p harness.Process) string {
			switch role := b.program.Role(p); {
			case p.From(f.pid):
				return "floor"
			case role == "database" && which == "httprouter, key, read", role == "clients":
				return role
			}
			return ""
		})
	}}
}

func (b *bench) reads() []*contestant {
	large := b.program.Shop(harness.Large, "live")
	keyed := "Authorization: " + key(7) + "\r\n"
	var contestants []*contestant
	for _, c := range []*contestant{
		b.beneath("nginx, a file", "nginx", get("/balance.json", keyed)),
		b.beneath("haproxy", "haproxy", get("/balance", keyed)),
		b.beneath(echo, "httprouter", post("/balance", "", body(large, nil))),
		b.beneath(floorRead, "httprouter, key, read", post("/balance", "", body(large, nil))),
		b.reading("/balance", nil, ""),
		b.statuses(),
		b.reading("/transfer/banks", nil, ""),
		b.beneath(floorPacked, "nginx", get("/products.json", keyed+"Accept-Encoding: gzip\r\n")),
		b.reading("/ppob/products", nil, "Accept-Encoding: gzip\r\n"),
		b.reading("/quick/rate", harness.Fields{"currency": "USD"}, ""),
	} {
		if c != nil {
			contestants = append(contestants, c)
		}
	}
	return contestants
}

// The floors that goals name.
const (
	echo        = "httprouter, echo"
	floorRead   = "httprouter, key, one read"
	floorPacked = "nginx, gzip_static"
)

// again is a floor that takes turns with what is measured later.
func (b *bench) again(name string) *contestant {
	c := *b.all[name]
	c.turns, c.name = nil, name+" again"
	return &c
}

func (b *bench) shops() []harness.Shop {
	var shops []harness.Shop
	for merchant := range b.program.Merchants {
		for _, mode := range []string{"live", "test"} {
			shops = append(shops, b.program.Shop(merchant, mode))
		}
	}
	return shops
}

// statuses ask for a payment of its own by each client.
func (b *bench) statuses() *contestant {
	requests, shops := make([][]byte, harness.BenchClients), b.shops()
	for i := range requests {
		s := shops[i%len(shops)]
		requests[i] = post("/payments/status", "", body(s, harness.Fields{"external_id": s.Create(b, nil).ExternalID}))
	}
	return b.own("/payments/status", success, func(client int) []byte { return requests[client] })
}

func (b *bench) payments() *contestant {
	shops := b.shops()
	return b.own("/payments/create", success, func(client int) []byte {
		s, kind := shops[client%len(shops)], []string{"payment_link", "qris"}[client/4%2]
		return post("/payments/create", "", body(s, s.PaymentBody(harness.Fields{"type": kind, "amount": 25_000, "description": "Two coffees"})))
	})
}

// orders are all one merchant's, whose balance every order changes.
func (b *bench) orders() *contestant {
	made := b.program.NewMerchant(b)
	given := adminapi.NewAdjustment{Mode: "live", Amount: 100_000_000, Reason: "to order with", Reference: uuid.NewString()}
	given.Merchant = made.MerchantID
	if _, err := adminapi.Credit.Call(b.Context(), b.program.Admin(), given); err != nil {
		b.Fatal(err)
	}
	s, next := harness.Shop{Program: b.program, MerchantID: made.MerchantID, Key: made.LiveKey}, atomic.Int64{}
	return b.own("/ppob/order", success, func(int) []byte {
		return post("/ppob/order", "", body(s, harness.Fields{"sku": "S5", "target": "081200001230", "ref_id": fmt.Sprintf("INV/2026/#%d", next.Add(1))}))
	})
}

// backlogs are how many callbacks of a backlog were delivered in a second, ours by one
// dispatcher and River's in turn.
type backlogs struct{ own, river []float64 }

// deliveries measures both, each with its receivers in its own process and a new database
// on the same server.
func (b *bench) deliveries() (found backlogs) {
	for turn := range 3 {
		command := exec.CommandContext(b.Context(), "go", "test", "-run", "^$", "-bench", "^BenchmarkDelivery$/^backlog$/^0_bad$", "-benchtime", "1x", "../callback")
		command.Env = append(harness.CleanEnvironment(os.Environ()), dbtest.URLVariable+"="+b.program.DatabaseURL)
		found.own = append(found.own, b.deliveriesOf(command))

		name := fmt.Sprint("river_", turn)
		b.newDatabase(name)
		at, err := url.Parse(b.program.DatabaseURL)
		if err != nil {
			b.Fatal(err)
		}
		at.Path = name
		command = exec.CommandContext(b.Context(), "go", "-C", "../../../deploy/tools/river", "run", ".", "-database", at.String())
		found.river = append(found.river, b.deliveriesOf(command))
	}
	return found
}

func (b *bench) newDatabase(name string) {
	conn, err := pgx.Connect(b.Context(), b.program.DatabaseURL)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(b.Context(), "CREATE DATABASE "+name); err != nil {
		b.Fatal(err)
	}
}

// deliveriesOf is what a benchmark prints.
func (b *bench) deliveriesOf(command *exec.Cmd) float64 {
	out, err := command.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %v\n%s", command, err, out)
	}
	value, err := metric(string(out), "deliveries/s")
	if err != nil {
		b.Fatal(err)
	}
	return value
}

// besideRiver is the median of the ratios of turns that followed each other.
func (f backlogs) besideRiver() float64 {
	ratios := make([]float64, len(f.own))
	for i := range ratios {
		ratios[i] = f.own[i] / f.river[i]
	}
	return median(ratios)
}

// loadAverage is what the machine did in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
