package signin

import (
	"context"
	"errors"
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// The errors that callers tell apart.
var (
	// ErrRefused is the one answer to a wrong address, password or code.
	ErrRefused = errors.New("signin: the email address, the password or the code is wrong")
	// ErrTooMany says that too many attempts failed and a minute has to pass.
	ErrTooMany = errors.New("signin: too many attempts have failed; try again in a minute")
	// ErrBusy says that many passwords are being looked at, and this one was not.
	ErrBusy = errors.New("signin: many people sign in at this moment; try again in a few seconds")
	// ErrStranger says that an identity provider has proven somebody who is no operator.
	ErrStranger = errors.New("signin: no operator has the email address that the identity provider gives; an admin can invite it")
	// ErrUnlinked says that somebody has linked no account at the identity provider.
	ErrUnlinked = errors.New("signin: no account at the identity provider is linked to you; sign in once with your password and code, and link it on your profile page")
	// ErrAnother says that the account at the identity provider is not the person's.
	ErrAnother = errors.New("signin: this is not your account at the identity provider; if yours has changed, sign in with your password and code, and on your profile page unlink the old one and link the new one")
	// ErrInvitation says that an invitation is used up, withdrawn or over.
	ErrInvitation = errors.New("signin: this invitation is used or over; ask for another one")
)

// Store keeps people. What is not there is tenants.ErrNotFound. Whatever changes what somebody may do is committed with its audit
// entry, at the merchant (or the platform) that it is about, under the name that is given, and with
// the mails that tell of it.
type Store interface {
	PersonByEmail(ctx context.Context, email string) (tenants.Person, error)
	PersonByID(ctx context.Context, id uuid.UUID) (tenants.Person, error)
	// NoteSignIn and NoteRefusal audit what somebody did with their sign-in, and what was
	// tried with it.
	NoteSignIn(ctx context.Context, p tenants.Person, action, detail string, now time.Time, mails ...movement.Mail) error
	NoteRefusal(ctx context.Context, p tenants.Person, why string, times int64, now time.Time) error
	// Link is false where an account at an identity provider is linked already.
	Link(ctx context.Context, p tenants.Person, account string, now time.Time) (bool, error)
	Unlink(ctx context.Context, p tenants.Person, now time.Time) error
	// UseStep and UseRecoveryCode are false where another request was earlier.
	UseStep(ctx context.Context, id uuid.UUID, step int64) (bool, error)
	UseRecoveryCode(ctx context.Context, p tenants.Person, code tenants.Hash, now time.Time) (bool, error)
	RecoveryCodes(ctx context.Context, id uuid.UUID) (int, error)
	// SetRecoveryCodes keeps the codes sealed, too, until KeptRecoveryCodes.
	SetRecoveryCodes(ctx context.Context, p tenants.Person, codes []tenants.Hash, sealed []byte, now time.Time) error
	KeptRecoveryCodes(ctx context.Context, id uuid.UUID) error
	// TakeAttempt counts an attempt, and is false where there were too many since a wait.
	TakeAttempt(ctx context.Context, id uuid.UUID, now time.Time, most int, wait time.Duration) (bool, error)
	ForgetSignInFailures(ctx context.Context, id uuid.UUID) error
	// SetPassword and SetFactor are tenants.ErrNotFound where the epoch has risen meanwhile,
	// and ResetPassword also where its link was used.
	SetPassword(ctx context.Context, p tenants.Person, password string, now time.Time, mails ...movement.Mail) error
	SetFactor(ctx context.Context, p tenants.Person, totp []byte, step int64, now time.Time, mails ...movement.Mail) error
	ResetPassword(ctx context.Context, hash tenants.Hash, p tenants.Person, password string, now time.Time, mails ...movement.Mail) error
	// AddReset is false, and stores nothing, where a link was made since soon.
	AddReset(ctx context.Context, by string, p tenants.Person, r tenants.Reset, soon, now time.Time, mails ...movement.Mail) (bool, error)
	Reset(ctx context.Context, hash tenants.Hash) (tenants.Reset, error)

	// Mail writes mails that tell a merchant's people of something, each id once.
	Mail(ctx context.Context, owner movement.Owner, now time.Time, mails ...movement.Mail) error

	MerchantsByID(ctx context.Context, ids []string) ([]tenants.Merchant, error)
	// Invite replaces an earlier invitation of the same address.
	Invite(ctx context.Context, i tenants.Invitation, now time.Time, mails ...movement.Mail) error
	InvitationsOf(ctx context.Context, to tenants.MerchantID, now time.Time) ([]tenants.Invitation, error)
	RevokeInvitation(ctx context.Context, by string, to tenants.MerchantID, email string, now time.Time) error
	Invitation(ctx context.Context, hash tenants.Hash) (tenants.Invitation, error)
	// AcceptNew stores a person and makes it a member, AcceptKnown makes one a member that
	// is there: both by an invitation, which is used up by it.
	AcceptNew(ctx context.Context, hash tenants.Hash, p tenants.Person, codes []tenants.Hash) (tenants.Invitation, error)
	// Both are tenants.ErrMember where the person is one already.
	AcceptKnown(ctx context.Context, hash tenants.Hash, id uuid.UUID, name string, now time.Time) (tenants.Invitation, error)

	MembersOf(ctx context.Context, id tenants.MerchantID) ([]tenants.Member, error)
	MembershipsOf(ctx context.Context, id uuid.UUID) ([]tenants.Member, error)
	// SetRole and RemoveMember end the person's sessions, or are tenants.ErrLastOwner.
	SetRole(ctx context.Context, by string, m tenants.Member, now time.Time) error
	RemoveMember(ctx context.Context, by string, m tenants.Member, now time.Time) error
}

// Email is an address as it is kept and compared, or ErrRefused where it is none. It is of
// ASCII: of other characters, some have small letters that are (the Kelvin sign's is k).
func Email(text string) (string, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "", ErrRefused
	}
	text = strings.ToLower(strings.TrimSpace(text))
	address, err := mail.ParseAddress(text)
	if err != nil || address.Address != text || len(text) > 254 {
		return "", ErrRefused
	}
	return text, nil
}
