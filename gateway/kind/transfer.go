package kind

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	// HeardWithin is how long a transfer without a reference waits to learn that the
	// answer of an equal one was delivered: who has read an answer may send the next
	// before that is noted.
	HeardWithin time.Duration
}

// TransferRegister finds and marks transfers that their callers gave no reference.
// LastEqual is the newest one of a fingerprint, or movement.ErrNotFound; Deliver
// notes that a movement's answer has reached its caller.
type TransferRegister interface {
	LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error)
	Deliver(ctx context.Context, id movement.ID) error
}

// AddTransfer has transfers run.
func AddTransfer(l *lifecycle.Lifecycle, register TransferRegister, absences lifecycle.AbsenceProver) *Transfer {
	k := &Transfer{AbsenceProver: absences, lifecycle: l, register: register, HeardWithin: heardWithin}
	l.Add(manifest.Transfer, k)
	return k
}

// Draft takes the amount of the request. A transfer without a reference gets one:
// that of the equal transfer whose answer its caller can't have, or the next. Of two
// at once one gets it.
func (k *Transfer) Draft(ctx context.Context, r lifecycle.Request, draft *movement.Movement) (err error) {
	if draft.Amount, err = r.Operation.AmountOf(r.Body); err != nil {
		return err
	}
	if draft.Request, err = r.Operation.Canonical(r.Body); err != nil || draft.Reference != "" {
		return err
	}
	sum := sha256.Sum256(draft.Request)
	draft.Fingerprint = movement.UnnamedMark + hex.EncodeToString(sum[:16]) + "-"
	draft.Reference, err = k.nextReference(ctx, r, *draft)
	return err
}

const (
	// sameFor is how long a transfer without a reference is taken for an equal one whose
	// answer never reached its caller.
	sameFor     = 24 * time.Hour
	heardWithin = 2 * time.Second
	// hearFirst and hearEvery say how often it is looked whether an answer was delivered.
	hearFirst = 5 * time.Millisecond
	hearEvery = 100 * time.Millisecond
)

// nextReference is the reference of a transfer that its caller gave none: that of an
// equal one, or the one after it.
func (k *Transfer) nextReference(ctx context.Context, r lifecycle.Request, draft movement.Movement) (string, error) {
	now := k.lifecycle.Now()
	waiting, stop := context.WithTimeout(ctx, k.HeardWithin)
	defer stop()
	for pause := hearFirst; ; pause = min(2*pause, hearEvery) {
		last, err := k.register.LastEqual(ctx, draft.Key.Owner, draft.Kind, draft.Fingerprint)
		if errors.Is(err, movement.ErrNotFound) {
			return draft.Fingerprint + fmt.Sprintf("%08d", 1), nil
		}
		if err != nil {
			return "", lifecycle.Unjudged(r, draft, err)
		}
		age := max(0, now.Sub(last.CreatedAt)) // the replica that made it may be ahead of this one
		switch {
		case !last.State.Final(), last.State == movement.Succeeded && age < r.Limits.RepeatWithin:
			return last.Reference, nil
		case last.Delivered, age >= sameFor:
			return referenceAfter(last)
		}
		select {
		case <-waiting.Done(): // its caller hung up
			return last.Reference, nil
		case <-time.After(pause):
		}
	}
}

// referenceAfter is the reference of a transfer that equals another and is not that.
func referenceAfter(last movement.Movement) (string, error) {
	var number int
	if _, err := fmt.Sscanf(last.Reference[len(last.Fingerprint):], "%d", &number); err != nil {
		return "", fmt.Errorf("transfer: reference %q: %w", last.Reference, err)
	}
	return last.Fingerprint + fmt.Sprintf("%08d", number+1), nil
}

// Delivered notes that the answer to a transfer without a reference has reached its
// caller: an equal one is another transfer from then on. It tries for as long as an
// equal one would be taken for it, and returns as soon as none waits for that any more.
func (k *Transfer) Delivered(ctx context.Context, receipt movement.ID) {
	waited, stop := context.WithTimeout(ctx, k.HeardWithin)
	defer stop()
	patience := k.lifecycle.Patience
	patience.For = sameFor
	_, err := lifecycle.ToTheEnd(waited, k.lifecycle.Log, func(ctx context.Context) (struct{}, error) {
		return lifecycle.Persist(ctx, patience, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, k.register.Deliver(ctx, receipt)
		})
	})
	if err != nil {
		k.lifecycle.Log.WarnContext(ctx, "an answer's delivery is not noted yet: an equal transfer gets the same until it is", "movement", receipt.String(), "error", err)
	}
}

