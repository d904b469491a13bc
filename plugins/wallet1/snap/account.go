package snap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// account is one merchant's wallet at the upstream in one mode.
type account struct {
	client         *client
	customerNumber string // the phone number of the wallet that pays
	notifyPaths    []string
	bankStatus     service
	fundTypes      fundTypes
	fees           fees
	pagesAsText    bool
	namesFee       bool // a top-up must name its fee, also where there is none
}

// fundTypes are the provider's names for where the money comes from.
type fundTypes struct{ wallet, bank string }

// fees are the fees of transfers that a merchant is shown.
type fees struct{ wallet, bank money.Amount }

const (
	defaultBankFee = 2500

	notifyPath = "/v1.0/debit/emoney/transfer-bank/notify"
)

// settings is a connection as the manifest describes it.
type settings struct {
	BaseURL           string            `json:"base_url"`
	Dialect           dialect           `json:"dialect"`
	ClientID          string            `json:"client_id"`
	PartnerID         string            `json:"partner_id"`
	ChannelID         string            `json:"channel_id"`
	Origin            string            `json:"origin"`
	CustomerNumber    string            `json:"customer_number"`
	Signature         string            `json:"signature"`
	ClientSecret      string            `json:"client_secret"`
	SignatureEncoding string            `json:"signature_encoding"`
	PrivateKey        string            `json:"private_key"`
	ProviderPublicKey string            `json:"provider_public_key"`
	NotifyPath        string            `json:"notify_path"`
	Paths             map[string]string `json:"paths"`
	BankStatusService string            `json:"bank_status_service"`
	FundTypeWallet    string            `json:"fund_type_wallet"`
	FundTypeBank      string            `json:"fund_type_bank"`
	PagesAsText       bool              `json:"history_page_as_string"`
	BankFee           *money.Amount     `json:"bank_fee"`
	WalletFee         money.Amount      `json:"wallet_fee"`
}

// account returns the account of a connection. The error holds no credential.
func (a *adapter) account(c sdk.Connection) (*account, error) {
	return a.accounts.Get(c, func(c sdk.Connection) (*account, error) { return openAccount(c, a.now) })
}

func openAccount(c sdk.Connection, now func() time.Time) (*account, error) {
	var s settings
	// The decoder's own error could quote the document, which is secret.
	if json.Unmarshal(c.Credentials, &s) != nil {
		return nil, errors.New("connection: not the JSON that the manifest describes")
	}
	if s.ClientID == "" || s.ChannelID == "" || s.CustomerNumber == "" {
		return nil, errors.New("connection: client_id, channel_id and customer_number must be given")
	}
	base, err := upstream.BaseURL(s.BaseURL, "")
	if err != nil {
		return nil, err
	}
	signer, err := s.signer()
	if err != nil {
		return nil, fmt.Errorf("connection: %w", err)
	}
	acc := &account{
		client:         newClient(base, signer, now),
		customerNumber: s.CustomerNumber,
		notifyPaths:    []string{notifyPath, notifyPath + ".htm"},
		bankStatus:     bankStatus,
		fundTypes:      s.Dialect.fundTypes(),
		fees:           fees{wallet: s.WalletFee, bank: defaultBankFee},
		pagesAsText:    s.PagesAsText,
		namesFee:       s.Dialect == dialectDANA,
	}
	acc.client.headers = s.headers()
	acc.client.paths = s.paths(c.Mode)
	if s.NotifyPath != "" {
		acc.notifyPaths = []string{s.NotifyPath}
	}
	if s.BankStatusService == transferStatus.code {
		acc.bankStatus = transferStatus
	}
	if s.BankFee != nil {
		acc.fees.bank = *s.BankFee
	}
	acc.fundTypes.wallet = cmp.Or(s.FundTypeWallet, acc.fundTypes.wallet)
	acc.fundTypes.bank = cmp.Or(s.FundTypeBank, acc.fundTypes.bank)
	return acc, nil
}

func (s settings) headers() headers {
	return headers{partner: cmp.Or(s.PartnerID, s.ClientID), channel: s.ChannelID, origin: s.Origin}
}
