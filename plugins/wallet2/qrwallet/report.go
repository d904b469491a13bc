package qrwallet

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const currency = "IDR"

// Columns of a report. Those that may be missing stand last.
const (
	columnID       = "settlement_id"
	columnTime     = "transaction_time"
	columnAmount   = "amount"
	columnMerchant = "merchant_id"
	columnStatus   = "status"
	columnCurrency = "currency"
	columnTerminal = "terminal_id"
)

var (
	required = []string{columnID, columnTime, columnAmount, columnMerchant, columnStatus}
	details  = []string{"rrn", "issuer", columnTerminal, "fee", "net_amount"} // for operators
)

const (
	maxID     = 128 // of a settlement, in bytes
	maxDetail = 64  // of another field
)

// effect is what a status means for the money.
type effect int

const (
	arrived effect = iota + 1
	reversed
	nothing // no money moved, or not yet
	failed  // nor will any
)

var statuses = map[string]effect{
	"SETTLED": arrived, "SUCCESS": arrived, "PAID": arrived,
	"REVERSED": reversed, "REFUNDED": reversed,
	"PENDING": nothing, "WAITING": nothing, "FAILED": failed,
}

// report is a document whose form was read whole: only then is any row of it used.
type report struct {
	rows []row
	more bool    // there are rows that were not asked for
	end  int     // of the last whole line, in bytes
	half bool    // something follows that
	bad  []error // rows that can't be read, each with its line
}

// part is which rows of a document are wanted: those that end after a place, up
// to a number.
type part struct{ after, limit int }

// row is one that says something of the account.
type row struct {
	line sdk.StatementLine
	end  int
}

var byteOrderMark = []byte("\ufeff")

// parse reads a document and checks all of it, whatever part is wanted. A row that can't be
// read holds up no other: it is told of. What follows the last line break is left for later: it may be half a line.
func (a account) parse(name string, body []byte, wanted part) (report, error) {
	whole := body[:bytes.LastIndexByte(body, '\n')+1]
	found := report{end: len(whole), half: len(whole) < len(body)}
	if len(whole) == 0 {
		return found, nil
	}
	text, marked := bytes.CutPrefix(whole, byteOrderMark)
	shift := 0
	if marked {
		shift = len(byteOrderMark)
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.ReuseRecord = true
	var columns map[string]int
	for {
		record, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF) && columns == nil:
			return report{}, fmt.Errorf("%s: line 1: the header is missing", name)
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return report{}, parseFault(name, err)
		}
		if columns == nil {
			columns, err = readHeader(record)
		} else {
			end := shift + int(reader.InputOffset())
			if unread := a.take(&found, fields{columns, record}, end, wanted); unread != nil {
				line, _ := reader.FieldPos(0)
				found.bad = append(found.bad, fmt.Errorf("%s: line %d: %w", name, line, unread))
			}
		}
		if err != nil {
			line, _ := reader.FieldPos(0)
			return report{}, fmt.Errorf("%s: line %d: %w", name, line, err)
		}
	}
}

// take reads a row, and keeps it where it is ours and wanted.
func (a account) take(found *report, f fields, end int, wanted part) error {
	line, ours, err := a.readRow(f)
	if err != nil || !ours || end <= wanted.after {
		return err
	}
	if len(found.rows) == wanted.limit {
		found.more = true
		return nil
	}
	line.Data, err = f.data()
	found.rows = append(found.rows, row{line, end})
	return err
}

// fields are a row by the names of its columns.
type fields struct {
	columns map[string]int
	record  []string
}

// get is a field, or "" where there is no such column.
func (f fields) get(column string) string {
	if i, ok := f.columns[column]; ok {
		return strings.TrimSpace(f.record[i])
	}
	return ""
}

func (f fields) data() (json.RawMessage, error) {
	data := map[string]string{}
	for _, column := range details {
		if value := f.get(column); value != "" {
			data[column] = strings.ToValidUTF8(value[:min(len(value), maxDetail)], "")
		}
	}
	return json.Marshal(data)
}

// parseFault names the place; what stands there is not ours to repeat.
func parseFault(name string, err error) error {
	if at, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%s: line %d: %w", name, at.StartLine, at.Err) // a quote that is open ends anywhere
	}
	return fmt.Errorf("%s: %w", name, err)
}

func readHeader(record []string) (map[string]int, error) {
	columns := make(map[string]int, len(record))
	for i, name := range record {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := columns[name]; twice && name != "" {
			return nil, fmt.Errorf("the column %q stands twice", name)
		}
		columns[name] = i
	}
	for _, name := range required {
		if _, ok := columns[name]; !ok {
			return nil, fmt.Errorf("the header has no column %s", name)
		}
	}
	return columns, nil
}

// readRow reads what a row says of the account. Rows of other merchants and
// terminals, and rows without money, are not ours; that money was taken back is, of
// any terminal that once was, whenever that happens.
func (a account) readRow(f fields) (line sdk.StatementLine, ours bool, err error) {
	status, ok := statuses[strings.ToUpper(f.get(columnStatus))]
	if !ok {
		return line, false, fmt.Errorf("%s: %q is not known", columnStatus, f.get(columnStatus))
	}
	terminal := f.get(columnTerminal)
	if f.get(columnMerchant) != a.merchant || status == nothing || !a.terminals.ours(terminal, time.Time{}) {
		return line, false, nil
	}
	id := f.get(columnID)
	if id == "" || len(id) > maxID {
		return line, false, fmt.Errorf("%s: must have 1 to %d characters", columnID, maxID)
	}
	line = sdk.StatementLine{ID: id, Reference: id, Currency: strings.ToUpper(f.get(columnCurrency))}
	if line.Currency == "" {
		line.Currency = currency
	}
	switch status { // a report may repeat the row that paid with another status
	case reversed:
		line.ID, line.Reversed = id+"/reversed", true
	case failed:
		line.ID, line.Failed = id+"/failed", true
	case arrived, nothing:
	}
	if line.Amount, err = money.Parse(f.get(columnAmount)); err != nil || line.Amount < 1 {
		return line, false, fmt.Errorf("%s: must be whole rupiah above zero", columnAmount)
	}
	if line.At, err = readTime(f.get(columnTime), a.zone); err != nil {
		return line, false, err
	}
	return line, line.Reversed || line.Failed || a.terminals.ours(terminal, line.At), nil
}

var timeForms = []string{"2006-01-02 15:04:05", time.RFC3339, "2006-01-02T15:04:05"}

func readTime(text string, zone *time.Location) (time.Time, error) {
	for _, form := range timeForms {
		if at, err := time.ParseInLocation(form, text, zone); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: write it like 2026-01-02 15:04:05 or 2026-01-02T15:04:05+07:00", columnTime)
}
