package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Store keeps connections.
type Store interface {
	// AddConnection is store.ErrConnected where there is one.
	AddConnection(ctx context.Context, audit store.Audit, c tenants.Connection) (tenants.Connection, error)
	Adjust(ctx context.Context, audit store.Audit, a store.Adjustment, limit money.Amount) (store.Adjustment, error)
}

// Vault seals and opens credentials.
type Vault interface {
	SealCredentials(m tenants.MerchantID, mode tenants.Mode, p tenants.Provider, credentials []byte) ([]byte, error)
	OpenCredentials(c tenants.Connection) ([]byte, error)
}

// Directory knows accounts, from memory.
type Directory interface {
	Account(ctx context.Context, id tenants.MerchantID) (*tenants.Account, error)
	Invalidate(id tenants.MerchantID)
}

// account is one that a simulator has opened.
type account struct {
	Account       string          `json:"account"`
	CallbackToken string          `json:"callback_token"`
	Credentials   json.RawMessage `json:"credentials"`
}

// account opens a merchant's account at a simulator: for the same merchant the same.
func (s *Sandbox) account(ctx context.Context, provider string, id tenants.MerchantID) (opened account, err error) {
	status, err := s.Order(ctx, provider, "connect", map[string]string{"merchant": string(id), "mode": string(tenants.Test)}, &opened)
	if status == http.StatusNotFound {
		return opened, fmt.Errorf("%w that opens accounts", ErrNone)
	}
	return opened, err
}

// connectWithin bounds what a first call of test mode waits for its account.
const connectWithin = 25 * time.Second

// Connect opens the account of a merchant, or of the platform, at a provider's simulator, and
// stores it as its connection of test mode. One that there is by now stays. It is false
// where the provider has no simulator.
func (s *Sandbox) Connect(ctx context.Context, provider tenants.Provider, owner tenants.Owner, id tenants.MerchantID) (tenants.Connection, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	opened, err := s.account(ctx, string(provider), id)
	if errors.Is(err, ErrNone) {
		return tenants.Connection{}, false, nil
	}
	if err != nil {
		return tenants.Connection{}, false, err
	}
	c, err := s.connect(ctx, tenants.Connection{MerchantID: id, Mode: tenants.Test, Provider: provider, Owner: owner}, opened.Credentials)
	return c, err == nil, err
}

// connect stores a connection, or finds the one that there is.
func (s *Sandbox) connect(ctx context.Context, c tenants.Connection, credentials []byte) (_ tenants.Connection, err error) {
	id, provider := c.MerchantID, c.Provider
	if c.Sealed, err = s.config.Vault.SealCredentials(id, c.Mode, provider, credentials); err != nil {
		return c, err
	}
	if c.NotifyToken, err = tenants.NewNotifyToken(rand.Reader); err != nil {
		return c, err
	}
	audit := store.Audit{
		Operator: "gateway", Action: "connection.simulated", At: s.config.Now(),
		Detail: fmt.Sprintf("provider %s, mode %s: an account at its simulator", provider, c.Mode),
	}
	added, err := s.config.Store.AddConnection(ctx, audit, c)
	s.config.Directory.Invalidate(id)
	if !errors.Is(err, store.ErrConnected) {
		return added, err
	}
	now, err := s.config.Directory.Account(ctx, id)
	if err != nil {
		return c, err
	}
	connected, ok := now.Connection(c.Mode, provider)
	if !ok {
		return c, store.ErrNotFound // it was removed meanwhile
	}
	return connected, nil
}

// told is a connection of which a simulator knows where its notifications go.
type told struct {
	id       tenants.MerchantID
	provider tenants.Provider
	token    tenants.NotifyToken
}

// Tell tells the simulator where the notifications of a connection go, once in each life of
// its process: whoever forgets that is asked by polls alone.
func (s *Sandbox) Tell(ctx context.Context, c tenants.Connection) error {
	key, life := told{c.MerchantID, c.Provider, c.NotifyToken}, s.life(string(c.Provider))
	s.mu.Lock()
	before, known := s.told[key]
	s.mu.Unlock()
	if known && before == life {
		return nil
	}
	opened, err := s.account(ctx, string(c.Provider), c.MerchantID)
	if err != nil {
		return err
	}
	_, err = s.Order(ctx, string(c.Provider), "hooks", map[string]string{
		"account": opened.Account, "name": string(c.MerchantID), "callback_token": opened.CallbackToken,
		"callback_url": s.config.Callback() + "/notify/" + string(c.Provider) + "/" + string(c.NotifyToken),
	}, nil)
	if err != nil {
		return err
	}
	life = s.life(string(c.Provider)) // which has begun by now
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[key] = life
	return nil
}

// life ends with the process of a simulator that runs here; nil is any other's.
func (s *Sandbox) life(provider string) <-chan struct{} {
	simulator := s.config.Own[provider]
	if simulator == nil {
		s.mu.Lock()
		simulator = s.running[provider]
		s.mu.Unlock()
	}
	if simulator == nil {
		return nil
	}
	return simulator.Exited()
}

// topUp is what a balance of test mode is credited with where it is too small for an order.
// What costs more than that and what is there is refused, so that a merchant can try that too.
const topUp money.Amount = 10_000_000

// TopUp credits a merchant's balance of test mode.
func (s *Sandbox) TopUp(ctx context.Context, owner movement.Owner) error {
	if owner.Mode != string(tenants.Test) {
		return fmt.Errorf("sandbox: a balance of mode %s is nobody's to top up", owner.Mode)
	}
	now := s.config.Now()
	a := store.Adjustment{Owner: owner, Amount: topUp, Reference: "top-up " + uuid.NewString(), Reason: "a test balance tops itself up"}
	audit := store.Audit{Operator: "gateway", Action: "merchant.credit", At: now, Detail: fmt.Sprintf("%s, reference %s, mode %s: %s", a.Amount.Format(), a.Reference, owner.Mode, a.Reason)}
	_, err := s.config.Store.Adjust(ctx, audit, a, math.MaxInt64)
	return err
}
