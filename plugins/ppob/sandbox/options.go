package sandbox

import (
	"flag"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Options are what differs between accounts and times at the upstream.
type Options struct {
	// Deposit is what an account begins with.
	Deposit money.Amount
	// Delay is how long a pending purchase waits for its result.
	Delay time.Duration
	// PollEvery is how often one reference may be asked for; 0 is any time.
	PollEvery time.Duration
	// ListEvery is how often a whole price list may be read; 0 is any time.
	ListEvery time.Duration
	// PriceAsText writes prices as JSON strings: the upstream's documents say
	// string, its samples are numbers.
	PriceAsText bool
	// AnnounceAll sends a webhook "create" for each purchase when it is made,
	// beside the "update" for a later result.
	AnnounceAll bool
}

// DefaultOptions are the figures of the upstream, except for a delay that
// people can wait for and a deposit that lasts.
func DefaultOptions() Options {
	return Options{
		Deposit: 1_000_000_000, Delay: 2 * time.Second, PollEvery: time.Minute, ListEvery: 5 * time.Minute,
	}
}

// Program is the simulator as a process, for the plugin's main.
func Program() kit.Program {
	options := DefaultOptions()
	return kit.Program{
		Provider: "ppob",
		Flags: func(set *flag.FlagSet) {
			set.DurationVar(&options.Delay, "delay", options.Delay, "how long a pending purchase waits for its result")
			set.DurationVar(&options.PollEvery, "poll-every", options.PollEvery, "how often one reference may be asked for (rc 85); 0 is any time")
			set.DurationVar(&options.ListEvery, "list-every", options.ListEvery, "how often a whole price list may be read (rc 83); 0 is any time")
			set.BoolVar(&options.PriceAsText, "price-as-text", options.PriceAsText, "write prices as JSON strings")
			set.BoolVar(&options.AnnounceAll, "announce-all", options.AnnounceAll, "send a webhook for each purchase when it is made, too")
			set.Func("deposit", fmt.Sprintf("what an account begins with, in `rupiah` (default %s)", options.Deposit), func(text string) error {
				amount, err := money.Parse(text)
				if err == nil {
					options.Deposit = amount
				}
				return err
			})
		},
		Build: func(env *kit.Env) (kit.Upstream, error) { return New(env, options) },
	}
}
