package adapter

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// overMargin is how long after the end of a link's life its payer may still be on the
// way, as both clocks go.
const overMargin = 15 * time.Minute

// longestName is how much of a description a payment page has room for.
const longestName = 50

type transactionDetails struct {
	OrderID     string       `json:"order_id"`
	GrossAmount money.Amount `json:"gross_amount"`
}

type customer struct {
	Email string `json:"email,omitempty"`
}

type item struct {
	ID       string       `json:"id"`
	Price    money.Amount `json:"price"`
	Quantity int          `json:"quantity"`
	Name     string       `json:"name"`
}

type period struct {
	StartTime string `json:"start_time,omitempty"`
	Duration  int64  `json:"duration"`
	Unit      string `json:"unit"`
}

type callbacks struct {
	Finish string `json:"finish"`
}

type linkRequest struct {
	Transaction transactionDetails `json:"transaction_details"`
	Customer    customer           `json:"customer_details"`
	Items       []item             `json:"item_details,omitempty"`
	Expiry      period             `json:"expiry"`      // of whatever way to pay is chosen
	PageExpiry  period             `json:"page_expiry"` // of the page on which it is
	Callbacks   *callbacks         `json:"callbacks,omitempty"`
}

func newLinkRequest(call sdk.Call, o order, now time.Time) linkRequest {
	minutes := int64(o.life() / time.Minute)
	request := linkRequest{
		Transaction: transactionDetails{call.Reference, call.Amount},
		Customer:    customer{o.PayerEmail},
		Expiry:      period{now.In(jakarta).Format(zonedTime), minutes, "minutes"},
		PageExpiry:  period{Duration: minutes, Unit: "minutes"},
	}
	if name := []rune(o.Description); len(name) > 0 {
		request.Items = []item{{"1", call.Amount, 1, string(name[:min(len(name), longestName)])}}
	}
	if o.SuccessURL != "" {
		request.Callbacks = &callbacks{o.SuccessURL}
	}
	return request
}

func (c *client) createLink(ctx context.Context, call sdk.Call, o order, now time.Time) sdk.Result {
	request := newLinkRequest(call, o, now)
	if tooLate(call) {
		return sendByPassed()
	}
	what, answer, p := c.ask(ctx, http.MethodPost, c.snap+"/snap/v1/transactions", request)
	if p != nil {
		return p.result()
	}
	var made struct {
		Token    string   `json:"token"`
		URL      string   `json:"redirect_url"`
		Messages []string `json:"error_messages"`
	}
	err := json.Unmarshal(answer.Body, &made)
	switch {
	case err != nil, answer.Status/100 != 2 && len(made.Messages) == 0:
		return c.foreign(what, answer.Status).result()
	case answer.Status/100 != 2 && answer.Status == http.StatusNotFound:
		return garbled(c.clean(what), "the Snap API is not at this address").result()
	case answer.Status/100 != 2:
		return c.judge(what, answer.Status, strings.Join(made.Messages, "; ")).result()
	case made.Token == "" || !strings.HasPrefix(made.URL, "https://") && !strings.HasPrefix(made.URL, "http://"):
		return garbled(c.clean(what), "the answer has no token, or no usable redirect_url").result()
	}
	return sdk.Accepted(call.Reference, now.Add(o.life()).Truncate(time.Second), payable{PaymentURL: made.URL})
}

// untouched is about a link of which the upstream has no transaction. None is made
// before the payer chooses how to pay, so until the link's life is over nothing can be
// learned about one whose answer was lost; one that was accepted waits. Afterwards
// neither can be paid any more, and the upstream would know of a payment.
func untouched(l sdk.Lookup, o order, now time.Time) sdk.StatusUpdate {
	waiting := sdk.StatusUpdate{
		Reference: l.Reference, ProviderReference: l.Reference, Amount: l.Amount, Currency: currencyIDR,
		Detail: "the payer has not chosen how to pay",
	}
	switch {
	case over(l, o, now):
		waiting.Status, waiting.EventID = sdk.StatusExpired, l.Reference+"-unused"
		waiting.Detail = "nobody has chosen how to pay, and the link's life is over"
	case l.ProviderReference != "":
		waiting.Status = sdk.StatusPending
	default:
		return sdk.NoStatus(sdk.BlameNone, "the upstream knows a link only once its payer has chosen how to pay: whether this one was made shows then, or when its life is over")
	}
	return waiting
}

// over tells that nobody can begin to pay a link any more.
func over(l sdk.Lookup, o order, now time.Time) bool {
	return !l.SentAt.IsZero() && now.After(end(l, o).Add(overMargin))
}

// end is when a link's life is over, by the later of what was told and what was asked
// for. Where nobody knows when it was sent, what was told counts.
func end(l sdk.Lookup, o order) time.Time {
	if l.SentAt.IsZero() {
		return l.ExpiresAt
	}
	end := l.SentAt.Add(o.life())
	if l.ExpiresAt.After(end) {
		end = l.ExpiresAt
	}
	return end
}
