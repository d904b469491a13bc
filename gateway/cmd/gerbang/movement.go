package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

type movementCommands struct {
	List     movementList     `cmd:"" help:"List a merchant's movements, or search them, the newest first."`
	Show     movementShow     `cmd:"" help:"Show its request, answers, history, overrides, postings and callbacks."`
	Override movementOverride `cmd:"" help:"Say how it ended, where the provider tells no end: two operators say the same, or one alone, which is reviewed."`
}

type movementList struct{ adminapi.MovementFilter }

// Run prints the movements of the kind that the command is named after.
func (c *movementList) Run(ctx context.Context, command *kong.Context, p *program, admin *adminapi.Client) error {
	c.Kind, _, _ = strings.Cut(command.Command(), " ")
	list, err := adminapi.ListMovements.Call(ctx, admin, c.MovementFilter)
	if err != nil {
		return err
	}
	return p.show(list, table(list.Movements)...)
}

type movementShow struct{ adminapi.MovementID }

// Run prints everything that is kept of it. What others wrote is quoted or JSON.
func (c *movementShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	m, err := adminapi.ShowMovement.Call(ctx, admin, c.MovementID)
	if err != nil {
		return err
	}
	return p.show(m, movementRows(m)...)
}

func movementRows(m adminapi.Movement) [][]string {
	rows := [][]string{
		{"id", m.ID}, {"merchant_id", m.MerchantID}, {"mode", m.Mode}, {"kind", m.Kind}, {"reference", quoted(m.Reference)},
		{"operation", m.Operation}, {"provider", m.Provider}, {"state", m.State}, {"amount", m.Amount.String()},
		{"request_id", dash(m.RequestID)}, {"decision_id", dash(m.DecisionID)}, {"policy_version", dash(m.PolicyVersion)},
		{"connection", connectionText(m.Paying)}, {"fee", m.Fee.String()}, {"name_match", matchText(m.NameMatch)}, {"destination", m.Destination},
		{"cost", m.Cost.String()}, {"charge", dash(m.Charge)}, {"quote", dash(string(m.Quote))},
		{"sent", dash(string(m.Request))}, {"sent as", m.UpstreamReference}, {"provider_reference", quoted(m.ProviderReference)},
		{"came back", dash(string(m.Result))}, {"refused", refusalText(m)}, {"answered", dash(string(m.Answer))},
		{"send_by", timeText(m.SendBy)}, {"last lookup", timeText(m.PolledAt)}, {"next lookup", timeText(m.DueAt)}, {"not found", strconv.Itoa(m.Misses)},
		{"callback_url", dash(m.CallbackURL)},
	}
	events := happened(m)
	slices.SortStableFunc(events, func(a, b []string) int { return strings.Compare(a[0], b[0]) }) // times in one form
	return append(append(rows, []string{}, []string{"AT", "EVENT", "DETAIL"}), events...)
}

// happened is everything that happened to a movement, with the time first.
func happened(m adminapi.Movement) [][]string {
	rows := [][]string{{timeText(&m.CreatedAt), "reserved", "attempt " + strconv.Itoa(m.Attempt)}}
	for _, e := range m.History {
		rows = append(rows, []string{timeText(&e.At), e.Event, e.Detail})
	}
	for _, n := range m.Notes {
		rows = append(rows, []string{timeText(&n.At), n.Event, fmt.Sprintf("%s, times: %d, last at %s", n.Detail, n.Times, timeText(&n.LastAt))})
	}
	for _, o := range m.Overrides {
		rows = append(rows, overrideRows(o)...)
	}
	for _, e := range m.Exceptions {
		rows = append(rows, []string{timeText(&e.At), "listed " + e.Reason, e.Detail})
		if !e.ResolvedAt.IsZero() {
			rows = append(rows, []string{timeText(&e.ResolvedAt), "resolved " + e.Reason, "by " + e.ResolvedBy + ": " + e.Resolution})
		}
	}
	for _, t := range m.Postings {
		rows = append(rows, []string{timeText(&t.At), "posted " + t.Kind, fmt.Sprintf("available %s, held %s, margin %s, cost %s, deposit %s",
			t.Available, t.Held, t.Margin, t.Cost, t.Deposit)})
	}
	for _, callback := range m.Callbacks {
		rows = append(rows, callbackRows(callback)...)
	}
	return rows
}

