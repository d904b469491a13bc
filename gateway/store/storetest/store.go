package storetest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Store is all that runs movements asks of a store, and what tests read of it.
type Store interface {
	Writes
	Lines
	Reads
	// Credit gives a merchant a balance.
	Credit(ctx context.Context, owner movement.Owner, amount money.Amount) error
}

// Writes change movements, and what stands beside them.
type Writes interface {
	Reserve(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error)
	Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error)
	Apply(ctx context.Context, c movement.Change) (bool, error)
	Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error)
	Miss(ctx context.Context, m movement.Movement, next time.Time) (int, error)
	ReleaseAmount(ctx context.Context, m movement.Movement) error
	AddException(ctx context.Context, x movement.Exception) (bool, error)
	CountException(ctx context.Context, x movement.Exception) (int64, error)
	ResolveException(ctx context.Context, now time.Time, x movement.Exception, operator, resolution string) error
	ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
	Note(ctx context.Context, now time.Time, m movement.Movement, event, detail string) error
	Override(ctx context.Context, m movement.Movement, o movement.Override, review movement.Exception) (movement.Override, error)
	TakeUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, want, limit int64) (taken, used int64, err error)
	GiveUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, back int64) (taken int64, err error)
}

// Lines are the statements of accounts.
type Lines interface {
	Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error)
	PollStatement(ctx context.Context, account movement.AccountID, now, before, until time.Time) (bool, error)
	RestStatement(ctx context.Context, account movement.AccountID, until, next time.Time) error
	DueStatements(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.Statement, error)
	OpenSales(ctx context.Context, s movement.Statement, behind movement.Candidate, most int) ([]movement.Candidate, error)
	Import(ctx context.Context, now time.Time, s movement.Statement, lines []movement.ImportedLine, next string, through time.Time) (bool, error)
	OpenLines(ctx context.Context, account movement.AccountID, after string, most int) ([]movement.StatementLine, error)
	Candidates(ctx context.Context, s movement.Statement, amounts []money.Amount, earliest, latest time.Time) ([]movement.Candidate, error)
	Match(ctx context.Context, now time.Time, s movement.Statement, matches []movement.Match) (decided []string, err error)
	LinesNamed(ctx context.Context, account movement.AccountID, payments []string) ([]movement.StatementLine, error)
	ListLines(ctx context.Context, r movement.LineRange) ([]movement.ListedLine, error)
	CloseLines(ctx context.Context, account movement.AccountID, done []movement.StatementLine, freeAt time.Time) error
	Line(ctx context.Context, account movement.AccountID, payment string) (movement.StatementLine, error)
	Claim(ctx context.Context, c movement.Claim) (movement.Claim, error)
	Assign(ctx context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (bool, error)
}

// Reads change nothing.
type Reads interface {
	MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error)
	MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error)
	LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error)
	PaidOut(ctx context.Context, m movement.Movement, most int) ([]movement.Movement, error)
	Movements(ctx context.Context, l movement.Listing) ([]movement.Movement, error)
	Figures(ctx context.Context, l movement.Listing, spans []time.Time) (movement.Figures, error)
	MovementsByID(ctx context.Context, ids []movement.ID) ([]movement.Movement, error)
	Due(ctx context.Context, scan movement.DueScan) ([]movement.DuePoll, error)
	Balance(ctx context.Context, owner movement.Owner) (ledger.Balance, error)
	PostingsOf(ctx context.Context, owner movement.Owner, id movement.ID) ([]ledger.Transaction, error)
	UsedOf(ctx context.Context, owner movement.Owner, name, period string) (int64, error)
	History(ctx context.Context, id movement.ID) ([]movement.HistoryEntry, error)
	NotesOf(ctx context.Context, id movement.ID) ([]movement.Note, error)
	CallbacksOfMovement(ctx context.Context, owner movement.Owner, id movement.ID, history []movement.HistoryEntry) ([]movement.Callback, error)
	Events(ctx context.Context, owner movement.Owner, after uuid.UUID, age time.Duration, most int) ([]movement.ListedEvent, error)
	DueMails(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.QueuedMail, error)
	OverrideOf(ctx context.Context, id movement.ID, attempt int) (movement.Override, error)
	ExceptionsOf(ctx context.Context, owner movement.Owner, subject string) ([]movement.Exception, error)
}
