package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/text"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Links are the consoles' URLs, as configured and never a request's Host; empty where people
// can't reach one.
type Links struct{ Merchants, Operators string }

// Mails tells whether mails are sent.
func (s *SignIn) Mails() bool { return s.mailed != nil }

// drawn is a secret of 260 bits for a link, and its form.
func drawn() (secret string, hash tenants.Hash) {
	secret = rand.Text() + rand.Text()
	return secret, sha256.Sum256([]byte(secret))
}

var secretForm = regexp.MustCompile(`^[A-Z2-7]{52}$`)

// The refusals of what would make a link to nowhere.
var (
	errNoMerchants = fault.New(fault.InvalidRequest, "No link can be made: merchants_console_url is not in the gateway's configuration.")
	errNoOperators = fault.New(fault.InvalidRequest, "No link can be made: operators_console_url is not in the gateway's configuration.")
)

// console is the URL of the console that somebody uses at a merchant, or at the platform.
func (s *SignIn) console(of tenants.MerchantID) (string, error) {
	switch {
	case of == tenants.Platform && s.links.Operators == "":
		return "", errNoOperators
	case of == tenants.Platform:
		return s.links.Operators, nil
	case s.links.Merchants == "":
		return "", errNoMerchants
	}
	return s.links.Merchants, nil
}

// compose makes a mail, sealed. Without a mail server, or a keyset that seals, there is
// none: nobody is kept from their sign-in by that.
func (s *SignIn) compose(ctx context.Context, text, language, to string, values mail.Values) []movement.Mail {
	if !s.Mails() {
		return nil
	}
	return s.composeAs(ctx, uuid.New(), text, language, to, values)
}

// composeAs is compose, for a mail of an id.
func (s *SignIn) composeAs(ctx context.Context, id uuid.UUID, text, language, to string, values mail.Values) []movement.Mail {
	values["At"], values["From"] = mail.When(language, s.now()), string(tenants.OriginOf(ctx))
	subject, body := mail.Render(text, language, values)
	m, err := mail.Seal(s.vault, movement.Mail{ID: id, To: to, Subject: subject, Text: body})
	if err != nil {
		s.log.WarnContext(ctx, "a mail to somebody can't be sealed, and is not sent", "text", text, "error", err)
		return nil
	}
	return []movement.Mail{m}
}

// until says when the link in mails ends.
func until(end time.Time, mails []movement.Mail) {
	for i := range mails {
		mails[i].Until = end
	}
}

// committed has mails sent that were written, if any.
func (s *SignIn) committed(mails []movement.Mail) {
	if len(mails) > 0 {
		s.mailed()
	}
}

// Invite makes an invitation and mails it in a language. Where no mail is sent, or no language
// is given, its URL is returned, this once.
func (s *SignIn) Invite(ctx context.Context, by string, to tenants.MerchantID, role tenants.Role, address, language string) (url string, i tenants.Invitation, err error) {
	console, err := s.console(to)
	if err != nil {
		return "", i, err
	}
	secret, i, err := s.invitation(by, to, role, address)
	if err != nil {
		return "", i, err
	}
	url = console + "/invitations/" + secret
	var mails []movement.Mail
	if language != "" {
		place, err := s.nameOf(ctx, to)
		if err != nil {
			return "", i, err
		}
		inviter, err := s.inviter(ctx, i)
		if err != nil {
			return "", i, err
		}
		mails = s.compose(ctx, "invitation", language, i.Email, mail.Values{
			"By": inviter, "Place": place, "Role": text.In(language, string(role)), "Link": url, "Until": mail.When(language, i.ExpiresAt),
		})
	}
	until(i.ExpiresAt, mails)
	err = s.store.Invite(ctx, i, s.now(), mails...)
	if errors.Is(err, tenants.ErrManyInvitations) {
		err = fault.New(fault.RateLimited, "You have made as many invitations here as one may in 24 hours: 50.")
	}
	if err != nil {
		return "", i, err
	}
	if len(mails) > 0 {
		i.Mail, url = string(movement.MailWaiting), ""
		s.committed(mails)
	}
	return url, i, nil
}

// nameOf is a merchant's name, and none of the platform.
func (s *SignIn) nameOf(ctx context.Context, id tenants.MerchantID) (string, error) {
	if id == tenants.Platform {
		return "", nil
	}
	found, err := s.store.MerchantsByID(ctx, []string{string(id)})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", tenants.ErrNotFound
	}
	return found[0].Name, nil
}

