package page

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

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
	s.Public("GET /forgot", func(v *Visit) error { return s.showForgot(v, false) })
	s.Public("POST /forgot", func(v *Visit) error {
		if err := s.deps.SignIn.Forgot(v.ctx(), v.address(), s.config.URL, v.Form("email")); err != nil {
			return err
		}
		return s.showForgot(v, true)
	})
	s.Public("GET /reset/{secret}", func(v *Visit) error {
		p, err := s.resetting(v)
		if err != nil {
			return err
		}
		return v.Show("reset.html", v.T("New password"), map[string]string{"Secret": v.Request.PathValue("secret"), "Email": p.Email})
	})
	s.Public("POST /reset/{secret}", func(v *Visit) error {
		if _, err := s.resetting(v); err != nil {
			return err
		}
		if err := s.deps.SignIn.Reset(v.ctx(), v.address(), v.Request.PathValue("secret"), v.Request.PostFormValue("password"), v.Form("code")); err != nil {
			return err
		}
		return v.Go("/signin", "The password is changed, and all sessions are ended. Sign in with the new one.")
	})
	s.Public("POST /language", func(v *Visit) error {
		v.setCookie(languageCookie, text.Choose(v.Form("language")), 365*24*time.Hour)
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
		return v.Show("profile.html", v.T("Your sign-in"), map[string]any{"Left": left, "Fresh": len(s.deps.SignIn.FreshCodes(v.Who.Person)) > 0})
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
		if _, err := s.deps.SignIn.NewRecoveryCodes(v.ctx(), v.Who.Person); err != nil {
			return err
		}
		return v.Go("/profile/codes", "")
	}, Fresh)
	s.Handle("GET /profile/codes", s.showCodes, justJoined)
	s.Handle("GET /profile/codes.txt", s.showCodes, justJoined)
	s.Handle("POST /profile/codes/kept", func(v *Visit) error {
		if err := s.deps.SignIn.KeptCodes(v.ctx(), v.Who.Person); err != nil {
			return err
		}
		return v.Go("/", "")
	})
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
	person, err := s.deps.SignIn.Try(v.ctx(), v.browser(), v.address(), v.Form("email"), v.Request.PostFormValue("password"), v.Form("code"))
	if err != nil {
		s.deps.Log.WarnContext(v.ctx(), "sign-in refused", "console", s.config.Name, "address", v.address().String())
		return err
	}
	if err := v.begin(person); err != nil {
		return err
	}
	v.remember(person)
	s.deps.Log.InfoContext(v.ctx(), "signed in", "console", s.config.Name, "person", person.ID.String(), "address", v.address().String())
	return v.Go(within(v.Form("next")), "")
}

// resetting is whose password a link sets anew, once it is the visitor's turn.
func (s *Site) resetting(v *Visit) (tenants.Person, error) {
	done, err := s.strangersTurn(v)
	if err != nil {
		return tenants.Person{}, err
	}
	defer done()
	return s.deps.SignIn.Resetting(v.ctx(), v.Request.PathValue("secret"))
}

// showForgot is the page for who has forgotten their password. Whether somebody has the
// address it does not say.
func (s *Site) showForgot(v *Visit, asked bool) error {
	return v.Show("forgot.html", v.T("Forgotten your password?"), map[string]bool{"Mails": s.deps.SignIn.Mails(), "Asked": asked})
}

// showCodes shows recovery codes until their owner has kept them, as a page or as a file.
func (s *Site) showCodes(v *Visit) error {
	codes := s.deps.SignIn.FreshCodes(v.Who.Person)
	if len(codes) == 0 {
		return v.Go("/profile", "")
	}
	if !strings.HasSuffix(v.Request.URL.Path, ".txt") {
		return v.Show("codes.html", v.T("Recovery codes"), codes)
	}
	v.Writer.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.Writer.Header().Set("Content-Disposition", `attachment; filename="gerbang-recovery-codes.txt"`)
	_, err := fmt.Fprintf(v.Writer, "%s, %s\r\n\r\n%s\r\n", s.config.Title, v.Who.Person.Email, strings.Join(codes, "\r\n"))
	return err
}

// justJoined is Fresh, for which the code with which somebody has joined is fresh enough.
func justJoined(v *Visit) error {
	if v.since(keyJoined) {
		return nil
	}
	return Fresh(v)
}

// knownCookie is what a browser keeps of a person who has signed in with it.
func (s *Site) knownCookie(person uuid.UUID) string {
	return s.sessions.Cookie.Name + "_known_" + person.String()[:8]
}

// browser is what the visitor signs in with.
func (v *Visit) browser() signin.Browser {
	return signin.Browser{Name: v.Request.UserAgent(), Kept: func(person uuid.UUID) string {
		cookie, err := v.Request.Cookie(v.site.knownCookie(person))
		if err != nil {
			return ""
		}
		return cookie.Value
	}}
}

// remember makes the browser known to a person.
func (v *Visit) remember(p tenants.Person) {
	kept, err := v.site.deps.SignIn.Remember(p)
	if err != nil { // the next sign-in is mailed, once more
		v.site.deps.Log.WarnContext(v.ctx(), "a browser is not remembered", "person", p.ID.String(), "error", err)
		return
	}
	v.setCookie(v.site.knownCookie(p.ID), kept, signin.KnownFor)
}

// setCookie keeps something in the browser, for this site alone.
func (v *Visit) setCookie(name, value string, life time.Duration) {
	http.SetCookie(v.Writer, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true, Secure: v.site.config.Secure, SameSite: http.SameSiteLaxMode,
	})
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

// strangersTurn waits until it is the visitor's turn to have something read.
func (s *Site) strangersTurn(v *Visit) (done func(), err error) {
	if done, err = s.turn(v.Request); err != nil {
		err = fault.New(fault.RateLimited, v.T("Too many visitors who have not signed in are waiting. Try again in a moment."))
	}
	return done, err
}

// invited finds an invitation once it is the visitor's turn.
func (s *Site) invited(v *Visit, secret string) (i tenants.Invitation, known bool, err error) {
	done, err := s.strangersTurn(v)
	if err != nil {
		return i, false, err
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
	person, _, err := s.deps.SignIn.Accept(v.ctx(), secret, signin.Newcomer{
		Name: v.Form("name"), Password: v.Request.PostFormValue("password"), Factor: s.sessions.GetBytes(v.ctx(), keyFactor), Code: v.Form("code"), Language: v.language,
	})
	if err != nil {
		return err
	}
	if err := v.begin(person); err != nil {
		return err
	}
	v.remember(person)
	s.sessions.Put(v.ctx(), keyJoined, s.deps.Now().Unix())
	return v.Go("/profile/codes", "")
}
