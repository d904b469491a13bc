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

// permissions are what the routes under /admin/ need. A route that is missing here is
// refused to everybody.
var permissions = map[string]adminapi.Permission{
	"GET /admin/recovery":                               adminapi.Read,
	"GET /admin/merchants":                              adminapi.Read,
	"GET /admin/merchants/{merchant}":                   adminapi.Read,
	"GET /admin/merchants/{merchant}/audit":             adminapi.Read,
	"GET /admin/merchants/{merchant}/callbacks":         adminapi.Read,
	"GET /admin/merchants/{merchant}/callbacks/{event}": adminapi.Read,
	"GET /admin/merchants/{merchant}/balance":           adminapi.Read,
	"GET /admin/merchants/{merchant}/account-statement": adminapi.Read,
	"GET /admin/merchants/{merchant}/quotas":            adminapi.Read,
	"GET /admin/merchants/{merchant}/limits":            adminapi.Read,
	"GET /admin/merchants/{merchant}/requests":          adminapi.Read,
	"GET /admin/merchants/{merchant}/refusals":          adminapi.Read,
	"GET /admin/merchants/{merchant}/find":              adminapi.Read,
	"GET /admin/waiting":                                adminapi.Read,
	"GET /admin/traffic":                                adminapi.Read,
	"GET /admin/ledger/waiting":                         adminapi.Read,
	"GET /admin/ledger/check":                           adminapi.Read,
	"GET /admin/exceptions":                             adminapi.Read,
	"GET /admin/keyset":                                 adminapi.Read,
	"GET /admin/plugins":                                adminapi.Read,
	"GET /admin/plugins/{provider}":                     adminapi.Read,
	"GET /admin/plugins/{provider}/connection-fields":   adminapi.Read,
	"GET /admin/plugin-approvals":                       adminapi.Read,
	"GET /admin/movements/{movement}":                   adminapi.Read,
	"GET /admin/find":                                   adminapi.Read,
	"GET /admin/replicas":                               adminapi.Read,
	"GET /admin/policies":                               adminapi.Read,
	"GET /admin/policies/{version}":                     adminapi.Read,
	"GET /admin/policies/{version}/diff/{other}":        adminapi.Read,
	"GET /admin/policies/activations/{activation}":      adminapi.Read,

	"POST /admin/merchants/{merchant}/callbacks/resend":  adminapi.SendCallbacks,
	"POST /admin/merchants/{merchant}/callbacks/test":    adminapi.SendCallbacks,
	"POST /admin/merchants/{merchant}/keys/{key}/revoke": adminapi.RevokeKeys,
	"POST /admin/exceptions/resolve":                     adminapi.Resolve,

	"POST /admin/merchants/{merchant}/credit":   adminapi.MoveMoney,
	"POST /admin/merchants/{merchant}/debit":    adminapi.MoveMoney,
	"POST /admin/ledger/approve":                adminapi.MoveMoney,
	"POST /admin/ledger/reject":                 adminapi.MoveMoney,
	"POST /admin/movements/{movement}/override": adminapi.MoveMoney,

	"POST /admin/merchants/{merchant}/tier":                  adminapi.ChangePolicy,
	"POST /admin/merchants/{merchant}/labels":                adminapi.ChangePolicy,
	"POST /admin/merchants/{merchant}/limits":                adminapi.ChangePolicy,
	"POST /admin/merchants/{merchant}/limits/{limit}/remove": adminapi.ChangePolicy,
	"POST /admin/policy/test":                                adminapi.ChangePolicy,
	"POST /admin/policy/try":                                 adminapi.ChangePolicy,
	"POST " + impactPath:                                     adminapi.ChangePolicy,
	"POST /admin/policies":                                   adminapi.ChangePolicy,
	"POST /admin/policies/{version}/activate":                adminapi.ChangePolicy,
	"POST /admin/policies/rollback":                          adminapi.ChangePolicy,

	"POST /admin/recovery/open":                                      adminapi.Administer,
	"POST /admin/merchants":                                          adminapi.Administer,
	"POST /admin/merchants/{merchant}/suspend":                       adminapi.Administer,
	"POST /admin/merchants/{merchant}/resume":                        adminapi.Administer,
	"POST /admin/merchants/{merchant}/keys":                          adminapi.Administer,
	"POST /admin/merchants/{merchant}/keys/{key}/rotate":             adminapi.Administer,
	"PUT /admin/merchants/{merchant}/connections/{provider}":         adminapi.Administer,
	"POST /admin/merchants/{merchant}/connections/{provider}/remove": adminapi.Administer,
	"PUT /admin/merchants/{merchant}/callbacks/url":                  adminapi.Administer,
	"POST /admin/merchants/{merchant}/callbacks/secret":              adminapi.Administer,
	"POST /admin/keyset/reseal":                                      adminapi.Administer,
	"POST /admin/plugin-approvals":                                   adminapi.Administer,
	"POST /admin/plugin-approvals/{approval}/confirm":                adminapi.Administer,
	"POST /admin/plugins/{provider}/activate":                        adminapi.Administer,
	"POST /admin/plugins/{provider}/rollback":                        adminapi.Administer,
	"POST /admin/plugins/{provider}/remove":                          adminapi.Administer,
	"POST /admin/plugins/{provider}/restart":                         adminapi.Administer,
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
		return fault.New(fault.ScopeMissing, "This route has no entry in the table of roles, and nobody may use it.")
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
