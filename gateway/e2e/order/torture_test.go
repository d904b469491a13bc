package order_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestTortureOrders lets many merchants order for minutes, with all faults of
// their provider, while gateway, plugin, provider and database are killed at
// random moments. When everything is quiet, every order, rupiah and callback is
// checked.
func TestTortureOrders(t *testing.T) {
	t.Parallel()
	minutes := harness.TortureMinutes(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("%g minutes, seed %d", minutes, seed)
	tortured := &torture{random: rand.New(rand.NewPCG(seed, 0)), db: harness.NewPostgreSQL(t), kills: map[string]int{}, faults: map[string]int{}}
	tortured.settings = harness.Settings{Data: harness.DataDir(t), DatabaseURL: tortured.db.Proxy.URL}
	tortured.p = harness.Start(t, tortured.settings)
	tortured.market = newMarket(t, tortured.p, 60, 90_000_000)
	tortured.untold = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { tortured.run(ctx, 24, seed) })
	beside.Go(func() { tortured.adjust(ctx, seed+1) })
	beside.Go(func() { tortured.spoil(ctx, rand.New(rand.NewPCG(seed, 1))) })
	tortured.killForMinutes(t, time.Duration(minutes*float64(time.Minute)))
	stop()
	beside.Wait()
	tortured.mend(t)
	tortured.awaitEnds(t, harness.EndsWithin, false)
	v := tortured.check(t)
	t.Logf("orders: %s", v)
	t.Logf("requests cut by a kill: %d; credits and debits beside: %d", tortured.cut.Load(), tortured.credits)
	t.Logf("kills: %s", harness.Counted(tortured.kills))
	t.Logf("faults of the provider: %s", harness.Counted(tortured.faults))
	tortured.tellList(t)
	out, _ := tortured.p.Run(t, "ledger", "check", "--full")
	t.Logf("ledger check:\n%s", out)
}

// torture is a market and all that is done to it.
type torture struct {
	*market
	settings harness.Settings
	p        *harness.Program
	db       *harness.PostgreSQL
	random   *rand.Rand
	kills    map[string]int

	mu     sync.Mutex
	faults map[string]int
}

// killForMinutes kills something every few seconds, and starts again what
// nobody else does.
func (x *torture) killForMinutes(t *testing.T, lasts time.Duration) {
	t.Helper()
	for began := time.Now(); time.Since(began) < lasts; {
		<-time.After(500*time.Millisecond + time.Duration(x.random.Int64N(int64(8*time.Second))))
		away := time.Duration(x.random.Int64N(int64(3 * time.Second)))
		switch n := x.random.IntN(10); {
		case n < 2:
			x.count(x.p.KillProvider(t, "ppob", false), "plugin")
		case n < 4:
			x.count(x.p.KillProvider(t, "ppob", true), "simulator")
		case n < 6:
			x.db.Kill(t, away)
			x.count(true, "database")
		case n < 9:
			x.p.Kill(t)
			<-time.After(away)
			x.restart(t)
			x.count(true, "gateway")
		default:
			x.p.Kill(t)
			x.db.Kill(t, away)
			x.restart(t)
			x.count(true, "gateway and database")
		}
	}
}

func (x *torture) restart(t *testing.T) {
	t.Helper()
	x.p = harness.Start(t, x.settings)
	x.move(x.p)
}

func (x *torture) count(happened bool, what string) {
	if happened {
		x.kills[what]++
	}
}

// spoil makes the provider fail in every way until the context ends.
func (x *torture) spoil(ctx context.Context, random *rand.Rand) {
	names := []string{"latency", "error_500", "error_500_after", "drop_before", "drop_after", "garbage"}
	operations := []string{"transaction", "transaction", "inq-pasca", "pay-pasca", "status-pasca", "price-list"}
	door := func(what, path string, body harness.Fields) {
		if x.now().TrySandbox(context.WithoutCancel(ctx), path, body) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.faults[what]++
		}
	}
	for ctx.Err() == nil {
		<-time.After(time.Duration(random.Int64N(int64(time.Second))))
		name, operation := names[random.IntN(len(names))], operations[random.IntN(len(operations))]
		switch random.IntN(20) {
		case 0:
			door("empty deposit", "/providers/ppob/deposit", harness.Fields{"amount": 0})
			<-time.After(300 * time.Millisecond)
			x.refill(ctx)
		case 1:
			door("higher price", "/providers/ppob/product", harness.Fields{"sku": "xld10", "price": 11_000})
			<-time.After(300 * time.Millisecond)
			x.refill(ctx)
		case 2:
			door("product switched off", "/providers/ppob/product", harness.Fields{"sku": "pln20", "seller_product_status": false})
			<-time.After(300 * time.Millisecond)
			x.refill(ctx)
		default:
			door(name+" of "+operation, "/faults", harness.Fields{"provider": "ppob", "fault": name, "operation": operation, "count": 1 + random.IntN(3)})
		}
	}
}

// refill undoes what spoil did to the deposit and the products, as soon as the
// provider can be reached.
func (x *torture) refill(ctx context.Context) {
	_ = harness.Until(harness.ReadyWithin, func() bool {
		ctx := context.WithoutCancel(ctx)
		return x.now().TrySandbox(ctx, "/providers/ppob/deposit", harness.Fields{"amount": 1_000_000_000_000}) &&
			x.now().TrySandbox(ctx, "/providers/ppob/product", harness.Fields{"sku": "xld10", "price": airtime.price}) &&
			x.now().TrySandbox(ctx, "/providers/ppob/product", harness.Fields{"sku": "pln20", "seller_product_status": true})
	})
}

// mend ends what is out of order: the provider forgets its faults with a kill,
// says what it would say late, and can be asked at any time.
func (x *torture) mend(t *testing.T) {
	t.Helper()
	x.p.KillProvider(t, "ppob", true)
	harness.Await(t, harness.ReadyWithin, "the provider", func() bool {
		return x.p.TrySandbox(t.Context(), "/providers/ppob/clock", harness.Fields{"advance": "10m"})
	})
}

// tellList prints what stands on the operators' list, which may be longer than
// what its command shows.
func (x *torture) tellList(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), x.p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), "SELECT reason FROM exceptions WHERE resolved_at IS NULL")
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]int{}
	for _, reason := range all {
		reasons[reason]++
	}
	t.Logf("on the operators' list: %s", harness.Counted(reasons))
}
