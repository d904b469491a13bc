package adminapi

import "time"

// NewInvitation asks to invite somebody to a merchant's console.
type NewInvitation struct {
	Merchant string `path:"merchant" json:"-"`
	Email    string `json:"email"`
	Role     string `json:"role,omitempty"`     // owner unless given
	Language string `json:"language,omitempty"` // of the mail: id unless given, or en
}

// Invitation is one that was not used. Its mail is waiting, sent or dead; where none was made,
// the answer to the invitation has the link, this once.
type Invitation struct {
	Email     string    `json:"email" column:"EMAIL"`
	Role      string    `json:"role" column:"ROLE"`
	By        string    `json:"invited_by" column:"BY"`
	ExpiresAt time.Time `json:"expires_at" column:"UNTIL"`
	Mail      string    `json:"mail,omitempty" column:"MAIL"`
	URL       string    `json:"url,omitempty"`
}

// Uninvitation ends the invitation of an address.
type Uninvitation struct {
	Merchant string `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
	Email    string `json:"email" arg:"" help:"Whose invitation to end."`
}

// The acts on merchants' invitations. Each is audited at the merchant.
var (
	InvitePerson = Endpoint[NewInvitation, Invitation]{Act{
		Route: "POST /admin/merchants/{merchant}/invitations", Takes: Administer,
		Text: "Invite a merchant's first owner, or another of its people, by mail. It takes the role admin: whoever can name an owner can become one.",
	}}
	ListInvitations  = Endpoint[MerchantID, []Invitation]{Act{Route: "GET /admin/merchants/{merchant}/invitations", Takes: Read, Text: "List a merchant's open invitations, the newest first."}}
	RevokeInvitation = Endpoint[Uninvitation, []Invitation]{Act{Route: "POST /admin/merchants/{merchant}/invitations/revoke", Takes: Administer, Text: "End the invitation of an address, and list the others."}}
)
