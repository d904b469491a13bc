package console

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) showBalance(x *call, wanted adminapi.BalanceQuery) (out adminapi.Balance, err error) {
	at, mode := wanted.At, cmp.Or(wanted.Mode, string(tenants.Live))
	if x.merchant() == tenants.Platform {
		return c.platformBalance(x, mode, at)
	}
	owner, err := c.ownerOf(x, mode)
	if err != nil {
		return out, err
	}
	var balance ledger.Balance
	if at.IsZero() {
		balance, err = c.deps.Ledger.Balance(x.request.Context(), owner)
	} else {
		balance, err = c.deps.Ledger.BalanceAt(x.request.Context(), owner, at)
	}
	if err != nil {
		return out, err
	}
	return adminapi.Balance{MerchantID: owner.MerchantID, Mode: owner.Mode, At: or(at, x.now), Accounts: []adminapi.AccountBalance{
		{Account: "available", Amount: adminapi.Rupiah(balance.Available)}, {Account: "held", Amount: adminapi.Rupiah(balance.Held)},
	}}, nil
}

// platformBalance is each of the platform's accounts, at each provider.
func (c *Console) platformBalance(x *call, modeText string, at time.Time) (out adminapi.Balance, err error) {
	mode, err := parseMode(modeText)
	if err != nil {
		return out, err
	}
	sums, err := c.deps.Ledger.PlatformAt(x.request.Context(), string(mode), or(at, x.now.Add(ahead)))
	if err != nil {
		return out, err
	}
	out = adminapi.Balance{MerchantID: string(tenants.Platform), Mode: string(mode), At: or(at, x.now), Accounts: []adminapi.AccountBalance{}}
	for _, s := range sums {
		if s.Provider == "" { // operators' own, which no provider has a part in
			out.Accounts = append(out.Accounts, adminapi.AccountBalance{Account: "adjustments", Amount: adminapi.Rupiah(s.Adjustments)})
			continue
		}
		out.Accounts = append(out.Accounts,
			adminapi.AccountBalance{Account: "margin", Provider: s.Provider, Amount: adminapi.Rupiah(s.Margin)},
			adminapi.AccountBalance{Account: "cost", Provider: s.Provider, Amount: adminapi.Rupiah(s.Cost)},
			adminapi.AccountBalance{Account: "deposit", Provider: s.Provider, Amount: adminapi.Rupiah(s.Deposit)})
	}
	return out, nil
}

// or is a time, or another one where it is zero.
func or(t, otherwise time.Time) time.Time {
	if t.IsZero() {
		return otherwise
	}
	return t
}

func (c *Console) listAccountStatement(x *call, wanted adminapi.AccountStatementFilter) (out adminapi.AccountStatement, err error) {
	owner, err := c.ownerOf(x, cmp.Or(wanted.Mode, string(tenants.Live)))
	if err != nil {
		return out, err
	}
	after, err := parseCursor(wanted.After)
	if err != nil {
		return out, err
	}
	most := cmp.Or(wanted.Limit, defaultPage)
	entries, err := c.deps.Ledger.AccountStatement(x.request.Context(), owner, wanted.From, or(wanted.To, x.now.Add(ahead)), after, most)
	if err != nil {
		return out, err
	}
	page := adminapi.AccountStatement{Entries: make([]adminapi.AccountEntry, len(entries))}
	for i, e := range entries {
		page.Entries[i] = entryDocument(e)
	}
	if len(entries) == most {
		page.Next = cursor(entries[most-1])
	}
	return page, nil
}

func entryDocument(e store.Entry) adminapi.AccountEntry {
	return adminapi.AccountEntry{
		At: e.At, Kind: string(e.Kind), Reference: e.Reference, Subject: e.Subject.String(), Attempt: e.Attempt, Provider: e.Provider,
		Available: adminapi.Rupiah(e.Available), Held: adminapi.Rupiah(e.Held), BalanceAvailable: adminapi.Rupiah(e.Balance.Available), BalanceHeld: adminapi.Rupiah(e.Balance.Held),
	}
}

// cursor names an entry of a statement, with the balance from which the next
// page reckons on.
func cursor(e store.Entry) string {
	numbers := []int64{e.At.UnixMicro(), int64(e.Attempt), int64(e.Step), int64(e.Balance.Available), int64(e.Balance.Held)}
	text := e.Subject.String()
	for _, n := range numbers {
		text += "." + strconv.FormatInt(n, 10)
	}
	return text
}

// parseCursor reads what cursor wrote; "" is none.
func parseCursor(text string) (*store.Entry, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none is what was asked for
	}
	wrong := fault.Invalid("after", "must be the next of the page before")
	parts := strings.Split(text, ".")
	if len(parts) != 6 {
		return nil, wrong
	}
	var e store.Entry
	var err error
	if e.Subject, err = uuid.Parse(parts[0]); err != nil {
		return nil, wrong
	}
	var numbers [5]int64
	for i, part := range parts[1:] {
		if numbers[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return nil, wrong
		}
	}
	e.At, e.Attempt, e.Step = time.UnixMicro(numbers[0]).UTC(), int(numbers[1]), ledger.Step(numbers[2])
	e.Balance = ledger.Balance{Available: money.Amount(numbers[3]), Held: money.Amount(numbers[4])}
	return &e, nil
}
