package snap

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// problem is why a request was not answered with a success.
type problem struct {
	service service
	class   class
	blame   sdk.Blame
	text    string // for merchants, where the class is theirs
	field   string // of our request, where the upstream names one
	detail  string // for operators
}

// head is what every answer begins with.
type head struct {
	Code    text `json:"responseCode"`
	Message text `json:"responseMessage"`
}

// judge reads the response code of an answer. It is nil for a success.
func judge(s service, m message, status int, answer []byte) *problem {
	var h head
	if json.Unmarshal(answer, &h) != nil {
		h = head{} // a proxy's page, or cut short
	}
	why := meaning(s, status, string(h.Code))
	if why.class == success {
		return nil
	}
	p := &problem{
		service: s, class: why.class, text: why.text,
		detail: m.describe(strings.TrimSpace(fmt.Sprintf("%d %s %s [%s]", status, h.Code, h.Message, why.text))),
	}
	if p.class == malformed {
		p.blameField(string(h.Message))
	}
	switch p.class {
	case unlisted, errored:
		p.blame = sdk.BlameUpstream
	case throttled:
		p.blame = sdk.BlameLimit
	case expired, forbidden, ours:
		p.blame = sdk.BlameAccount
	default:
		p.blame = sdk.BlameNone
	}
	return p
}

// meaning is what an answer means to a service: its code, where it has one of
// this service that agrees with the HTTP status. Some issuers answer everything
// with 200 and say the rest by the code. Of 401 and 429 the answer may be a
// gateway's that knows no services, or no codes.
func meaning(s service, status int, code string) reason {
	http3 := strconv.Itoa(status)
	turnedAway := status == http.StatusUnauthorized || status == http.StatusTooManyRequests
	if len(code) != 7 || strings.Trim(code, "0123456789") != "" {
		if turnedAway {
			return reasonOf(http3, "")
		}
		return reason{unlisted, "no response code"}
	}
	switch {
	case code[:3] != http3 && status != http.StatusOK:
		return reason{unlisted, "the code contradicts the HTTP status"}
	case code[3:5] != s.code && code[:3] != "401" && code[:3] != "429":
		return reason{unlisted, "the code of another service"}
	}
	return reasonOf(code[:3], code[5:])
}

// theirFields are the upstream's names of what the merchant gave, and of what
// our account gave, which is "". The first that is found counts.
var theirFields = []struct{ theirs, ours string }{
	{"beneficiarybankcode", "bank_code"},
	{"beneficiaryaccount", "account_no"},
	{"feeamount", ""},
	{"amount", "amount"},
	{"notes", "message"},
	{"x-partner-id", ""},
	{"x-external-id", ""},
	{"x-timestamp", ""},
	{"x-signature", ""},
	{"x-client-key", ""},
	{"channel-id", ""},
	{"authorization", ""},
	{"fundtype", ""},
}

// blameField finds out whose field the upstream does not like.
func (p *problem) blameField(message string) {
	message = strings.ToLower(message)
	if strings.Contains(message, "customernumber") {
		if p.service.destination != topUp.destination {
			p.class = ours // of a bank transfer it is the payer's
			return
		}
		p.class, p.field = destination, p.service.destination
		return
	}
	for _, f := range theirFields {
		if !strings.Contains(message, f.theirs) {
			continue
		}
		switch p.field = f.ours; f.ours {
		case "":
			p.class = ours
		case "amount":
			p.class = amount
		case "bank_code":
			p.class = bank
		case "account_no":
			p.class = destination
		}
		return
	}
}

// orUnread reads the answer of a success, or of what is under way. It is called
// on nil, too, which is a success.
func (p *problem) orUnread(m message, answer []byte, into any) *problem {
	if into == nil {
		return p
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return m.garbled("the answer can't be read: " + err.Error())
	}
	return p
}

// result is what a call or a quote says of the problem.
func (p *problem) result() sdk.Result {
	switch p.class {
	case unsent, expired, forbidden, ours, throttled:
		return sdk.DidNotSend(p.blame, p.detail)
	case malformed, other:
		return p.refusal(sdk.RefuseOther, p.field)
	case destination:
		return p.refusal(sdk.RefuseDestination, p.service.destination)
	case bank:
		return p.refusal(sdk.RefuseDestination, "bank_code")
	case amount:
		if p.service.question {
			return p.refusal(sdk.RefuseRequest, "amount") // it can still be changed
		}
		return p.refusal(sdk.RefuseOther, "amount")
	case errored:
		return sdk.UpstreamError(p.detail)
	case unlisted, success, underway, conflict, earlier, missing:
	}
	return sdk.DontKnow(p.blame, p.detail)
}

// refusal is the upstream's no. Of a question it is an answer, too.
func (p *problem) refusal(code sdk.RefusalCode, field string) sdk.Result {
	var fields []sdk.FieldFault
	if field != "" {
		fields = []sdk.FieldFault{{Field: field, Message: p.text}}
	}
	r := sdk.Refuse(code, p.text, fields...)
	r.Detail = p.detail
	if p.service.question {
		r.Blame = sdk.BlameUpstream
	}
	return r
}
