package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// Role is what an operator may do with the admin API.
type Role string

// The roles. Every role may read.
const (
	RoleRead    Role = "read"
	RoleSupport Role = "support"
	RoleFinance Role = "finance"
	RolePolicy  Role = "policy"
	RoleAdmin   Role = "admin"
)

// roles are the permissions of each role, in the order in which a refusal names them.
var roles = []struct {
	role Role
	may  []adminapi.Permission
}{
	{RoleRead, []adminapi.Permission{adminapi.Read}},
	{RoleSupport, []adminapi.Permission{adminapi.Read, adminapi.SendCallbacks, adminapi.PauseMerchant, adminapi.RevokeKeys, adminapi.Resolve}},
	{RoleFinance, []adminapi.Permission{adminapi.Read, adminapi.Resolve, adminapi.MoveMoney}},
	{RolePolicy, []adminapi.Permission{adminapi.Read, adminapi.ChangePolicy}},
	{RoleAdmin, []adminapi.Permission{adminapi.Read, adminapi.SendCallbacks, adminapi.PauseMerchant, adminapi.RevokeKeys, adminapi.Resolve, adminapi.MoveMoney, adminapi.ChangePolicy, adminapi.Administer}},
}

// nowhere is the pattern of what has no route of its own.
const nowhere = "/"

// Roles are all roles, those that may least first.
func Roles() []Role {
	list := make([]Role, len(roles))
	for i, r := range roles {
		list[i] = r.role
	}
	return list
}

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	if role := Role(name); slices.Contains(Roles(), role) {
		return role, nil
	}
	return "", fmt.Errorf("must be one of %s", orList(Roles()))
}

// has tells whether a role has a permission.
func (r Role) has(p adminapi.Permission) bool { return slices.Contains(rolesWith(p), r) }

// rolesWith are the roles that have a permission.
func rolesWith(p adminapi.Permission) []Role {
	var with []Role
	for _, r := range roles {
		if slices.Contains(r.may, p) {
			with = append(with, r.role)
		}
	}
	return with
}

// needs refuses an operator whose role lacks a permission, and names those that have it.
func (i Identity) needs(p adminapi.Permission) error {
	if i.Role.has(p) {
		return nil
	}
	if p == "" {
		return fault.New(fault.ScopeMissing, "This act takes no permission that a role could have, so nobody may use it.")
	}
	return fault.Newf(fault.ScopeMissing, "%s has the role %s, which may not %s: that takes the role %s.", i.Name, i.Role, p, orList(rolesWith(p)))
}

// orList writes roles as a choice.
func orList(list []Role) string {
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = string(r)
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