// inviter is who invites to a merchant, as its people may read it: one of them, or nothing
// for an operator, whose address is not theirs to know.
func (s *SignIn) inviter(ctx context.Context, i tenants.Invitation) (string, error) {
	if i.MerchantID == tenants.Platform {
		return i.By, nil
	}
	members, err := s.store.MembersOf(ctx, i.MerchantID)
	if err != nil || !slices.ContainsFunc(members, func(m tenants.Member) bool { return m.Email == i.By }) {
		return "", err
	}
	return i.By, nil
}

// Invitations lists those to a merchant, or to the platform, that are open.
func (s *SignIn) Invitations(ctx context.Context, to tenants.MerchantID) ([]tenants.Invitation, error) {
	return s.store.InvitationsOf(ctx, to, s.now())
}

// Uninvite ends the invitation of an address, or is tenants.ErrNotFound.
func (s *SignIn) Uninvite(ctx context.Context, by string, to tenants.MerchantID, address string) error {
	address, err := Email(address)
	if err != nil {
		return tenants.ErrNotFound
	}
	return s.store.RevokeInvitation(ctx, by, to, address, s.now())
}

const (
	// resetLife is how long a link to a new password is good for, and resetPause how soon
	// somebody is mailed another one. So a person is mailed a few at most, and who asks in
	// another's name takes no link from them: all are good.
	resetLife  = 30 * time.Minute
	resetPause = 5 * time.Minute
	mostAsked  = 1000
	// KnownFor is how long a browser counts as known since its person has signed in with it.
	KnownFor = 30 * 24 * time.Hour
)

// ErrReset says that a link to a new password is used or over.
var ErrReset = errors.New("signin: this link is used or over; ask for another one")

// asked is a wish for a new password.
type asked struct {
	email, console string
	from           tenants.Origin
}

// Forgot mails a link to a new password, into the console whose URL is given. The answer is
// the same whether or not somebody has the address, and at once: Run does the rest.
func (s *SignIn) Forgot(ctx context.Context, from netip.Addr, console, address string) error {
	if blocked, _ := s.asks.Record(s.now(), from); blocked {
		return ErrTooMany
	}
	address, err := Email(address)
	if err != nil {
		return nil //nolint:nilerr // nobody has it, which nobody is told
	}
	select {
	case s.forgotten <- asked{address, console, tenants.OriginOf(ctx)}:
	default:
		s.log.WarnContext(ctx, "a new password is not mailed: too many wait")
	}
	return nil
}

// send mails a link to a new password where somebody has the address.
func (s *SignIn) send(ctx context.Context, a asked) error {
	ctx = tenants.From(ctx, a.from)
	p, err := s.store.PersonByEmail(ctx, a.email)
	if errors.Is(err, tenants.ErrNotFound) {
		return nil
	}
	secret, hash := drawn()
	r := tenants.Reset{Hash: hash, PersonID: p.ID, ExpiresAt: s.now().Add(resetLife)}
	var mails []movement.Mail
	if err == nil && s.Mails() {
		mails = s.composeAs(ctx, r.MailID(), "reset", p.Language, p.Email, mail.Values{"Link": a.console + "/reset/" + secret})
	}
	if len(mails) > 0 {
		until(r.ExpiresAt, mails)
		var added bool
		added, err = s.store.AddReset(ctx, "gateway", p, r, s.now().Add(-resetPause), s.now(), mails...)
		if added {
			s.committed(mails)
		}
	}
	if err != nil {
		s.log.WarnContext(ctx, "a new password is not mailed", "person", p.ID.String(), "error", err)
	}
	return err
}

// Recover makes a link to a new password for who can't be mailed. Somebody with the gateway's
// configuration hands it over.
func (s *SignIn) Recover(ctx context.Context, address string) (url string, until time.Time, err error) {
	address, _ = Email(address)
	p, err := s.store.PersonByEmail(ctx, address)
	if err != nil {
		return "", until, err
	}
	members, err := s.store.MembershipsOf(ctx, p.ID)
	if err != nil {
		return "", until, err
	}
	var of tenants.MerchantID
	if _, operator := (Present{p, members}).At(tenants.Platform); operator {
		of = tenants.Platform
	}
	console, err := s.console(of)
	if err != nil {
		return "", until, err
	}
	secret, hash := drawn()
	until = s.now().Add(resetLife)
	_, err = s.store.AddReset(ctx, "gerbang", p, tenants.Reset{Hash: hash, PersonID: p.ID, ExpiresAt: until}, s.now(), s.now())
	return console + "/reset/" + secret, until, err
}

