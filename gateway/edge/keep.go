package edge

import (
	"bytes"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
)

// logged reports whether the call is for the log of requests: an authenticated merchant's for an operation. Of those that succeed the
// policy may leave a share out, by the random end of the request's id.
func (x *exchange) logged() bool {
	if x.edge.Requests == nil || x.operation == nil || x.identity.Account == nil {
		return false
	}
	left := x.ticket.Limits.Unlogged
	if x.code != "OK" || left == 0 {
		return true
	}
	const digits = 8
	drawn, _ := strconv.ParseUint(x.id[len(x.id)-digits:], 16, 4*digits) // of an id of ours
	return float64(drawn) >= left*(1<<(4*digits))
}

// ask notes the body of a request, which shares nothing with the text.
func (x *exchange) ask(text []byte) {
	if x.edge.Requests != nil && len(text) <= requestlog.MostBody {
		x.asked = bytes.Clone(text)
	}
}

// answer notes the body of an answer.
func (x *exchange) answer(text []byte) {
	if x.answeredBytes = len(text); x.answeredBytes <= requestlog.MostBody && x.logged() {
		x.answered = bytes.Clone(text)
	}
}

// keep gives the call to the log of requests.
func (x *exchange) keep(took time.Duration) {
	if !x.logged() {
		return
	}
	call := requestlog.Call{
		Owner: requestlog.Owner{Merchant: string(x.identity.Account.ID()), Mode: string(x.identity.Mode)}, Query: x.request.URL.RawQuery,
		From: x.address, Asked: x.asked, Answered: x.answered,
		Entry: requestlog.Entry{
			ID: x.id, At: x.started, Ended: x.started.Add(took), KeyID: string(x.identity.Key.ID), KeyName: x.identity.Key.Name,
			Method: shortMethod(x.request.Method), Operation: x.operation.Path, Agent: x.request.UserAgent(),
			Status: x.status, Code: x.code, Reference: x.reference, DecisionID: x.ticket.DecisionID,
			Replayed: x.Header().Get("Idempotent-Replayed") != "", AskedBytes: x.askedBytes, AnsweredBytes: x.answeredBytes,
		},
	}
	if f := x.failure; f != nil {
		call.Message, call.Sent, call.Retry = f.Message, string(f.Sent), string(f.Retry)
	}
	x.edge.Requests.Keep(call)
}
