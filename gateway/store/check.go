package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// LedgerReport is what CheckLedger found, one entry for each invariant.
type LedgerReport []LedgerCheck

// Clean tells whether every invariant holds.
func (r LedgerReport) Clean() bool {
	for _, check := range r {
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

// LedgerOffence is a row that breaks an invariant. The merchant is empty where it
// is about everything of a mode.
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
	{"zero", "the merchants' balances and the platform's accounts sum to zero"},
}

// offencesAtMost is how many rows of an invariant a report shows.
const offencesAtMost = 100

// CheckLedger proves the ledger's invariants over the whole database, as of one
// moment.
func (s *Store) CheckLedger(ctx context.Context) (LedgerReport, error) {
	// One snapshot is enough on PostgreSQL, and spares its writers the locks of
	// serializable readers.
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	if s.engine == CockroachDB {
		options.IsoLevel = pgx.Serializable
	}
	var counts []dbsqlc.LedgerCountsRow
	var offences []dbsqlc.LedgerOffencesRow
	err := s.within(ctx, options, func(tx pgx.Tx) (err error) {
		q := dbsqlc.New(tx)
		if counts, err = q.LedgerCounts(ctx); err != nil {
			return err
		}
		offences, err = q.LedgerOffences(ctx, offencesAtMost)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: check ledger: %w", err)
	}
	return reportOf(counts, offences), nil
}

func reportOf(counts []dbsqlc.LedgerCountsRow, offences []dbsqlc.LedgerOffencesRow) LedgerReport {
	report := make(LedgerReport, len(invariants))
	for i, invariant := range invariants {
		report[i].Invariant = invariant.text
		for _, row := range counts {
			if row.Invariant == invariant.name {
				report[i].Checked = row.Checked
			}
		}
		for _, row := range offences {
			if row.Invariant == invariant.name {
				report[i].Offences = append(report[i].Offences, LedgerOffence{
					Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode}, Subject: row.Subject, Detail: row.Detail,
				})
			}
		}
	}
	return report
}
