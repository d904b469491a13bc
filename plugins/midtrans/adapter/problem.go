package adapter

import (
	"net/http"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// codeExpired is the Core API's own code of what has run out.
const codeExpired = 407

// verdict is what the lack of a usable answer proves.
type verdict int

const (
	unclear    verdict = iota // it may have been done
	turnedAway                // it was not looked at
	refused                   // it was looked at, and not done
	unknown                   // there is no such transaction
)

// problem is why a request has no usable answer.
type problem struct {
	verdict verdict
	ended   bool // the upstream's own error has ended the call
	blame   sdk.Blame
	code    int    // the upstream's own
	message string // the upstream's words, for merchants
	detail  string // for operators
}

// garbled is a success whose content can't be believed.
func garbled(what, why string) *problem {
	return &problem{verdict: unclear, blame: sdk.BlameUpstream, detail: what + ": " + why}
}

// foreign is an answer that is not in the upstream's own form.
func (c *client) foreign(what string, status int) *problem {
	p := garbled(c.clean(what), "the answer is not the API's own")
	switch status {
	case http.StatusUnauthorized:
		p.verdict, p.blame = turnedAway, sdk.BlameAccount
	case http.StatusTooManyRequests:
		p.verdict, p.blame = turnedAway, sdk.BlameLimit
	}
	return p
}

// judge reads an error in the upstream's own form. A code that is not in its list
// proves nothing.
func (c *client) judge(what string, code int, message string) *problem {
	p := &problem{code: code, message: c.clean(message)}
	p.detail = strings.TrimSpace(c.clean(what) + " " + p.message)
	switch code {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusGone:
		p.verdict, p.blame = turnedAway, sdk.BlameAccount // the key, or a channel that is not active
	case http.StatusTooManyRequests:
		p.verdict, p.blame = turnedAway, sdk.BlameLimit
	case http.StatusBadRequest:
		p.verdict = refused
		if strings.Contains(message, "order_id") {
			p.verdict = unclear // something of that name exists: perhaps our own earlier attempt
		}
	case http.StatusNotFound:
		p.verdict = unknown
	case http.StatusNotAcceptable: // likewise
	default:
		p.blame = sdk.BlameUpstream
		p.ended = code == http.StatusInternalServerError || code == http.StatusServiceUnavailable
	}
	return p
}

// missing tells that the upstream has no transaction of this order.
func (p *problem) missing() bool { return p.verdict == unknown }

// fields are the upstream's names of what the merchant gave.
var fields = []struct{ theirs, ours string }{
	{"gross_amount", "amount"}, {"email", "payer_email"}, {"expiry", "expires_in"}, {"finish", "success_url"},
}

// result is what a create or a cancel says of the problem.
func (p *problem) result() sdk.Result {
	switch p.verdict {
	case turnedAway:
		return sdk.DidNotSend(p.blame, p.detail)
	case refused:
		var faults []sdk.FieldFault
		for _, f := range fields {
			if strings.Contains(p.message, f.theirs) {
				faults = append(faults, sdk.FieldFault{Field: f.ours, Message: p.message})
			}
		}
		r := sdk.Refuse(sdk.RefuseOther, "The provider refused: "+p.message, faults...)
		r.Detail = p.detail
		return r
	case unclear, unknown:
	}
	return sdk.DontKnow(p.blame, p.detail)
}

// statusUpdate is what a lookup of a QRIS charge says of the problem.
func (p *problem) statusUpdate() sdk.StatusUpdate {
	if p.missing() {
		return sdk.StatusUpdate{Status: sdk.StatusNotFound, Detail: p.detail}
	}
	return sdk.NoStatus(p.blame, p.detail)
}