// Prepare asks who the recipient is and what the transfer costs, and counts it
// against the policy's payout limits.
func (k *Transfer) Prepare(ctx context.Context, r lifecycle.Request, draft *movement.Movement, c lifecycle.Connection) (remark string, err error) {
	if err := k.lifecycle.Paused(ctx, r, tenants.PauseTransfers, "Transfers are"); err != nil {
		return "", err
	}
	op := r.Operation
	destination := op.DestinationOf(r.Body)
	if !op.Quote {
		draft.Usage = k.usage(r, *draft, destination)
		return "", nil
	}
	quoted := k.lifecycle.Providers.Quote(ctx, r.Use(), sdk.Quote{
		Operation: op.Path, RequestID: r.RequestID, Connection: c.Connection,
		Reference: draft.UpstreamReference(), Body: draft.Body(),
	}, op.Rules.Timeout)
	switch {
	case quoted.Outcome != sdk.Done:
		return "", k.lifecycle.Unanswered(ctx, op, c, failed(quoted), "who the receiver is")
	case quoted.Price != draft.Amount || quoted.Fee < 0 || max(quoted.Fee, quoted.Cost-quoted.Price) > manifest.HighestFee(draft.Amount) || !keepable(quoted.Data):
		cause := fmt.Errorf("quote: asked %v, told %v with a fee of %v, at a cost of %v", draft.Amount, quoted.Price, quoted.Fee, quoted.Cost)
		return "", fault.New(fault.ProviderUnavailable, "The provider could not tell the fee. Nothing was sent.").Because(cause)
	}
	given, _ := r.Body[op.HolderField()].(string)
	draft.Fee, draft.Quote, draft.NameMatch = quoted.Fee, quoted.Data, matchNames(given, quoted.Name)
	if r.Reconsider != nil {
		if err := r.Reconsider(ctx, map[string]any{"fee": int64(quoted.Fee), "name_match": orNothing(draft.NameMatch)}); err != nil {
			return "", err
		}
	}
	draft.Usage = k.usage(r, *draft, cmp.Or(quoted.Destination, destination))
	if theirs := quoted.Cost - quoted.Price; quoted.Cost != 0 && theirs != quoted.Fee {
		remark = "told a fee of " + quoted.Fee.String() + ", the provider takes " + theirs.String()
	}
	return remark, nil
}

// orNothing is null for rules where nobody knows.
func orNothing(match *bool) any {
	if match == nil {
		return nil
	}
	return *match
}

// usage is what a transfer counts against the policy's payout limits, in the day of
// the merchant's zone.
func (k *Transfer) usage(r lifecycle.Request, draft movement.Movement, destination string) []movement.Usage {
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
	count("to."+movement.DestinationDigest(draft.Provider, destination), r.Limits.Transfers.DestinationDay)
	return usage
}

// Reserve counts the transfer against payout limits.
func (k *Transfer) Reserve(ctx context.Context, _ *catalog.Operation, draft movement.Movement, reserve lifecycle.Reserving) (movement.Movement, bool, error) {
	m, ours, err := reserve(ctx, draft)
	if limit, limited := errors.AsType[*movement.LimitError](err); limited {
		err = beyond(limit).WithReference(draft.CallersReference())
	}
	return m, ours, err
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
	if m.Unnamed() {
		answer.Receipt = m.ID
	}
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

func describeTransfer(asked, op *catalog.Operation, m movement.Movement) *lifecycle.Object {
	o := &lifecycle.Object{}
	for _, name := range []string{"refId", "txId"} {
		if op.Answers(name) {
			o.SetText(name, m.ID.Compact())
		}
	}
	return o.Set("external_id", externalID(m)).SetNumber("amount", int64(m.Amount)).SetNumber("fee", int64(m.Fee)).SetText("status", op.Rules.Status(m)).
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
