package page

import (
	"bytes"
	"image/png"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/text"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// signingIn adds the pages that every console has.
func (s *Site) signingIn() {
	s.Public("GET /signin", func(v *Visit) error {
		return v.Show("signin.html", v.T("Sign in"), within(v.Form("next")))
	})
	s.Public("POST /signin", s.signIn)
	s.Public("POST /language", func(v *Visit) error {
		http.SetCookie(v.Writer, &http.Cookie{
			Name: languageCookie, Value: text.Choose(v.Form("language")), Path: "/", MaxAge: int((365 * 24 * time.Hour).Seconds()),
			HttpOnly: true, Secure: s.config.Secure, SameSite: http.SameSiteLaxMode,
		})
		return v.Go(v.next(), "")
	})
	s.Handle("POST /signout", func(v *Visit) error {
		if err := s.deps.SignIn.Left(v.ctx(), v.Who.Person); err != nil { // they leave all the same
			s.deps.Log.WarnContext(v.ctx(), "a sign-out is not audited", "person", v.Who.Person.ID.String(), "error", err)
		}
		if err := s.sessions.Destroy(v.ctx()); err != nil {
			return err
		}
		return v.Go("/signin", "")
	})
	s.Public("GET /invitations/{secret}", s.showInvitation)
	s.Public("GET /invitations/{secret}/qr.png", s.showFactor)
	s.Public("POST /invitations/{secret}", s.accept)
	s.Handle("GET /confirm", func(v *Visit) error {
		return v.Show("confirm.html", v.T("Confirm that it is you"), within(v.Form("next")))
	})
	s.Handle("POST /confirm", s.confirm)
	s.Handle("GET /profile", func(v *Visit) error {
		left, err := s.deps.SignIn.RecoveryCodes(v.ctx(), v.Who.Person)
		if err != nil {
			return err
		}
		return v.Show("profile.html", v.T("Your sign-in"), left)
	})
	s.Handle("POST /profile/password", func(v *Visit) error {
		if err := s.deps.SignIn.ChangePassword(v.ctx(), v.Who.Person, v.Request.PostFormValue("password")); err != nil {
			return err
		}
		next := v.Who.Person
		next.Epoch++
		if err := v.begin(next); err != nil { // all others are ended
			return err
		}
		return v.Go("/profile", "The password is changed. All other sessions are ended.")
	}, Fresh)
	s.Handle("POST /profile/codes", func(v *Visit) error {
		codes, err := s.deps.SignIn.NewRecoveryCodes(v.ctx(), v.Who.Person)
		if err != nil {
			return err
		}
		return v.Show("codes.html", v.T("Recovery codes"), codes)
	}, Fresh)
	s.Handle("GET /profile/authenticator", func(v *Visit) error {
		factor, err := s.factor(v, v.Who.Person.Email)
		if err != nil {
			return err
		}
		return v.Show("authenticator.html", v.T("New authenticator"), factor.Secret)
	}, Fresh)
	s.Handle("GET /profile/authenticator/qr.png", func(v *Visit) error { return s.draw(v, v.Who.Person.Email) }, Fresh)
	s.Handle("POST /profile/authenticator", func(v *Visit) error {
		if err := s.deps.SignIn.ChangeFactor(v.ctx(), v.Who.Person, s.sessions.GetBytes(v.ctx(), keyFactor), v.Form("code")); err != nil {
			return err
		}
		next := v.Who.Person
		next.Epoch++
		if err := v.begin(next); err != nil { // all others are ended
			return err
		}
		return v.Go("/profile", "The new authenticator counts, and the old one no longer does. All other sessions are ended.")
	}, Fresh)
	s.Public("/", func(v *Visit) error {
		v.Writer.Header().Del("Location")
		return tenants.ErrNotFound
	})
}

func (s *Site) signIn(v *Visit) error {
	person, err := s.deps.SignIn.Try(v.ctx(), v.address(), v.Form("email"), v.Request.PostFormValue("password"), v.Form("code"))
	if err != nil {
		s.deps.Log.WarnContext(v.ctx(), "sign-in refused", "console", s.config.Name, "address", v.address().String())
		return err
	}
	if err := v.begin(person); err != nil {
		return err
	}
	s.deps.Log.InfoContext(v.ctx(), "signed in", "console", s.config.Name, "person", person.ID.String(), "address", v.address().String())
	return v.Go(within(v.Form("next")), "")
}

func (s *Site) confirm(v *Visit) error {
	if err := s.deps.SignIn.Confirm(v.ctx(), v.address(), v.Who.Person, v.Form("code")); err != nil {
		return err
	}
	s.sessions.Put(v.ctx(), keyConfirmed, s.deps.Now().Unix())
	s.sessions.Put(v.ctx(), keyCode, s.deps.Now().Unix())
	return v.Go(within(v.Form("next")), "")
}

// invitation is what the page of an invitation shows.
type invitation struct {
	tenants.Invitation

	Secret string // the link's
	Known  bool   // the person can sign in already
	Signed bool   // and has
	Factor string
}

// invited finds an invitation once it is the visitor's turn.
func (s *Site) invited(v *Visit, secret string) (i tenants.Invitation, known bool, err error) {
	done, err := s.turn(v.Request)
	if err != nil {
		return i, false, fault.New(fault.RateLimited, v.T("Too many visitors who have not signed in are waiting. Try again in a moment."))
	}
	defer done()
	return s.deps.SignIn.Invitation(v.ctx(), secret)
}

func (s *Site) showInvitation(v *Visit) error {
	secret := v.Request.PathValue("secret")
	i, known, err := s.invited(v, secret)
	if err != nil {
		return err
	}
	shown := invitation{Invitation: i, Secret: secret, Known: known}
	if known {
		shown.Signed = s.signedAs(v, i.Email)
		return v.Show("invitation.html", v.T("You are invited"), shown)
	}
	factor, err := s.factor(v, i.Email)
	if err != nil {
		return err
	}
	shown.Factor = factor.Secret
	return v.Show("invitation.html", v.T("You are invited"), shown)
}

// signedAs tells whether the visitor is signed in by an address, whether or not they
// belong to this console yet.
func (s *Site) signedAs(v *Visit, email string) bool {
	present, err := s.present(v)
	if err != nil || present.Person.Email != email {
		return false
	}
	v.Who = present
	return true
}

// factor is the second factor that the visitor sets up, drawn once a session.
func (s *Site) factor(v *Visit, email string) (signin.Factor, error) {
	if factor, err := s.deps.SignIn.FactorOf(s.config.Title, email, s.sessions.GetBytes(v.ctx(), keyFactor)); err == nil {
		return factor, nil
	}
	factor, err := s.deps.SignIn.NewFactor(s.config.Title, email)
	s.sessions.Put(v.ctx(), keyFactor, factor.Sealed)
	return factor, err
}

// showFactor draws the second factor for an authenticator app.
func (s *Site) showFactor(v *Visit) error {
	i, _, err := s.invited(v, v.Request.PathValue("secret"))
	if err != nil {
		return err
	}
	return s.draw(v, i.Email)
}

func (s *Site) draw(v *Visit, email string) error {
	factor, err := s.factor(v, email)
	if err != nil {
		return err
	}
	picture, err := factor.Image()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		return err
	}
	v.Writer.Header().Set("Content-Type", "image/png")
	v.Writer.WriteHeader(http.StatusOK)
	_, _ = v.Writer.Write(out.Bytes())
	return nil
}

func (s *Site) accept(v *Visit) error {
	secret := v.Request.PathValue("secret")
	i, known, err := s.invited(v, secret)
	if err != nil {
		return err
	}
	if known {
		if !s.signedAs(v, i.Email) {
			return errSignIn
		}
		if _, err := s.deps.SignIn.Join(v.ctx(), secret, v.Who.Person); err != nil {
			return err
		}
		return v.Go("/", "You have joined.")
	}
	person, codes, err := s.deps.SignIn.Accept(v.ctx(), secret, signin.Newcomer{
		Name: v.Form("name"), Password: v.Request.PostFormValue("password"), Factor: s.sessions.GetBytes(v.ctx(), keyFactor), Code: v.Form("code"),
	})
	if err != nil {
		return err
	}
	if err := v.begin(person); err != nil {
		return err
	}
	return v.Show("codes.html", v.T("Recovery codes"), codes)
}
