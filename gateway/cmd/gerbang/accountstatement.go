package main

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type ledgerBalance struct {
	adminapi.BalanceQuery
	CSV bool `name:"csv" help:"Print CSV instead of text."`
}

// Run prints a row for each account.
func (c *ledgerBalance) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := p.oneForm(c.CSV); err != nil {
		return err
	}
	balance, err := adminapi.ShowBalance.Call(ctx, admin, c.BalanceQuery)
	if err != nil {
		return err
	}
	rows := [][]string{{"ACCOUNT", "PROVIDER", "AMOUNT"}}
	table := [][]string{{"merchant_id", "mode", "at", "account", "provider", "amount"}}
	for _, a := range balance.Accounts {
		rows = append(rows, []string{a.Account, dash(a.Provider), a.Amount.String()})
		table = append(table, []string{
			inert(balance.MerchantID), balance.Mode, exactTime(balance.At), a.Account, inert(a.Provider), a.Amount.String(),
		})
	}
	if c.CSV {
		return csv.NewWriter(p.out).WriteAll(table)
	}
	return p.show(balance, rows...)
}

type ledgerStatement struct {
	adminapi.AccountStatementFilter
	CSV bool `name:"csv" help:"Print CSV instead of text."`
}

// Run prints the statement, however many pages it fills.
func (c *ledgerStatement) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := p.oneForm(c.CSV); err != nil {
		return err
	}
	c.Limit = adminapi.MostListed
	entries := accountStatement(ctx, admin, c.AccountStatementFilter)
	if c.CSV {
		return writeStatement(p.out, entries)
	}
	all := []adminapi.AccountEntry{}
	for e, err := range entries {
		if err != nil {
			return err
		}
		all = append(all, e)
	}
	return p.show(all, table(all)...)
}

// accountStatement reads all pages of an account statement, each when it is needed.
func accountStatement(ctx context.Context, admin *adminapi.Client, f adminapi.AccountStatementFilter) iter.Seq2[adminapi.AccountEntry, error] {
	return func(yield func(adminapi.AccountEntry, error) bool) {
		for {
			page, err := adminapi.ListAccountStatement.Call(ctx, admin, f)
			if err != nil {
				yield(adminapi.AccountEntry{}, err)
				return
			}
			for _, e := range page.Entries {
				if !yield(e, nil) {
					return
				}
			}
			if f.After = page.Next; f.After == "" {
				return
			}
		}
	}
}

// writeStatement writes rows as they come, because a statement may be larger than
// this machine's memory.
func writeStatement(to io.Writer, entries iter.Seq2[adminapi.AccountEntry, error]) error {
	w := csv.NewWriter(to)
	if err := w.Write([]string{
		"at", "kind", "reference", "subject", "attempt", "provider", "available", "held", "balance_available", "balance_held",
	}); err != nil {
		return err
	}
	for e, err := range entries {
		if err != nil {
			w.Flush()
			return err
		}
		if err := w.Write([]string{
			exactTime(e.At), e.Kind, inert(e.Reference), e.Subject, strconv.Itoa(e.Attempt), inert(e.Provider),
			e.Available.String(), e.Held.String(), e.BalanceAvailable.String(), e.BalanceHeld.String(),
		}); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// inert is a text that a spreadsheet takes for text: what begins like a formula
// gets a quote before it. Merchants choose references.
func inert(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}

// exactTime is a time with what the ledger keeps of it.
func exactTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// oneForm refuses two forms of output at once.
func (p *program) oneForm(csv bool) error {
	if csv && p.json {
		return usage(errors.New("give either --json or --csv"))
	}
	return nil
}
