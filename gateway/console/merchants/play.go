package merchants

import (
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// button is something that can happen to a test movement, as its page offers it.
type button struct {
	Play   sandbox.Play
	Label  string
	Effect string
	Amount bool // an amount can be given
}

var buttons = map[sandbox.Play]button{
	sandbox.Pay:        {Label: "Pay this test payment", Effect: "as its payer would", Amount: true},
	sandbox.PayLate:    {Label: "Pay, told late", Effect: "the provider tells the gateway a few seconds later"},
	sandbox.PayLost:    {Label: "Pay, told to nobody", Effect: "only a question of the gateway finds out"},
	sandbox.Fail:       {Label: "Let it fail", Effect: "it ends unpaid"},
	sandbox.Notify:     {Label: "Tell it again", Effect: "the provider tells once more how it stands"},
	sandbox.Delay:      {Label: "Delay a question", Effect: "the gateway waits for the provider's next answer"},
	sandbox.Drop:       {Label: "Cut a question off", Effect: "the gateway's next question gets no answer"},
	sandbox.Refund:     {Label: "Give money back", Effect: "the provider does so, without being asked by you", Amount: true},
	sandbox.Chargeback: {Label: "Charge it back", Effect: "the payer's bank takes the money", Amount: true},
}

// playable is what can happen to a movement by somebody's word.
func (c *Console) playable(r *room, m movement.Movement) ([]button, error) {
	if c.deps.Plays == nil || r.Mode != tenants.Test || !r.Member.Role.May(tenants.MayCallback) {
		return nil, nil
	}
	plays, err := c.deps.Plays(r.Request.Context(), m)
	offered := make([]button, len(plays))
	for i, play := range plays {
		offered[i] = buttons[play]
		offered[i].Play = play
	}
	return offered, err
}

// play has something happen to a test movement at its provider's simulator.
func (c *Console) play(r *room) error {
	m, err := c.ownPayment(r)
	if err != nil {
		return err
	}
	var amount money.Amount
	if text := strings.TrimSpace(r.Form("amount")); text != "" {
		if amount, err = money.Parse(text); err != nil || amount < 1 {
			return fault.Invalid("amount", "must be whole rupiah, in digits alone")
		}
	}
	if _, err := adminapi.PlayMovement.Call(r.Request.Context(), r.admin, adminapi.NewPlay{Movement: m.ID.String(), Play: r.Form("play"), Amount: amount}); err != nil {
		return err
	}
	return r.Go(r.Path("/movements/"+m.ID.String()), "It has happened at the simulator, which tells the gateway in a moment.")
}
