package tenants

import (
	"maps"
	"slices"
)

// Role is what a person is for a merchant, or for the platform.
type Role string

// The roles of merchants' people.
const (
	RoleOwner     Role = "owner"
	RoleDeveloper Role = "developer"
	RoleFinance   Role = "finance"
	RoleViewer    Role = "viewer"
)

// Permission is one thing that a role may allow to a merchant's people.
type Permission string

// What merchants' people may do. Everybody may look at movements, refusals and deliveries.
const (
	MayLook     Permission = "look"
	MayKeys     Permission = "keys"        // create, rotate and revoke keys
	MayCallback Permission = "callbacks"   // URL, secret, tests, sending again
	MayConnect  Permission = "connections" // accounts at providers
	MayMoney    Permission = "money"       // balance, account statement, CSV
	MayRefund   Permission = "refund"      // give payments back
	MayMembers  Permission = "members"     // invite, change and remove people
)

// merchantRoles is everything that roles mean.
var merchantRoles = map[Role][]Permission{
	RoleOwner:     {MayLook, MayKeys, MayCallback, MayConnect, MayMoney, MayRefund, MayMembers},
	RoleDeveloper: {MayLook, MayKeys, MayCallback, MayConnect},
	RoleFinance:   {MayLook, MayMoney, MayRefund},
	RoleViewer:    {MayLook},
}

// operatorRoles are those of package console.
var operatorRoles = []Role{"read", "support", "finance", "policy", "admin"}

// May tells whether a merchant's role allows something.
func (r Role) May(p Permission) bool { return slices.Contains(merchantRoles[r], p) }

// RolesOf lists the roles that there are at a merchant, or at the platform.
func RolesOf(id MerchantID) []Role {
	if id == Platform {
		return slices.Clone(operatorRoles)
	}
	return slices.Sorted(maps.Keys(merchantRoles))
}

// Invites tells whether somebody with a role may invite others to a merchant, or to the
// platform.
func Invites(to MerchantID, r Role) bool {
	if to == Platform {
		return r == "admin"
	}
	return r.May(MayMembers)
}
