package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// LedgerReport is what a check of the ledger found.
type LedgerReport struct {
	Accounts   int       // of a merchant in a mode
	Since      int       // how many of them were checked since a day that was verified
	Earliest   time.Time // the end of the first such day; zero where there is none
	Invariants []LedgerCheck
}

// Clean tells whether every invariant holds.
func (r LedgerReport) Clean() bool {
	for _, check := range r.Invariants {
		if len(check.Offences) > 0 {
			return false
		}
	}
	return true
}

// LedgerCheck is one invariant: how many rows were checked, and those that
// break it, a hundred at most.
type LedgerCheck struct {
	Invariant string
	Checked   int64
	Offences  []LedgerOffence
}

// LedgerOffence is a row that breaks an invariant.
type LedgerOffence struct {
	Owner   movement.Owner
	Subject string // the movement's or adjustment's id, or ""
	Detail  string // what is there, and what should be
}

// invariants are the names that the query gives them, and what they say.
var invariants = []struct{ name, text string }{
	{"balanced", "every transaction sums to zero"},
	{"balances", "every balance is the sum of its entries, and none is below zero"},
	{"held", "what is held is what the movements under way hold"},
	{"movements", "every charged movement has transactions for each of its attempts, and for no other"},
	{"attempts", "every attempt has the transactions that its state demands, over its price and cost"},
	{"subjects", "every transaction belongs to a charged movement or a posted adjustment of the same owner"},
	{"adjustments", "every posted adjustment has its transaction"},
	{"snapshots", "every day's snapshot is the sum of the transactions that it counts"},
	{"zero", "the merchants' balances and the platform's accounts sum to zero"},
}

const (
	// offencesAtMost is how many rows of an invariant a report shows.
	offencesAtMost = 100
	// accountsAtOnce are checked as of one moment. Each invariant is about one account,
	// so there need not be one moment for all.
	accountsAtOnce = 100
)

// LedgerScope says what a check of the ledger reads.
type LedgerScope struct {
	// Full is from the beginning. Otherwise an account is checked from the end of the
	// last day that a check has verified: what was changed of before, behind the
	// gateway's back, is not found.
	Full bool
	// Unmarked leaves the database as it is. Otherwise the snapshots that were found
	// right are marked as verified, for the next check.
	Unmarked bool
}

// CheckLedger proves the ledger's invariants, account by account.
func (s *Store) CheckLedger(ctx context.Context, scope LedgerScope) (LedgerReport, error) {
	report := LedgerReport{Invariants: make([]LedgerCheck, len(invariants))}
	for i, invariant := range invariants {
		report.Invariants[i].Invariant = invariant.text
	}
	var last movement.Owner
	for {
		page, err := s.checkAccounts(ctx, last, scope)
		if err != nil {
			return LedgerReport{}, fmt.Errorf("store: check ledger: %w", err)
		}
		if len(page.accounts) == 0 {
			return report, nil
		}
		report.add(page)
		if !scope.Unmarked {
			if err := s.mark(ctx, page); err != nil {
				return LedgerReport{}, err
			}
		}
		last = page.accounts[len(page.accounts)-1].owner
	}
}

// checkedAccount is one, with the days that its check begins and ends with.
type checkedAccount struct {
	owner         movement.Owner
	since, newest time.Time // zero for none
}

// checkedPage are some accounts, and what was found of them.
type checkedPage struct {
	accounts []checkedAccount
	found    []dbsqlc.CheckLedgerRow
}

// checkAccounts checks the accounts that follow one, as of one moment.
func (s *Store) checkAccounts(ctx context.Context, follows movement.Owner, scope LedgerScope) (page checkedPage, err error) {
	// One snapshot is enough on PostgreSQL, and spares its writers the locks of
	// serializable readers.
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	if s.engine == CockroachDB {
		options.IsoLevel = pgx.Serializable
	}
	err = s.within(ctx, options, func(tx pgx.Tx) error {
		q := dbsqlc.New(tx)
		page = checkedPage{} // it may be tried again
		if page.accounts, err = accountsAfter(ctx, q, follows, scope); err != nil || len(page.accounts) == 0 {
			return err
		}
		page.found, err = q.CheckLedger(ctx, page.params())
		return err
	})
	return page, err
}

