package lifecycle

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// Kind is all that is particular to one kind of movement.
type Kind interface {
	// Draft completes the movement that a request would make: its amount, and a
	// reference where the request names none. Nothing is asked of the provider.
	Draft(ctx context.Context, r Request, draft *movement.Movement) error
	// Prepare asks what must be known before the reservation: a price, a recipient.
	// Its error means that nothing was sent. The remark is for operators, once the
	// movement is reserved.
	Prepare(ctx context.Context, r Request, draft *movement.Movement, c Connection) (remark string, err error)
	// Reserve runs the reservation of a draft, completed by what only this kind
	// takes, and says in its merchant's words why there is none.
	Reserve(ctx context.Context, op *catalog.Operation, draft movement.Movement, reserve Reserving) (movement.Movement, bool, error)
	// Kept is a draft's request as it would have been kept where an earlier one under
	// its reference was: two equal ones are the same request.
	Kept(op *catalog.Operation, draft, earlier movement.Movement) json.RawMessage
	// Answer is what a creation is answered, as the movement stands.
	Answer(op *catalog.Operation, m movement.Movement) (Answer, error)
	// Describe is what a status or a cancel tells, by the operation that is asked and the
	// one that made the movement.
	Describe(asked, op *catalog.Operation, m movement.Movement) Answer
	// Event is the data of a callback event at a time.
	Event(op *catalog.Operation, m movement.Movement, at time.Time) *Object
}

// Reserving reserves a draft.
type Reserving func(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error)

// OfferChecker is a kind whose offers must have the form that was asked for.
type OfferChecker interface {
	CheckOffer(m movement.Movement, data json.RawMessage) error
}

// Canceller is a kind whose pending movements a merchant can end.
type Canceller interface {
	Cancel(ctx context.Context, r Request, m movement.Movement) (movement.Movement, error)
}

// StatementFed is a kind whose movements are ended by statements. Refresh reads what
// is new in the statement of a movement's account, where that is still connected and
// nobody has read it for a while, and returns the movement as it stands then.
type StatementFed interface {
	Refresh(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error)
}

// AbsenceProver is a kind whose "not found" proves nothing without the account's own
// mutations. Absence reads them after it came often enough. Its fact says
// movement.SaysAbsent where they prove that the movement was not made, else nothing;
// its detail says why.
type AbsenceProver interface {
	Absence(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection) (movement.Fact, error)
}

// Finder is a kind whose movements a status may name otherwise than by reference.
type Finder interface {
	Find(ctx context.Context, r Request) (movement.Movement, error)
}

// Receipter is a kind whose payers are mailed a receipt; nil for none.
type Receipter interface {
	Receipt(ctx context.Context, m movement.Movement) *movement.Mail
}

// Store is where movements are kept. Each write is one commit.
//
// The calls come in this order: Reserve; then Acknowledge where the outcome is not
// known in time; then Apply for each fact, and Poll and Miss for each question.
type Store interface {
	// Reserve takes the reference of a draft and what it takes besides. It returns
	// the movement as reserved, and true; or the movement that has the reference, and
	// false. It is movement.ErrInsufficient, a *movement.LimitError or a
	// *movement.NoAmountError where there is no room. Any error means that the
	// reservation must not be acted upon.
	Reserve(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error)
	// Acknowledge records that a merchant reads pending before the outcome is known,
	// with the creation's answer where that is one (nil for none), and returns the
	// movement as it then stands: from then on its reference is never free again.
	Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error)
	// Apply commits a transition with its history, posting, callback and mail. It is
	// false, and nothing has changed, when the movement no longer stands where it was
	// seen.
	Apply(ctx context.Context, c movement.Change) (bool, error)
	// Poll takes the right to ask the provider about a movement, over all replicas, if
	// nobody did since before.
	Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error)
	// Miss counts a "not found", and returns how many came in a row; 0 where it is not
	// unknown any more.
	Miss(ctx context.Context, m movement.Movement, next time.Time) (int, error)
	// ReleaseAmount gives back the reserved amount of a collection that nobody was
	// told of.
	ReleaseAmount(ctx context.Context, m movement.Movement) error
	Register
	Records
}

// Register finds movements: by their own id, or as their merchant names them. Where
// there is none it is movement.ErrNotFound.
type Register interface {
	MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error)
	MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error)
}

// Records keeps what changes no movement. AddException is false where the same
// exception stands already; Note counts what is said again.
type Records interface {
	AddException(ctx context.Context, x movement.Exception) (bool, error)
	// CountException lists one that is counted, and says how often it has come.
	CountException(ctx context.Context, x movement.Exception) (int64, error)
	ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
	Note(ctx context.Context, now time.Time, m movement.Movement, event, detail string) error
}

// Providers are the plugins. Call and Lookup never fail: what went wrong is in the
// outcome. Available is asked before a reservation.
type Providers interface {
	Quote(ctx context.Context, of host.Use, quote sdk.Quote, timeout time.Duration) sdk.Quoted
	Call(ctx context.Context, of host.Use, call sdk.Call, timeout time.Duration) sdk.Result
	Lookup(ctx context.Context, of host.Use, lookup sdk.Lookup, timeout time.Duration) sdk.StatusUpdate
	Notify(ctx context.Context, provider string, n sdk.Notification, timeout time.Duration) (sdk.Acknowledgement, error)
	Available(of host.Use, with sdk.Connection) error
}
