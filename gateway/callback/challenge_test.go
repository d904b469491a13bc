package callback_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// TestChallenge: only who takes what is signed and refuses what is forged verifies. What is forged is signed, too, as by
// somebody who does not know the secret, and goes to nobody who has refused what was signed.
func TestChallenge(t *testing.T) {
	t.Parallel()
	const known = callback.Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	answer := func(status int) callback.Attempt {
		a := callback.Attempt{Status: status, Outcome: callback.Failed}
		if status/100 == 2 {
			a.Outcome = callback.Delivered
		}
		return a
	}
	for name, c := range map[string]struct {
		signed, forged int
		sent           int
		want           bool
	}{
		"verifies":        {204, 401, 2, true},
		"takes all":       {200, 200, 2, false},
		"takes nothing":   {401, 401, 1, false},
		"breaks":          {200, 500, 2, false},
		"knows the body":  {200, 409, 2, false},
		"lets one pass":   {200, 429, 2, false},
		"is not there":    {200, 404, 2, false},
		"says bad":        {200, 400, 2, true},
		"says forbidden":  {200, 403, 2, true},
		"answers nothing": {0, 0, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := 0
			d := callback.Dispatcher{Dependencies: callback.Dependencies{
				Secrets: func(context.Context, movement.Owner) (callback.Secrets, error) {
					return callback.Secrets{Current: known}, nil
				},
				Send: func(_ context.Context, m callback.Message, s callback.Secrets) callback.Attempt {
					sent++
					now := time.Now()
					header, err := callback.Sign("", m, s, now)
					if err != nil {
						t.Error(err)
					}
					if callback.Verify("", header, m.Body, []callback.Secret{known}, now) == nil {
						return answer(c.signed)
					}
					return answer(c.forged)
				},
			}}
			got, err := d.Challenge(t.Context(), movement.Owner{}, "https://shop.example/cb", []byte("{}"))
			if err != nil || got.Verifies() != c.want || sent != c.sent || got.Signed.Status != c.signed {
				t.Errorf("%+v after %d, %v", got, sent, err)
			}
		})
	}
	d := callback.Dispatcher{Dependencies: callback.Dependencies{
		Secrets: func(context.Context, movement.Owner) (callback.Secrets, error) {
			return callback.Secrets{}, errors.ErrUnsupported
		},
	}}
	if _, err := d.Challenge(t.Context(), movement.Owner{}, "https://shop.example/cb", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without secrets: %v", err)
	}
}
