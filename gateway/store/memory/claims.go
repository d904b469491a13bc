package memory

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// aloneWithin is the time over which is summed what an operator claims alone.
const aloneWithin = 24 * time.Hour

// Claim writes an operator's claim on money, and returns the claim that then stands.
func (s *Store) Claim(_ context.Context, c movement.Claim) (movement.Claim, error) {
	if err := c.Check(); err != nil {
		return movement.Claim{}, err
	}
	c.At = micro(c.At)
	s.mu.Lock()
	defer s.mu.Unlock()
	name := claimName(c)
	switch before, is := s.claims[name]; {
	case is && before.Made():
		return before, nil
	case is && before.Operator != c.Operator && before.Amount == c.Amount:
		before.ConfirmedBy, before.ConfirmedAt = c.Operator, c.At
		s.claims[name] = before
		return before, nil
	}
	if !s.claimAlone(c) {
		c.AloneUpTo = 0
		s.claims[name] = c
	}
	return s.claims[name], nil
}

// claimAlone keeps a claim that its operator makes alone. It is false where that would be
// more than an operator may claim alone. The caller holds the lock.
func (s *Store) claimAlone(c movement.Claim) bool {
	var alone money.Amount
	for _, other := range s.claims {
		if other.Alone && other.Owner == c.Owner && other.Operator == c.Operator && other.At.After(c.At.Add(-aloneWithin)) {
			alone += other.Amount
		}
	}
	if !c.Fits(alone) {
		return false
	}
	c.Alone, c.AloneUpTo = true, 0
	s.claims[claimName(c)] = c
	return true
}

func claimName(c movement.Claim) string {
	return c.Owner.MerchantID + "/" + c.Owner.Mode + "/" + c.Subject
}
