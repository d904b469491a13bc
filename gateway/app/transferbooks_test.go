package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// page is a transfer as the gateway's books have it, with what was told of it.
type page struct {
	Reference, ID, State string
	Attempt              int
	Amount               int64
	SendBy               time.Time
	Answered, Asked      bool
	Reversed             bool
	Ends, Backs          int    // events that tell its end, and that it was taken back
	Told                 string // the end that was told
}

func (p page) open() bool {
	return p.State == "submitting" || p.State == "acknowledged" || p.State == "pending"
}

func (p page) settled() bool { return p.State != "submitting" && p.State != "" || p.Answered }

// booked are all transfers of a database, by reference.
func booked(t testing.TB, databaseURL string) map[string]page {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT m.reference, m.id::TEXT AS id, m.state, m.attempt, m.amount, m.send_by AS sendby,
		m.answer IS NOT NULL AS answered, m.polled_at IS NOT NULL AS asked, m.reversed_at IS NOT NULL AS reversed,
		(SELECT count(*) FROM callbacks AS c WHERE c.movement_id = m.id AND c.event = 'transfer.status_update') AS ends,
		(SELECT count(*) FROM callbacks AS c WHERE c.movement_id = m.id AND c.event = 'transfer.reversed') AS backs,
		COALESCE((SELECT min(c.body) FROM callbacks AS c WHERE c.movement_id = m.id AND c.event = 'transfer.status_update'), '') AS told
		FROM movements AS m WHERE m.kind = 'transfer'`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[page])
	if err != nil {
		t.Fatal(err)
	}
	byReference := make(map[string]page, len(all))
	for _, p := range all {
		p.ID = strings.ReplaceAll(p.ID, "-", "")
		byReference[p.Reference] = p
	}
	return byReference
}

func (x *matrix) books(t testing.TB) map[string]page { return booked(t, x.databaseURL) }

// witnesses are what has moved upstream, by amount, which is each transfer's own.
func witnesses(t testing.TB, p *program) map[int64][]witnessed {
	t.Helper()
	amounts := map[int64][]witnessed{}
	for _, w := range p.movements(t) {
		amounts[w.Amount] = append(amounts[w.Amount], w)
	}
	return amounts
}

// settle asks as merchants do, and waits until every transfer has ended. What
// nothing tells of but the time that it takes need not, unless all are waited for.
func (x *matrix) settle(t *testing.T, within time.Duration, all bool) {
	t.Helper()
	began, last := time.Now(), time.Time{}
	var left []*crossing
	if err := until(within, func() bool {
		if time.Since(last) < time.Second {
			return false
		}
		x.endForEver(t)
		books, upstream := x.books(t), witnesses(t, x.stays)
		left = slices.DeleteFunc(slices.Clone(x.cases), func(c *crossing) bool {
			book := books[c.reference]
			unprovable := c.story == alwaysWrong || len(upstream[c.amount]) == 0 && !all
			return c.heard() && book.State != "" && (!book.open() || unprovable)
		})
		x.come(t, left)
		last = time.Now()
		return len(left) == 0
	}); err != nil {
		books := x.books(t)
		for _, c := range left[:min(len(left), mostTold)] {
			t.Errorf("%s has not ended: %+v; answered %q", c, books[c.reference], c.told())
		}
		t.Errorf("%d of %d transfers have not ended", len(left), len(x.cases))
	}
	t.Logf("all that ends has ended after %v", time.Since(began).Round(time.Second))
}

// come has merchants come back: by the same request those who know nothing, and
// by its status the others, some of them from the beginning.
func (x *matrix) come(t *testing.T, left []*crossing) {
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
			a, err := c.shop.post(ctx, "/wallet1/transfer/status", fields{"external_id": c.reference})
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
		c.scene.mu.Lock()
		reference := c.scene.reference
		c.scene.mu.Unlock()
		if c.story != forEver || reference == "" {
			continue
		}
		// It is an error the second time.
		x.stays.try(t.Context(), "/outcome", fields{"reference": reference, "status": []string{"00", "06"}[i/2%2]})
	}
}

// check holds all that was answered, told, moved and booked against one another.
func (x *matrix) check(t *testing.T) {
	t.Helper()
	books, upstream := x.books(t), witnesses(t, x.stays)
	ends, codes, cut, wrong := map[string]int{}, map[fault.Code]int{}, 0, 0
	for _, c := range x.cases {
		book, exists := books[c.reference]
		moved := upstream[c.amount]
		for _, a := range c.answers {
			codes[a.Code]++
		}
		cut += c.unheard
		ends[book.State]++
		if err := c.fits(book, exists, moved); err != nil {
			if wrong++; wrong <= mostTold {
				t.Errorf("%s: %v; booked %+v, upstream %+v, answered %q", c, err, book, moved, c.told())
			}
		}
		delete(books, c.reference)
		delete(upstream, c.amount)
	}
	if len(books)+len(upstream) > 0 {
		t.Errorf("nobody asked for %v, %v", books, upstream)
	}
	if wrong > 0 {
		t.Errorf("%d of %d transfers are wrong", wrong, len(x.cases))
	}
	t.Logf("%d transfers ended as %v; requests cut: %d, answers by code: %v", len(x.cases), ends, cut, codes)
	x.stays.wantCleanLedger(t)
}

// mostTold is how many cases of a fault are told.
const mostTold = 20

// told is what a merchant was answered, in short: what was answered again and
// again, once.
func (c *crossing) told() []string {
	var all []string
	for _, a := range c.answers {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s%s %s", a.HTTP, a.remitted().Status, a.Code, a.Sent)))
	}
	return slices.Compact(all)
}

// inTransfers are the codes that a transfer may be answered with while everything
// is out of order.
var inTransfers = []fault.Code{"", fault.InProgress, fault.ProviderUnavailable, fault.ProviderRejected, fault.Internal}

// fits says what is wrong with a case. That money has moved twice is the one
// thing that must never be.
func (c *crossing) fits(book page, exists bool, all []witnessed) error {
	var moved witnessed
	there := len(all) > 0
	if len(all) > 1 {
		return fmt.Errorf("moved %d times", len(all))
	}
	if there {
		moved = all[0]
	}
	for _, a := range c.answers {
		told := a.remitted()
		switch {
		case !slices.Contains(inTransfers, a.Code):
			return fmt.Errorf("answered %s", a)
		case a.Success && (told.id() != book.ID || told.Amount != c.amount):
			return fmt.Errorf("answered about another: %s", a)
		case a.Success && told.Status == "Success" && book.State != "succeeded":
			return fmt.Errorf("answered done: %s", a)
		case a.Success && (!exists || book.State == "not_submitted"):
			return fmt.Errorf("answered pending, and nothing is left of it: %s", a)
		case a.Code == fault.ProviderRejected && (book.State != "failed" || there && moved.State == "Success" || there != (a.Sent == fault.SentRefused)):
			return fmt.Errorf("answered refused: %s", a)
		}
	}
	if there && moved.Reference != fmt.Sprintf("%s-%d", book.ID, book.Attempt) {
		return fmt.Errorf("moved as another")
	}
	states := map[string][]string{
		"Success": {"succeeded"}, "Failed": {"failed"}, "Cancelled": {"failed"}, "Refunded": {"succeeded", "failed"}, "Pending": {"pending", "acknowledged", "submitting"},
		"": {"failed", "submitting", "acknowledged", "not_submitted"}, // not there
	}[moved.State]
	if c.story == alwaysWrong && there {
		states = []string{"pending", "acknowledged", "submitting"} // the operators' affair
	}
	if !slices.Contains(states, book.State) {
		return fmt.Errorf("stands at %s", book.State)
	}
	final := book.State == "succeeded" || book.State == "failed"
	word := map[string]string{"succeeded": `"status":"Success"`, "failed": `"status":"Failed"`}[book.State]
	if final != (book.Ends == 1) || book.Ends > 1 || !strings.Contains(book.Told, word) || book.Reversed != (book.Backs == 1) {
		return fmt.Errorf("told %d times as %s, and taken back %d times", book.Ends, book.Told, book.Backs)
	}
	return nil
}
