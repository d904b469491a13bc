// Gerbang is the one binary: the gateway itself, its development tree, and the
// commands with which an operator works on a running one. It turns arguments,
// environment and signals into calls of other packages and their results into
// text and exit codes. It must decide nothing else.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/seed-f006e74d/gerbang/gateway/database"
)

// commands is the command line. Credentials and tokens are never flags, because
// everybody can read these in the list of processes; those of listen are of test
// mode. A command whose Run takes a client talks to a running gateway.
type commands struct {
	JSON    bool `name:"json" help:"Print JSON instead of text: the result on standard output, an error as the last line of standard error."`
	Verbose bool `short:"v" help:"Log more."`

	Init       initCommand        `cmd:"" help:"Write a configuration with its keyset, an operator's token and the plugins that came with this program."`
	Check      checkCommand       `cmd:"" help:"Judge a configuration, and all that a start with it needs, before the start."`
	Doctor     doctorCommand      `cmd:"" help:"Ask a running gateway how it is, and say what to do about it."`
	Serve      serveCommand       `cmd:"" help:"Run a gateway from a configuration file."`
	Dev        devCommand         `cmd:"" help:"Run a gateway with a database and simulated providers on this machine."`
	Migrate    migrateCommand     `cmd:"" help:"Create or update a database's tables."`
	Merchant   merchantCommands   `cmd:"" help:"Create and change merchants."`
	Operator   operatorCommands   `cmd:"" help:"Invite people to the operators' console; create, list, rotate and revoke operators' tokens."`
	Person     personCommands     `cmd:"" help:"Give people who sign in to the consoles a new password, or forget them."`
	Key        keyCommands        `cmd:"" help:"Create, rotate and revoke merchants' keys."`
	Connection connectionCommands `cmd:"" help:"Store, list, pause and remove accounts at providers."`
	Provider   providerCommands   `cmd:"" help:"Pause a provider for all merchants."`
	Transfers  transfersCommands  `cmd:"" help:"Pause new transfers of a merchant, or of all."`
	List       listCommands       `cmd:"" help:"Keep lists that policies read, such as blocked destinations."`
	Callback   callbackCommands   `cmd:"" help:"Show callbacks, send them again, set their URL and rotate their secret."`
	Request    requestCommands    `cmd:"" help:"Show what a merchant asked and was answered in the last seven days."`
	Listen     listenCommand      `cmd:"" help:"Forward a merchant's test events to a server without a public address."`
	Quota      quotaCommands      `cmd:"" help:"Show how much of its quotas a merchant has used."`
	Ledger     ledgerCommands     `cmd:"" help:"Check the ledger, show balances and account statements, approve large credits."`
	Audit      auditCommands      `cmd:"" help:"List, export and verify what was done to the platform and to all merchants."`
	Payment    paymentCommands    `cmd:"" help:"Show a payment with its history, override one whose outcome nobody knows, and give one back."`
	Refund     movementCommands   `cmd:"" help:"Show a refund with its history, and override one whose outcome nobody knows."`
	Collection movementCommands   `cmd:"" help:"Show a sale by QR code with its history, and override one whose outcome nobody knows."`
	Transfer   movementCommands   `cmd:"" help:"Show a transfer with its history, and override one whose outcome nobody knows."`
	Order      movementCommands   `cmd:"" help:"Show an order with its history, and override one whose outcome nobody knows."`
	Find       findCommand        `cmd:"" help:"Find movements by any id: of the request or the decision, or a reference of the merchant, the gateway or the provider."`
	Waiting    waitingCommand     `cmd:"" help:"List all that waits for a person, each with the command that decides it."`
	Traffic    trafficCommand     `cmd:"" help:"Show what became of merchants' requests in the last minutes, and how long answers took."`
	Exception  exceptionCommands  `cmd:"" help:"List and resolve exceptions: what needs a person."`
	Statement  statementCommands  `cmd:"" help:"List statement lines that pay no collection, and assign them to one."`
	Recovery   recoveryCommands   `cmd:"" help:"Show what a restore of the database has lost, and let money move again."`
	Keyset     keysetCommands     `cmd:"" help:"Create, rotate and prune the keyset that seals providers' credentials."`
	Plugin     pluginCommands     `cmd:"" help:"List plugins, and show what approves a new one."`
	Launch     pluginLaunch       `cmd:"" hidden:"" name:"plugin-launch" help:"Become a plugin; the gateway starts it."`
	Judge      policyJudge        `cmd:"" hidden:"" name:"policy-judge" help:"Judge a policy; the gateway starts it."`
	Policy     policyCommands     `cmd:"" help:"Push, activate, roll back, compare and test policies."`
	Replica    replicaCommands    `cmd:"" help:"List the gateways that run, and what each runs."`
	QRIS       qrisCommands       `cmd:"" name:"qris" help:"Read QR codes."`
	Apply      applyCommand       `cmd:"" help:"Have merchants, connections, policies, plugins and operators be as files declare them; without --yes tell what that would change."`
	Diff       diffCommand        `cmd:"" help:"Tell how what is there differs from what files declare; the exit code is 5 where it does."`
	Export     exportCommand      `cmd:"" help:"Print what is there as apply takes it, without any secret."`
	Completion completionCommand  `cmd:"" help:"Print what has a shell complete commands, flags and names of files."`
	Complete   completeCommand    `cmd:"" hidden:"" help:"Print what may stand in place of a line's last word; the shell asks."`
	Version    versionCommand     `cmd:"" help:"Print the version and its commit; also gerbang --version."`
}