func overrideRows(o movement.Override) [][]string {
	first := "proposed "
	if o.Alone {
		first = "decided alone "
	}
	rows := [][]string{{timeText(&o.At), first + string(o.Outcome), "by " + o.Operator + ": " + o.Reason}}
	if o.ConfirmedBy != "" {
		rows = append(rows, []string{timeText(&o.ConfirmedAt), "confirmed " + string(o.Outcome), "by " + o.ConfirmedBy + ": " + o.ConfirmedReason})
	}
	return rows
}

func callbackRows(callback adminapi.Callback) [][]string {
	rows := [][]string{{timeText(&callback.CreatedAt), "callback " + callback.Event, callback.State + ", event_id " + callback.EventID}}
	for _, a := range callback.Attempts {
		rows = append(rows, []string{timeText(&a.At), "try", strings.TrimSpace(fmt.Sprintf("%s %d %s", a.Outcome, a.Status, a.Fault))})
	}
	return rows
}

type movementOverride struct {
	adminapi.NewOverride
	confirmed
}

// Run overrides the movement, and says whether another operator must confirm.
func (c *movementOverride) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, "Override "+c.Movement+" as "+c.As+": no provider is asked how it ended"); err != nil {
		return err
	}
	o, err := adminapi.OverrideMovement.Call(ctx, admin, c.NewOverride)
	if err != nil {
		return err
	}
	rows := [][]string{
		{"id", o.ID}, {"merchant_id", o.MerchantID}, {"mode", o.Mode}, {"kind", o.Kind}, {"reference", quoted(o.Reference)}, {"state", o.State},
	}
	rows = append(rows, overrideRows(o.Override)...)
	if o.Waiting {
		rows = append(rows, []string{"It waits for another operator to say the same."})
	}
	return p.show(o, rows...)
}

type findCommand struct{ adminapi.Search }

// Run prints the decision and each movement with what happened to it. Finding none is a failure.
func (c *findCommand) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	found, err := adminapi.Find.Call(ctx, admin, c.Search)
	if err != nil {
		return err
	}
	rows := decisionRows(found.Decision)
	for _, f := range found.Places {
		rows = append(rows, []string{f.Kind, f.ID, dash(f.MerchantID), dash(f.Mode), quoted(f.Name)})
	}
	for _, m := range found.Movements {
		if len(rows) > 0 {
			rows = append(rows, []string{})
		}
		rows = append(rows, foundRows(m)...)
	}
	if err := p.show(found, rows...); err != nil {
		return err
	}
	if len(found.Movements) == 0 && found.Decision == nil && len(found.Places) == 0 {
		return notFoundf("nothing has the id %s; ids of requests and decisions and provider references were looked for since %s. "+
			"A request that made no movement is found by its request_id only where a policy, rate or quota refused it and its input was kept. "+
			"The gateway's log has a line of each request_id, and a refusal's line has the decision_id, which always explains it",
			strconv.Quote(c.ID), timeText(&found.Since))
	}
	return nil
}

func foundRows(m adminapi.FoundMovement) [][]string {
	rows := [][]string{
		{m.Kind, m.ID, m.State}, {"found by", strings.Join(m.By, ", ")},
		{"merchant", m.MerchantID, m.Mode}, {"reference", quoted(m.Reference)}, {"operation", m.Operation, m.Amount.String()}, {"provider", m.Provider},
		{"request_id", dash(m.RequestID)}, {"decision_id", dash(m.DecisionID), dash(m.PolicyVersion)},
		{"sent as", m.UpstreamReference}, {m.Provider + " calls it", quoted(m.ProviderReference)},
	}
	for _, e := range m.History {
		rows = append(rows, []string{timeText(&e.At), e.Event, e.Detail})
	}
	return rows
}

// quoted is a name that somebody else chose, "-" for none.
func quoted(name string) string {
	if name == "" {
		return "-"
	}
	return strconv.Quote(name)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func connectionText(paying adminapi.Paying) string {
	return strings.TrimSpace(fmt.Sprintf("%s, version %d %s", dash(paying.ConnectionOwner), paying.ConnectionVersion, paying.ConnectionAccount))
}

func matchText(match *bool) string {
	if match == nil {
		return "-"
	}
	return strconv.FormatBool(*match)
}

func refusalText(m adminapi.Movement) string {
	if m.RefusalCode == "" {
		return "-"
	}
	return m.RefusalCode + ": " + strconv.Quote(m.RefusalMessage)
}
