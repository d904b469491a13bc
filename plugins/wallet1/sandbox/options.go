package sandbox

import (
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Signature is how an account signs its calls.
type Signature string

// The closed set of ways to sign.
const (
	// Symmetric is HMAC-SHA512 with the client's secret, beside a token.
	Symmetric Signature = "symmetric"
	// Asymmetric is SHA256withRSA with the client's key, without a token.
	Asymmetric Signature = "asymmetric"
)

// Encoding is how a symmetric signature is written.
type Encoding string

// The closed set of encodings.
const (
	Base64 Encoding = "base64"
	Hex    Encoding = "hex"
)

// Dialect is whose paths and extra fields an account uses.
type Dialect string

// The closed set of dialects. Each path is served to every account; the
// dialect says what the credentials of a new one ask for.
const (
	SNAP Dialect = "snap"
	DANA Dialect = "dana"
)

// Options are what differs between issuers and times.
type Options struct {
	// Opening is what an account begins with.
	Opening money.Amount
	// BankFee and WalletFee are taken beside the amount of a transfer.
	BankFee, WalletFee money.Amount
	// MinAmount, MaxTopup and MaxBank bound one transfer.
	MinAmount, MaxTopup, MaxBank money.Amount
	// Delay is how long a pending transfer waits for its result.
	Delay time.Duration
	// Hang is how long a call takes that runs into its caller's timeout.
	Hang time.Duration
	// TokenLife is how long a token is valid.
	TokenLife time.Duration
	// Drift is how far a caller's clock may be off.
	Drift time.Duration
	// Signature, Encoding and Dialect are those of accounts that Connect opens.
	Signature Signature
	Encoding  Encoding
	Dialect   Dialect
	// Careless moves money for each call, also when the reference was used: only
	// then a second send shows as a second movement.
	Careless bool
	// NotFoundAs07 answers status calls about nothing with 200 and the status 07
	// in place of 404 and the case 01: issuers differ.
	NotFoundAs07 bool
}

// DefaultOptions are the figures of the facts, except for a delay that people
// can wait for and an opening balance that lasts.
func DefaultOptions() Options {
	return Options{
		Opening: 1_000_000_000, BankFee: 2500,
		MinAmount: 1, MaxTopup: 20_000_000, MaxBank: 500_000_000,
		Delay: 2 * time.Second, Hang: 9 * time.Second, TokenLife: 15 * time.Minute, Drift: 5 * time.Minute,
		Signature: Symmetric, Encoding: Base64, Dialect: SNAP,
	}
}

// Program is the simulator as a process, for the plugin's main.
func Program() kit.Program {
	options := DefaultOptions()
	return kit.Program{
		Provider: "wallet1",
		Flags:    options.flags,
		Build:    func(env *kit.Env) (kit.Upstream, error) { return New(env, options) },
	}
}

func (o *Options) flags(set *flag.FlagSet) {
	amountFlag(set, &o.Opening, "opening", "what an account begins with")
	amountFlag(set, &o.BankFee, "bank-fee", "fee of a transfer to a bank")
	amountFlag(set, &o.WalletFee, "wallet-fee", "fee of a top-up")
	amountFlag(set, &o.MinAmount, "min-amount", "smallest transfer")
	amountFlag(set, &o.MaxTopup, "max-topup", "largest top-up")
	amountFlag(set, &o.MaxBank, "max-bank", "largest transfer to a bank")
	set.DurationVar(&o.Delay, "delay", o.Delay, "how long a pending transfer waits for its result")
	set.DurationVar(&o.Hang, "hang", o.Hang, "how long a call takes that runs into its caller's timeout")
	set.DurationVar(&o.TokenLife, "token-life", o.TokenLife, "how long a token is valid")
	set.DurationVar(&o.Drift, "drift", o.Drift, "how far a caller's clock may be off")
	choiceFlag(set, &o.Signature, "signature", "how accounts opened from now on sign", Symmetric, Asymmetric)
	choiceFlag(set, &o.Encoding, "signature-encoding", "how they write a symmetric signature", Base64, Hex)
	choiceFlag(set, &o.Dialect, "dialect", "whose paths they use", SNAP, DANA)
	set.BoolVar(&o.Careless, "careless", o.Careless, "move money for each call, also when the reference was used")
	set.BoolVar(&o.NotFoundAs07, "not-found-07", o.NotFoundAs07, "answer status calls about nothing with 200 and status 07")
}

func amountFlag(set *flag.FlagSet, into *money.Amount, name, usage string) {
	set.Func(name, fmt.Sprintf("%s, in `rupiah` (default %s)", usage, *into), func(text string) error {
		amount, err := money.Parse(text)
		if err == nil {
			*into = amount
		}
		return err
	})
}

func choiceFlag[T ~string](set *flag.FlagSet, into *T, name, usage string, choices ...T) {
	set.Func(name, fmt.Sprintf("%s: one of %v (default %s)", usage, choices, *into), func(text string) error {
		if !slices.Contains(choices, T(text)) {
			return fmt.Errorf("must be one of %v", choices)
		}
		*into = T(text)
		return nil
	})
}
