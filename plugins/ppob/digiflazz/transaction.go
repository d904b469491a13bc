package digiflazz

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// The commands of a bill. A prepaid transaction has none.
const (
	commandInquire = "inq-pasca"
	commandPay     = "pay-pasca"
	commandStatus  = "status-pasca"
)

type transactionRequest struct {
	Command    string       `json:"commands,omitempty"`
	Username   string       `json:"username"`
	SKU        string       `json:"buyer_sku_code"`
	CustomerNo string       `json:"customer_no"`
	RefID      string       `json:"ref_id"`
	Sign       string       `json:"sign"`
	Testing    bool         `json:"testing,omitempty"`
	MaxPrice   money.Amount `json:"max_price,omitzero"`
	Amount     money.Amount `json:"amount,omitzero"`
	Year       string       `json:"year,omitempty"`
}

// bill is the request of a command about a purchase.
func (p purchase) bill(command string) transactionRequest {
	r := transactionRequest{Command: command, SKU: p.SKU, CustomerNo: p.Target}
	if command != commandStatus {
		r.Amount, r.Year = p.Amount, p.Year
	}
	return r
}

// order is the request that buys, and that asks what became of it: the same
// values give the same bytes.
func (p purchase) order(cost money.Amount) transactionRequest {
	return transactionRequest{SKU: p.SKU, CustomerNo: p.Target, Testing: p.Testing, MaxPrice: cost}
}

// verdict is what an answer, or the lack of one, proves of the transaction.
type verdict int

const (
	unclear    verdict = iota // it may have been done
	errored                   // the upstream's own error ended it; it may have been done
	turnedAway                // it was not done, and for no reason of its own
	refused                   // it was not done, or undone
	pending                   // its end comes later
	succeeded                 // it was done
)

// reply is what came of one request about a transaction.
type reply struct {
	verdict verdict
	blame   sdk.Blame
	class   class
	answer  answer // sn in it without secrets
	text    string // for merchants, where there is a verdict on the transaction
	detail  string // for operators
}

// transact sends one request under a reference and judges its answer.
func (acc *account) transact(ctx context.Context, r transactionRequest, reference string, sendBy time.Time) reply {
	r.Username, r.RefID, r.Sign = acc.client.username, reference, acc.client.sign(reference)
	m := message{path: "/transaction", sign: r.Sign, body: r, sendBy: sendBy}
	data, p := acc.client.post(ctx, m)
	if p == nil {
		var a answer
		if err := json.Unmarshal(data, &a); err != nil {
			p = acc.client.garbled(m, err.Error())
		} else {
			return acc.client.judge(m, a, reference)
		}
	}
	if p.errored {
		return reply{verdict: errored, blame: p.blame, detail: p.detail}
	}
	if p.sent {
		return reply{verdict: unclear, blame: p.blame, detail: p.detail}
	}
	return reply{verdict: turnedAway, blame: p.blame, detail: p.detail}
}

// judge reads an answer by its code and its status, which must agree. An empty
// reference is for answers to which any may belong.
func (c *client) judge(m message, a answer, reference string) reply {
	why := reasons[string(a.RC)]
	a.SN = upstream.Text(upstream.Hide(string(a.SN), c.secrets(m)...))
	r := reply{class: why.class, answer: a, text: why.text}
	r.detail = c.clean(m, strings.TrimSpace(
		"rc "+string(a.RC)+", status "+string(a.Status)+", "+why.text+" ("+string(a.Message)+")"))
	known := a.RefID != "" && (reference == "" || string(a.RefID) == reference)
	switch {
	case !known && a.RefID != "":
		r.blame, r.detail = sdk.BlameUpstream, "the answer is about another ref_id: "+r.detail
	case why.class == success && a.Status == statusSuccess && known:
		r.verdict = succeeded
	case (why.class == underway || why.class == unlisted) && a.Status == statusPending && known:
		r.verdict, r.text = pending, reasons["03"].text
	case why.class == ours && (a.Status == statusFailed || a.Status == ""):
		r.verdict, r.blame = turnedAway, sdk.BlameAccount
	case why.class == limited && (a.Status == statusFailed || a.Status == ""):
		r.verdict, r.blame = unclear, sdk.BlameLimit // whatever has been done before it
	case why.class == again && (a.Status == statusFailed || a.Status == ""):
		r.verdict = unclear // whatever has been done before it
	case why.class > again && a.Status == statusFailed:
		r.verdict = refused
	default:
		r.blame = sdk.BlameUpstream
	}
	return r
}

// outcome is the data of an order.
func (r reply) outcome() outcome { return outcome{SN: string(r.answer.SN), Message: r.text} }

// result is what an order's call says.
func (r reply) result() sdk.Result {
	switch r.verdict {
	case succeeded:
		return r.cost(sdk.Finished("", r.outcome()))
	case pending:
		return r.cost(sdk.Accepted("", time.Time{}, r.outcome()))
	case refused:
		return r.refusal(sdk.RefuseOther)
	case turnedAway:
		return sdk.DidNotSend(r.blame, r.detail)
	case errored:
		return sdk.UpstreamError(r.detail)
	case unclear:
	}
	return sdk.DontKnow(r.blame, r.detail)
}

// cost adds what leaves the deposit, where the upstream names it.
func (r reply) cost(result sdk.Result) sdk.Result {
	result.Amount = r.answer.Price.Amount
	return result
}

// refusal is the upstream's no. The code for a wrong amount depends on whether
// the caller can still change it.
func (r reply) refusal(amountCode sdk.RefusalCode) sdk.Result {
	var result sdk.Result
	switch r.class {
	case destination:
		result = sdk.Refuse(sdk.RefuseDestination, r.text, sdk.FieldFault{Field: "target", Message: r.text})
	case product:
		result = sdk.Refuse(sdk.RefuseProduct, r.text)
	case amount:
		result = sdk.Refuse(amountCode, r.text, sdk.FieldFault{Field: "qty", Message: r.text})
	default:
		result = sdk.Refuse(sdk.RefuseOther, r.text)
	}
	result.Detail = r.detail
	return result
}
