package sandbox

import (
	"flag"
	"fmt"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Options are what differs between accounts and times at the upstream.
type Options struct {
	// MinAmount is the smallest invoice or QR code. The upstream's own minimum
	// for invoices was 10,000 at times; the default lets the gateway's be tried.
	MinAmount money.Amount
	// MaxInvoice is the largest invoice.
	MaxInvoice money.Amount
	// MaxQR is the largest QR code.
	MaxQR money.Amount
	// RateLimit is how many calls an account may make of one endpoint a minute.
	RateLimit int
}

// DefaultOptions are the figures of the upstream, except for a rate limit that
// benchmarks can live with.
func DefaultOptions() Options {
	return Options{MinAmount: 100, MaxInvoice: 1_000_000_000, MaxQR: 10_000_000, RateLimit: 600_000}
}

// Program is the simulator as a process, for the plugin's main.
func Program() kit.Program {
	options := DefaultOptions()
	return kit.Program{
		Provider: "payments",
		Flags: func(set *flag.FlagSet) {
			set.IntVar(&options.RateLimit, "rate-limit", options.RateLimit, "calls a minute of one endpoint by one account")
			amountFlag(set, &options.MinAmount, "min-amount", "smallest amount")
			amountFlag(set, &options.MaxInvoice, "max-invoice", "largest invoice")
			amountFlag(set, &options.MaxQR, "max-qr", "largest QR code")
		},
		Build: func(env *kit.Env) (kit.Upstream, error) { return New(env, options) },
	}
}

func amountFlag(set *flag.FlagSet, into *money.Amount, name, usage string) {
	set.Func(name, fmt.Sprintf("%s in `rupiah` (default %s)", usage, *into), func(text string) error {
		amount, err := money.Parse(text)
		if err == nil {
			*into = amount
		}
		return err
	})
}
