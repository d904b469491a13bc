package app_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// minutesVariable says how long TestTorture tortures; without it, it does not.
const minutesVariable = "GERBANG_TORTURE_MINUTES"

// endsWithin is when the last order has surely ended: that a bill was never sent
// is proven by two looks after two minutes, and a look that met a kill comes
// again after five.
const endsWithin = 8 * time.Minute

// TestTorture lets many merchants order for minutes, with all faults of their
// provider, while gateway, plugin, provider and database are killed at random
// moments. When all is quiet again, every order, rupiah and callback is checked.
func TestTorture(t *testing.T) {
	t.Parallel()
	minutes, err := strconv.ParseFloat(os.Getenv(minutesVariable), 64)
	if err != nil || minutes <= 0 {
		t.Skipf("set %s, as make torture does", minutesVariable)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("%g minutes, seed %d", minutes, seed)
	tortured := &torture{random: rand.New(rand.NewPCG(seed, 0)), db: newMortal(t), kills: map[string]int{}, faults: map[string]int{}}
	tortured.settings = settings{data: dataDir(t), databaseURL: tortured.db.wire.url}
	tortured.p = start(t, tortured.settings)
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
	tortured.settle(t, endsWithin, false)
	v := tortured.check(t)
	t.Logf("orders: %s", v)
	t.Logf("requests cut by a kill: %d; credits and debits beside: %d", tortured.cut.Load(), tortured.credits)
	t.Logf("kills: %s", counted(tortured.kills))
	t.Logf("faults of the provider: %s", counted(tortured.faults))
	tortured.tellList(t)
	out, _ := tortured.p.run(t, "ledger", "check")
	t.Logf("ledger check:\n%s", out)
}

// torture is a market and all that is done to it.
type torture struct {
	*market
	settings settings
	p        *program
	db       *mortal
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
			x.count(x.p.killOne(t, "ppob", false), "plugin")
		case n < 4:
			x.count(x.p.killOne(t, "ppob", true), "simulator")
		case n < 6:
			x.db.kill(t, away)
			x.count(true, "database")
		case n < 9:
			x.p.kill(t)
			<-time.After(away)
			x.restart(t)
			x.count(true, "gateway")
		default:
			x.p.kill(t)
			x.db.kill(t, away)
			x.restart(t)
			x.count(true, "gateway and database")
		}
	}
}

func (x *torture) restart(t *testing.T) {
	t.Helper()
	x.p = start(t, x.settings)
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
	door := func(what, path string, body fields) {
		if x.now().try(context.WithoutCancel(ctx), path, body) {
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
			door("empty deposit", "/providers/ppob/deposit", fields{"amount": 0})
			<-time.After(300 * time.Millisecond)
			x.refill(ctx)
		case 1:
			door("higher price", "/providers/ppob/product", fields{"sku": "xld10", "price": 11_000})
			<-time.After(300 * time.Millisecond)
			x.refill(ctx)
		case 2:
			door("product switched off", "/providers/ppob/product", fields{"sku": "pln20", "seller_product_status": false})
			<-time.After(300 * time.Millisecond)
			x.refill(ctx)
		default:
			door(name+" of "+operation, "/faults", fields{"provider": "ppob", "fault": name, "operation": operation, "count": 1 + random.IntN(3)})
		}
	}
}

// refill undoes what spoil did to the deposit and the products, as soon as the
// provider can be reached.
func (x *torture) refill(ctx context.Context) {
	_ = until(readyWithin, func() bool {
		ctx := context.WithoutCancel(ctx)
		return x.now().try(ctx, "/providers/ppob/deposit", fields{"amount": 1_000_000_000_000}) &&
			x.now().try(ctx, "/providers/ppob/product", fields{"sku": "xld10", "price": airtime.price}) &&
			x.now().try(ctx, "/providers/ppob/product", fields{"sku": "pln20", "seller_product_status": true})
	})
}

// mend ends what is out of order: the provider forgets its faults with a kill,
// says what it would say late, and can be asked at any time.
func (x *torture) mend(t *testing.T) {
	t.Helper()
	x.p.killOne(t, "ppob", true)
	await(t, readyWithin, "the provider", func() bool {
		return x.p.try(t.Context(), "/providers/ppob/clock", fields{"advance": "10m"})
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
	t.Logf("on the operators' list: %s", counted(reasons))
}

// counted is a count for people.
func counted(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return fmt.Sprintf("%d (%s)", sum(counts), strings.Join(parts, ", "))
}
