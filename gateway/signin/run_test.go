package signin_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var from = netip.MustParseAddr("203.0.113.7")

// database refuses every attempt, and audits and looks people up as a test says.
type database struct {
	signin.Store

	calls []string
	do    func(context.Context) error
}

func (d *database) TakeAttempt(context.Context, uuid.UUID, time.Time, int, time.Duration) (bool, error) {
	return false, nil
}

func (d *database) NoteRefusal(ctx context.Context, _ tenants.Person, _ string, _ int64, _ time.Time) error {
	d.calls = append(d.calls, "audit")
	return d.do(ctx)
}

func (d *database) PersonByEmail(ctx context.Context, _ string) (tenants.Person, error) {
	d.calls = append(d.calls, "look up")
	return tenants.Person{}, errors.Join(tenants.ErrNotFound, d.do(ctx))
}

func (d *database) MembersOf(ctx context.Context, _ tenants.MerchantID) ([]tenants.Member, error) {
	d.calls = append(d.calls, "members")
	return nil, d.do(ctx)
}

func (d *database) MerchantsByID(context.Context, []string) ([]tenants.Merchant, error) {
	return []tenants.Merchant{{Name: "A shop"}}, nil
}

func (d *database) Mail(context.Context, movement.Owner, time.Time, ...movement.Mail) error {
	return nil
}

type patient struct{}

func (patient) Record(time.Time, netip.Addr) (bool, time.Duration) { return false, 0 }
func (patient) Blocked(time.Time, netip.Addr) bool                 { return false }

// TestRunDrains what waits, audits first, within one deadline and up to the first failure.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		do    func(context.Context) error
		takes time.Duration
		want  []string
	}{
		"all":                                 {func(context.Context) error { return nil }, 0, []string{"audit", "audit", "look up", "look up"}},
		"a database that fails":               {func(context.Context) error { return errors.New("away") }, 0, []string{"audit"}},
		"a database that does not answer":     {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 5 * time.Second, []string{"audit"}},
		"a database that takes three seconds": {slow, 5 * time.Second, []string{"audit", "audit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &database{do: of.do}
				in := signIn(t, d)
				for range 2 {
					if err := in.Forgot(t.Context(), from, "https://console.example", "ada@example.com"); err != nil {
						t.Fatal(err)
					}
					if err := in.Confirm(t.Context(), from, tenants.Person{ID: uuid.New()}, "000000"); !errors.Is(err, signin.ErrTooMany) {
						t.Fatal(err)
					}
				}
				began := time.Now()
				drain(t, in)
				if took := time.Since(began); took != of.takes || !slices.Equal(d.calls, of.want) {
					t.Errorf("%s: %q, want %q", took, d.calls, of.want)
				}
			})
		})
	}
}

// TestAKeyThatWasDroppedIsReportedLater: it counts as reported only once it waits to be.
func TestAKeyThatWasDroppedIsReportedLater(t *testing.T) {
	t.Parallel()
	d := &database{do: func(context.Context) error { return nil }}
	in := signIn(t, d)
	refused := func(key int) {
		in.KeyRefused(tenants.Identity{Key: tenants.Key{MerchantID: "m", Mode: tenants.Live, ID: tenants.KeyID(strconv.Itoa(key))}}, from, tenants.ErrAuthFailed)
	}
	for key := range 1001 { // one more than can wait
		refused(key)
	}
	drain(t, in)
	refused(0)
	refused(1000)
	drain(t, in)
	if len(d.calls) != 1001 {
		t.Errorf("%d keys are reported", len(d.calls))
	}
}

func signIn(t *testing.T, d *database) *signin.SignIn {
	t.Helper()
	return signin.New(signin.Dependencies{
		Store: d, Failures: patient{}, Asks: patient{}, Links: signin.Links{Merchants: "https://console.example"}, Mailed: func() {}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
}

// drain has a SignIn do what waits.
func drain(t *testing.T, in *signin.SignIn) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := in.Run(ended); err != nil {
		t.Fatal(err)
	}
}

func slow(ctx context.Context) error {
	select {
	case <-time.After(3 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
