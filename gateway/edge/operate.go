package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// operate answers one request for an operation.
func (x *exchange) operate(op *catalog.Operation, p *parameters) {
	x.operation, x.parameters = op, p
	answer, err := x.checkAndRun()
	if answer.Replayed { // a refusal is repeated, too
		x.Header().Set("Idempotent-Replayed", "true")
	}
	if err != nil {
		x.fail(x.truthful(err))
	} else {
		x.succeed(answer)
	}
}

// checkAndRun checks in this order: body, key, scope and standing, merchant, schema,
// admission. The first check that fails gives the answer. What was judged just before a
// plugin was replaced by one that declares the operation otherwise, and so was not sent, is
// judged once more, by what is offered since.
func (x *exchange) checkAndRun() (lifecycle.Answer, error) {
	b, err := readBody(x)
	if err != nil {
		return lifecycle.Answer{}, x.unread(b, err)
	}
	if reference := x.operation.ReferenceOf(b.document); printable(reference) {
		x.reference = reference
	}
	if err := x.authenticate(b); err != nil {
		return lifecycle.Answer{}, err
	}
	if err := admission.Access(x.identity, x.operation); err != nil {
		return lifecycle.Answer{}, x.charged(err)
	}
	if err := x.checkMerchant(b.merchant); err != nil {
		return lifecycle.Answer{}, x.charged(err)
	}
	answer, err := x.judgeAndRun(b)
	if now, otherwise := x.declaredSince(err); otherwise {
		x.edge.Log.LogAttrs(x.ctx, slog.LevelInfo, "judged again: the operation is declared otherwise since",
			slog.String("request_id", x.id), slog.String("operation", now.Path))
		x.operation = now
		return x.judgeAndRun(b)
	}
	return answer, err
}

// judgeAndRun judges a request by its operation, and runs it.
func (x *exchange) judgeAndRun(b body) (lifecycle.Answer, error) {
	request, err := x.check(b)
	if err != nil {
		return lifecycle.Answer{}, x.charged(err)
	}
	return x.admitAndRun(request, b.document)
}

// declaredSince is the operation as it is offered now, where that is declared otherwise than
// what the request was judged by, and nothing of the request was sent: what it had reserved
// is undone, and its reference is free.
func (x *exchange) declaredSince(err error) (*catalog.Operation, bool) {
	if code := fault.From(err).Code; err == nil || code != fault.ProviderUnavailable && code != fault.NoConnection || x.truthful(err).Sent != fault.SentNo {
		return nil, false
	}
	now, offered := x.edge.router.Load().snapshot.ByPath(x.operation.Path)
	return now, offered && !now.DeclaredAs(x.operation)
}

// admitAndRun asks the policy and the rates, then looks the reference up, and counts
// the quota last: a request for something that exists uses no unit, not even while
// the reference is looked up.
func (x *exchange) admitAndRun(request lifecycle.Request, document catalog.Document) (lifecycle.Answer, error) {
	ctx, admitter := x.ctx, x.edge.Admitter
	ticket, err := admitter.Admit(ctx, x.started, x.identity, x.operation, document)
	x.ticket = ticket
	request.Ticket = ticket.Ticket
	if err != nil {
		return x.refused(request, err)
	}
	if len(ticket.Limits.Quotas) > 0 {
		if answer, found, err := x.stored(request); err != nil || found {
			return answer, err
		}
		ticket, err = admitter.Reserve(ctx, x.started, ticket, x.identity, x.operation)
		x.ticket, request.Remaining = ticket, ticket.Remaining
		if err != nil {
			return x.refused(request, err) // it may exist since
		}
	}
	if x.operation.Quote {
		request.Reconsider = func(ctx context.Context, quote map[string]any) error {
			return admitter.Reconsider(ctx, x.started, ticket, x.identity, x.operation, document, quote)
		}
	}
	x.handed = true
	var runner Runner = x.edge.Movements
	if x.operation.Own() || x.operation.Kind == manifest.Query {
		runner = x.edge.Queries
	}
	answer, err := runner.Run(ctx, request)
	if err != nil {
		x.ticket = admitter.Refused(ctx, x.ticket, err)
	}
	if x.unused(answer, err) {
		admitter.Release(ctx, ticket)
	}
	return answer, err
}

