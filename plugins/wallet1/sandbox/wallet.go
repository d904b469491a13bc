package sandbox

import (
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Account is a merchant's account at the issuer, with what it signs with.
type Account struct {
	ClientID       string    `json:"client_id"`
	ClientSecret   string    `json:"client_secret"`
	PartnerID      string    `json:"partner_id"`
	ChannelID      string    `json:"channel_id"`
	CustomerNumber string    `json:"customer_number"`
	Signature      Signature `json:"signature"`
	Encoding       Encoding  `json:"encoding"`
	// PrivateKey is the merchant's key as PEM; Open makes one when it is empty.
	PrivateKey string `json:"private_key"`
}

// wallet is an account as the state has it.
type wallet struct {
	Account
	id      kit.AccountID
	public  *rsa.PublicKey
	epoch   int // tokens of an earlier one have expired
	balance money.Amount
	rows    []*row // the oldest first
	// used are the external ids of the newest day that one was used on.
	used map[externalKey]struct{}
	day  string
}

// walletEvent opens a wallet, or changes what one signs with.
type walletEvent struct {
	Account Account      `json:"account"`
	Opening money.Amount `json:"opening"` // of a new one
	At      time.Time    `json:"at"`
}

func (s *Simulator) applyWallet(e walletEvent) {
	key, err := readKey(e.Account.PrivateKey)
	if err != nil {
		s.env.Log.Error("an account's key is not readable", "client_id", e.Account.ClientID, "err", err)
		return
	}
	id := kit.AccountOf(e.Account.ClientID)
	w := s.wallets[id]
	if w == nil {
		w = &wallet{id: id, used: map[externalKey]struct{}{}}
		s.wallets[id] = w
		w.post(&row{At: e.At, Amount: e.Opening, In: true, Kind: kindTopup, Remark: "Saldo awal"})
	}
	delete(s.byPartner, w.PartnerID)
	w.Account, w.public = e.Account, &key.PublicKey
	s.byPartner[w.PartnerID] = w
}

// Open makes an account known, under its client id. One that was known keeps
// balance and history, and its key unless it brings another one. It returns the
// account with its key.
func (s *Simulator) Open(a Account) (Account, error) {
	id := kit.AccountOf(a.ClientID)
	s.mu.Lock()
	known := s.wallets[id]
	if known != nil && a.PrivateKey == "" {
		a.PrivateKey = known.PrivateKey
	}
	unchanged := known != nil && known.Account == a
	s.mu.Unlock()
	if unchanged {
		return a, s.env.Journal.Sync()
	}
	made := a.PrivateKey == ""
	if made {
		// Making one takes long, so it is done without the lock.
		key, err := newKey()
		if err != nil {
			return a, err
		}
		a.PrivateKey = key
	}
	if _, err := readKey(a.PrivateKey); err != nil {
		return a, err
	}
	s.mu.Lock()
	if w := s.wallets[id]; w != nil && made {
		a.PrivateKey = w.PrivateKey // somebody else was faster
	}
	if other := s.byPartner[a.PartnerID]; other != nil && other.id != id {
		s.mu.Unlock()
		return a, fmt.Errorf("the partner id %q is another account's", a.PartnerID)
	}
	commit := s.env.Journal.Append(s.walletTopic.Entry(walletEvent{Account: a, Opening: s.options.Opening, At: s.now()}))
	s.mu.Unlock()
	return a, commit.Wait()
}

// seal derives a text that only the issuer can make for this account.
func (a *Account) seal(purpose string, parts ...string) string {
	mac := hmac.New(sha256.New, []byte(a.PrivateKey))
	mac.Write([]byte(purpose + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(mac.Sum(nil))
}

// applyKey takes over the issuer's own key.
func (s *Simulator) applyKey(text string) {
	key, err := readKey(text)
	if err != nil {
		s.env.Log.Error("the issuer's key is not readable", "err", err)
		return
	}
	s.key = key
}

// ensureKey makes the issuer's key at the first start.
func (s *Simulator) ensureKey() error {
	s.mu.Lock()
	known := s.key != nil
	s.mu.Unlock()
	if known {
		return nil
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	s.mu.Lock()
	commit := s.env.Journal.Append(s.keyTopic.Entry(key))
	s.mu.Unlock()
	return commit.Wait()
}
