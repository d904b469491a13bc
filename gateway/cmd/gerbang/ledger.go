package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

type ledgerCommands struct {
	Check     ledgerCheck     `cmd:"" help:"Check every invariant of the ledger since the last day that was verified; the exit code is 1 when one is broken."`
	Balance   ledgerBalance   `cmd:"" help:"Show the balance of a merchant or of the platform, now or at a time."`
	Statement ledgerStatement `cmd:"" help:"Print a merchant's account statement: each transaction with the balance after it, the oldest first."`
	Waiting   ledgerWaiting   `cmd:"" help:"List the credits and debits that wait for a second operator."`
	Approve   ledgerApprove   `cmd:"" help:"Post a credit or debit that waits."`
	Reject    ledgerReject    `cmd:"" help:"Drop a credit or debit that waits."`
}

// rupiah is an amount as people type it: 1000000 or 1_000_000, and never 1.000,
// which some read as a thousand and others as one.
type rupiah money.Amount

var wholeRupiah = regexp.MustCompile(`^([0-9]+|[0-9]{1,3}(_[0-9]{3})+)$`)

// UnmarshalText reads a whole number above zero.
func (r *rupiah) UnmarshalText(text []byte) error {
	if !wholeRupiah.Match(text) {
		return errors.New("must be whole rupiah, such as 1000000 or 1_000_000")
	}
	amount, err := money.Parse(strings.ReplaceAll(string(text), "_", ""))
	if err == nil && amount == 0 {
		err = errors.New("must be at least 1")
	}
	*r = rupiah(amount)
	return err
}

// adjustment is what a credit and a debit are typed as.
type adjustment struct {
	Merchant  string `arg:"" help:"The merchant's id."`
	Amount    rupiah `required:"" placeholder:"RUPIAH" help:"Whole rupiah: 1000000 or 1_000_000."`
	Reason    string `required:"" help:"Why; kept in the audit."`
	Reference string `required:"" help:"Its name, such as a transfer's: the same again changes nothing."`
	Mode      string `enum:"live,test" default:"live" help:"live or test (${default})."`
}

func (a *adjustment) order() adminapi.NewAdjustment {
	return adminapi.NewAdjustment{Merchant: a.Merchant, Mode: a.Mode, Amount: money.Amount(a.Amount), Reason: a.Reason, Reference: a.Reference}
}

type merchantCredit struct {
	adjustment `embed:""`
}

// Run credits the merchant.
func (c *merchantCredit) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showAdjustment(adminapi.Credit.Call(ctx, admin, c.order()))
}

type merchantDebit struct {
	adjustment `embed:""`
}

// Run debits the merchant.
func (c *merchantDebit) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showAdjustment(adminapi.Debit.Call(ctx, admin, c.order()))
}

// waitingAdjustment names a credit or debit that waits.
type waitingAdjustment struct {
	Merchant  string `arg:"" help:"The merchant's id."`
	Reference string `arg:"" help:"As it was given with the credit or debit."`
	Mode      string `enum:"live,test" default:"live" help:"live or test (${default})."`
}

func (w *waitingAdjustment) key() adminapi.AdjustmentKey {
	return adminapi.AdjustmentKey{MerchantID: w.Merchant, Mode: w.Mode, Reference: w.Reference}
}

type ledgerApprove struct {
	waitingAdjustment `embed:""`
}

// Run posts it.
func (c *ledgerApprove) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showAdjustment(adminapi.ApproveAdjustment.Call(ctx, admin, c.key()))
}

type ledgerReject struct {
	waitingAdjustment `embed:""`
}

// Run drops it.
func (c *ledgerReject) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showAdjustment(adminapi.RejectAdjustment.Call(ctx, admin, c.key()))
}

