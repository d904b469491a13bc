package kind

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Transfer is money out, from a merchant's wallet to another or to a bank. It can't
// be called back. It is answered how it stands: its success, its refusal, or that it
// is pending.
type Transfer struct {
	lifecycle.Plain
	lifecycle.AbsenceProver

	lifecycle *lifecycle.Lifecycle
	register  TransferRegister
}

// TransferRegister finds transfers that their callers gave no reference: LastEqual is the
// newest one of a fingerprint, or movement.ErrNotFound.
type TransferRegister interface {
	LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error)
}

// AddTransfer has transfers run.
func AddTransfer(l *lifecycle.Lifecycle, register TransferRegister, absences lifecycle.AbsenceProver) *Transfer {
	k := &Transfer{AbsenceProver: absences, lifecycle: l, register: register}
	l.Add(manifest.Transfer, k)
	return k
}

// Draft takes the amount of the request. A transfer without a reference gets one at its
// reservation.
func (k *Transfer) Draft(_ context.Context, r lifecycle.Request, draft *movement.Movement) (err error) {
	if draft.Amount, err = r.Operation.AmountOf(r.Body); err != nil {
		return err
	}
	if draft.Reference == "" {
		draft.Fingerprint, draft.RepeatWithin, draft.Attempt = movement.UnnamedMark, r.Limits.RepeatWithin, 1
	}
	draft.Request, err = r.Operation.Canonical(r.Body)
	return err
}

// Fingerprint is what two transfers without a reference have in common that are equal:
// where they go, and all of their requests but the words for that, the holder's name and
// the reference.
func Fingerprint(op *catalog.Operation, draft movement.Movement) (string, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(draft.Body(), &body); err != nil {
		return "", fmt.Errorf("transfer: fingerprint: %w", err)
	}
	for _, name := range append(op.DestinationFields(), op.HolderField(), op.ReferenceField()) {
		delete(body, name)
	}
	rest, err := json.Marshal(body) // by name
	if err != nil {
		return "", fmt.Errorf("transfer: fingerprint: %w", err)
	}
	sum := sha256.Sum256([]byte(movement.DestinationDigest(draft.Provider, draft.Destination) + "\x00" + draft.Amount.String() + "\x00" + string(rest)))
	return movement.UnnamedMark + hex.EncodeToString(sum[:16]) + "-", nil
}

// Prepare asks who the recipient is and what the transfer costs, and counts it
// against the policy's payout limits.
func (k *Transfer) Prepare(ctx context.Context, r lifecycle.Request, draft *movement.Movement, c lifecycle.Connection) (remark string, err error) {
	if err := k.lifecycle.Paused(ctx, r, tenants.PauseTransfers, "Transfers are"); err != nil {
		return "", err
	}
	op := r.Operation
	draft.Destination = movement.Destination(op.DestinationOf(r.Body))
	if !op.Quote {
		return "", k.count(r, draft)
	}
	quoted := k.lifecycle.Providers.Quote(ctx, r.Use(), sdk.Quote{
		Operation: op.Path, RequestID: r.RequestID, Connection: c.Connection,
		Reference: draft.UpstreamReference(), Body: draft.Body(),
	}, op.Rules.Timeout)
	switch {
	case quoted.Outcome != sdk.Done:
		return "", k.lifecycle.Unanswered(ctx, op, c, failed(quoted), "who the receiver is")
	case quoted.Price != draft.Amount || quoted.Fee < 0 || max(quoted.Fee, quoted.Cost-quoted.Price) > manifest.HighestFee(draft.Amount) || !keepable(quoted.Data) || len(quoted.Destination) > longestDestination:
		cause := fmt.Errorf("quote: asked %v, told %v with a fee of %v, at a cost of %v", draft.Amount, quoted.Price, quoted.Fee, quoted.Cost)
		return "", fault.New(fault.ProviderUnavailable, "The provider could not tell the fee. Nothing was sent.").Because(cause)
	}
	given, _ := r.Body[op.HolderField()].(string)
	draft.Fee, draft.Quote, draft.NameMatch = quoted.Fee, quoted.Data, matchNames(given, quoted.Name)
	draft.Destination = cmp.Or(movement.Destination(quoted.Destination), draft.Destination)
	if r.Reconsider != nil {
		if err := r.Reconsider(ctx, draft.QuoteForRules(op.Rules)); err != nil {
			return "", err
		}
	}
	if err := k.count(r, draft); err != nil {
		return "", err
	}
	if theirs := quoted.Cost - quoted.Price; quoted.Cost != 0 && theirs != quoted.Fee {
		remark = "told a fee of " + quoted.Fee.String() + ", the provider takes " + theirs.String()
		if theirs > quoted.Fee && !r.Limits.HigherFees {
			k.lifecycle.Alert(ctx, op.Provider, c, remark+": transfers are refused until the fee that merchants are told is theirs, or the policy says higher_fees")
			refused := fault.Newf(fault.ProviderRejected, "The provider takes a fee of %s for this transfer now, and %s is what you are told. Nothing was sent.", theirs, quoted.Fee)
			refused.Sent, refused.Retry = fault.SentNo, fault.RetryAfterChange
			return "", refused
		}
	}
	return remark, nil
}

