package sandbox

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// jakarta is where the wallet's clocks are.
var jakarta = time.FixedZone("WIB", 7*60*60)

var header = []string{
	"settlement_id", "transaction_time", "amount", "currency", "rrn", "issuer",
	"merchant_id", "terminal_id", "status", "fee", "net_amount",
}

// reported is a report that was written, as the journal keeps it.
type reported struct {
	Merchant string    `json:"merchant"`
	Rows     []string  `json:"rows"`
	At       time.Time `json:"at"`
	Name     string    `json:"name"`
}

// publish drops a report with what is due, and one without rows where none came
// since the last half of a period. A file that was written and not journaled is written again: readers
// bear rows that come twice.
func (s *Simulator) publish(merchant string, always bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.accounts[merchant]
	if !ok {
		return nil
	}
	now := s.now()
	rows := a.take(now)
	if len(rows) == 0 && !always && now.Sub(a.reported) < s.options.Every/2 {
		return nil
	}
	if !now.After(a.reported) {
		now = a.reported.Add(time.Microsecond) // no two have one name
	}
	r := reported{Merchant: merchant, At: now, Name: "settlement-" + now.Format("20060102T150405.000000Z") + ".csv"}
	for _, row := range rows {
		r.Rows = append(r.Rows, row.name())
	}
	blank := a.blank
	if err := drop(filepath.Join(s.directory(merchant), r.Name), s.write(a, rows)); err != nil {
		return err
	}
	if blank != "" {
		_ = os.Remove(filepath.Join(s.directory(merchant), blank)) // it says less than the new one
	}
	return s.env.Journal.Append(s.reportTopic.Entry(r)).Wait()
}

func (s *Simulator) applyReport(r reported) {
	a, ok := s.accounts[r.Merchant]
	if !ok {
		return
	}
	a.last = slices.DeleteFunc(slices.Clone(a.waiting), func(l line) bool { return !slices.Contains(r.Rows, l.name()) })
	a.drop(r.Rows)
	a.reported, a.blank = r.At, ""
	if len(r.Rows) == 0 {
		a.blank = r.Name
	}
}

// write makes the document. The lock is held.
func (s *Simulator) write(a *account, rows []line) []byte {
	if s.options.Duplicate {
		rows = slices.Concat(a.last, rows)
	}
	if s.options.Reorder {
		rows = slices.Clone(rows)
		slices.Reverse(rows)
	}
	var text bytes.Buffer
	out := csv.NewWriter(&text)
	_ = out.Write(header) // a buffer takes everything
	for _, l := range rows {
		_ = out.Write(record(l))
	}
	out.Flush()
	return text.Bytes()
}

func record(l line) []string {
	status := "SETTLED"
	if l.Reversed {
		status = "REVERSED"
	}
	fee := l.Amount * 7 / 1000
	return []string{
		l.ID, l.At.In(jakarta).Format("2006-01-02 15:04:05"), l.Amount.Decimal2(), "IDR", rrnOf(l.ID), "93600014",
		l.Merchant, terminal, status, fee.Decimal2(), (l.Amount - fee).Decimal2(),
	}
}

// rrnOf is the number under which the payer's bank knows it.
func rrnOf(id string) string { return strings.TrimPrefix(id, "STL")[:12] }

// drop renames a file into place, so that nobody reads half of it.
func drop(path string, document []byte) error {
	temporary := path + ".part"
	if err := os.WriteFile(temporary, document, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
