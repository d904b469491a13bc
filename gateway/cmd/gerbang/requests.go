package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type requestCommands struct {
	List requestList `cmd:"" help:"List a merchant's calls of the last seven days, the newest first."`
	Show requestShow `cmd:"" help:"Show a call with what was asked and answered, masked."`
}

type requestList struct{ adminapi.RequestLogFilter }

// Run prints the calls.
func (c *requestList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	log, err := adminapi.ListRequestLog.Call(ctx, admin, c.RequestLogFilter)
	if err != nil {
		return err
	}
	rows := table(log.Requests)
	if log.NotKept > 0 {
		rows = append(rows, []string{strconv.FormatInt(log.NotKept, 10) + " calls of the last hour were not kept"})
	}
	if log.Unread > 0 {
		rows = append(rows, []string{strconv.Itoa(log.Unread) + " parts of the log can't be read"})
	}
	if log.Next != "" {
		rows = append(rows, []string{"more with --after " + log.Next})
	}
	return p.show(log, rows...)
}

type requestShow struct{ adminapi.LoggedRequestID }

// Run prints the call.
func (c *requestShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	r, err := adminapi.ShowLoggedRequest.Call(ctx, admin, c.LoggedRequestID)
	if err != nil {
		return err
	}
	return p.show(r,
		[]string{"request_id", r.RequestID}, []string{"time", timeText(&r.At)}, []string{"call", r.Method + " " + r.Operation}, []string{"answer", strconv.Itoa(r.Status) + " " + r.Code},
		[]string{"message", dash(r.Message)}, []string{"sent", dash(r.Sent)}, []string{"retry", dash(r.Retry)}, []string{"replayed", strconv.FormatBool(r.Replayed)},
		[]string{"reference", strconv.Quote(r.Reference)}, []string{"took", fmt.Sprintf("%.3f ms", r.DurationMS)}, []string{"key", r.KeyID, strconv.Quote(r.KeyName)},
		[]string{"from", dash(r.Address)}, []string{"user_agent", strconv.Quote(r.Agent)}, []string{"decision_id", dash(r.DecisionID)},
		[]string{"asked", string(r.Asked), strconv.Itoa(r.AskedBytes) + " bytes"}, []string{"answered", string(r.Answered), strconv.Itoa(r.AnsweredBytes) + " bytes"},
	)
}
