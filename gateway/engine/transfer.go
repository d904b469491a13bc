package engine

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
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// highestFee bounds what a provider may say that a transfer costs.
const highestFee money.Amount = 1_000_000_000

// inquire completes the draft of a transfer with what is known of where it goes
// and what it costs. Its error is one from before the money call: nothing was
// sent. The remark is for operators, once the transfer is claimed.
func (e *Engine) inquire(ctx context.Context, r Request, draft *movement.Movement, c connection) (remark string, err error) {
	op := r.Operation
	quoted := e.Providers.Quote(ctx, op.Provider, sdk.Quote{
		Operation: op.Path, RequestID: r.RequestID, Connection: c.Connection,
		Reference: draft.UpstreamReference(), Body: draft.Body(),
	}, time.Duration(op.Timeout))
	switch {
	case quoted.Outcome != sdk.Done:
		return "", e.unanswered(ctx, op, c, sdk.Result{
			Outcome: quoted.Outcome, Blame: quoted.Blame, Refusal: quoted.Refusal, Detail: quoted.Detail,
		})
	case quoted.Price != draft.Amount || quoted.Fee < 0 || quoted.Fee > highestFee || !keepable(quoted.Data):
		cause := fmt.Errorf("quote: asked %v, told %v with a fee of %v", draft.Amount, quoted.Price, quoted.Fee)
		return "", fault.New(fault.ProviderUnavailable, "The provider could not tell the fee. Nothing was sent.").Because(cause)
	}
	given, _ := r.Body[op.HolderField()].(string)
	draft.Fee, draft.Quote, draft.NameMatch = quoted.Fee, quoted.Data, matchNames(given, quoted.Name)
	if r.Reconsider != nil {
		if err := r.Reconsider(ctx, map[string]any{"fee": int64(quoted.Fee), "name_match": orNothing(draft.NameMatch)}); err != nil {
			return "", err
		}
	}
	draft.Usage = e.spends(r, *draft, orElse(quoted.Destination, destinationOf(op, r.Body)))
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

// destinationOf names where a transfer goes, by the request's own words.
func destinationOf(op *catalog.Operation, body catalog.Document) string {
	var words []string
	for _, name := range op.DestinationFields() {
		word, _ := body[name].(string)
		words = append(words, word)
	}
	return strings.Join(words, "/")
}

// spends is what a transfer counts against the policy's limits of money out, in
// the day of the merchant's zone.
func (e *Engine) spends(r Request, draft movement.Movement, destination string) []movement.Usage {
	day, sum := e.Now().In(cmp.Or(r.Zone, time.UTC)).Format(time.DateOnly), sha256.Sum256([]byte(draft.Provider+"\x00"+destination))
	var spends []movement.Usage
	count := func(name string, flow policy.Outflow) {
		if flow.Amount != nil {
			spends = append(spends, movement.Usage{Name: name + ".amount", Period: day, Amount: int64(draft.Amount), Ceiling: *flow.Amount})
		}
		if flow.Count != nil {
			spends = append(spends, movement.Usage{Name: name + ".count", Period: day, Amount: 1, Ceiling: *flow.Count})
		}
	}
	count("out", r.Limits.Transfers.Day)
	count("to."+hex.EncodeToString(sum[:16]), r.Limits.Transfers.DestinationDay)
	return spends
}

// beyond is the error of a transfer that a limit of money out does not allow.
func beyond(limit *movement.LimitError) *fault.Error {
	what, of := "amount", "The policy allows no more money out today: the daily %s of transfers"
	if strings.HasSuffix(limit.Name, ".count") {
		what = "number"
	}
	if !strings.HasPrefix(limit.Name, "out.") {
		of += " to this destination"
	}
	return fault.Newf(fault.PolicyDenied, of+" would be exceeded.", what)
}

// unnamedMark begins the reference of a transfer whose caller gave none. No
// caller's reference has a control character.
const unnamedMark = "\x1e"

// sameFor is how long a transfer without a reference is taken for an equal one
// whose answer never reached its caller.
const sameFor = 24 * time.Hour

func unnamed(m movement.Movement) bool { return m.Fingerprint != "" }

// name gives a transfer without a reference one: that of the equal transfer whose
// answer its caller can't have, or the next. Of two at once one gets it.
func (e *Engine) name(ctx context.Context, r Request, draft *movement.Movement) error {
	sum := sha256.Sum256(draft.Request)
	draft.Fingerprint = unnamedMark + hex.EncodeToString(sum[:16]) + "-"
	last, err := e.Movements.LastEqual(ctx, draft.Key.Owner, draft.Kind, draft.Fingerprint)
	if errors.Is(err, store.ErrNotFound) {
		draft.Reference = draft.Fingerprint + fmt.Sprintf("%08d", 1)
		return nil
	}
	if err != nil {
		return err
	}
	draft.Reference = last.Reference
	age := e.Now().Sub(last.CreatedAt)
	again := last.State == movement.NotSubmitted || !last.State.Final() || !last.Delivered && age < sameFor || age < r.Limits.RepeatWithin
	if !again {
		var number int
		if _, err := fmt.Sscanf(last.Reference[len(draft.Fingerprint):], "%d", &number); err != nil {
			return fmt.Errorf("engine: reference %q: %w", last.Reference, err)
		}
		draft.Reference = draft.Fingerprint + fmt.Sprintf("%08d", number+1)
	}
	return nil
}

// Delivered notes that the answer to a transfer without a reference has reached
// its caller: an equal one is another transfer from then on.
func (e *Engine) Delivered(ctx context.Context, receipt movement.ID) {
	if err := e.Movements.Deliver(ctx, receipt); err != nil {
		e.Log.WarnContext(ctx, "an answer's delivery can't be noted: an equal transfer will get the same", "movement", receipt.String(), "error", err)
	}
}

// transferred is the answer to a transfer as it stands: its data, or the
// provider's refusal.
func (e *Engine) transferred(op *catalog.Operation, m movement.Movement) (Answer, error) {
	var answer Answer
	if unnamed(m) {
		answer.Receipt = m.ID
	}
	if m.State == movement.Failed {
		refusal := m.Refusal
		if refusal == nil {
			refusal = &movement.Refusal{Message: "The transfer has failed at the provider. No money was moved."}
		}
		return answer, refusalError(refusal).WithReference(nameFor(m))
	}
	answer.Data, answer.Message = transferData(op, m).json(), messageOf(op.Rules, m)
	return answer, nil
}

// nameFor is a transfer's reference as its caller knows it, "" for none.
func nameFor(m movement.Movement) string {
	if unnamed(m) {
		return ""
	}
	return m.Reference
}

// transferData is what an answer tells of a transfer: of what the gateway knows,
// that which the response has.
func transferData(op *catalog.Operation, m movement.Movement) *object {
	o := &object{}
	set := func(name string, value any) {
		if op.Answers(name) {
			o.set(name, value)
		}
	}
	var reference *string
	if name := nameFor(m); name != "" {
		reference = &name
	}
	set("refId", m.ID.Compact())
	set("txId", m.ID.Compact())
	set("amount", m.Amount)
	set("fee", m.Fee)
	set("status", op.Rules.Word(m.State))
	set("external_id", reference)
	set("name_match", m.NameMatch)
	return o
}

// describeTransfer is the state of a transfer: under refId or txId, whichever its
// own answer has.
func describeTransfer(made *catalog.Operation, m movement.Movement) *object {
	o := &object{}
	for _, name := range []string{"refId", "txId"} {
		if made.Answers(name) {
			o.set(name, m.ID.Compact())
		}
	}
	if name := nameFor(m); name != "" {
		o.set("external_id", name)
	} else {
		o.set("external_id", json.RawMessage("null"))
	}
	o.set("amount", m.Amount).set("fee", m.Fee).set("status", made.Rules.Word(m.State))
	if !m.ReversedAt.IsZero() {
		o.set("reversed_at", stamp(m.ReversedAt))
	}
	return o
}

// ourNames are the properties under which a status may be asked by our own name
// of a transfer.
var ourNames = []string{"refId", "txId", "ref_id", "tx_id"}

// findOurs finds a transfer by our own name of it.
func (e *Engine) findOurs(ctx context.Context, r Request) (movement.Movement, error) {
	for _, field := range ourNames {
		text, given := r.Body[field].(string)
		if !given {
			continue
		}
		id, err := movement.ParseID(text)
		if err != nil {
			return movement.Movement{}, noSuch(r)
		}
		m, err := e.Movements.MovementByID(ctx, id)
		if errors.Is(err, store.ErrNotFound) || err == nil && (m.Owner != ownerOf(r) || m.Kind != r.Operation.Target.Kind || m.State == movement.NotSubmitted) {
			return movement.Movement{}, noSuch(r)
		}
		return m, err
	}
	return movement.Movement{}, fault.Invalid(r.Operation.ReferenceField(), "or one of refId and txId is required")
}

// onlyOne refuses our own names beside another that are not those of the transfer
// that is found.
func onlyOne(r Request, found movement.Movement) error {
	for _, field := range ourNames {
		text, given := r.Body[field].(string)
		if id, err := movement.ParseID(text); given && (err != nil || id != found.ID) {
			return fault.Invalid(field, "is not the id of the transfer that the other ids name: give one of them")
		}
	}
	return nil
}
