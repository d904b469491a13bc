package sandbox

import (
	"net/url"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// pagePrefix begins the path of a page to pay on.
const pagePrefix = "/web/"

// Pay pays a code or a page as a payer would.
func (s *Simulator) Pay(request kit.PayRequest) (kit.Receipt, error) {
	var amount money.Amount
	if request.Amount != nil {
		amount = *request.Amount
	}
	if request.QRString != "" {
		return s.payByText(request.QRString, amount)
	}
	target, err := url.Parse(request.URL)
	if err != nil {
		return kit.Receipt{}, kit.ErrUnknown
	}
	id, found := strings.CutPrefix(target.Path, pagePrefix)
	if !found {
		return kit.Receipt{}, kit.ErrUnknown
	}
	i, err := s.payInvoice(id, amount, kit.TellAsUsual)
	return kit.Receipt{Reference: i.ExternalID, Amount: i.PaidAmount, State: i.State}, err
}

func (s *Simulator) payByText(text string, amount money.Amount) (kit.Receipt, error) {
	s.mu.RLock()
	found, ok := s.codes.byText[text]
	var id string
	if ok {
		id = found.ID
	}
	s.mu.RUnlock()
	if !ok {
		return kit.Receipt{}, kit.ErrUnknown
	}
	q, p, err := s.payQR(id, amount, kit.TellAsUsual)
	return kit.Receipt{Reference: q.Reference, Amount: p.Amount, State: statePaid}, err
}
