package console

import (
	"fmt"
	"slices"
	"strings"

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

// permission is what a route needs.
type permission string

const (
	read          permission = "read"
	sendCallbacks permission = "send callbacks"
	pauseMerchant permission = "pause a merchant's connections and transfers"
	revokeKeys    permission = "revoke keys"
	resolve       permission = "resolve exceptions"
	moveMoney     permission = "decide about money"
	changePolicy  permission = "change policies, tiers and limits"
	administer    permission = "administer"
)

// roles are the permissions of each role, in the order in which a refusal names them.
var roles = []struct {
	role Role
	may  []permission
}{
	{RoleRead, []permission{read}},
	{RoleSupport, []permission{read, sendCallbacks, pauseMerchant, revokeKeys, resolve}},
	{RoleFinance, []permission{read, resolve, moveMoney}},
	{RolePolicy, []permission{read, changePolicy}},
	{RoleAdmin, []permission{read, sendCallbacks, pauseMerchant, revokeKeys, resolve, moveMoney, changePolicy, administer}},
}

// permissions are what the routes under /admin/ need. A route that is missing here is
// refused to everybody.
var permissions = map[string]permission{
	"GET /admin/recovery":                               read,
	"GET /admin/merchants":                              read,
	"GET /admin/merchants/{merchant}":                   read,
	"GET /admin/merchants/{merchant}/audit":             read,
	"GET /admin/merchants/{merchant}/callbacks":         read,
	"GET /admin/merchants/{merchant}/callbacks/{event}": read,
	"GET /admin/merchants/{merchant}/balance":           read,
	"GET /admin/merchants/{merchant}/account-statement": read,
	"GET /admin/merchants/{merchant}/quotas":            read,
	"GET /admin/merchants/{merchant}/limits":            read,
	"GET /admin/merchants/{merchant}/requests":          read,
	"GET /admin/merchants/{merchant}/refusals":          read,
	"GET /admin/merchants/{merchant}/find":              read,
	"GET /admin/merchants/{merchant}/statement-lines":   read,
	"GET /admin/waiting":                                read,
	"GET /admin/traffic":                                read,
	"GET /admin/ledger/waiting":                         read,
	"GET /admin/ledger/check":                           read,
	"GET /admin/pauses":                                 read,
	"GET /admin/exceptions":                             read,
	"GET /admin/keyset":                                 read,
	"GET /admin/plugins":                                read,
	"GET /admin/plugins/{provider}":                     read,
	"GET /admin/plugins/{provider}/connection-fields":   read,
	"GET /admin/plugin-approvals":                       read,
	"GET /admin/movements/{movement}":                   read,
	"GET /admin/find":                                   read,
	"GET /admin/operator-tokens":                        read,
	"GET /admin/replicas":                               read,
	"GET /admin/policies":                               read,
	"GET /admin/policies/{version}":                     read,
	"GET /admin/policies/{version}/diff/{other}":        read,
	"GET /admin/policies/activations/{activation}":      read,

	"POST /admin/merchants/{merchant}/callbacks/resend":  sendCallbacks,
	"POST /admin/merchants/{merchant}/callbacks/test":    sendCallbacks,
	"POST /admin/pauses":                                 pauseMerchant, // administer where it is of all merchants
	"POST /admin/pauses/end":                             pauseMerchant, // likewise
	"POST /admin/merchants/{merchant}/keys/{key}/revoke": revokeKeys,
	"POST /admin/exceptions/resolve":                     resolve,

	"POST /admin/merchants/{merchant}/credit":   moveMoney,
	"POST /admin/merchants/{merchant}/debit":    moveMoney,
	"POST /admin/ledger/approve":                moveMoney,
	"POST /admin/ledger/reject":                 moveMoney,
	"POST /admin/movements/{movement}/override": moveMoney,
	"POST /admin/movements/{movement}/assign":   moveMoney,

	"POST /admin/merchants/{merchant}/tier":                  changePolicy,
	"POST /admin/merchants/{merchant}/labels":                changePolicy,
	"POST /admin/merchants/{merchant}/limits":                changePolicy,
	"POST /admin/merchants/{merchant}/limits/{limit}/remove": changePolicy,
	"POST /admin/policy/test":                                changePolicy,
	"POST /admin/policy/try":                                 changePolicy,
	"POST " + impactPath:                                     changePolicy,
	"POST /admin/policies":                                   changePolicy,
	"POST /admin/policies/{version}/activate":                changePolicy,
	"POST /admin/policies/rollback":                          changePolicy,

	"POST /admin/recovery/open":                                      administer,
	"POST /admin/merchants":                                          administer,
	"POST /admin/merchants/{merchant}/suspend":                       administer,
	"POST /admin/merchants/{merchant}/resume":                        administer,
	"POST /admin/merchants/{merchant}/keys":                          administer,
	"POST /admin/merchants/{merchant}/keys/{key}/rotate":             administer,
	"PUT /admin/merchants/{merchant}/connections/{provider}":         administer,
	"POST /admin/merchants/{merchant}/connections/{provider}/remove": administer,
	"PUT /admin/merchants/{merchant}/callbacks/url":                  administer,
	"POST /admin/merchants/{merchant}/callbacks/secret":              administer,
	"POST /admin/operator-tokens":                                    administer,
	"POST /admin/operator-tokens/{operator}/rotate":                  administer,
	"POST /admin/operator-tokens/{operator}/revoke":                  administer,
	"POST /admin/keyset/reseal":                                      administer,
	"POST /admin/plugin-approvals":                                   administer,
	"POST /admin/plugin-approvals/{approval}/confirm":                administer,
	"POST /admin/plugins/{provider}/activate":                        administer,
	"POST /admin/plugins/{provider}/rollback":                        administer,
	"POST /admin/plugins/{provider}/remove":                          administer,
	"POST /admin/plugins/{provider}/restart":                         administer,
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
func (r Role) has(p permission) bool { return slices.Contains(rolesWith(p), r) }

// rolesWith are the roles that have a permission.
func rolesWith(p permission) []Role {
	var with []Role
	for _, r := range roles {
		if slices.Contains(r.may, p) {
			with = append(with, r.role)
		}
	}
	return with
}

// mayUse refuses an operator a route that the operator's role does not have.
func mayUse(operator Identity, pattern string) error {
	if pattern == nowhere {
		return nil
	}
	return operator.needs(permissions[pattern])
}

// needs refuses an operator whose role lacks a permission, and names those that have it.
func (i Identity) needs(p permission) error {
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