// showAdjustment prints a credit or debit after a step.
func (p *program) showAdjustment(a adminapi.Adjustment, err error) error {
	if err != nil {
		return err
	}
	rows := [][]string{
		{"merchant_id", a.MerchantID}, {"mode", a.Mode}, {"reference", strconv.Quote(a.Reference)}, {a.Kind, a.Amount.String()},
		{"state", a.State}, {"requested", timeText(&a.RequestedAt), a.RequestedBy},
	}
	if a.DecidedBy != "" {
		rows = append(rows, []string{"decided", timeText(a.DecidedAt), a.DecidedBy})
	}
	switch {
	case a.Existed:
		rows = append(rows, []string{"It was there already; nothing was changed."})
	case a.State == "waiting":
		rows = append(rows, []string{"It waits for another operator: gerbang ledger approve, or reject."})
	}
	return p.show(a, rows...)
}

type ledgerWaiting struct{}

// Run prints what waits, the newest first.
func (*ledgerWaiting) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	waiting, err := adminapi.ListAdjustments.Call(ctx, admin, adminapi.AdjustmentFilter{Limit: adminapi.MostListed})
	if err != nil {
		return err
	}
	return p.show(waiting, table(waiting)...)
}

type ledgerCheck struct {
	adminapi.LedgerScope
	DatabaseURL string `name:"database-url" placeholder:"URL" help:"Read this database, without a gateway, and change nothing in it. A password belongs in PGPASSWORD or PGPASSFILE, which keep it out of the list of processes."`
}

// Run prints each invariant and every row that breaks it.
func (c *ledgerCheck) Run(ctx context.Context, p *program) error {
	found, err := c.check(ctx, p)
	if err != nil {
		return err
	}
	rows, broken := [][]string{{"INVARIANT", "CHECKED", "RESULT"}}, 0
	for _, i := range found.Invariants {
		result := "ok"
		if !i.OK {
			broken++
			result = strconv.Itoa(len(i.Offences)) + " wrong"
		}
		rows = append(rows, []string{i.Invariant, strconv.FormatInt(i.Checked, 10), result})
	}
	if broken > 0 {
		rows = append(rows, []string{}, []string{"BROKEN", "MERCHANT", "MODE", "SUBJECT", "DETAIL"})
	}
	for _, i := range found.Invariants {
		for _, o := range i.Offences {
			rows = append(rows, []string{i.Invariant, o.MerchantID, o.Mode, o.Subject, o.Detail})
		}
	}
	if err := p.show(found, append(rows, []string{}, []string{checkedFrom(found)})...); err != nil {
		return err
	}
	if !found.OK {
		return fmt.Errorf("the ledger is not right: %d of %d invariants are broken", broken, len(found.Invariants))
	}
	return nil
}

func (c *ledgerCheck) check(ctx context.Context, p *program) (adminapi.LedgerCheck, error) {
	if c.DatabaseURL != "" {
		return checkDatabase(ctx, c.DatabaseURL, c.Full)
	}
	admin, err := p.admin()
	if err != nil {
		return adminapi.LedgerCheck{}, err
	}
	return adminapi.CheckLedger.Call(ctx, admin, c.LedgerScope)
}

// checkDatabase checks the ledger in a database that no gateway need run on.
func checkDatabase(ctx context.Context, url string, full bool) (adminapi.LedgerCheck, error) {
	s, err := store.Open(ctx, url, store.Options{MaxConns: 2, ReadOnly: true})
	if err != nil {
		return adminapi.LedgerCheck{}, err
	}
	defer s.Close()
	switch problem, cause := s.Schema(ctx); {
	case cause != nil:
		return adminapi.LedgerCheck{}, fmt.Errorf("the database %s: %w", problem, cause)
	case problem != "":
		return adminapi.LedgerCheck{}, fmt.Errorf("the database %s", problem)
	}
	report, err := s.CheckLedger(ctx, store.LedgerScope{Full: full, Unmarked: true})
	return console.LedgerDocument(report), err
}

// checkedFrom says what was checked from when.
func checkedFrom(found adminapi.LedgerCheck) string {
	text := fmt.Sprintf("Accounts checked from the beginning: %d.", found.Accounts-found.SinceVerified)
	if found.SinceVerified > 0 {
		text += fmt.Sprintf(" Since their last verified day, the first of which ended at %s: %d; --full checks these from the beginning, too.",
			timeText(found.VerifiedUntil), found.SinceVerified)
	}
	return text
}
