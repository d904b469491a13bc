package console

import (
	"crypto/rand"
	"errors"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// The steps of a rotation of a callback secret. A finish implies the switch; a
// cancel leaves the old secret, also after a switch.
const (
	rotateSecret = "rotate"
	switchSecret = "switch"
	finishSecret = "finish"
	cancelSecret = "cancel"
)

// maxConflicts is how often an edit is made anew because somebody else changed
// the account meanwhile.
const maxConflicts = 8

func (c *Console) setCallbackURL(x *call, wanted adminapi.CallbackURL) (out adminapi.CallbackSetup, err error) {
	if wanted.URL == nil {
		return out, fault.Invalid("url", `is required; "" clears it`)
	}
	detail := "cleared"
	if *wanted.URL != "" {
		if err := c.checkURL(*wanted.URL); err != nil {
			return out, err
		}
		detail = "to " + adminapi.PresentURL(*wanted.URL)
	}
	secret, err := c.editSecret(x, wanted.Mode, "callback.url", detail, func(s *tenants.CallbackSecret) error {
		s.URL = *wanted.URL
		return nil
	})
	if err != nil {
		return out, err
	}
	return setupDocument(secret), nil
}

func (c *Console) changeCallbackSecret(x *call, wanted adminapi.SecretChange) (out adminapi.ChangedSecret, err error) {
	var next tenants.Secret
	edit, ok := map[string]func(*tenants.CallbackSecret) error{
		rotateSecret: func(s *tenants.CallbackSecret) (err error) { next, err = c.prepareNext(s); return err },
		switchSecret: func(s *tenants.CallbackSecret) error { s.NextSigns = true; return nil },
		finishSecret: func(s *tenants.CallbackSecret) error {
			s.Sealed, s.Next, s.NextSigns = s.Next, nil, false
			return nil
		},
		cancelSecret: func(s *tenants.CallbackSecret) error { s.Next, s.NextSigns = nil, false; return nil },
	}[wanted.Action]
	if !ok {
		return out, fault.Invalid("action", "must be rotate, switch, finish or cancel")
	}
	secret, err := c.editSecret(x, wanted.Mode, "callback.secret."+wanted.Action, "", func(s *tenants.CallbackSecret) error {
		if wanted.Action != rotateSecret && s.Next == nil {
			return fault.Invalid("action", "must be rotate, because no rotation is under way")
		}
		return edit(s)
	})
	if err != nil {
		return out, err
	}
	return adminapi.ChangedSecret{CallbackSetup: setupDocument(secret), CallbackSecret: next.Reveal()}, nil
}

// prepareNext makes the next secret. One that is there already was shown and is not
// replaced: the merchant may use it.
func (c *Console) prepareNext(s *tenants.CallbackSecret) (tenants.Secret, error) {
	if s.Next != nil {
		return tenants.Secret{}, fault.Invalid("action", "must be switch, finish or cancel, because a rotation is under way")
	}
	next, err := tenants.NewCallbackSecret(rand.Reader)
	if err != nil {
		return tenants.Secret{}, err
	}
	sealed, err := c.deps.Vault.SealCallbackSecret(s.MerchantID, s.Mode, next)
	if err != nil {
		return tenants.Secret{}, err
	}
	s.Next = sealed.Sealed
	return next, nil
}

// editSecret reads, edits and writes a merchant's callback secret of a mode, and
// does so anew when the account was changed in between.
func (c *Console) editSecret(x *call, modeText, action, detail string, edit func(*tenants.CallbackSecret) error) (tenants.CallbackSecret, error) {
	mode, err := parseMode(modeText)
	if err != nil {
		return tenants.CallbackSecret{}, err
	}
	audit := x.audit(action, "mode "+string(mode))
	if detail != "" {
		audit.Detail = detail + ", " + audit.Detail
	}
	for range maxConflicts {
		account, err := c.account(x)
		if err != nil {
			return tenants.CallbackSecret{}, err
		}
		secret, ok := account.CallbackSecret(mode)
		if !ok {
			return tenants.CallbackSecret{}, fault.New(fault.NotFound, "There is no callback secret of this merchant in this mode.")
		}
		if err := edit(&secret); err != nil {
			return tenants.CallbackSecret{}, err
		}
		err = c.deps.Secrets.SetCallbackSecret(x.request.Context(), audit, secret, account.Version())
		c.deps.Directory.Invalidate(account.ID())
		if !errors.Is(err, store.ErrConflict) {
			return secret, notFound(err, "merchant")
		}
	}
	return tenants.CallbackSecret{}, fault.New(fault.InProgress, "Others are changing this merchant at this moment; try again.")
}

func setupDocument(s tenants.CallbackSecret) adminapi.CallbackSetup {
	out := adminapi.CallbackSetup{Mode: string(s.Mode), URL: adminapi.PresentURL(s.URL), Rotation: "none"}
	switch {
	case s.NextSigns:
		out.Rotation = "switched"
	case s.Next != nil:
		out.Rotation = "prepared"
	}
	return out
}