// longestDestination bounds what a plugin says of where a transfer goes, in bytes.
const longestDestination = 255

// count has the draft counted by its destination: against payout limits, and among equal ones.
func (k *Transfer) count(r lifecycle.Request, draft *movement.Movement) (err error) {
	if draft.Unnamed() {
		draft.Fingerprint, err = Fingerprint(r.Operation, *draft)
	}
	draft.Usage = k.usage(r, *draft)
	return err
}

// usage is what a transfer counts against the policy's payout limits, in the day of
// the merchant's zone.
func (k *Transfer) usage(r lifecycle.Request, draft movement.Movement) []movement.Usage {
	day := k.lifecycle.Now().In(cmp.Or(r.Zone, time.UTC)).Format(time.DateOnly)
	var usage []movement.Usage
	count := func(name string, flow policy.Outflow) {
		if flow.Amount != nil {
			usage = append(usage, movement.Usage{Name: name + ".amount", Period: day, Amount: int64(draft.Amount), Ceiling: *flow.Amount})
		}
		if flow.Count != nil {
			usage = append(usage, movement.Usage{Name: name + ".count", Period: day, Amount: 1, Ceiling: *flow.Count})
		}
	}
	count("out", r.Limits.Transfers.Day)
	count("to."+movement.DestinationDigest(draft.Provider, draft.Destination), r.Limits.Transfers.DestinationDay)
	return usage
}

// Reserve counts the transfer against payout limits. One without a reference is numbered
// among its equals: it takes the number behind the newest, which was judged before. The
// number is part of the movement's key, so of several at once, on whatever replicas, one
// gets it. The others are judged by that one.
func (k *Transfer) Reserve(ctx context.Context, _ *catalog.Operation, draft movement.Movement, reserve lifecycle.Reserving) (movement.Movement, bool, error) {
	within := draft.RepeatWithin
	draft.RepeatWithin = 0
	for {
		if draft.Unnamed() {
			var err error
			if draft.Reference, err = k.nextReference(ctx, draft, within); err != nil {
				return movement.Movement{}, false, err
			}
		}
		m, ours, err := reserve(ctx, draft)
		if limit, limited := errors.AsType[*movement.LimitError](err); limited {
			err = beyond(limit).WithReference(draft.CallersReference())
		}
		if ours || err != nil || !draft.Unnamed() {
			return m, ours, err
		}
	}
}

// nextReference is the reference of a transfer that its caller gave none: the one after
// that of the newest equal one. Where that was made within a time and has neither failed
// nor been proven unsent, it is DUPLICATE_TRANSFER, or IN_PROGRESS.
func (k *Transfer) nextReference(ctx context.Context, draft movement.Movement, within time.Duration) (string, error) {
	last, err := k.register.LastEqual(ctx, draft.Key.Owner, draft.Kind, draft.Fingerprint)
	if errors.Is(err, movement.ErrNotFound) {
		return draft.Fingerprint + fmt.Sprintf("%08d", 1), nil
	}
	if err != nil {
		return "", err
	}
	if age := draft.CreatedAt.Sub(last.CreatedAt); max(0, age) < within { // the replica that made it may be ahead of this one
		if err := k.repeats(ctx, last, age); err != nil {
			return "", err
		}
	}
	var number int
	if _, err := fmt.Sscanf(last.Reference[len(last.Fingerprint):], "%d", &number); err != nil {
		return "", fmt.Errorf("transfer: reference %q: %w", last.Reference, err)
	}
	return last.Fingerprint + fmt.Sprintf("%08d", number+1), nil
}

// repeats is the error of a transfer that equals an earlier one, nil where nothing came of
// that. The answer tells its status, so it is a promise.
func (k *Transfer) repeats(ctx context.Context, earlier movement.Movement, age time.Duration) error {
	op, err := k.lifecycle.Shown(earlier)
	if err != nil {
		return err
	}
	if earlier, err = k.lifecycle.Promised(ctx, op, earlier); err != nil {
		return err
	}
	if earlier.State == movement.Failed || earlier.State == movement.NotSubmitted || earlier.Gone() {
		return nil
	}
	duplicate := fault.Newf(fault.DuplicateTransfer,
		"An equal transfer was made %s ago and is %s; data names it. Nothing was sent. If this is to be another transfer, give it an external_id.",
		max(age, 0).Truncate(time.Second), op.Rules.Status(earlier))
	duplicate.Data = named(op, earlier).SetText("status", op.Rules.Status(earlier)).SetTime("created_at", earlier.CreatedAt).JSON()
	return duplicate
}

