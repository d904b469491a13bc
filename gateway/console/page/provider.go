package page

import (
	"encoding/json"
	"net/http"

	"github.com/seed-f006e74d/gerbang/gateway/identity"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
)

// CallbackPath is where an identity provider sends people back to.
const CallbackPath = "/signin/provider/callback"

// vouching adds the pages for who signs in at an identity provider.
func (s *Site) vouching() {
	s.Public("GET /signin/provider", func(v *Visit) error { return s.send(v, false, "") })
	s.Handle("GET /confirm/provider", func(v *Visit) error { return s.send(v, true, "") })
	s.Handle("GET /profile/link", s.link)
	s.Handle("POST /profile/unlink", func(v *Visit) error {
		if err := s.deps.SignIn.Unlink(v.ctx(), v.Who.Person); err != nil {
			return err
		}
		return v.Go("/profile", "The account is no longer linked.")
	}, Fresh)
	s.Public("GET "+CallbackPath, func(v *Visit) error {
		err := s.comeBack(v)
		if err != nil {
			s.deps.Log.WarnContext(v.ctx(), "sign-in by the identity provider refused", "console", s.config.Name, "address", v.address().String(), "cause", err)
		}
		return err
	})
}

// sent is a visit to the identity provider.
type sent struct {
	identity.Flow

	Next string
	Link string // the person to whom the account there is to be linked, by id
}

// link sends somebody to the identity provider to link their account there. It needs a code
// of their own: what an account proves must not link the next one. It is a GET, because
// form-action is 'self', and so says itself that another site's link leads nowhere.
func (s *Site) link(v *Visit) error {
	if from := v.Request.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" {
		return identity.ErrFlow
	}
	if !v.since(keyCode) {
		return v.Go("/confirm?next=%2Fprofile", "Give a code of your authenticator app first, and then link the account.")
	}
	return s.send(v, false, v.Who.Person.ID.String())
}

// send sends the visitor to the identity provider.
func (s *Site) send(v *Visit, fresh bool, link string) error {
	if blocked, _ := s.begun.Record(s.deps.Now(), v.address()); blocked { // each makes a session
		return signin.ErrTooMany
	}
	flow, to, err := s.config.Provider.Begin(v.ctx(), fresh)
	if err != nil {
		s.deps.Log.WarnContext(v.ctx(), "the identity provider can't be asked", "cause", err)
		return err
	}
	kept, err := json.Marshal(sent{flow, within(v.Form("next")), link})
	if err != nil {
		return err
	}
	s.sessions.Put(v.ctx(), keyFlow, kept)
	http.Redirect(v.Writer, v.Request, to, http.StatusSeeOther)
	return nil
}

// comeBack takes the visitor from the identity provider: what was begun is good once, in
// the session that began it.
func (s *Site) comeBack(v *Visit) error {
	var begun sent
	if err := json.Unmarshal(s.sessions.PopBytes(v.ctx(), keyFlow), &begun); err != nil {
		return identity.ErrFlow
	}
	proven, err := s.config.Provider.End(v.ctx(), begun.Flow, v.Request.URL.Query())
	if err != nil {
		return err
	}
	if begun.Link != "" {
		if err := v.identify(); err != nil {
			return err
		}
		if v.Who.Person.ID.String() != begun.Link {
			return identity.ErrFlow
		}
		if err := s.deps.SignIn.Link(v.ctx(), v.Who.Person, proven.Email, proven.Subject); err != nil {
			return err
		}
		return v.Go("/profile", "The account is linked. You can sign in with it from now on.")
	}
	if !begun.Fresh {
		person, err := s.deps.SignIn.Vouched(v.ctx(), v.browser(), proven.Email, proven.Subject)
		if err != nil {
			return err
		}
		if err := v.begin(person); err != nil {
			return err
		}
		v.remember(person)
		return v.Go(begun.Next, "")
	}
	if err := v.identify(); err != nil {
		return err
	}
	if proven.Email != v.Who.Person.Email {
		return signin.ErrAnother
	}
	if err := s.deps.SignIn.VouchedAgain(v.ctx(), proven.Email, proven.Subject); err != nil {
		return err
	}
	s.sessions.Put(v.ctx(), keyConfirmed, s.deps.Now().Unix())
	return v.Go(begun.Next, "")
}
