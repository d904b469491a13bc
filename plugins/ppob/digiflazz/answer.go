package digiflazz

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// answer is the data of /transaction and of a webhook.
type answer struct {
	RefID        upstream.Text   `json:"ref_id"`
	Status       upstream.Text   `json:"status"`
	RC           upstream.Text   `json:"rc"`
	Message      upstream.Text   `json:"message"`
	SN           upstream.Text   `json:"sn"`
	Price        figure          `json:"price"` // what leaves the deposit
	CustomerName upstream.Text   `json:"customer_name"`
	SellingPrice figure          `json:"selling_price"` // of a bill: what its buyer pays, the fee in it
	Admin        figure          `json:"admin"`
	Period       upstream.Text   `json:"periode"`
	Desc         json.RawMessage `json:"desc"`
}

// The upstream's words for how a transaction stands.
const (
	statusSuccess = "Sukses"
	statusPending = "Pending"
	statusFailed  = "Gagal"
)

// ofBill tells a postpaid answer from a prepaid one by what only bills have.
func (a answer) ofBill() bool {
	return a.SellingPrice.given || a.Admin.given || a.CustomerName != ""
}

// period is what a bill is for. Some products have it in their details alone.
func (a answer) period() string {
	if a.Period != "" {
		return string(a.Period)
	}
	var desc struct {
		Detail []struct {
			Period upstream.Text `json:"periode"`
		} `json:"detail"`
	}
	if json.Unmarshal(a.Desc, &desc) != nil {
		return "" // each product has its own description, and not all are like this
	}
	var periods []string
	for _, detail := range desc.Detail {
		if detail.Period != "" {
			periods = append(periods, string(detail.Period))
		}
	}
	return strings.Join(periods, ",")
}

// figure is a sum that the upstream writes as a number or as a string, or does
// not tell.
type figure struct {
	money.Amount
	given bool
}

// UnmarshalJSON reads whole rupiah. Any other sum is an error: money is never
// guessed.
func (f *figure) UnmarshalJSON(data []byte) error {
	*f = figure{}
	written := string(data)
	if bytes.HasPrefix(data, []byte(`"`)) {
		if err := json.Unmarshal(data, &written); err != nil {
			return err
		}
		written = strings.TrimSpace(written)
	}
	if written == "" || written == "null" {
		return nil
	}
	parsed, err := money.Parse(written)
	if err != nil {
		return err
	}
	*f = figure{parsed, true}
	return nil
}
