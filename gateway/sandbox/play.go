package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Play is what a merchant has happen to a test movement at its provider's simulator.
type Play string

// What can happen.
const (
	Pay        Play = "pay"        // its payer pays, the amount asked for or another
	PayLate    Play = "pay-late"   // and the provider tells it seconds later
	PayLost    Play = "pay-lost"   // and tells it to who asks alone
	Fail       Play = "fail"       // it ends unpaid
	Notify     Play = "notify"     // the provider tells once more how it stands
	Delay      Play = "delay"      // the next question about a payment waits
	Drop       Play = "drop"       // the next question about a payment is cut off
	Refund     Play = "refund"     // the provider gives money back
	Chargeback Play = "chargeback" // the payer's bank takes it back
)

// Plays are what can happen to a movement as it stands; none where its provider is a real
// one, or nobody pays it.
func (s *Sandbox) Plays(ctx context.Context, m movement.Movement) ([]Play, error) {
	rules, _ := movement.RulesOf(m.Kind)
	if rules.Flow != movement.MoneyIn || m.State == movement.NotSubmitted {
		return nil, nil
	}
	if simulated, err := s.simulates(ctx, m); !simulated || err != nil {
		return nil, err
	}
	open, paid := m.State == movement.Pending && offerOf(m) != kit.PayRequest{}, m.HasPaid() && !m.Gone()
	byStatement := rules.EndedBy == movement.EndedByStatement // of which a line is all that can be
	switch {
	case byStatement && open:
		return []Play{Pay}, nil
	case byStatement:
		return nil, nil
	case open:
		return []Play{Pay, PayLate, PayLost, Fail, Delay, Drop}, nil
	case paid:
		return []Play{Refund, Chargeback, Notify}, nil
	case m.State.Final():
		return []Play{Notify}, nil
	}
	return nil, nil
}

// simulates tells whether a movement was sent to a simulator of this gateway's.
func (s *Sandbox) simulates(ctx context.Context, m movement.Movement) (bool, error) {
	if m.Owner.Mode != string(tenants.Test) {
		return false, nil
	}
	id := tenants.MerchantID(m.Owner.MerchantID)
	if m.ConnectionOwner == manifest.OwnerPlatform {
		id = tenants.Platform
	}
	account, err := s.config.Directory.Account(ctx, id)
	if err != nil {
		return false, err
	}
	c, ok := account.Connection(tenants.Test, tenants.Provider(m.Provider))
	if !ok || c.Version != m.ConnectionVersion {
		return false, nil
	}
	credentials, err := s.config.Vault.OpenCredentials(c)
	if err != nil {
		return false, err
	}
	own := s.config.Own[m.Provider]
	if Simulated(credentials) || own != nil && bytes.Contains(credentials, []byte(own.URL())) {
		return true, nil
	}
	// Those of a provider that is reached by no URL name no simulator: they are its own, or not.
	opened, err := s.account(ctx, m.Provider, id)
	if err != nil {
		return false, nil //nolint:nilerr // there is no simulator, or none that could do anything
	}
	var has, would any
	err = errors.Join(json.Unmarshal(credentials, &has), json.Unmarshal(opened.Credentials, &would))
	return err == nil && reflect.DeepEqual(has, would), nil
}

// offerOf is what the payer of a movement has before them.
func offerOf(m movement.Movement) (offer kit.PayRequest) {
	var result struct {
		QR         string `json:"qr_string"`
		PaymentURL string `json:"payment_url"`
	}
	_ = json.Unmarshal(m.Result, &result) // none, where there is no result yet
	if result.QR == "" {
		_ = json.Unmarshal(m.Answer, &result) // a collection is answered with its code
	}
	if result.QR != "" {
		return kit.PayRequest{QRString: result.QR}
	}
	return kit.PayRequest{URL: result.PaymentURL}
}

// Do has something happen to a movement; an amount of 0 is all of it.
func (s *Sandbox) Do(ctx context.Context, m movement.Movement, play Play, amount money.Amount) error {
	can, err := s.Plays(ctx, m)
	if err != nil {
		return err
	}
	if !slices.Contains(can, play) {
		return fault.New(fault.ProviderRejected, "This can't happen to it as it stands.")
	}
	switch play { //nolint:exhaustive // the others are pressed on the simulator's own page
	case Refund, Chargeback:
		order := kit.ReturnRequest{Reference: m.UpstreamReference(), Amount: amount, Sort: string(play)}
		return refused(s.Order(ctx, m.Provider, "return", order, nil))
	case Pay:
		order := offerOf(m)
		if amount != 0 {
			order.Amount = &amount
		}
		return refused(s.Order(ctx, m.Provider, "pay", order, nil))
	}
	return s.press(ctx, m, play)
}

// refused is the error of an order, for the person who gave it.
func refused(status int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNone), errors.Is(err, ErrElsewhere), status == 0, status >= http.StatusInternalServerError:
		return fault.New(fault.ProviderUnavailable, "The simulator can't be reached at the moment.").Because(err)
	}
	said := fmt.Sprintf("%.200s", err) // a plugin's words
	return fault.Newf(fault.ProviderRejected, "The simulator refuses: %s.", said)
}

// press presses a button of the page that a simulator has of a payment.
func (s *Sandbox) press(ctx context.Context, m movement.Movement, play Play) error {
	var there []kit.Movement
	if status, err := s.Order(ctx, m.Provider, "movements?reference="+url.QueryEscape(m.UpstreamReference()), nil, &there); err != nil {
		return refused(status, err)
	}
	i := slices.IndexFunc(there, func(one kit.Movement) bool { return one.Page != "" })
	if i < 0 {
		return fault.New(fault.ProviderRejected, "This provider's simulator does not do that.")
	}
	page, err := url.Parse(there[i].Page)
	if err != nil {
		return err
	}
	target, err := s.target(ctx, m.Provider)
	if err != nil {
		return refused(0, err)
	}
	form := url.Values{"order": {string(play)}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target+page.Path, strings.NewReader(form))
	if err != nil {
		return err
	}
	request.Host = m.Provider + domain
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	pressing := *s.client()
	pressing.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := pressing.Do(request)
	if err != nil {
		return refused(0, err)
	}
	defer response.Body.Close() // read to its end below
	said, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if response.StatusCode == http.StatusSeeOther {
		return nil
	}
	return refused(response.StatusCode, errors.Join(fmt.Errorf("%s %s", response.Status, strings.TrimSpace(string(said))), err))
}
