package sandbox

import (
	"flag"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Options are what differs between wallets and days.
type Options struct {
	// Late is how long a payment waits for its row.
	Late time.Duration
	// Every is how often a report comes without a row, so that readers learn that
	// nothing happened.
	Every time.Duration
	// Duplicate writes each row again in the next report.
	Duplicate bool
	// Reorder writes the rows of a report backwards.
	Reorder bool
}

// DefaultOptions report at once, and often that nothing happened, so that whoever
// develops learns soon that a sale was not paid.
func DefaultOptions() Options { return Options{Every: 10 * time.Second} }

// Program is the simulator as a process, for the plugin's main.
func Program() kit.Program {
	options := DefaultOptions()
	return kit.Program{
		Provider: "wallet2",
		Flags:    options.flags,
		Build:    func(env *kit.Env) (kit.Upstream, error) { return New(env, options) },
	}
}

func (o *Options) flags(set *flag.FlagSet) {
	set.DurationVar(&o.Late, "late", o.Late, "how long a payment waits for its row in a report")
	set.DurationVar(&o.Every, "every", o.Every, "how often a report comes without a row")
	set.BoolVar(&o.Duplicate, "duplicate", o.Duplicate, "write each row again in the next report")
	set.BoolVar(&o.Reorder, "reorder", o.Reorder, "write the rows of a report backwards")
}
