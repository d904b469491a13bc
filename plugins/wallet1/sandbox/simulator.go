package sandbox

import (
	"context"
	"crypto/rsa"
	"net/http"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// jakarta is where the upstream's days begin.
var jakarta = time.FixedZone("WIB", 7*60*60)

// Simulator is the upstream: its state in memory, its journal on disk.
type Simulator struct {
	env     *kit.Env
	options Options
	agenda  *kit.Agenda[string]

	keyTopic      *kit.Topic[string]
	walletTopic   *kit.Topic[walletEvent]
	externalTopic *kit.Topic[externalID]
	transferTopic *kit.Topic[transferEvent]
	entryTopic    *kit.Topic[entry]
	tokenTopic    *kit.Topic[tokenEvent]
	feeTopic      *kit.Topic[fees]

	// mu guards everything below. The apply functions run under it, or in
	// Replay.
	mu        sync.Mutex
	key       *rsa.PrivateKey // the issuer's own
	fees      fees
	delay     time.Duration
	wallets   map[kit.AccountID]*wallet
	byPartner map[string]*wallet
	transfers transferBook
	planned   []plannedNext
}

// fees are what is taken beside an amount.
type fees struct {
	Bank   money.Amount `json:"bank"`
	Wallet money.Amount `json:"wallet"`
}

// New replays the journal of env and returns the upstream as it was.
func New(env *kit.Env, options Options) (*Simulator, error) {
	s := &Simulator{
		env: env, options: options, delay: options.Delay, fees: fees{options.BankFee, options.WalletFee},
		wallets: map[kit.AccountID]*wallet{}, byPartner: map[string]*wallet{}, transfers: newTransferBook(),
	}
	s.agenda = kit.NewAgenda(env.Clock, func(_ context.Context, id string) {
		if err := s.resultOf(id); err != nil {
			env.Log.Warn("a result did not come", "id", id, "err", err)
		}
	})
	s.keyTopic = kit.NewTopic(env.Journal, "key", s.applyKey)
	s.walletTopic = kit.NewTopic(env.Journal, "wallet", s.applyWallet)
	s.externalTopic = kit.NewTopic(env.Journal, "external", s.applyExternal)
	s.transferTopic = kit.NewTopic(env.Journal, "transfer", s.applyTransfer)
	s.entryTopic = kit.NewTopic(env.Journal, "entry", s.applyEntry)
	s.tokenTopic = kit.NewTopic(env.Journal, "tokens", s.applyTokens)
	s.feeTopic = kit.NewTopic(env.Journal, "fees", func(f fees) { s.fees = f })
	env.Faults.ServerError = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail(w, callOf(r).service, refuse(resultGeneralError))
	})
	env.Webhooks.Sign = s.signNotice
	if err := env.Begin(); err != nil {
		return nil, err
	}
	if err := s.ensureKey(); err != nil {
		return nil, err
	}
	env.Go(s.agenda.Run)
	return s, nil
}

// Handler serves the API: each service at its SNAP path and at those that DANA's
// sandbox and DANA itself have.
func (s *Simulator) Handler() http.Handler {
	mux := http.NewServeMux()
	serve := func(h http.Handler, paths ...string) {
		for _, path := range paths {
			mux.Handle("POST "+path, h)
		}
	}
	serve(s.issueToken(), "/v1.0/access-token/b2b", "/v1.0/access-token/b2b.htm")
	serve(s.guard(serviceBalance, opBalance, false, s.balance),
		"/v1.0/balance-inquiry", "/rest/v1.0/balance-inquiry", "/v1.0/balance-inquiry.htm")
	serve(s.guard(serviceHistory, opHistory, false, s.history),
		"/v1.0/transaction-history-list", "/rest/v1.0/transaction-history-list", "/v1.0/transaction-history-list.htm")
	serve(s.guard(serviceInquiry, opInquiry, false, s.inquireWallet),
		"/v1.0/emoney/account-inquiry", "/rest/v1.0/emoney/account-inquiry", "/v1.0/emoney/account-inquiry.htm")
	serve(s.guard(serviceTopup, opTopup, true, s.topup),
		"/v1.0/emoney/topup", "/rest/v1.0/emoney/topup", "/v1.0/emoney/topup.htm")
	serve(s.guard(serviceTopupStatus, opTopupStatus, false, s.topupStatus),
		"/v1.0/emoney/topup-status", "/rest/v1.0/emoney/topup-status", "/v1.0/emoney/topup-status.htm")
	serve(s.guard(serviceBankInquiry, opBankInquiry, false, s.inquireBank),
		"/v1.0/emoney/bank-account-inquiry", "/v1.0/emoney/bank-account-inquiry.htm")
	serve(s.guard(serviceBank, opBank, true, s.transferToBank),
		"/v1.0/emoney/transfer-bank", "/v1.0/emoney/transfer-bank.htm")
	serve(s.guard(serviceBankStatus, opBankStatus, false, s.bankStatus),
		"/v1.0/emoney/transfer-bank-status", "/v1.0/emoney/transfer-bank-status.htm")
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fail(w, "00", refuse(resultNotSupported)) })
	return mux
}

// Operations, as faults and plans name them.
const (
	opToken       = "token"
	opBalance     = "balance-inquiry"
	opHistory     = "transaction-history-list"
	opInquiry     = "account-inquiry"
	opTopup       = "topup"
	opTopupStatus = "topup-status"
	opBankInquiry = "bank-account-inquiry"
	opBank        = "transfer-bank"
	opBankStatus  = "transfer-bank-status"
)

// Pay implements the kit's upstream: nothing here is paid by a payer.
func (s *Simulator) Pay(kit.PayRequest) (kit.Receipt, error) { return kit.Receipt{}, kit.ErrUnknown }

// now is the present as the journal keeps it.
func (s *Simulator) now() time.Time { return s.env.Clock.Now().UTC() }

// callersNow is the present by the clocks of callers, which stay behind when
// the simulator's is moved by order.
func (s *Simulator) callersNow() time.Time {
	now := s.env.Clock.Now()
	if clock, ok := s.env.Clock.(interface{ Ahead() time.Duration }); ok {
		now = now.Add(-clock.Ahead())
	}
	return now
}

// stamp is how the standard writes a time.
func stamp(t time.Time) string { return t.In(jakarta).Format("2006-01-02T15:04:05-07:00") }

// newID returns an id that was never used.
func newID() string { return kit.RandomHex(12) }

// sum is an amount as the standard writes it.
type sum struct {
	Value    string `json:"value"`
	Currency string `json:"currency"`
}

func rupiah(a money.Amount) sum { return sum{a.Decimal2(), currency} }
