package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type policyTry struct {
	Operation string `required:"" placeholder:"PATH" help:"What is asked for, such as /wallet1/transfer/bank."`
	Merchant  string `required:"" placeholder:"ID" help:"Whose record counts, as it is now."`
	Mode      string `default:"live" enum:"live,test" help:"live or test."`
	Input     string `placeholder:"FILE" help:"The request's body; - is standard input. A key in it is passed over. Empty unless given."`
	At        string `placeholder:"TIME" help:"When: 2026-11-20T23:30:00+07:00, or 2026-11-20 23:30 in the gateway's time zone. Now unless given."`
	Quote     string `placeholder:"JSON" help:"What the quote says, for rules that read it, such as {\"name_match\": false}."`
	Version   string `placeholder:"VERSION" help:"Beginning of the version that is asked; the one in force unless given."`
	Dir       string `placeholder:"DIR" help:"Directory of a policy that is no version yet."`
}

// Run prints whether the case is allowed, and what decides that.
func (c *policyTry) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	wanted := adminapi.PolicyCase{
		Version: c.Version, Merchant: c.Merchant, Mode: c.Mode, Operation: c.Operation, At: c.At,
	}
	if c.Version != "" && c.Dir != "" {
		return usage(errors.New("give either --version or --dir"))
	}
	var err error
	if c.Dir != "" {
		if wanted.Files, err = policyFiles(c.Dir); err != nil {
			return err
		}
	}
	if wanted.Input, err = p.document(c.Input); err != nil {
		return err
	}
	if wanted.Quote = json.RawMessage(c.Quote); c.Quote != "" && !json.Valid(wanted.Quote) {
		return usage(errors.New("--quote is not JSON"))
	}
	answer, err := adminapi.TryPolicy.Call(ctx, admin, wanted)
	if err != nil {
		return err
	}
	return p.show(answer, tryRows(answer, c.Dir)...)
}

// document reads a JSON file, or nothing where none is named.
func (p *program) document(file string) (json.RawMessage, error) {
	var content []byte
	var err error
	switch file {
	case "":
		return nil, nil
	case "-":
		content, err = readAll(p.in)
	default:
		content, err = os.ReadFile(file)
	}
	if err == nil && !json.Valid(content) {
		err = fmt.Errorf("%s is not JSON", file)
	}
	return content, err
}

// tryRows is an answer for people. Files of a directory are told with a path that leads to them.
func tryRows(a adminapi.PolicyAnswer, dir string) [][]string {
	verdict := "allowed"
	if !a.Allow {
		verdict = "denied"
	}
	rows := [][]string{{"verdict", verdict}, {"version", shortVersion(a.Version)}, {"at", a.At}}
	for _, r := range a.Reasons {
		where := ""
		if r.File != "" {
			where = fmt.Sprintf(" (%s, %s:%d)", r.Rule, filepath.Join(dir, r.File), r.Line)
		}
		rows = append(rows, []string{"reason", r.Reason + where})
	}
	if a.Amount != nil {
		rows = append(rows, []string{"amount", strconv.FormatInt(*a.Amount, 10)})
	}
	for _, r := range a.Limits.Rates {
		rows = append(rows, []string{"rate", fmt.Sprintf("%s: %g/s, burst %d, per %s", r.Name, r.RatePerSecond, r.Burst, cmp.Or(r.Per, "merchant"))})
	}
	for _, q := range a.Limits.Quotas {
		rows = append(rows, []string{"quota", fmt.Sprintf("%s: %d a month", q.Name, q.Limit)})
	}
	if a.Limits.Markup > 0 || a.Limits.Products > 0 {
		rows = append(rows, []string{"markup", fmt.Sprintf("%d, and %d products of their own", a.Limits.Markup, a.Limits.Products)})
	}
	for _, payout := range []struct {
		name string
		most adminapi.PolicyPayout
	}{{"a day", a.Limits.Day}, {"a day to one destination", a.Limits.DestinationDay}} {
		if text := payoutText(payout.most); text != "" {
			rows = append(rows, []string{"payouts", text + " " + payout.name})
		}
	}
	if a.Limits.RepeatWithin != "" {
		rows = append(rows, []string{"repeat within", a.Limits.RepeatWithin})
	}
	return append(rows, []string{"steps", strconv.Itoa(a.Steps)})
}

func payoutText(most adminapi.PolicyPayout) string {
	var words []string
	if most.Amount != nil {
		words = append(words, "Rp"+strconv.FormatInt(*most.Amount, 10))
	}
	if most.Count != nil {
		words = append(words, strconv.FormatInt(*most.Count, 10)+" transfers")
	}
	return strings.Join(words, " and ")
}
