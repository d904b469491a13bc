package xendit

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// verdict is what the lack of a usable answer proves.
type verdict int

const (
	unclear    verdict = iota // it may have been done
	errored                   // the upstream's own error ended it; it may have been done
	turnedAway                // it was not looked at
	refused                   // it was looked at, and not done
)

// problem is why a request has no usable answer.
type problem struct {
	verdict verdict
	blame   sdk.Blame
	status  int
	code    string // the upstream's error_code
	message string // the upstream's words, for merchants
	fields  []sdk.FieldFault
	detail  string // for operators
}

// accountCodes are the upstream's words for a fault of our account with it.
var accountCodes = map[string]bool{
	"INVALID_API_KEY":                  true,
	"REQUEST_FORBIDDEN_ERROR":          true,
	"CHANNEL_NOT_ACTIVATED":            true,
	"NO_COLLECTION_METHODS_ERROR":      true,
	"UNAVAILABLE_PAYMENT_METHOD_ERROR": true,
}

var amountCodes = map[string]string{
	"MINIMAL_TRANSFER_AMOUNT_ERROR": "is below the provider's minimum",
	"AMOUNT_BELOW_MINIMUM_LIMIT":    "is below the provider's minimum",
	"MAXIMUM_TRANSFER_AMOUNT_ERROR": "is above the provider's maximum",
}

// refundCodes are the upstream's words for why a refund is refused, or has failed, as a
// merchant reads them.
var refundCodes = map[string]string{
	"REFUND_NOT_SUPPORTED":           "The provider can't refund payments of this channel.",
	"PARTIAL_REFUND_NOT_SUPPORTED":   "The provider refunds payments of this channel whole, not in part.",
	"MAXIMUM_REFUND_AMOUNT_REACHED":  "The amount is more than the provider has left of the payment.",
	"INELIGIBLE_TRANSACTION":         "The provider can't refund this payment: its time for refunds is over, or it is not in a state that allows one.",
	"INSUFFICIENT_BALANCE":           "The balance at the provider is too small for the refund.",
	"REFUND_IN_PROGRESS":             "Another refund of this payment is under way at the provider. Try again once it has ended.",
	"REFUND_TEMPORARILY_UNAVAILABLE": "The provider can't refund this payment at the moment. Try again later.",
	"MAXIMUM_USER_BALANCE_EXCEEDED":  "The payer's wallet can't take the refund: its balance would be too large.",
}

// ourFields are the upstream's names of what the merchant gave.
var ourFields = map[string]string{
	"amount":               "amount",
	"payer_email":          "payer_email",
	"description":          "description",
	"invoice_duration":     "expires_in",
	"expires_at":           "expires_in",
	"success_redirect_url": "success_url",
}

// judge reads an answer that is no success. Without the API's own error code
// it is the word of some proxy, and proves nothing.
func (c *client) judge(what string, status int, body []byte) *problem {
	var answer struct {
		Code    string          `json:"error_code"`
		Message string          `json:"message"`
		Errors  json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &answer) != nil {
		answer.Code = ""
	}
	p := &problem{
		status:  status,
		code:    c.clean(answer.Code),
		message: c.clean(answer.Message),
	}
	p.detail = strings.TrimSpace(c.clean(what) + " " + p.code + " " + p.message)
	key := c.readFields(p, answer.Errors)

	switch {
	case status == http.StatusUnauthorized, accountCodes[p.code] && status < 500, key:
		p.verdict, p.blame = turnedAway, sdk.BlameAccount
	case status == http.StatusTooManyRequests:
		p.verdict, p.blame = turnedAway, sdk.BlameLimit
	case status == http.StatusConflict, status/100 == 4 && (strings.Contains(p.code, "DUPLICATE") || strings.Contains(p.code, "IDEMPOTENCY")):
		p.verdict = unclear // something of that name exists: perhaps our own earlier attempt
	case status == http.StatusServiceUnavailable && p.code == "CHANNEL_UNAVAILABLE":
		p.verdict, p.blame = turnedAway, sdk.BlameUpstream
	case status/100 == 4 && p.code != "":
		p.verdict = refused
	case (status == http.StatusInternalServerError || status == http.StatusServiceUnavailable) && p.code != "":
		p.verdict, p.blame = errored, sdk.BlameUpstream
	default:
		p.verdict, p.blame = unclear, sdk.BlameUpstream
	}
	return p
}

// readFields turns the upstream's list of faults into ours, and reports whether
// one of them is the API key.
func (c *client) readFields(p *problem, list json.RawMessage) (key bool) {
	var faults []json.RawMessage
	if json.Unmarshal(list, &faults) != nil {
		faults = nil // an unknown form: code and message still say what is wrong
	}
	for _, raw := range faults {
		var fault struct {
			Field    []string `json:"field"`
			Messages []string `json:"messages"`
		}
		if json.Unmarshal(raw, &fault) != nil || len(fault.Field) == 0 {
			continue
		}
		theirs := fault.Field[0]
		key = key || theirs == "api_key"
		if ours, ok := ourFields[theirs]; ok {
			message := c.clean(strings.Join(fault.Messages, "; "))
			p.fields = append(p.fields, sdk.FieldFault{Field: ours, Message: strings.ReplaceAll(message, theirs, ours)})
		}
	}
	if text, ok := amountCodes[p.code]; ok {
		if p.message != "" {
			text += ": " + p.message
		}
		p.fields = []sdk.FieldFault{{Field: "amount", Message: text}}
	}
	return key
}

// result is what a create or a cancel says of the problem.
func (p *problem) result() sdk.Result {
	switch p.verdict {
	case turnedAway:
		return sdk.DidNotSend(p.blame, p.detail)
	case refused:
		r := sdk.Refuse(sdk.RefuseOther, p.refusal(), p.fields...)
		r.Detail = p.detail
		return r
	case errored:
		return sdk.UpstreamError(p.detail)
	case unclear:
	}
	return sdk.DontKnow(p.blame, p.detail)
}

func (p *problem) refusal() string {
	switch {
	case amountCodes[p.code] != "":
		return "amount " + p.fields[0].Message
	case refundCodes[p.code] != "":
		return refundCodes[p.code]
	case p.message != "":
		return "The provider refused: " + p.message
	}
	return "The provider refused: " + p.code
}

// statusUpdate is what a lookup says of the problem. Only the API's own word that
// it has nothing counts as not found.
func (p *problem) statusUpdate() sdk.StatusUpdate {
	if p.status == http.StatusNotFound && strings.Contains(p.code, "NOT_FOUND") {
		return sdk.StatusUpdate{Status: sdk.StatusNotFound, Detail: p.detail}
	}
	return sdk.NoStatus(p.blame, p.detail)
}

// clean makes foreign text fit to be shown.
func (c *client) clean(text string) string { return upstream.Printable(text, c.key, c.token) }
