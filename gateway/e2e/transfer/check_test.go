package transfer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// recordedTransfer is a transfer as the gateway's database has it, with its
// callbacks.
type recordedTransfer struct {
	Reference, ID, State string
	Attempt              int
	Amount               int64
	SendBy               time.Time
	Answered, Asked      bool
	Reversed             bool
	Ends, Backs          int    // events that tell its end, and that it was taken back
	Told                 string // the end that was told
}

func (p recordedTransfer) open() bool {
	return p.State == "submitting" || p.State == "acknowledged" || p.State == "pending"
}

func (p recordedTransfer) applied() bool {
	return p.State != "submitting" && p.State != "" || p.Answered
}

// recordedTransfers are all transfers of a database, by reference.
func recordedTransfers(t testing.TB, databaseURL string) map[string]recordedTransfer {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT m.reference, m.id::TEXT AS id, m.state, m.attempt, m.amount, m.send_by AS sendby,
		m.answer IS NOT NULL AS answered, m.polled_at IS NOT NULL OR p.asked_at IS NOT NULL AS asked, m.reversed_at IS NOT NULL AS reversed,
		(SELECT count(*) FROM callbacks AS c WHERE c.movement_id = m.id AND c.event = 'transfer.status_update') AS ends,
		(SELECT count(*) FROM callbacks AS c WHERE c.movement_id = m.id AND c.event = 'transfer.returned') AS backs,
		COALESCE((SELECT min(c.body) FROM callbacks AS c WHERE c.movement_id = m.id AND c.event = 'transfer.status_update'), '') AS told
		FROM movements AS m LEFT JOIN polls AS p ON p.movement_id = m.id WHERE m.kind = 'transfer'`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[recordedTransfer])
	if err != nil {
		t.Fatal(err)
	}
	byReference := make(map[string]recordedTransfer, len(all))
	for _, p := range all {
		p.ID = strings.ReplaceAll(p.ID, "-", "")
		byReference[p.Reference] = p
	}
	return byReference
}

func (x *matrix) recorded(t testing.TB) map[string]recordedTransfer {
	return recordedTransfers(t, x.databaseURL)
}

// movedByAmount is what has moved upstream, by amount, which is each transfer's
// own.
func movedByAmount(t testing.TB, p *harness.Program) map[int64][]harness.UpstreamMovement {
	t.Helper()
	amounts := map[int64][]harness.UpstreamMovement{}
	for _, w := range p.UpstreamMovements(t) {
		amounts[w.Amount] = append(amounts[w.Amount], w)
	}
	return amounts
}

// awaitEnds asks as merchants do, and waits until every transfer has ended. What
// nothing tells of but the time that it takes need not, unless all are waited for.
func (x *matrix) awaitEnds(t *testing.T, within time.Duration, all bool) {
	t.Helper()
	began, last := time.Now(), time.Time{}
	var left []*transferCase
	if err := harness.Until(within, func() bool {
		if time.Since(last) < time.Second {
			return false
		}
		x.endForEver(t)
		records, upstream := x.recorded(t), movedByAmount(t, x.stays)
		left = slices.DeleteFunc(slices.Clone(x.cases), func(c *transferCase) bool {
			record := records[c.reference]
			unprovable := c.plan == alwaysWrong || len(upstream[c.amount]) == 0 && !all
			return c.heard() && record.State != "" && (!record.open() || unprovable)
		})
		x.come(t, left)
		last = time.Now()
		return len(left) == 0
	}); err != nil {
		records := x.recorded(t)
		for _, c := range left[:min(len(left), mostShown)] {
			t.Errorf("%s has not ended: %+v; answered %q", c, records[c.reference], c.history())
		}
		t.Errorf("%d of %d transfers have not ended", len(left), len(x.cases))
	}
	t.Logf("all that ends has ended after %v", time.Since(began).Round(time.Second))
}

// come has merchants come back: by the same request those who know nothing, and
// by its status the others, some of them from the beginning.
func (x *matrix) come(t *testing.T, left []*transferCase) {
	t.Helper()
	var group sync.WaitGroup
	turns := make(chan struct{}, 16)
	for i, c := range left {
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			ctx := context.WithoutCancel(t.Context())
			if heard := c.heard(); !heard && i%2 == 0 || heard && time.Since(c.asked) < 3*time.Second {
				if !heard {
					c.post(ctx, x.stays)
				}
				return
			}
			c.asked = time.Now()
			a, err := c.shop.Post(ctx, "/wallet1/transfer/status", harness.Fields{"external_id": c.reference})
			if err != nil || !a.Success && a.Code != fault.NotFound {
				t.Errorf("%s: its status: %v %s", c, err, a)
			}
			if !c.heard() {
				c.post(ctx, x.stays)
			}
		})
	}
	group.Wait()
}

// endForEver ends what the provider would never end: one as done, the next as
// failed.
func (x *matrix) endForEver(t *testing.T) {
	t.Helper()
	for i, c := range x.cases {
		c.script.mu.Lock()
		reference := c.script.reference
		c.script.mu.Unlock()
		if c.plan != forEver || reference == "" {
			continue
		}
		// It is an error the second time.
		x.stays.TrySandbox(t.Context(), "/outcome", harness.Fields{"reference": reference, "status": []string{"00", "06"}[i/2%2]})
	}
}

// check holds all that was answered, sent, moved and recorded against one another.
func (x *matrix) check(t *testing.T) {
	t.Helper()
	records, upstream := x.recorded(t), movedByAmount(t, x.stays)
	ends, codes, cut, wrong := map[string]int{}, map[fault.Code]int{}, 0, 0
	for _, c := range x.cases {
		record, exists := records[c.reference]
		moved := upstream[c.amount]
		for _, a := range c.answers {
			codes[a.Code]++
		}
		cut += c.unheard
		ends[record.State]++
		if err := c.fits(record, exists, moved); err != nil {
			if wrong++; wrong <= mostShown {
				t.Errorf("%s: %v; recorded %+v, upstream %+v, answered %q", c, err, record, moved, c.history())
			}
		}
		delete(records, c.reference)
		delete(upstream, c.amount)
	}
	if len(records)+len(upstream) > 0 {
		t.Errorf("nobody asked for %v, %v", records, upstream)
	}
	if wrong > 0 {
		t.Errorf("%d of %d transfers are wrong", wrong, len(x.cases))
	}
	t.Logf("%d transfers ended as %v; requests cut: %d, answers by code: %v", len(x.cases), ends, cut, codes)
	x.stays.WantCleanLedger(t)
}

// mostShown is how many cases of a fault are told.
const mostShown = 20

// history is what a merchant was answered, in short: what was answered again and
// again, once.
func (c *transferCase) history() []string {
	var all []string
	for _, a := range c.answers {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s%s %s", a.HTTP, transferOf(a).Status, a.Code, a.Sent)))
	}
	return slices.Compact(all)
}

// inTransfers are the codes that a transfer may be answered with while everything
// is out of order.
var inTransfers = []fault.Code{"", fault.InProgress, fault.ProviderUnavailable, fault.ProviderRejected, fault.Internal}

// fits says what is wrong with a case. That money has moved twice is the one
// thing that must never be.
func (c *transferCase) fits(record recordedTransfer, exists bool, all []harness.UpstreamMovement) error {
	var moved harness.UpstreamMovement
	there := len(all) > 0
	if len(all) > 1 {
		return fmt.Errorf("moved %d times", len(all))
	}
	if there {
		moved = all[0]
	}
	for _, a := range c.answers {
		told := transferOf(a)
		switch {
		case !slices.Contains(inTransfers, a.Code):
			return fmt.Errorf("answered %s", a)
		case a.Success && (told.id() != record.ID || told.Amount != c.amount):
			return fmt.Errorf("answered about another: %s", a)
		case a.Success && told.Status == "Success" && record.State != "succeeded":
			return fmt.Errorf("answered done: %s", a)
		case a.Success && (!exists || record.State == "not_submitted"):
			return fmt.Errorf("answered pending, and nothing is left of it: %s", a)
		case a.Code == fault.ProviderRejected && (record.State != "failed" || there && moved.State == "Success" || there != (a.Sent == fault.SentRefused)):
			return fmt.Errorf("answered refused: %s", a)
		}
	}
	if there && (!strings.HasPrefix(moved.Reference, record.ID) || len(moved.Reference) != 40) {
		return fmt.Errorf("moved as another")
	}
	states := map[string][]string{
		"Success": {"succeeded"}, "Failed": {"failed"}, "Cancelled": {"failed"}, "Refunded": {"succeeded", "failed"}, "Pending": {"pending", "acknowledged", "submitting"},
		"": {"failed", "submitting", "acknowledged", "not_submitted"}, // not there
	}[moved.State]
	if c.plan == alwaysWrong && there {
		states = []string{"pending", "acknowledged", "submitting"} // the operators' affair
	}
	if !slices.Contains(states, record.State) {
		return fmt.Errorf("stands at %s", record.State)
	}
	final := record.State == "succeeded" || record.State == "failed"
	word := map[string]string{"succeeded": `"status":"Success"`, "failed": `"status":"Failed"`}[record.State]
	if final != (record.Ends == 1) || record.Ends > 1 || !strings.Contains(record.Told, word) || record.Reversed != (record.Backs == 1) {
		return fmt.Errorf("told %d times as %s, and taken back %d times", record.Ends, record.Told, record.Backs)
	}
	return nil
}
