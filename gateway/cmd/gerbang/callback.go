package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type callbackCommands struct {
	List   callbackList   `cmd:"" help:"List callbacks, the newest first."`
	Show   callbackShow   `cmd:"" help:"Show a callback with its body and every attempt."`
	Resend callbackResend `cmd:"" help:"Send callbacks again: one, those of a span of time, or those that failed."`
	Test   callbackTest   `cmd:"" help:"Send a test callback."`
	URL    callbackURL    `cmd:"" name:"url" help:"Set the default callback URL, for requests that name none."`
	Secret callbackSecret `cmd:"" help:"Rotate the secret that callbacks are signed with."`
}

type callbackList struct {
	Merchant string    `arg:"" help:"The merchant's id."`
	Mode     string    `required:"" enum:"live,test" help:"live or test."`
	State    string    `enum:",waiting,delivered,gone,dead,none" default:"" help:"waiting, delivered, gone, dead or none; all unless given."`
	Since    time.Time `placeholder:"TIME" help:"Only those made from this time on, such as 2026-01-02T03:04:05Z."`
	Until    time.Time `placeholder:"TIME" help:"Only those made before this time."`
	Limit    int       `default:"100" help:"At most so many (${default}, 1000 at most)."`
}

// Run prints the callbacks.
func (c *callbackList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	list, err := admin.Callbacks(ctx, c.Merchant, adminapi.CallbackFilter{
		Mode: c.Mode, State: c.State, Since: c.Since, Until: c.Until, Limit: c.Limit,
	})
	if err != nil {
		return err
	}
	rows := [][]string{{"CREATED", "EVENT ID", "EVENT", "STATE", "TRIES", "DUE", "REFERENCE", "URL"}}
	for _, callback := range list {
		rows = append(rows, []string{
			timeText(&callback.CreatedAt), callback.EventID, callback.Event, callback.State, strconv.Itoa(callback.Tries),
			timeText(callback.DueAt), strconv.Quote(callback.Reference), callback.URL,
		})
	}
	return p.show(list, rows...)
}

type callbackShow struct {
	Merchant string `arg:"" help:"The merchant's id."`
	Event    string `arg:"" help:"The event's id: webhook-id."`
	Mode     string `required:"" enum:"live,test" help:"live or test."`
}

// Run prints the callback. What a receiver answered is quoted, because it may
// be anything.
func (c *callbackShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	callback, err := admin.Callback(ctx, c.Merchant, c.Mode, c.Event)
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
		Mode: c.Mode, EventID: c.Event, Since: givenTime(c.Since), Until: givenTime(c.Until), Failed: c.Failed,
	}
	total := adminapi.Resent{}
	for {
		resent, err := admin.ResendCallbacks(ctx, c.Merchant, order)
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

type callbackTest struct {
	Merchant string `arg:"" help:"The merchant's id."`
	Mode     string `required:"" enum:"live,test" help:"live or test."`
	URL      string `name:"url" help:"The receiver; the merchant's default URL unless given."`
}

// Run prints the event that is on its way.
func (c *callbackTest) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	sent, err := admin.TestCallback(ctx, c.Merchant, adminapi.TestOrder{Mode: c.Mode, URL: c.URL})
	if err != nil {
		return err
	}
	return p.show(sent, []string{"event_id", sent.EventID}, []string{"url", sent.URL})
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
	setup, err := admin.SetCallbackURL(ctx, c.Merchant, c.Mode, c.URL)
	if err != nil {
		return err
	}
	return p.show(setup, setupRows(setup)...)
}

func setupRows(setup adminapi.CallbackSetup) [][]string {
	return [][]string{{"mode", setup.Mode}, {"url", setup.URL}, {"rotation", setup.Rotation}}
}

type callbackSecret struct {
	Step     string `arg:"" enum:"rotate,switch,finish,cancel" help:"rotate makes the next secret, shown this once: webhook-signature carries both from now on. switch signs X-Svc-Signature with the next. finish makes the next the only one. cancel drops the next."`
	Merchant string `arg:"" help:"The merchant's id."`
	Mode     string `required:"" enum:"live,test" help:"live or test."`
	confirmed
}

// Run takes one step of a rotation, and prints the next secret when it was made. A step
// that drops a secret can't be undone.
func (c *callbackSecret) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if dropped := map[string]string{"finish": "old", "cancel": "next"}[c.Step]; dropped != "" {
		if err := c.confirm(p, "Drop the "+dropped+" callback secret of "+c.Merchant+" in mode "+c.Mode); err != nil {
			return err
		}
	}
	changed, err := admin.ChangeCallbackSecret(ctx, c.Merchant, adminapi.SecretChange{Mode: c.Mode, Action: c.Step})
	if err != nil {
		return err
	}
	rows := setupRows(changed.CallbackSetup)
	if changed.CallbackSecret != "" {
		rows = append(rows, []string{"callback_secret", changed.CallbackSecret})
	}
	return p.show(changed, rows...)
}
