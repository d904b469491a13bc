// Gerbang is the one binary: the gateway itself, its development tree, and the
// commands with which an operator works on a running one. It turns arguments,
// environment and signals into calls of other packages and their results into
// text and exit codes. It must decide nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/seed-f006e74d/gerbang/gateway/database"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands is what can be typed. Credentials and tokens are never flags: these
// can be read in the list of processes. What listen takes is of test mode.
type commands struct {
	JSON    bool `name:"json" help:"Print JSON instead of text."`
	Verbose bool `short:"v" help:"Log more."`

	Serve      serveCommand       `cmd:"" help:"Run a gateway from a configuration file."`
	Dev        devCommand         `cmd:"" help:"Run a gateway with database and simulated providers on this machine."`
	Migrate    migrateCommand     `cmd:"" help:"Bring a database to this version's tables."`
	Merchant   merchantCommands   `cmd:"" help:"Create and change merchants."`
	Key        keyCommands        `cmd:"" help:"Create, rotate and revoke merchants' keys."`
	Connection connectionCommands `cmd:"" help:"Give merchants' accounts at providers to the gateway."`
	Callback   callbackCommands   `cmd:"" help:"See callbacks, send them again, set where they go and what signs them."`
	Listen     listenCommand      `cmd:"" help:"Forward a merchant's test events to a server that has no public address."`
	Quota      quotaCommands      `cmd:"" help:"Tell how much of its quotas a merchant has used."`
	Ledger     ledgerCommands     `cmd:"" help:"Check the ledger, tell balances, list statements, and decide on large credits."`
	Transfer   movementCommands   `cmd:"" help:"See a transfer's whole trail, and settle one whose outcome nobody knows."`
	Order      movementCommands   `cmd:"" help:"See an order's whole trail, and settle one whose outcome nobody knows."`
	Find       findCommand        `cmd:"" help:"Find movements by any id of theirs: a request's, a decision's, a reference of the merchant, the gateway or the provider."`
	Attention  attentionCommands  `cmd:"" help:"See and settle what waits for an operator."`
	Settlement settlementCommands `cmd:"" help:"See payments that pay no sale, and give them to one."`
	Keyset     keysetCommands     `cmd:"" help:"Make, rotate and prune what seals providers' credentials."`
	Plugin     pluginCommands     `cmd:"" help:"See plugins and approve new ones."`
	Policy     policyCommands     `cmd:"" help:"Export and check policies."`
	QRIS       qrisCommands       `cmd:"" name:"qris" help:"Read QR codes."`
	Version    versionCommand     `cmd:"" help:"Tell which version this is."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal stops in order, a second one at once
	p := &program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv,
		inTerminal: database.IsTerminal(os.Stdin), errTerminal: database.IsTerminal(os.Stderr),
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}

// run does what the arguments say and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	var typed commands
	exited := false // --help has answered; kong would go on
	parser, err := kong.New(&typed, kong.Name("gerbang"),
		kong.Description("A payment gateway. merchant, key, connection, callback, quota, ledger, transfer, order, find, attention, "+
			"plugin list and what of keyset needs one reach a running gateway by GERBANG_ADMIN_URL and GERBANG_ADMIN_TOKEN; the other commands need none."),
		kong.Writers(p.out, p.err), kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p))
	if err != nil {
		return p.fail(err)
	}
	parsed, err := parser.Parse(args)
	if exited {
		return exitOK
	}
	if err != nil {
		return p.fail(usage(err))
	}
	p.json, p.verbose = typed.JSON, typed.Verbose
	if err := parsed.Run(); err != nil {
		return p.fail(err)
	}
	return exitOK
}

// usageError is a command that can't be done as it was typed.
type usageError struct{ error }

func usage(err error) error { return usageError{err} }

func (e usageError) Unwrap() error { return e.error }

// fail tells why, and returns the exit code.
func (p *program) fail(err error) int {
	_, _ = fmt.Fprintln(p.err, "gerbang:", err)
	if _, ok := errors.AsType[usageError](err); ok {
		_, _ = io.WriteString(p.err, "Try gerbang --help.\n")
		return exitUsage
	}
	return exitFailed
}
