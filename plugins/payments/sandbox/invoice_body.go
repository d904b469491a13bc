package sandbox

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// paid is what an invoice tells once it is paid, in answers and events alike.
type paid struct {
	PaidAmount         money.Amount `json:"paid_amount,omitempty"`
	PaidAt             string       `json:"paid_at,omitempty"`
	PaymentMethod      string       `json:"payment_method,omitempty"`
	PaymentChannel     string       `json:"payment_channel,omitempty"`
	PaymentDestination string       `json:"payment_destination,omitempty"`
}

func (i invoice) paid() paid {
	if i.State != statePaid {
		return paid{}
	}
	channel := "QRIS"
	if len(i.Methods) > 0 {
		channel = i.Methods[0]
	}
	return paid{i.PaidAmount, stamp(i.PaidAt), methodOf(channel), channel, "sandbox-" + i.ID[:8]}
}

// methodOf is the kind of payment that a channel is.
func methodOf(channel string) string {
	switch {
	case channel == "QRIS":
		return "QR_CODE"
	case channel == "CREDIT_CARD":
		return channel
	case slices.Contains([]string{"OVO", "DANA", "LINKAJA", "SHOPEEPAY"}, channel):
		return "EWALLET"
	case slices.Contains([]string{"ALFAMART", "INDOMARET"}, channel):
		return "RETAIL_OUTLET"
	default:
		return "BANK_TRANSFER"
	}
}

// bank is a virtual account that the invoice could be paid to.
type bank struct {
	BankCode          string       `json:"bank_code"`
	CollectionType    string       `json:"collection_type"`
	TransferAmount    money.Amount `json:"transfer_amount"`
	BankBranch        string       `json:"bank_branch"`
	AccountHolderName string       `json:"account_holder_name"`
	IdentityAmount    money.Amount `json:"identity_amount"`
}

// invoiceBody is an invoice in an answer.
type invoiceBody struct {
	ID                      string              `json:"id"`
	ExternalID              string              `json:"external_id"`
	UserID                  kit.AccountID       `json:"user_id"`
	Status                  string              `json:"status"`
	MerchantName            string              `json:"merchant_name"`
	MerchantPicture         string              `json:"merchant_profile_picture_url"`
	Amount                  money.Amount        `json:"amount"`
	PayerEmail              string              `json:"payer_email,omitempty"`
	Description             string              `json:"description,omitempty"`
	ExpiryDate              string              `json:"expiry_date"`
	InvoiceURL              string              `json:"invoice_url"`
	AvailableBanks          []bank              `json:"available_banks"`
	AvailableRetailOutlets  []map[string]string `json:"available_retail_outlets"`
	AvailableEwallets       []map[string]string `json:"available_ewallets"`
	AvailableQRCodes        []map[string]string `json:"available_qr_codes"`
	AvailableDirectDebits   []map[string]string `json:"available_direct_debits"`
	AvailablePaylaters      []map[string]string `json:"available_paylaters"`
	ShouldExcludeCreditCard bool                `json:"should_exclude_credit_card"`
	ShouldSendEmail         bool                `json:"should_send_email"`
	SuccessURL              string              `json:"success_redirect_url,omitempty"`
	FailureURL              string              `json:"failure_redirect_url,omitempty"`
	Created                 string              `json:"created"`
	Updated                 string              `json:"updated"`
	Currency                string              `json:"currency"`
	Items                   json.RawMessage     `json:"items,omitempty"`
	Fees                    json.RawMessage     `json:"fees,omitempty"`
	Customer                json.RawMessage     `json:"customer,omitempty"`
	Metadata                json.RawMessage     `json:"metadata"`
	paid
}

