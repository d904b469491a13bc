package sandbox

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// What a webhook says happened.
const (
	eventCreate = "create"
	eventUpdate = "update"
)

const (
	eventHeader     = "X-Digiflazz-Event"
	signatureHeader = "X-Hub-Signature"
	agentPrepaid    = "Digiflazz-Hookshot"
	agentPasca      = "Digiflazz-Pasca-Hookshot"
)

// notice is a transaction in answers and webhooks.
type notice struct {
	Ref      string `json:"ref_id"`
	Customer string `json:"customer_no"`
	SKU      string `json:"buyer_sku_code"`
	*bill
	Message string       `json:"message"`
	Status  status       `json:"status"`
	Code    rc           `json:"rc"`
	Serial  string       `json:"sn"`
	Balance money.Amount `json:"buyer_last_saldo"`
	Price   any          `json:"price"`
	Tele    string       `json:"tele"`
	WA      string       `json:"wa"`
}

// render renders a purchase as it is now.
func (s *Simulator) render(p *purchase) notice {
	m := meanings[p.Code]
	n := notice{
		Ref: p.Ref, Customer: p.Customer, SKU: p.SKU, bill: p.Bill, Message: m.message, Status: m.status, Code: p.Code,
		Balance: p.balance, Price: s.price(p.Price),
	}
	if p.State == stateSucceeded {
		n.Serial = p.Serial
	}
	return n
}

// resultOf brings what a purchase was waiting for.
func (s *Simulator) resultOf(id string) error {
	s.mu.Lock()
	p := s.purchases.byID[id]
	to := p.Plan.then()
	open := p.State == statePending || p.State == stateSucceeded && to == stateRefunded
	if !open {
		s.mu.Unlock()
		return nil // also after a restart: it came before, or was taken back by order
	}
	commit := s.become(p, to, p.Due)
	s.mu.Unlock()
	return commit.Wait()
}

// codeOf is the code that a purchase has in a state it came to.
var codeOf = map[state]rc{stateSucceeded: rcSuccess, stateFailed: rcFailed, stateRefunded: rcRefunded}

// become moves a purchase to a state, together with its webhooks.
func (s *Simulator) become(p *purchase, to state, at time.Time) kit.Commit {
	after := *p
	after.State, after.Code, after.balance = to, codeOf[to], s.accounts[p.Account].deposit
	if to != stateSucceeded {
		after.balance += p.Price
	}
	change := s.purchaseTopic.Entry(purchaseEvent{ID: p.ID, State: to, Code: after.Code})
	return s.env.Journal.Append(append([]kit.Entry{change}, s.results(&after, at)...)...)
}

// results are the webhooks about a result, as the plan has them.
func (s *Simulator) results(p *purchase, at time.Time) []kit.Entry {
	if p.State == stateRefunded {
		return s.news(p, eventUpdate, at)
	}
	switch p.Plan {
	case planLost:
		return nil
	case planTwice:
		return append(s.news(p, eventUpdate, at), s.news(p, eventUpdate, at)...)
	case planLate:
		return s.news(p, eventUpdate, at.Add(lateGap))
	case planReordered:
		old := *p
		old.State, old.Code = statePending, rcPending
		return append(s.news(p, eventUpdate, at), s.news(&old, eventUpdate, at.Add(staleGap))...)
	case planWrongPrice:
		wrong := *p
		wrong.Price *= wrongFactor
		return s.news(&wrong, eventUpdate, at)
	case planGarbage:
		return s.webhook(p, kit.Webhook{
			Garbage: `{"data":{"ref_id":"` + "\x00" + `%%% garbage ]`, SignatureHeader: signatureHeader,
			Header: map[string]string{eventHeader: eventUpdate, "User-Agent": p.agent()}, At: at,
		})
	case planForged:
		lie := *p
		lie.State, lie.Code = stateFailed, rcFailed
		return s.webhook(p, kit.Webhook{
			Body: s.body(&lie), At: at,
			Header: map[string]string{
				eventHeader: eventUpdate, "User-Agent": p.agent(), signatureHeader: "sha1=0000000000000000000000000000000000000000",
			},
		})
	default:
		return s.news(p, eventUpdate, at)
	}
}

// news is a webhook with a purchase as it is.
func (s *Simulator) news(p *purchase, event string, at time.Time) []kit.Entry {
	return s.webhook(p, kit.Webhook{
		Body: s.body(p), SignatureHeader: signatureHeader, At: at,
		Header: map[string]string{eventHeader: event, "User-Agent": p.agent()},
	})
}

func (p *purchase) agent() string {
	if p.Bill != nil {
		return agentPasca
	}
	return agentPrepaid
}

func (s *Simulator) body(p *purchase) json.RawMessage {
	// A notice is texts and numbers, which always can be written.
	body, _ := json.Marshal(map[string]any{"data": s.render(p)})
	return body
}

// webhook queues a message about a purchase. Nothing is queued when nobody has
// said where to send it.
func (s *Simulator) webhook(p *purchase, hook kit.Webhook) []kit.Entry {
	account, _ := s.env.Accounts.Get(p.Account)
	if p.HookURL == "" && account.CallbackURL == "" {
		return nil
	}
	hook.Account, hook.URL = p.Account, p.HookURL
	return []kit.Entry{s.env.Webhooks.Entry(hook)}
}