// beyond is the error of a transfer that a payout limit does not allow.
func beyond(limit *movement.LimitError) *fault.Error {
	what, of := "amount", "The policy allows no more money out today: the daily %s of transfers"
	if strings.HasSuffix(limit.Name, ".count") {
		what = "number"
	}
	if !strings.HasPrefix(limit.Name, "out.") {
		of += " to this destination"
	}
	return fault.Newf(fault.PolicyDenied, of+" would be exceeded. The limit is %d, of which %d is used.", what, limit.Most, limit.Used).Because(limit)
}

// Answer is how the transfer stands: its data, or the provider's refusal. Of what the
// gateway knows it tells that which the response has.
func (k *Transfer) Answer(op *catalog.Operation, m movement.Movement) (lifecycle.Answer, error) {
	var answer lifecycle.Answer
	if m.State == movement.Failed {
		refusal := m.Refusal
		if refusal == nil {
			refusal = &movement.Refusal{Message: "The transfer has failed at the provider. No money was moved."}
		}
		return answer, lifecycle.RefusalError(refusal).WithReference(m.CallersReference())
	}
	o := &lifecycle.Object{}
	set := func(name string, value any) {
		if op.Answers(name) {
			o.Set(name, value)
		}
	}
	set("refId", m.ID.Compact())
	set("txId", m.ID.Compact())
	set("amount", m.Amount)
	set("fee", m.Fee)
	set("status", op.Rules.Status(m))
	set("external_id", externalID(m))
	set("name_match", m.NameMatch)
	answer.Data, answer.Message = o.Results(op, op, m.Result).JSON(), lifecycle.Message(op.Rules, m)
	return answer, nil
}

// externalID is a transfer's reference as merchants read it, null for none.
func externalID(m movement.Movement) *string {
	if name := m.CallersReference(); name != "" {
		return &name
	}
	return nil
}

// Describe is the state of a transfer: under refId or txId, whichever its own answer
// has.
func (k *Transfer) Describe(asked, op *catalog.Operation, m movement.Movement) lifecycle.Answer {
	return lifecycle.Answer{Data: describeTransfer(asked, op, m).JSON()}
}

// named begins an object with our name of a transfer: refId or txId, whichever the answer
// of its operation has.
func named(op *catalog.Operation, m movement.Movement) *lifecycle.Object {
	o := &lifecycle.Object{}
	for _, name := range []string{"refId", "txId"} {
		if op.Answers(name) {
			o.SetText(name, m.ID.Compact())
		}
	}
	return o
}

func describeTransfer(asked, op *catalog.Operation, m movement.Movement) *lifecycle.Object {
	return named(op, m).Set("external_id", externalID(m)).SetNumber("amount", int64(m.Amount)).SetNumber("fee", int64(m.Fee)).SetText("status", op.Rules.Status(m)).
		Returned(m).Results(asked, op, m.Result)
}

// Event is the state, and when it was so.
func (k *Transfer) Event(op *catalog.Operation, m movement.Movement, at time.Time) *lifecycle.Object {
	return describeTransfer(op.Status, op, m).SetTime("timestamp", at)
}

// ourNames are the properties under which a status may be asked by our own name of a
// transfer.
var ourNames = []string{"refId", "txId", "ref_id", "tx_id"}

// Find finds a transfer by its reference, or by our own name of it. Several names must
// be of one transfer.
func (k *Transfer) Find(ctx context.Context, r lifecycle.Request) (movement.Movement, error) {
	search := k.lifecycle.FindByReference
	if r.Operation.ReferenceOf(r.Body) == "" {
		search = k.findOurs
	}
	m, err := search(ctx, r)
	if err != nil {
		return m, err
	}
	for _, field := range ourNames {
		text, given := r.Body[field].(string)
		if id, err := movement.ParseID(text); given && (err != nil || id != m.ID) {
			return m, fault.Invalid(field, "is not the id of the transfer that the other ids name: give one of them")
		}
	}
	return m, nil
}

func (k *Transfer) findOurs(ctx context.Context, r lifecycle.Request) (movement.Movement, error) {
	for _, field := range ourNames {
		text, given := r.Body[field].(string)
		if !given {
			continue
		}
		id, err := movement.ParseID(text)
		if err != nil {
			return movement.Movement{}, lifecycle.NoSuch(r)
		}
		m, err := k.lifecycle.Store.MovementByID(ctx, id)
		if errors.Is(err, movement.ErrNotFound) || err == nil && (m.Owner != r.Owner() || m.Kind != r.Operation.Target.Kind || m.State == movement.NotSubmitted) {
			return movement.Movement{}, lifecycle.NoSuch(r)
		}
		return m, err
	}
	return movement.Movement{}, fault.Invalid(r.Operation.ReferenceField(), "or one of refId and txId is required")
}