// unused reports whether a call uses no unit of its quotas: it is a replay, or
// nothing was sent. A provider's refusal of an inquiry uses one, because it may
// reveal as much about a number as a success.
func (x *exchange) unused(answer lifecycle.Answer, err error) bool {
	if err == nil || answer.Replayed || answer.Earlier || answer.Refused {
		return answer.Replayed || answer.Earlier
	}
	return x.truthful(err).Sent == fault.SentNo
}

// check makes the lifecycle's request of the body and headers, or says everything
// that is wrong with them at once.
func (x *exchange) check(b body) (lifecycle.Request, error) {
	op := x.operation
	var wrong []fault.Field
	request := lifecycle.Request{Identity: x.identity, Operation: op, Body: b.document, RequestID: x.id}
	reference, fields := x.idempotencyKey(b.document)
	wrong = append(wrong, fields...)
	if op.Money() {
		request.IdempotencyKey = reference
		var field *fault.Field
		if request.CallbackURL, field = x.edge.callbackURL(x.request.Header); field != nil {
			wrong = append(wrong, *field)
		}
	} else if reference != "" && op.ReferenceOf(b.document) == "" {
		if _, given := b.document[op.ReferenceField()]; !given {
			b.document[op.ReferenceField()] = reference
		}
	}
	if x.reference == "" {
		x.reference = reference
	}
	if op.NeedsMerchantID() && !b.merchant.given {
		wrong = append(wrong, fault.Field{Field: "merchant_id", Message: "is required"})
	}
	wrong = append(wrong, op.Check(withReference(b.document, op.ReferenceField(), request.IdempotencyKey))...)
	if len(wrong) > 0 {
		return lifecycle.Request{}, invalid(wrong)
	}
	return request, nil
}

// charged takes a token of the rate for a request that is refused before admission, and
// says how it is refused.
func (x *exchange) charged(refusal error) error {
	ticket, err := x.edge.Admitter.Spend(x.ctx, x.started, x.identity, x.operation, refusal)
	x.ticket = ticket
	return err
}

// unread says how a body is refused that can't be read. Where a key came with it, it
// costs what any invalid request does.
func (x *exchange) unread(b body, refusal error) error {
	if presented(b.key, x.request.Header) == "" || errors.Is(refusal, errNoRoom) {
		return refusal
	}
	if err := x.authenticate(b); err != nil {
		return err
	}
	return x.charged(refusal)
}

// withReference returns the body with the header's reference if it has none of its
// own, because a schema may require one.
func withReference(body catalog.Document, field, reference string) catalog.Document {
	if _, given := body[field]; given || reference == "" {
		return body
	}
	named := maps.Clone(body)
	named[field] = reference
	return named
}

// maxShown is how many fields an answer tells what is wrong with.
const maxShown = 20

// invalid is INVALID_REQUEST about fields; its text names the first.
func invalid(wrong []fault.Field) error {
	first := wrong[0]
	if first.Field == "" {
		first.Field = "the body"
	}
	text := "The request is invalid: " + first.Field + " " + first.Message + "."
	if more := len(wrong) - maxShown; more > 0 {
		text += fmt.Sprintf(" The first %d faults are listed, %d more are not.", maxShown, more)
		wrong = wrong[:maxShown]
	}
	return fault.New(fault.InvalidRequest, text, wrong...)
}

// refused answers a request that admission refuses. A retry of something that exists
// gets its stored answer, so that nobody pays again under a new reference because of
// a limit.
func (x *exchange) refused(request lifecycle.Request, refusal error) (lifecycle.Answer, error) {
	answer, found, err := x.stored(request)
	if err != nil || found {
		return answer, err
	}
	return lifecycle.Answer{}, refusal
}

// stored answers a request about something that exists, if it is one.
func (x *exchange) stored(request lifecycle.Request) (answer lifecycle.Answer, found bool, err error) {
	if !x.operation.Money() || x.reference == "" {
		return lifecycle.Answer{}, false, nil
	}
	x.handed = true
	request.Left = func(ctx context.Context) *int64 {
		return x.edge.Admitter.Remaining(ctx, x.started, x.ticket, x.identity)
	}
	answer, found, err = x.edge.Movements.Stored(x.ctx, request)
	if err != nil || found {
		x.edge.Admitter.Release(x.ctx, x.ticket)
	}
	return answer, found, err
}
