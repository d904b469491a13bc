package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
)

// A transaction of movements, adjustments or exceptions is one statement, composed of
// fragments: a head that is guarded (the reservation, the move, ...), and an INSERT or
// UPDATE of each other table, fed by the rows that the head has changed. What differs
// between kinds is which fragments there are. STATEMENTS.md shows all statements as the
// database gets them.
//
//go:embed fragments/*.sql
var fragmentFiles embed.FS

// parts are the fragments of a statement, in the order in which they stand in it: hot
// rows come last.
type parts uint64

const (
	roomForAny parts = 1 << iota
	roomForBalance
	roomForLimits
	roomForAmount
	roomForAlone
	reserveMovement
	pollNone
	pollKept
	pollEnded
	moveMovement
	recordFact
	supplementResult
	renewMovement
	carryMovement
	errMovement
	assignLine
	loseLine
	matchLines
	putClaim
	putAdjustment
	decideAdjustment
	ofOwner
	oneException
	exceptionAgain
	resolveException
	logHistory
	openPoll
	dropPoll
	queueCallback
	queueMail
	addException
	writeAudit
	openStatement
	takeAmount
	giveUsageBack
	countUsage
	changeBalance
	postTransaction
)

// fragments are the files in the order of the parts: as what others read from them,
// and what the statement returns where they are its head.
var fragments = []struct{ file, as, returns string }{
	{"room", "room", ""},
	{"room_balance", "room", ""},
	{"room_limits", "room", ""},
	{"room_amount", "room", ""},
	{"room_alone", "room", ""},
	{"movements", "changed", "id, attempt, sequence, amount"},
	{"poll_none", "taken", ""},
	{"poll_kept", "taken", ""},
	{"poll_ended", "taken", ""},
	{"move", "changed", "sequence"},
	{"record", "changed", "sequence"},
	{"supplement", "changed", "sequence"},
	{"renew", "changed", "sequence"},
	{"carried", "changed", "id"},
	{"errored", "changed", "sequence"},
	{"line_assigned", "assigned", "payment"},
	{"line_lost", "changed", ""},
	{"lines_matched", "changed", "payment"},
	{"claim", "changed", "subject"},
	{"adjustment", "changed", "id"},
	{"adjustment_decided", "changed", "id"},
	{"owner", "changed", ""},
	{"exception", "changed", ""},
	{"exception_again", "changed", ""},
	{"exception_resolved", "changed", ""},
	{"history", "logged", ""},
	{"polls", "asked", ""},
	{"poll_dropped", "dropped", ""},
	{"callbacks", "queued", "event_id"},
	{"mails", "mailed", "mail_id"},
	{"exceptions", "listed", "subject"},
	{"audit", "audited", "audit_id"},
	{"statements", "opened", ""},
	{"reserved_amounts", "taken", ""},
	{"usage_given_back", "given_back", ""},
	{"usage", "counted", "merchant_id"},
	{"ledger_balances", "balanced", ""},
	{"ledger_transactions", "posted", ""},
}

// composed are all statements that there are.
func composed() []parts {
	all := []parts{
		roomForAny | reserveMovement | openPoll,
		roomForBalance | reserveMovement | openPoll | changeBalance | postTransaction,
		roomForLimits | reserveMovement | openPoll | countUsage,
		roomForAmount | reserveMovement | openPoll | openStatement | takeAmount,
		carryMovement | openPoll,
		supplementResult | logHistory,
		pollKept | renewMovement | logHistory,
		pollKept | errMovement | logHistory,
		assignLine,
		assignLine | loseLine | logHistory,
		matchLines | addException,
		roomForAny | putClaim,
		roomForAlone | putClaim,
		roomForAny | putAdjustment | writeAudit,
		roomForAlone | putAdjustment | writeAudit | changeBalance | postTransaction,
		decideAdjustment | writeAudit,
		decideAdjustment | writeAudit | changeBalance | postTransaction,
		ofOwner | queueCallback,
		ofOwner | queueMail,
		ofOwner | writeAudit,
		ofOwner | countUsage,
		oneException | addException,
		exceptionAgain | addException,
		resolveException | writeAudit,
	}
	for _, event := range []parts{0, queueCallback} {
		all = append(all, recordFact|logHistory|event, recordFact|logHistory|dropPoll|event, recordFact|logHistory|openPoll|event, recordFact|logHistory|event|changeBalance|postTransaction,
			recordFact|logHistory|event|giveUsageBack)
		for _, mailed := range []parts{0, queueMail} {
			all = append(all, pollKept|moveMovement|logHistory|event|mailed)
			for _, money := range []parts{0, postTransaction, changeBalance | postTransaction, giveUsageBack} {
				all = append(all, pollEnded|moveMovement|logHistory|event|mailed|money)
			}
		}
		for _, counted := range []parts{0, giveUsageBack} { // what was freed, and has moved after all
			all = append(all, pollNone|moveMovement|logHistory|event|counted, pollNone|moveMovement|logHistory|openPoll|event|counted)
		}
	}
	return all
}

// statement is one SQL text with where its parameters come from.
type statement struct {
	name   string
	sql    string
	values []func(*write) any
}

// statements are composed once, when the program starts.
var statements = composeAll()

func composeAll() map[parts]*statement {
	all := map[parts]*statement{}
	for _, p := range composed() {
		all[p] = compose(p)
	}
	return all
}

var (
	named    = regexp.MustCompile(`@[a-z_]+`)
	comments = regexp.MustCompile(`(?m)^--.*\n`)
)

// compose puts a statement together and numbers its parameters.
func compose(p parts) *statement {
	var names, bodies []string
	returns := ""
	for rest := p; rest != 0; rest &= rest - 1 {
		f := fragments[bits.TrailingZeros64(uint64(rest))]
		body, err := fragmentFiles.ReadFile("fragments/" + f.file + ".sql")
		if err != nil {
			panic(err) // it is embedded
		}
		text := strings.TrimSpace(comments.ReplaceAllString(string(body), ""))
		names = append(names, f.file)
		bodies = append(bodies, f.as+" AS (\n    "+strings.ReplaceAll(text, "\n", "\n    ")+"\n)")
		if returns == "" && f.returns != "" {
			returns = "SELECT " + f.returns + " FROM " + f.as
		}
	}
	s := &statement{name: strings.Join(names, " + ")}
	numbers := map[string]int{}
	s.sql = named.ReplaceAllStringFunc("WITH "+strings.Join(bodies, ", ")+"\n"+returns, func(name string) string {
		known, is := parameters[name[1:]]
		if !is {
			panic("store: no parameter is called " + name)
		}
		if numbers[name] == 0 {
			s.values = append(s.values, known.value)
			numbers[name] = len(s.values)
		}
		return fmt.Sprintf("$%d::%s", numbers[name], known.kind)
	})
	return s
}

// only runs a statement that shares no commit and waits for locked rows like any other:
// in a transaction, or on a connection that is free.
func only(ctx context.Context, db dbsqlc.DBTX, p parts, w *write, into ...any) error {
	s, err := statementOf(p)
	if err != nil {
		return err
	}
	w.trace = tracing.Parent(ctx)
	return db.QueryRow(ctx, s.sql, s.args(w)...).Scan(into...)
}

// args are a statement's parameters.
func (s *statement) args(w *write) []any {
	args := make([]any, len(s.values))
	for i, value := range s.values {
		args[i] = value(w)
	}
	return args
}

var errNotComposed = errors.New("store: nobody has composed this statement")

// statementOf is the statement of some parts.
func statementOf(p parts) (*statement, error) {
	if s := statements[p]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: parts %b", errNotComposed, p)
}
