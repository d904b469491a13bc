package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type callbackCommands struct {
	List   callbackList   `cmd:"" help:"List callbacks, the newest first."`
	Show   callbackShow   `cmd:"" help:"Show a callback with its body and every attempt."`
	Resend callbackResend `cmd:"" help:"Send callbacks again: one, those of a span of time, or those that failed."`
	Test   callbackTest   `cmd:"" help:"Send a test callback."`
	Verify callbackVerify `cmd:"" help:"Find out whether a receiver verifies signatures: send it a test callback, and one that is forged."`
	URL    callbackURL    `cmd:"" name:"url" help:"Set the default callback URL, for requests that name none."`
	Secret callbackSecret `cmd:"" help:"Rotate the secret that callbacks are signed with."`
}

type callbackList struct{ adminapi.CallbackFilter }

// Run prints the callbacks.
func (c *callbackList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	list, err := adminapi.ListCallbacks.Call(ctx, admin, c.CallbackFilter)
	if err != nil {
		return err
	}
	return p.show(list, table(list)...)
}

type callbackShow struct{ adminapi.CallbackID }

// Run prints the callback. What a receiver answered is quoted, because it may
// be anything.
func (c *callbackShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	callback, err := adminapi.ShowCallback.Call(ctx, admin, c.CallbackID)
	if err != nil {
		return err
	}
	rows := [][]string{
		{"event_id", callback.EventID}, {"event", callback.Event}, {"movement_id", callback.MovementID},
		{"sequence", strconv.Itoa(callback.Sequence)}, {"reference", strconv.Quote(callback.Reference)}, {"url", callback.URL},
		{"state", callback.State}, {"created", timeText(&callback.CreatedAt)}, {"due", timeText(callback.DueAt)},
		{"body", string(callback.Body)},
	}
	for _, a := range callback.Attempts {
		rows = append(rows, []string{
			"try", timeText(&a.At), strconv.FormatInt(a.DurationMS, 10) + " ms", a.Outcome, strconv.Itoa(a.Status), a.Fault, strconv.Quote(a.Answer),
		})
	}
	return p.show(callback, rows...)
}

type callbackResend struct {
	Merchant string    `arg:"" help:"The merchant's id."`
	Event    string    `arg:"" optional:"" help:"The event's id; without one, those of a span of time."`
	Mode     string    `required:"" enum:"live,test" help:"live or test."`
	Since    time.Time `placeholder:"TIME" help:"Those made from this time on."`
	Until    time.Time `placeholder:"TIME" help:"Those made before this time; now unless given."`
	Failed   bool      `help:"Only those that were given up or answered 410."`
}

// Run sends again and tells how many, in as many requests as it takes.
func (c *callbackResend) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	order := adminapi.ResendOrder{
		Merchant: c.Merchant, Mode: c.Mode, EventID: c.Event, Since: givenTime(c.Since), Until: givenTime(c.Until), Failed: c.Failed,
	}
	total := adminapi.Resent{}
	for {
		resent, err := adminapi.ResendCallbacks.Call(ctx, admin, order)
		if err != nil && total.Resent > 0 {
			return incomplete(fmt.Errorf("%w\n%d were sent again before", err, total.Resent))
		}
		if err != nil {
			return err
		}
		total.Resent += resent.Resent
		if resent.Until == nil || order.Until != nil && !resent.Until.Before(*order.Until) {
			return p.show(total, []string{"resent", strconv.Itoa(total.Resent)})
		}
		order.Until = resent.Until
	}
}

func givenTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

type callbackTest struct{ adminapi.TestOrder }

// Run prints the event that is on its way.
func (c *callbackTest) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	sent, err := adminapi.TestCallback.Call(ctx, admin, c.TestOrder)
	if err != nil {
		return err
	}
	return p.show(sent, []string{"event_id", sent.EventID}, []string{"url", sent.URL})
}

type callbackVerify struct{ adminapi.TestOrder }

// Run prints how the receiver answered; one that does not verify is refused.
func (c *callbackVerify) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	found, err := adminapi.VerifyCallback.Call(ctx, admin, c.TestOrder)
	if err != nil {
		return err
	}
	rows := [][]string{{"url", found.URL}, {"verifies", strconv.FormatBool(found.Verifies)}, {"signed", answered(found.Signed)}}
	if found.Forged != nil {
		rows = append(rows, []string{"forged", answered(*found.Forged)})
	}
	if err := p.show(found, rows...); err != nil || found.Verifies {
		return err
	}
	return errors.New("the receiver does not verify signatures: it must take what is signed with a 2xx, and refuse what is forged with 400, 401 or 403")
}

func answered(t adminapi.Tried) string {
	return strings.TrimSpace(strconv.Itoa(t.Status) + " " + t.Fault + " " + strconv.Quote(t.Answer))
}

type callbackURL struct {
	Merchant string `arg:"" help:"The merchant's id."`
	URL      string `arg:"" optional:"" name:"url" help:"Where callbacks go."`
	Mode     string `required:"" enum:"live,test" help:"live or test."`
	Clear    bool   `help:"Remove the default URL."`
}

// Run sets the default URL.
func (c *callbackURL) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if (c.URL == "") != c.Clear {
		return usage(errors.New("give either a URL or --clear"))
	}
	setup, err := adminapi.SetCallbackURL.Call(ctx, admin, adminapi.CallbackURL{Merchant: c.Merchant, Mode: c.Mode, URL: &c.URL})
	if err != nil {
		return err
	}
	return p.show(setup, setupRows(setup)...)
}

func setupRows(setup adminapi.CallbackSetup) [][]string {
	return [][]string{{"mode", setup.Mode}, {"url", setup.URL}, {"rotation", setup.Rotation}}
}

type callbackSecret struct {
	adminapi.SecretChange
	confirmed
}

// Run takes one step of a rotation, and prints the next secret when it was made. A step
// that drops a secret can't be undone.
func (c *callbackSecret) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if dropped := map[string]string{"finish": "old", "cancel": "next"}[c.Action]; dropped != "" {
		if err := c.confirm(p, "Drop the "+dropped+" callback secret of "+c.Merchant+" in mode "+c.Mode); err != nil {
			return err
		}
	}
	changed, err := adminapi.ChangeCallbackSecret.Call(ctx, admin, c.SecretChange)
	if err != nil {
		return err
	}
	rows := setupRows(changed.CallbackSetup)
	if changed.CallbackSecret != "" {
		rows = append(rows, []string{"callback_secret", changed.CallbackSecret})
	}
	return p.show(changed, rows...)
}
