package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// A request sends again at most resendTurns pages of each state, so that it
// ends before its caller gives up; the answer says where to go on.
const (
	resendPage  = 250
	resendTurns = 8
)

func (c *Console) resendCallbacks(x *call, order adminapi.ResendOrder) (out adminapi.Resent, err error) {
	owner, err := c.ownerOf(x, order.Mode)
	if err != nil {
		return out, err
	}
	if order.EventID == "" {
		return c.resendRange(x, owner, order)
	}
	if order.Failed || order.Since != nil || order.Until != nil {
		return out, fault.Invalid("event_id", "must not be given together with a range")
	}
	return c.resendOne(x, owner, order.EventID)
}

// resendOne sends one callback again. One that waits for its next try anyway is
// tried now.
func (c *Console) resendOne(x *call, owner movement.Owner, event string) (out adminapi.Resent, err error) {
	callback, err := c.callback(x, owner, event)
	if err != nil {
		return out, err
	}
	if callback.URL == "" {
		return out, fault.Invalid("event_id", "names an event that was made without a callback URL")
	}
	if err := c.note(x, "callback.resend", owner, "event "+callback.EventID.String()); err != nil {
		return out, err
	}
	if callback.State == movement.CallbackWaiting {
		if err := c.deps.Callbacks.PostponeCallback(x.request.Context(), callback.CallbackKey, x.now); err != nil {
			return out, err
		}
		return adminapi.Resent{Resent: 1}, nil
	}
	resent, err := c.deps.Callbacks.Resend(x.request.Context(), x.now, callback.CallbackKey)
	if err != nil {
		return out, err
	}
	if !resent {
		return out, fault.New(fault.InProgress, "Somebody else has just sent this callback again.")
	}
	return adminapi.Resent{Resent: 1}, nil
}

// resendRange sends again what has ended in a span of time. What waits comes by
// itself.
func (c *Console) resendRange(x *call, owner movement.Owner, order adminapi.ResendOrder) (out adminapi.Resent, err error) {
	span := movement.CallbackRange{Owner: owner, Until: x.now, Most: resendPage}
	states := []movement.CallbackState{movement.CallbackDead, movement.CallbackGone}
	detail := "those that failed"
	if !order.Failed {
		if order.Since == nil {
			return out, fault.Invalid("since", "is required, unless only those that failed are sent again")
		}
		states, detail = append(states, movement.CallbackDelivered), "all that ended"
	}
	if order.Since != nil {
		span.Since = *order.Since
		detail += ", since " + span.Since.UTC().Format(time.RFC3339)
	}
	if order.Until != nil {
		span.Until = *order.Until
	}
	if err := c.note(x, "callback.resend", owner, detail+", until "+span.Until.UTC().Format(time.RFC3339)); err != nil {
		return out, err
	}
	var answer adminapi.Resent
	for _, state := range states {
		span.State = state
		resent, left, err := c.resendPages(x.request.Context(), x.now, span)
		if err != nil {
			return out, err
		}
		answer.Resent += resent
		if !left.IsZero() && (answer.Until == nil || left.After(*answer.Until)) {
			answer.Until = &left
		}
	}
	return answer, nil
}

// resendPages sends the callbacks of one state again, the newest first. Where
// some are left it tells the end of their span.
func (c *Console) resendPages(ctx context.Context, now time.Time, span movement.CallbackRange) (int, time.Time, error) {
	resent := 0
	for range resendTurns {
		page, err := c.deps.Callbacks.Callbacks(ctx, span)
		if err != nil {
			return 0, time.Time{}, err
		}
		for _, callback := range page {
			ok, err := c.deps.Callbacks.Resend(ctx, now, callback.CallbackKey)
			if err != nil {
				return 0, time.Time{}, err
			}
			if ok {
				resent++
			}
		}
		if len(page) < span.Most {
			return resent, time.Time{}, nil
		}
		last := page[len(page)-1]
		span.Until, span.After = last.CreatedAt, last.EventID
	}
	// Others may have been made at the same time as the last one.
	return resent, span.Until.Add(time.Microsecond), nil
}

func (c *Console) testCallback(x *call, order adminapi.TestOrder) (out adminapi.SentTest, err error) {
	owner, receiver, err := c.receiverOf(x, order)
	if err != nil {
		return out, err
	}
	event := movement.CallbackEvent{ID: uuid.New(), Event: testEvent, URL: receiver}
	if event.Body, err = testBody(x.now); err != nil {
		return out, err
	}
	if err := c.note(x, "callback.test", owner, fmt.Sprintf("event %s, to %s", event.ID, adminapi.PresentURL(receiver))); err != nil {
		return out, err
	}
	if err := c.deps.Callbacks.AddCallback(x.request.Context(), x.now, owner, event); err != nil {
		return out, err
	}
	return adminapi.SentTest{EventID: event.ID.String(), URL: adminapi.PresentURL(receiver)}, nil
}

// verifyCallback asks a receiver itself. That it verifies is audited, once more for each receiver.
func (c *Console) verifyCallback(x *call, order adminapi.TestOrder) (out adminapi.VerifiedCallback, err error) {
	owner, receiver, err := c.receiverOf(x, order)
	if err != nil {
		return out, err
	}
	body, err := testBody(x.now)
	if err != nil {
		return out, err
	}
	out.URL = adminapi.PresentURL(receiver)
	if err := c.note(x, "callback.verify", owner, "to "+out.URL); err != nil {
		return out, err
	}
	answers, err := c.deps.Challenge(x.request.Context(), owner, receiver, body)
	if err != nil {
		return out, err
	}
	out.Verifies, out.Signed = answers.Verifies(), tried(answers.Signed)
	if answers.Signed.Outcome == callback.Delivered {
		out.Forged = new(tried(answers.Forged))
	}
	if out.Verifies {
		err = c.note(x, adminapi.ActionVerified, owner, "by "+out.URL)
	}
	return out, err
}

func tried(a callback.Attempt) adminapi.Tried {
	return adminapi.Tried{Status: a.Status, Fault: a.Error, Answer: a.Answer}
}

// receiverOf is whose test callback is sent where: to the default URL unless another is given.
func (c *Console) receiverOf(x *call, order adminapi.TestOrder) (owner movement.Owner, receiver string, err error) {
	mode, err := parseMode(order.Mode)
	if err != nil {
		return owner, "", err
	}
	account, err := c.account(x)
	if err != nil {
		return owner, "", err
	}
	receiver = cmp.Or(order.URL, account.CallbackURL(mode))
	if receiver == "" {
		return owner, "", fault.Invalid("url", "is required, because the merchant has no default URL in this mode")
	}
	return movement.Owner{MerchantID: string(account.ID()), Mode: string(mode)}, receiver, c.checkURL(receiver)
}

const testEvent = "callback.test"

func testBody(now time.Time) ([]byte, error) {
	type data struct {
		Timestamp string `json:"timestamp"`
	}
	return json.Marshal(struct {
		Event string `json:"event"`
		Data  data   `json:"data"`
	}{testEvent, data{now.UTC().Format(time.RFC3339)}})
}

func (c *Console) checkURL(text string) error {
	if err := callback.CheckURL(text, c.config.AllowHTTPCallbacks); err != nil {
		return fault.Invalid("url", err.Error())
	}
	return nil
}

// note writes the audit of what changes no account, before it is done.
func (c *Console) note(x *call, action string, owner movement.Owner, detail string) error {
	id := tenants.MerchantID(owner.MerchantID)
	return c.deps.Merchants.NoteAudit(x.request.Context(), x.audit(action, detail+", mode "+owner.Mode), id)
}
