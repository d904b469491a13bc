package sandbox

import (
	"crypto/md5" //nolint:gosec // the upstream signs with it
	"crypto/subtle"
	"encoding/hex"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Buyer is an account at the upstream.
type Buyer struct {
	Username string `json:"username"`
	APIKey   string `json:"api_key"`
	// WebhookSecret signs webhooks until the account registers another one
	// together with its address.
	WebhookSecret string `json:"-"`
}

// Sign is what the buyer signs a call with: the hexadecimal md5 over username,
// key and a text that depends on the call.
func (b Buyer) Sign(about string) string {
	sum := md5.Sum([]byte(b.Username + b.APIKey + about)) //nolint:gosec // the upstream's choice
	return hex.EncodeToString(sum[:])
}

// account is a buyer's account as the state has it.
type account struct {
	Buyer
	id      kit.AccountID
	deposit money.Amount
}

// buyerEvent opens an account, or sets the deposit of one.
type buyerEvent struct {
	New     *Buyer        `json:"new,omitempty"`
	ID      kit.AccountID `json:"id,omitempty"`
	Deposit money.Amount  `json:"deposit"`
}

func (s *Simulator) applyBuyer(e buyerEvent) {
	if e.New == nil {
		s.accounts[e.ID].deposit = e.Deposit
		return
	}
	id := kit.AccountOf(e.New.Username)
	s.accounts[id] = &account{*e.New, id, e.Deposit}
}

// Open makes a buyer known, who keeps the deposit if they were known before.
func (s *Simulator) Open(b Buyer) error {
	id := kit.AccountOf(b.Username)
	if _, known := s.env.Accounts.Get(id); !known {
		if err := s.env.Accounts.Register(kit.Account{ID: id, Name: b.Username, CallbackToken: b.WebhookSecret}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	deposit := s.options.Deposit
	if a := s.accounts[id]; a != nil {
		if a.APIKey == b.APIKey {
			s.mu.Unlock()
			return s.env.Journal.Sync()
		}
		deposit = a.deposit
	}
	commit := s.env.Journal.Append(s.buyerTopic.Entry(buyerEvent{New: &b, Deposit: deposit}))
	s.mu.Unlock()
	return commit.Wait()
}

// credentials are what the plugin's connection wants.
type credentials struct {
	Username      string `json:"username"`
	APIKey        string `json:"api_key"`
	WebhookSecret string `json:"webhook_secret"`
	BaseURL       string `json:"base_url"`
}

// Connect opens a buyer's account; the username names it to the hooks order.
func (s *Simulator) Connect(_, key, token, base string) kit.Connection {
	b := Buyer{Username: "sb" + string(kit.AccountOf(key))[:12], APIKey: "dev-" + key, WebhookSecret: token}
	if err := s.Open(b); err != nil {
		// The caller learns it at the first call, as rc 42.
		s.env.Log.Error("account not opened", "username", b.Username, "err", err)
	}
	return kit.Connection{
		Account: b.Username, CallbackToken: token,
		Credentials: credentials{b.Username, b.APIKey, token, base + "/v1"},
	}
}

// authenticate finds who signed.
func (s *Simulator) authenticate(username, sign, about string) (kit.AccountID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.accounts[kit.AccountOf(username)]
	if !ok {
		return "", refuse(rcUser)
	}
	if s.env.Accounts.Revoked(a.id) || subtle.ConstantTimeCompare([]byte(a.Sign(about)), []byte(sign)) != 1 {
		return "", refuse(rcSignature)
	}
	return a.id, nil
}

// Revoke implements the kit's Revoker.
func (s *Simulator) Revoke(account string) error { return s.env.Accounts.Revoke(account) }
