package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// channelID is the channel of accounts that Connect opens: DANA's.
const channelID = "95221"

// credentials are what the plugin's connection wants.
type credentials struct {
	BaseURL           string       `json:"base_url"`
	Dialect           Dialect      `json:"dialect"`
	ClientID          string       `json:"client_id"`
	PartnerID         string       `json:"partner_id"`
	ChannelID         string       `json:"channel_id"`
	CustomerNumber    string       `json:"customer_number"`
	Signature         Signature    `json:"signature"`
	ClientSecret      string       `json:"client_secret,omitempty"`
	SignatureEncoding Encoding     `json:"signature_encoding,omitempty"`
	PrivateKey        string       `json:"private_key"`
	ProviderPublicKey string       `json:"provider_public_key"`
	BankFee           money.Amount `json:"bank_fee"`
	WalletFee         money.Amount `json:"wallet_fee"`
}

// Connect opens an account; its client id names it to the hooks order.
func (s *Simulator) Connect(_, key, token, base string) kit.Connection {
	digits := digitsOf(key, 18)
	a, err := s.Open(Account{
		ClientID: "sandbox-" + string(kit.AccountOf(key))[:12], ClientSecret: key,
		PartnerID: digits[:10], ChannelID: channelID, CustomerNumber: "62888" + digits[10:],
		Signature: s.options.Signature, Encoding: s.options.Encoding,
	})
	if err != nil {
		// The caller learns it at the first call, as 401.
		s.env.Log.Error("account not opened", "client_id", a.ClientID, "err", err)
	}
	public, err := publicPEM(&s.key.PublicKey)
	if err != nil {
		s.env.Log.Error("the issuer's key cannot be shown", "err", err)
	}
	c := credentials{
		BaseURL: base, Dialect: s.options.Dialect, ClientID: a.ClientID, PartnerID: a.PartnerID, ChannelID: a.ChannelID,
		CustomerNumber: a.CustomerNumber, Signature: a.Signature, ClientSecret: a.ClientSecret, SignatureEncoding: a.Encoding,
		PrivateKey: a.PrivateKey, ProviderPublicKey: public, BankFee: s.options.BankFee, WalletFee: s.options.WalletFee,
	}
	if a.Signature == Asymmetric {
		c.ClientSecret, c.SignatureEncoding = "", ""
	}
	return kit.Connection{Account: a.ClientID, CallbackToken: token, Credentials: c}
}

// digitsOf derives up to 18 digits from a text.
func digitsOf(text string, count int) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%018d", binary.BigEndian.Uint64(sum[:])%1_000_000_000_000_000_000)[:count]
}

// Revoke implements the kit's Revoker.
func (s *Simulator) Revoke(account string) error { return s.env.Accounts.Revoke(account) }
