package snap

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	pageRows      = 50 // the most that the upstream gives at once
	historyMonths = 3
)

// mutation is one row of the history, as merchants get it.
type mutation struct {
	MerchantName      string `json:"merchant_name"`
	TransactionAmount string `json:"transaction_amount"`
	TransactionType   string `json:"transaction_type"`
	TransactionDate   string `json:"transaction_date"`
	TransactionTime   string `json:"transaction_time"`
	Status            string `json:"status"`
	at                time.Time
}

// transactions answers /wallet1/transactions (service 12).
func (a *adapter) transactions(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	// JSON Schema calls 1.0 an integer, too, so they are not read as such here.
	body := struct{ Page, Limit float64 }{1, 20}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error())
	}
	h := history{account: acc, skip: (int(body.Page) - 1) * int(body.Limit), want: int(body.Limit)}
	if p := h.read(ctx, a.now()); p != nil {
		return p.result()
	}
	slices.SortStableFunc(h.found, func(a, b mutation) int { return b.at.Compare(a.at) })
	return sdk.Finished("", h.found)
}

// history is one page of ours under way: how many rows are still to be skipped,
// how many to be taken, and what was taken.
type history struct {
	*account
	skip, want int
	found      []mutation
}

// window is a stretch of time, both ends included.
type window struct{ from, to time.Time }

// windows are the months that the upstream is asked for, the newest first. None
// is longer than a calendar month, and none shares a second with another.
func windows(now time.Time) []window {
	to := now.In(jakarta).Truncate(time.Second)
	return windowsBetween(to.AddDate(0, -historyMonths, 0), to)
}

// windowsBetween are those after a start, up to an end.
func windowsBetween(start, to time.Time) []window {
	start, to = start.In(jakarta).Truncate(time.Second), to.In(jakarta).Truncate(time.Second)
	var list []window
	for to.After(start) {
		earlier := to.AddDate(0, -1, 0)
		if earlier.Before(start) {
			earlier = start
		}
		list = append(list, window{earlier.Add(time.Second), to})
		to = earlier
	}
	return list
}

func (h *history) read(ctx context.Context, now time.Time) *problem {
	h.found = []mutation{}
	for _, w := range windows(now) {
		if h.want == 0 {
			break
		}
		if p := h.readWindow(ctx, w); p != nil {
			return p
		}
	}
	return nil
}

// readWindow takes what is wanted of a window, page after page, from the page
// on which it begins.
func (h *history) readWindow(ctx context.Context, w window) *problem {
	number := h.skip / pageRows
	rows, p := h.page(ctx, w, number)
	if p == nil && len(rows) == 0 && number > 0 {
		number, rows, p = h.lastPage(ctx, w, number)
	}
	if p != nil {
		return p
	}
	passed := min(h.skip, number*pageRows+len(rows))
	h.skip -= passed
	h.take(rows[passed-number*pageRows:])
	for h.want > 0 && len(rows) == pageRows {
		number++
		if rows, p = h.page(ctx, w, number); p != nil {
			return p
		}
		h.take(rows)
	}
	return nil
}

func (h *history) take(rows []mutation) {
	rows = rows[:min(len(rows), h.want)]
	h.found, h.want = append(h.found, rows...), h.want-len(rows)
}

// lastPage finds the last page of a window that has rows, before one that has
// none. The upstream does not say how many rows there are, so it is found by
// halves.
func (h *history) lastPage(ctx context.Context, w window, empty int) (number int, rows []mutation, p *problem) {
	low := 0
	for low < empty {
		middle := low + (empty-low)/2
		found, p := h.page(ctx, w, middle)
		switch {
		case p != nil:
			return 0, nil, p
		case len(found) == 0:
			empty = middle
		case len(found) < pageRows:
			return middle, found, nil
		default:
			number, rows, low = middle, found, middle+1
		}
	}
	return number, rows, nil
}

// page asks for one of the upstream's pages. Some issuers say "there is no such
// transaction" where there are no rows, so that is an empty page here. It proves
// nothing: see statement.
func (h *history) page(ctx context.Context, w window, number int) ([]mutation, *problem) {
	answered, p := h.rows(ctx, w, number, pageRows)
	if p != nil && p.class == missing {
		return nil, nil
	}
	if p != nil {
		return nil, p
	}
	rows := make([]mutation, 0, len(answered))
	for _, r := range answered {
		m, err := r.mutation()
		if err != nil {
			return nil, &problem{class: unlisted, blame: sdk.BlameUpstream, detail: "history: " + err.Error()}
		}
		rows = append(rows, m)
	}
	return rows, nil
}

// rows asks for one of the upstream's pages of a window, which begin with 0.
func (acc *account) rows(ctx context.Context, w window, number, size int) ([]row, *problem) {
	type request struct {
		PartnerReferenceNo string `json:"partnerReferenceNo"`
		FromDateTime       string `json:"fromDateTime"`
		ToDateTime         string `json:"toDateTime"`
		PageSize           any    `json:"pageSize"`
		PageNumber         any    `json:"pageNumber"`
	}
	body := request{newExternalID(acc.client.now()), timestamp(w.from), timestamp(w.to), size, number}
	if acc.pagesAsText {
		body.PageSize, body.PageNumber = strconv.Itoa(size), strconv.Itoa(number)
	}
	var answer struct {
		DetailData []row `json:"detailData"`
	}
	if p := acc.client.ask(ctx, question{service: historyList, body: body, into: &answer}); p != nil {
		return nil, p
	}
	if len(answer.DetailData) > size {
		return nil, &problem{class: unlisted, blame: sdk.BlameUpstream, detail: "the history has more rows to a page than were asked for"}
	}
	return answer.DetailData, nil
}

// row is a row of the upstream's history.
type row struct {
	DateTime text `json:"dateTime"`
	Amount   struct {
		Value text `json:"value"`
	} `json:"amount"`
	Remark text `json:"remark"`
	Status text `json:"status"`
	Type   text `json:"type"`
	Info   struct {
		DebitCredit text `json:"debitCredit"`
	} `json:"additionalInfo"`
}

// mutation reads a row. One that can't be read is an error, and not left out: a
// list for reconciliation that misses money is worse than none.
func (r row) mutation() (mutation, error) {
	at, err := readTime(string(r.DateTime))
	if err != nil {
		return mutation{}, errors.New("a row's dateTime can't be read")
	}
	amount, ok := unsigned(string(r.Amount.Value))
	if !ok {
		return mutation{}, errors.New("a row's amount can't be read")
	}
	return mutation{
		MerchantName: string(r.Remark), TransactionAmount: amount, TransactionType: string(r.Type), Status: string(r.Status),
		TransactionDate: at.Format(time.DateOnly), TransactionTime: at.Format(time.TimeOnly), at: at,
	}, nil
}

// readTime reads a time; without a zone it is Jakarta's.
func readTime(written string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, written)
	if err != nil {
		at, err = time.ParseInLocation("2006-01-02T15:04:05", written, jakarta)
	}
	return at.In(jakarta), err
}

const maxWholeDigits = 16

// unsigned brings a sum into the form 12345.00, without its sign. Sen are kept.
func unsigned(written string) (string, bool) {
	whole, sen, _ := strings.Cut(strings.TrimPrefix(written, "-"), ".")
	if !digits(whole, 1, maxWholeDigits) || !digits(sen, 0, 2) {
		return "", false
	}
	whole = strings.TrimLeft(whole, "0")
	if whole == "" {
		whole = "0"
	}
	return whole + "." + (sen + "00")[:2], true
}
