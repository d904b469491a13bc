package qrwallet

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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
	told     = []string{"rrn", "issuer", "fee", "net_amount"} // to operators
)

// standing is what a status says of the money.
type standing int

const (
	arrived standing = iota + 1
	takenBack
	nothing // no money moved, or not yet
)

var statuses = map[string]standing{
	"SETTLED": arrived, "SUCCESS": arrived, "PAID": arrived,
	"REVERSED": takenBack, "REFUNDED": takenBack,
	"PENDING": nothing, "WAITING": nothing, "FAILED": nothing,
}

// report is a document that was read whole: only then is any row of it used.
type report struct {
	rows []row
	end  int  // of the last whole line, in bytes
	half bool // something follows that
}

// row is one that says something of the account.
type row struct {
	entry sdk.Entry
	end   int
}

var byteOrderMark = []byte("\ufeff")

// parse reads a document. What follows the last line break is left for later:
// nobody can tell half a line from a whole one.
func (a account) parse(name string, body []byte) (report, error) {
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
		line, _ := reader.FieldPos(0)
		if columns == nil {
			if columns, err = readHeader(record); err != nil {
				return report{}, fmt.Errorf("%s: line %d: %w", name, line, err)
			}
			continue
		}
		entry, ours, err := a.readRow(func(column string) string {
			if i, ok := columns[column]; ok {
				return strings.TrimSpace(record[i])
			}
			return ""
		})
		if err != nil {
			return report{}, fmt.Errorf("%s: line %d: %w", name, line, err)
		}
		if ours {
			found.rows = append(found.rows, row{entry, shift + int(reader.InputOffset())})
		}
	}
}

// parseFault names the place; what stands there is not ours to repeat.
func parseFault(name string, err error) error {
	if at, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%s: line %d: %w", name, at.Line, at.Err)
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
// terminals, and rows without money, are not ours.
func (a account) readRow(field func(string) string) (entry sdk.Entry, ours bool, err error) {
	status, ok := statuses[strings.ToUpper(field(columnStatus))]
	if !ok {
		return entry, false, fmt.Errorf("%s: %q is not known", columnStatus, field(columnStatus))
	}
	terminal := field(columnTerminal)
	if field(columnMerchant) != a.merchant || terminal != "" && a.terminal != "" && terminal != a.terminal || status == nothing {
		return entry, false, nil
	}
	id := field(columnID)
	if id == "" {
		return entry, false, errors.New(columnID + " is missing")
	}
	entry = sdk.Entry{ID: id, Reference: id, Currency: strings.ToUpper(field(columnCurrency))}
	if entry.Currency == "" {
		entry.Currency = currency
	}
	if status == takenBack {
		// A report may repeat the row that paid with another status.
		entry.ID, entry.Reversed = id+"/reversed", true
	}
	if entry.Amount, err = money.Parse(field(columnAmount)); err != nil || entry.Amount < 1 {
		return entry, false, fmt.Errorf("%s: must be whole rupiah above zero", columnAmount)
	}
	if entry.At, err = readTime(field(columnTime), a.zone); err != nil {
		return entry, false, err
	}
	entry.Data, err = dataOf(field)
	return entry, true, err
}

var timeForms = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05"}

func readTime(text string, zone *time.Location) (time.Time, error) {
	for _, form := range timeForms {
		if at, err := time.ParseInLocation(form, text, zone); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: write it like 2026-01-02 15:04:05 or 2026-01-02T15:04:05+07:00", columnTime)
}

func dataOf(field func(string) string) (json.RawMessage, error) {
	data := map[string]string{}
	for _, column := range slices.Concat(told, []string{columnTerminal}) {
		if value := field(column); value != "" {
			data[column] = value
		}
	}
	return json.Marshal(data)
}
