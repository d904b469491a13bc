package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/host"
)

// QueryRow reads one value of the gateway's database.
func (p *Program) QueryRow(t testing.TB, into any, sql string, arguments ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql, arguments...).Scan(into); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
}

// MustRun runs a command that must succeed and reads what it prints.
func (p *Program) MustRun(t testing.TB, input string, into any, arguments ...string) {
	t.Helper()
	var out, log bytes.Buffer
	command := p.command(t, input, append([]string{"--json"}, arguments...)...)
	command.Stdout, command.Stderr = &out, &log
	err := command.Run()
	if err == nil && into != nil {
		err = json.Unmarshal(out.Bytes(), into)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", arguments, err, out.String(), log.String())
	}
}

// MovementOf is a payment as an operator sees it; no provider is asked for it.
func (p *Program) MovementOf(ctx context.Context, made Payment) (adminapi.Movement, error) {
	_, id, found := strings.Cut(made.CheckoutURL, "/checkout/")
	if !found {
		return adminapi.Movement{}, fmt.Errorf("no checkout page: %q", made.CheckoutURL)
	}
	return adminapi.ShowMovement.Call(ctx, p.Admin(), adminapi.MovementID{Movement: id})
}

// AwaitClosedBreaker waits until a provider's plugin runs and calls are let
// through.
func (p *Program) AwaitClosedBreaker(t *testing.T, provider string) {
	t.Helper()
	Await(t, time.Minute, "a closed breaker", func() bool {
		found, err := p.Plugin(t, provider)
		return err == nil && found.Running &&
			!slices.ContainsFunc(found.Breakers, func(b host.BreakerStatus) bool { return b.Calls == "open" || b.AccountsOpen > 0 })
	})
}

// Plugin is a provider's plugin as an operator sees it.
func (p *Program) Plugin(t *testing.T, provider string) (adminapi.Plugin, error) {
	t.Helper()
	plugins, err := adminapi.ListPlugins.Call(t.Context(), p.Admin(), adminapi.None{})
	at := slices.IndexFunc(plugins, func(one adminapi.Plugin) bool { return one.Provider == provider })
	if err == nil && at < 0 {
		err = fmt.Errorf("no plugin is %s", provider)
	}
	if err != nil {
		return adminapi.Plugin{}, err
	}
	return plugins[at], nil
}

// AwaitInFlight waits until calls are inside the plugin.
func (l *Load) AwaitInFlight(t *testing.T, calls int) {
	t.Helper()
	Await(t, 5*time.Second, fmt.Sprintf("%d calls inside the plugin", calls), func() bool {
		found, err := l.Plugin(t, "payments")
		return err == nil && found.InFlight == calls
	})
}

// WantSameMerchants wants the keys, secrets and token of an earlier ready file.
func (p *Program) WantSameMerchants(t *testing.T, before Document) {
	t.Helper()
	if !reflect.DeepEqual(p.Merchants, before.Merchants) || p.AdminToken != before.AdminToken {
		t.Error("keys, secrets or the admin token are others than before")
	}
}

// NewMerchant makes a merchant whose secrets the log is searched for.
func (p *Program) NewMerchant(t testing.TB) Merchant {
	t.Helper()
	made, err := adminapi.CreateMerchant.Call(t.Context(), p.Admin(), adminapi.NewMerchant{Name: "Toko Pulsa", Tier: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	m := Merchant{made.MerchantID, "scale", made.LiveKey, made.TestKey, made.CallbackSecret, made.TestCallbackSecret}
	p.KeepSecret(m)
	return m
}

// Mode is live or test, as the key says.
func (s Shop) Mode() string {
	if strings.HasPrefix(s.Key, "sk_test_") {
		return "test"
	}
	return "live"
}

// WantCleanLedger has the operator's check prove the ledger.
func (p *Program) WantCleanLedger(t testing.TB) {
	t.Helper()
	check, err := adminapi.CheckLedger.Call(t.Context(), p.Admin(), adminapi.LedgerScope{Full: true})
	if err != nil || !check.OK {
		t.Errorf("the ledger's check: %+v, %v", check, err)
	}
}

// WantException waits for an exception with these parts in its fields.
func (p *Program) WantException(t testing.TB, parts ...string) {
	t.Helper()
	p.AwaitException(t, PaidWithin, parts...)
}

// AwaitException is WantException for what takes longer.
func (p *Program) AwaitException(t testing.TB, within time.Duration, parts ...string) {
	t.Helper()
	var lines []string
	if err := Until(within, func() bool {
		all, err := adminapi.ListExceptions.Call(t.Context(), p.Admin(), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
		if err != nil {
			t.Fatal(err)
		}
		lines = lines[:0]
		for _, e := range all {
			lines = append(lines, strings.Join([]string{e.MerchantID, e.Mode, e.Subject, e.Reason, e.FactID, e.Provider, e.Detail}, "  "))
		}
		return slices.ContainsFunc(lines, func(line string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
		})
	}); err != nil {
		t.Errorf("no exception has %q:\n%s", parts, strings.Join(lines, "\n"))
	}
}

// LogCount is how often the log holds a text.
func (p *Program) LogCount(text string) int { return strings.Count(p.Log.String(), text) }

// Admin is the program's admin API.
func (p *Program) Admin() *adminapi.Client { return adminapi.NewClient(p.ConsoleURL, p.AdminToken) }

// Run runs another command of gerbang against the program.
func (p *Program) Run(t testing.TB, arguments ...string) (string, error) {
	t.Helper()
	return p.RunWith(t, "", arguments...)
}

// RunWith is Run with something on standard input.
func (p *Program) RunWith(t testing.TB, input string, arguments ...string) (string, error) {
	t.Helper()
	out, err := p.command(t, input, arguments...).CombinedOutput()
	return string(out), err
}

func (p *Program) command(t testing.TB, input string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), Binary(t), arguments...)
	command.Env = append(CleanEnvironment(os.Environ()), "GERBANG_ADMIN_URL="+p.ConsoleURL, "GERBANG_ADMIN_TOKEN="+p.AdminToken)
	command.Stdin = strings.NewReader(input)
	return command
}