// body renders an invoice for the address that it was asked at.
func (i invoice) body(r *http.Request) invoiceBody {
	return invoiceBody{
		ID: i.ID, ExternalID: i.ExternalID, UserID: i.Account, Status: i.State,
		MerchantName: i.Merchant, Amount: i.Amount, PayerEmail: i.PayerEmail, Description: i.Description,
		ExpiryDate: stamp(i.Expiry), InvoiceURL: "http://" + r.Host + pagePrefix + i.ID,
		AvailableBanks: []bank{{
			BankCode: "BCA", CollectionType: "POOL", TransferAmount: i.Amount, BankBranch: "Virtual Account",
			AccountHolderName: i.Merchant,
		}},
		AvailableRetailOutlets: []map[string]string{},
		AvailableEwallets:      []map[string]string{{"ewallet_type": "OVO"}},
		AvailableQRCodes:       []map[string]string{{"qr_code_type": "QRIS"}},
		AvailableDirectDebits:  []map[string]string{},
		AvailablePaylaters:     []map[string]string{},
		SuccessURL:             i.SuccessURL, FailureURL: i.FailureURL,
		Created: stamp(i.Created), Updated: stamp(i.Updated), Currency: "IDR",
		Items: i.Items, Fees: i.Fees, Customer: i.Customer, Metadata: orNull(i.Metadata), paid: i.paid(),
	}
}

// invoiceNotice is the flat event of an invoice.
type invoiceNotice struct {
	ID           string          `json:"id"`
	ExternalID   string          `json:"external_id"`
	UserID       kit.AccountID   `json:"user_id"`
	IsHigh       bool            `json:"is_high"`
	Status       string          `json:"status"`
	MerchantName string          `json:"merchant_name"`
	Amount       money.Amount    `json:"amount"`
	PayerEmail   string          `json:"payer_email,omitempty"`
	Description  string          `json:"description,omitempty"`
	Created      string          `json:"created"`
	Updated      string          `json:"updated"`
	Currency     string          `json:"currency"`
	SuccessURL   string          `json:"success_redirect_url,omitempty"`
	FailureURL   string          `json:"failure_redirect_url,omitempty"`
	Items        json.RawMessage `json:"items,omitempty"`
	Fees         json.RawMessage `json:"fees,omitempty"`
	paid
}

// invoiceWebhooks are the messages about an invoice that has just ended.
func (s *Simulator) invoiceWebhooks(i invoice, now time.Time, how kit.Telling) []kit.Entry {
	switch {
	case how == kit.TellNever || i.Amount == magicLost:
		return nil
	case how == kit.TellLate:
		return s.invoiceWebhook(i, now.Add(kit.LateGap), 1)
	case i.State == statePaid && i.Amount == magicStaleAfter:
		return append(s.invoiceWebhook(i, now, 1), s.invoiceWebhook(i.stale(), now.Add(staleGap), 1)...)
	case i.State == statePaid && i.Amount == magicStaleBefore:
		return append(s.invoiceWebhook(i.stale(), now, 1), s.invoiceWebhook(i, now.Add(staleGap), 1)...)
	case i.Amount == magicTwice:
		return s.invoiceWebhook(i, now, 2)
	default:
		return s.invoiceWebhook(i, now, 1)
	}
}

// stale is an invoice as an outdated event tells of it.
func (i invoice) stale() invoice {
	i.State = stateExpired
	return i
}

func (s *Simulator) invoiceWebhook(i invoice, at time.Time, copies int) []kit.Entry {
	return s.webhook(kit.Webhook{Account: i.Account, Subject: i.ID, Says: i.State, At: at}, copies, invoiceNotice{
		ID: i.ID, ExternalID: i.ExternalID, UserID: i.Account, Status: i.State, MerchantName: i.Merchant,
		Amount: i.Amount, PayerEmail: i.PayerEmail, Description: i.Description, Created: stamp(i.Created),
		Updated: stamp(i.Updated), Currency: "IDR", SuccessURL: i.SuccessURL, FailureURL: i.FailureURL,
		Items: i.Items, Fees: i.Fees, paid: i.paid(),
	})
}
