package tenants

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrMember says that somebody is a member already, or has an account here already.
var ErrMember = errors.New("tenants: this person is here already: sign in, and an owner can change the role")

// ErrLastOwner says that a merchant, or the platform, would have nobody left who can invite
// others.
var ErrLastOwner = errors.New("tenants: this is the last one who can invite others")

// ErrManyInvitations says that somebody has made as many invitations as one may in a day.
var ErrManyInvitations = errors.New("tenants: too many invitations in a day")

// Person is somebody who may sign in.
type Person struct {
	ID        uuid.UUID
	Email     string
	Name      string
	Password  string // argon2id's text
	TOTP      []byte // sealed
	Step      int64  // the last time step whose code was used
	Epoch     int64
	Linked    string // the account at an identity provider, by issuer and subject; empty for none
	CreatedAt time.Time

	Language   string // of the mails that they get
	FreshCodes []byte // the recovery codes that they have not kept yet, sealed
}

// Reset lets whoever has its link, and the person's second factor, set another password, once.
type Reset struct {
	Hash      Hash
	PersonID  uuid.UUID
	ExpiresAt time.Time
}

// resetMails is the namespace of the ids of the mails with their links.
var resetMails = uuid.MustParse("0f0c7b5e-4f5d-4c8e-8d39-0f4f6f2c7b11")

// MailID is the id of the mail with a reset's link: with the link its mail ends, too.
func (r Reset) MailID() uuid.UUID { return uuid.NewSHA1(resetMails, r.Hash[:]) }

// Member is a person's role at a merchant, or at the platform.
type Member struct {
	PersonID   uuid.UUID
	MerchantID MerchantID
	Role       Role
	Since      time.Time

	Email, Name string // the person's
	Language    string // of its mails
	Merchant    string // its name
	Suspended   bool   // the merchant
}

// Invitation lets whoever has its link become a member, once.
type Invitation struct {
	Hash       Hash
	MerchantID MerchantID
	Role       Role
	Email      string
	By         string // who invites
	ExpiresAt  time.Time
	Mail       string // where its mail stands; empty where nothing was mailed
}