var description = `A payments gateway. Commands that talk to a running gateway need GERBANG_ADMIN_URL and GERBANG_ADMIN_TOKEN, the token of an operator with a role:
every role reads; support sends callbacks again, pauses, revokes keys and resolves exceptions; finance credits, approves, overrides, assigns and resolves;
policy changes policies, tiers and limits; admin does everything.

Exit codes: ` + exitText() + "."

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
	exited := false                          // --help has answered; kong would go on
	p.json = slices.Contains(args, "--json") // also of a command line that can't be read
	parser, err := p.parser(ctx, &typed, kong.Exit(func(int) { exited = true }))
	if err != nil {
		return p.fail(err)
	}
	parsed, err := parser.Parse(asCommand(args))
	if exited {
		return exitOK
	}
	if err != nil {
		return p.fail(usage(err))
	}
	p.json, p.verbose = typed.JSON, typed.Verbose
	if err := cmp.Or(nameless(parsed.Selected()), alone(parsed)); err != nil {
		return p.fail(usage(err))
	}
	if err := parsed.Run(); err != nil {
		return p.fail(err)
	}
	return exitOK
}

// parser reads command lines into a table of commands.
func (p *program) parser(ctx context.Context, table *commands, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(table, slices.Concat(times(time.Now()), more, []kong.Option{
		kong.Name("gerbang"), kong.Description(description), kong.Writers(p.out, p.err), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p), kong.BindToProvider(p.admin),
	})...)
}

// besides is the tag of a flag that means nothing without another one.
const besides = "with"

// alone refuses a flag that was given without the one that it belongs to: it would change nothing, and
// who has given it believes otherwise.
func alone(parsed *kong.Context) error {
	given := map[string]bool{}
	for _, at := range parsed.Path {
		if at.Flag != nil {
			given[at.Flag.Name] = true
		}
	}
	for _, at := range parsed.Path {
		if at.Flag == nil {
			continue
		}
		if other := at.Flag.Tag.Get(besides); other != "" && !given[other] {
			return fmt.Errorf("--%s says something only with --%s, which is not given", at.Flag.Name, other)
		}
	}
	return nil
}

// nameless refuses an argument that is given and empty, such as a variable of a script that was never set.
func nameless(command *kong.Node) error {
	for _, arg := range command.Positional {
		if arg.Set && !arg.HasDefault && arg.Target.Kind() == reflect.String && strings.TrimSpace(arg.Target.String()) == "" {
			return fmt.Errorf("%s is empty, in %s: is a variable of a script not set", arg.Summary(), command.FullPath())
		}
	}
	return nil
}
