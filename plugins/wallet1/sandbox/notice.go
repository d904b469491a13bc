package sandbox

import (
	"encoding/json"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// noticePath is the path that a notice's signature is over, whatever the path
// of the address that the account has registered.
const noticePath = "/v1.0/debit/emoney/transfer-bank/notify.htm"

// notice is the notification of a transfer to a bank.
type notice struct {
	Ref         string `json:"originalPartnerReferenceNo"`
	ID          string `json:"originalReferenceNo"`
	Status      state  `json:"latestTransactionStatus"`
	Description string `json:"transactionStatusDesc"`
	Created     string `json:"createdTime"`
	Finished    string `json:"finishedTime,omitempty"`
	Info        fields `json:"additionalInfo"`
}

// notices are what is sent about a result, as the plan has it.
func (s *Simulator) notices(t *transfer, now time.Time) []kit.Entry {
	if t.State == stateRefunded {
		return s.webhook(t, kit.Webhook{Body: body(t), At: now})
	}
	old, lie := *t, *t
	old.State, old.Finished, lie.State = statePending, time.Time{}, stateFailed
	switch t.Plan {
	case planLost:
		return nil
	case planTwice:
		return append(s.webhook(t, kit.Webhook{Body: body(t), At: now}), s.webhook(t, kit.Webhook{Body: body(t), At: now})...)
	case planLate:
		return s.webhook(t, kit.Webhook{Body: body(t), At: now.Add(lateGap)})
	case planReordered:
		return append(s.webhook(t, kit.Webhook{Body: body(t), At: now}),
			s.webhook(t, kit.Webhook{Body: body(&old), At: now.Add(staleGap)})...)
	case planGarbage:
		return s.webhook(t, kit.Webhook{Garbage: "{\"originalPartnerReferenceNo\":\"\x00%%% garbage ]", At: now})
	case planForged:
		return s.webhook(t, kit.Webhook{Body: body(&lie), Header: map[string]string{"X-SIGNATURE": "Zm9yZ2Vk"}, At: now})
	default:
		return s.webhook(t, kit.Webhook{Body: body(t), At: now})
	}
}

func body(t *transfer) json.RawMessage {
	n := notice{
		Ref: t.Ref, ID: t.ID, Status: t.State, Description: descriptions[t.State], Created: stamp(t.Created), Info: fields{},
	}
	if !t.Finished.IsZero() {
		n.Finished = stamp(t.Finished)
	}
	text, _ := json.Marshal(n) // texts always can be written
	return text
}

// webhook queues a notice. Nothing is queued where there is nobody to notify:
// top-ups, and merchants who have said no or not where to.
func (s *Simulator) webhook(t *transfer, hook kit.Webhook) []kit.Entry {
	account, _ := s.env.Accounts.Get(t.Account)
	if t.Silent || account.CallbackURL == "" {
		return nil
	}
	hook.Account = t.Account
	return []kit.Entry{s.env.Webhooks.Entry(hook)}
}

// signNotice makes the headers of one try of a notice: the asymmetric
// signature with the issuer's key.
func (s *Simulator) signNotice(hook kit.Webhook, body []byte) map[string]string {
	timestamp := stamp(s.callersNow())
	signature, err := asymmetric(s.key, asymmetricText("POST", noticePath, body, timestamp))
	if err != nil {
		s.env.Log.Error("a notice was not signed", "err", err)
	}
	headers := map[string]string{
		"X-TIMESTAMP": timestamp, "X-SIGNATURE": signature, "X-EXTERNAL-ID": digitsOf(newID(), 18), "CHANNEL-ID": channelID,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.wallets[hook.Account]; w != nil {
		headers["X-PARTNER-ID"] = w.PartnerID
	}
	return headers
}