// Resetting is whose password a link sets anew, or ErrReset.
func (s *SignIn) Resetting(ctx context.Context, secret string) (tenants.Person, error) {
	if !secretForm.MatchString(secret) {
		return tenants.Person{}, ErrReset
	}
	r, err := s.store.Reset(ctx, sha256.Sum256([]byte(secret)))
	if err == nil && s.now().Before(r.ExpiresAt) {
		var p tenants.Person
		if p, err = s.store.PersonByID(ctx, r.PersonID); err == nil {
			return p, nil
		}
	}
	if err == nil || errors.Is(err, tenants.ErrNotFound) {
		err = ErrReset
	}
	return tenants.Person{}, err
}

// Reset sets another password by a link and a code of the second factor, or a recovery code,
// and ends all of the person's sessions.
func (s *SignIn) Reset(ctx context.Context, from netip.Addr, secret, password, code string) error {
	p, err := s.Resetting(ctx, secret)
	if err != nil {
		return err
	}
	hash, err := s.hashed(ctx, password) // first: a password that is too short uses no code up
	if err != nil {
		return err
	}
	if err := s.Confirm(ctx, from, p, code); err != nil {
		return err
	}
	mails := s.compose(ctx, "password", p.Language, p.Email, mail.Values{})
	err = s.store.ResetPassword(ctx, sha256.Sum256([]byte(secret)), p, hash, s.now(), mails...)
	if errors.Is(err, tenants.ErrNotFound) {
		return ErrReset
	}
	if err == nil {
		s.committed(mails)
	}
	return err
}

// Browser is what somebody signs in with. Kept is what Remember made there for a person last.
// Of an address nothing is remembered: a phone's changes by the hour.
type Browser struct {
	Name string // as it names itself
	Kept func(person uuid.UUID) string
}

// Remember is what a browser keeps of who has signed in there, so that it is known for 30
// days. It is sealed and opens nothing.
func (s *SignIn) Remember(p tenants.Person) (string, error) {
	sealed, err := s.vault.SealPersonal(tenants.ColumnBrowser, p.ID.String(), []byte(strconv.FormatInt(s.now().Unix(), 10)))
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

func (s *SignIn) knows(p tenants.Person, b Browser) bool {
	if b.Kept == nil {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(b.Kept(p.ID))
	if err != nil || len(sealed) == 0 {
		return false
	}
	plain, err := s.vault.OpenPersonal(tenants.ColumnBrowser, p.ID.String(), sealed)
	if err != nil {
		return false
	}
	at, err := strconv.ParseInt(string(plain), 10, 64)
	return err == nil && s.now().Sub(time.Unix(at, 0)) < KnownFor
}

// entered audits that somebody is in, and mails them where their browser is not known.
func (s *SignIn) entered(ctx context.Context, p tenants.Person, b Browser, detail string) error {
	var mails []movement.Mail
	if !s.knows(p, b) {
		mails = s.compose(ctx, "signin", p.Language, p.Email, mail.Values{"Browser": b.Name})
	}
	err := s.store.NoteSignIn(ctx, p, "signin.in", detail, s.now(), mails...)
	if err == nil {
		s.committed(mails)
	}
	return err
}

// sealedCodes are recovery codes, until their owner has kept them.
func (s *SignIn) sealedCodes(id uuid.UUID, codes []string) ([]byte, error) {
	return s.vault.SealPersonal(tenants.ColumnCodes, id.String(), []byte(strings.Join(codes, "\n")))
}

// FreshCodes are somebody's recovery codes, as long as they have not said that they have
// kept them.
func (s *SignIn) FreshCodes(p tenants.Person) []string {
	plain, err := s.vault.OpenPersonal(tenants.ColumnCodes, p.ID.String(), p.FreshCodes)
	if err != nil || len(plain) == 0 {
		return nil
	}
	return strings.Split(string(plain), "\n")
}

// KeptCodes forgets the codes that FreshCodes shows. They still count.
func (s *SignIn) KeptCodes(ctx context.Context, p tenants.Person) error {
	return s.store.KeptRecoveryCodes(ctx, p.ID)
}
