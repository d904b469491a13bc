package callback

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Challenge is how a receiver answered two events at once: one that is signed as every other, and
// one that somebody else has signed.
type Challenge struct{ Signed, Forged Attempt }

// refusals are the answers that refuse a signature. Others, such as 404, 409 or 429, may have another reason.
var refusals = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}

// Verifies tells whether the receiver knows them apart: that it takes the first, and refuses the second.
func (c Challenge) Verifies() bool {
	return c.Signed.Outcome == Delivered && slices.Contains(refusals, c.Forged.Status)
}

// Challenge asks a receiver whether it verifies signatures. Nothing of it is kept or sent again.
func (d *Dispatcher) Challenge(ctx context.Context, owner movement.Owner, receiver string, body []byte) (Challenge, error) {
	secrets, err := d.Secrets(ctx, owner)
	if err != nil {
		return Challenge{}, err
	}
	message := func() Message { return Message{ID: uuid.NewString(), Sequence: 1, URL: receiver, Body: body} }
	stranger, err := tenants.NewCallbackSecret(rand.Reader)
	if err != nil {
		return Challenge{}, err
	}
	c := Challenge{Signed: d.Send(ctx, message(), secrets)}
	if c.Signed.Outcome == Delivered {
		c.Forged = d.Send(ctx, message(), Secrets{Current: Secret(stranger.Reveal())})
	}
	return c, nil
}