func accountsAfter(ctx context.Context, q *dbsqlc.Queries, last movement.Owner, scope LedgerScope) (accounts []checkedAccount, err error) {
	for len(accounts) < accountsAtOnce {
		next, err := q.LedgerAccountAfter(ctx, dbsqlc.LedgerAccountAfterParams{AfterMerchant: last.MerchantID, AfterMode: last.Mode})
		if errors.Is(err, pgx.ErrNoRows) {
			return accounts, nil
		}
		if err != nil {
			return nil, err
		}
		last = movement.Owner{MerchantID: next.MerchantID, Mode: next.Mode}
		days, err := q.SnapshotsOf(ctx, dbsqlc.SnapshotsOfParams{MerchantID: last.MerchantID, Mode: last.Mode})
		if err != nil {
			return nil, err
		}
		account := checkedAccount{owner: last, newest: days.Newest}
		if !scope.Full {
			account.since = days.Verified
		}
		accounts = append(accounts, account)
	}
	return accounts, nil
}

func (p checkedPage) params() dbsqlc.CheckLedgerParams {
	params := dbsqlc.CheckLedgerParams{Most: offencesAtMost}
	for _, account := range p.accounts {
		params.Merchants = append(params.Merchants, account.owner.MerchantID)
		params.Modes = append(params.Modes, account.owner.Mode)
		params.Sinces = append(params.Sinces, account.since)
	}
	return params
}

// mark keeps how far each account of a page is verified. An account of which something
// is wrong is not any more, so that every check tells of it until it is right.
func (s *Store) mark(ctx context.Context, page checkedPage) error {
	wrong, all := page.wrong()
	var sound dbsqlc.VerifySnapshotsParams
	var unverified dbsqlc.UnverifySnapshotsParams
	for _, account := range page.accounts {
		switch {
		case wrong[account.owner]:
			unverified.Merchants = append(unverified.Merchants, account.owner.MerchantID)
			unverified.Modes = append(unverified.Modes, account.owner.Mode)
		case all && account.newest.After(account.since):
			sound.Merchants = append(sound.Merchants, account.owner.MerchantID)
			sound.Modes = append(sound.Modes, account.owner.Mode)
			sound.Untils = append(sound.Untils, account.newest)
		}
	}
	if len(sound.Merchants) > 0 {
		if err := s.queries.VerifySnapshots(ctx, sound); err != nil {
			return fmt.Errorf("store: mark what was verified: %w", err)
		}
	}
	if len(unverified.Merchants) > 0 {
		if err := s.queries.UnverifySnapshots(ctx, unverified); err != nil {
			return fmt.Errorf("store: mark what is wrong: %w", err)
		}
	}
	return nil
}

// wrong are the accounts of which something is: all of them, unless there may be more
// than was told.
func (p checkedPage) wrong() (accounts map[movement.Owner]bool, all bool) {
	accounts, all = map[movement.Owner]bool{}, true
	told := map[string]int{}
	for _, row := range p.found {
		if row.Detail == "" {
			continue
		}
		accounts[movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}] = true
		told[row.Invariant]++
		all = all && told[row.Invariant] < offencesAtMost
	}
	return accounts, all
}

// add counts a page.
func (r *LedgerReport) add(page checkedPage) {
	for _, account := range page.accounts {
		r.Accounts++
		if account.since.IsZero() {
			continue
		}
		if r.Since++; r.Earliest.IsZero() || account.since.Before(r.Earliest) {
			r.Earliest = account.since.UTC()
		}
	}
	for i, invariant := range invariants {
		check := &r.Invariants[i]
		for _, row := range page.found {
			if row.Invariant != invariant.name {
				continue
			}
			check.Checked += row.Checked
			if row.Detail != "" && len(check.Offences) < offencesAtMost {
				check.Offences = append(check.Offences, LedgerOffence{
					Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, Subject: row.Subject, Detail: row.Detail,
				})
			}
		}
	}
}
