package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Orders are the control orders that only this simulator has.
func (s *Simulator) Orders() []kit.Order {
	return []kit.Order{
		kit.NewOrder("settle", `{"merchant_code":"...","amount":12345}: somebody pays the printed code an amount that nobody asked for`, s.orderSettle),
		kit.NewOrder("reverse", `{"settlement_id":"..."}: a payment is taken back`, s.orderReverse),
		kit.NewOrder("report", `{"merchant_code":"...","damage":"half"}: a report now; damage leaves away half of the last line (half) or the header (header)`, s.orderReport),
	}
}

type settleOrder struct {
	MerchantCode string       `json:"merchant_code"`
	Amount       money.Amount `json:"amount"`
}

func (s *Simulator) orderSettle(o settleOrder) (any, error) {
	s.mu.Lock()
	a, ok := s.accounts[o.MerchantCode]
	s.mu.Unlock()
	if !ok {
		return nil, kit.ErrUnknown
	}
	if o.Amount < 1 {
		return nil, fmt.Errorf("amount must be at least 1")
	}
	return s.Pay(kit.PayRequest{QRString: a.code.String(), Amount: &o.Amount})
}

type reverseOrder struct {
	SettlementID string `json:"settlement_id"`
}

func (s *Simulator) orderReverse(o reverseOrder) (any, error) {
	return map[string]string{"settlement_id": o.SettlementID, "state": stateReversed}, s.reverse(o.SettlementID)
}

// damage is what is wrong with a report.
type damage string

const (
	undamaged damage = ""
	halved    damage = "half"
	headless  damage = "header"
)

type reportOrder struct {
	MerchantCode string `json:"merchant_code"`
	Damage       damage `json:"damage"`
}

// orderReport drops a report, and beside it a broken one where that is ordered.
// The broken one repeats the last rows: nobody loses any by refusing it.
func (s *Simulator) orderReport(o reportOrder) (any, error) {
	if !slices.Contains([]damage{undamaged, halved, headless}, o.Damage) {
		return nil, fmt.Errorf("damage is half, header or nothing")
	}
	s.mu.Lock()
	a, ok := s.accounts[o.MerchantCode]
	s.mu.Unlock()
	if !ok {
		return nil, kit.ErrUnknown
	}
	if err := s.publish(o.MerchantCode, true); err != nil {
		return nil, err
	}
	broken := filepath.Join(s.directory(o.MerchantCode), "settlement-damaged.csv")
	if err := os.Remove(broken); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if o.Damage == undamaged {
		return map[string]string{"merchant_code": o.MerchantCode}, nil
	}
	s.mu.Lock()
	text := s.write(a, a.last)
	s.mu.Unlock()
	if o.Damage == halved {
		text = append(text, "STL0000000000000000,2026-01-02 15:04"...)
	} else {
		_, rest, _ := strings.Cut(string(text), "\n")
		text = []byte(rest + "STL0000000000000000,2026-01-02 15:04:05\n")
	}
	return map[string]string{"merchant_code": o.MerchantCode, "file": filepath.Base(broken)}, drop(broken, text)
}
