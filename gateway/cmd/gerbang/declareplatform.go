package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// declaredPolicy is the set that shall be in force: files, or a version that was pushed.
type declaredPolicy struct {
	where `yaml:"-"`

	Kind    string `yaml:"kind"`
	Path    string `yaml:"path,omitempty"` // a directory, or one file of it such as data.json
	Message string `yaml:"message,omitempty"`
	Version string `yaml:"version,omitempty"`
}

func (d *declaredPolicy) title() string { return "policy" }

func (d *declaredPolicy) judge() error {
	if (d.Path == "") == (d.Version == "") || (d.Path == "") != (d.Message == "") {
		return errors.New("a policy needs a path and a message, or a version")
	}
	if d.Version != "" && len(d.Version) < 4 {
		return fmt.Errorf("version: %q must have 4 digits of a version at least", d.Version)
	}
	return nil
}

// files are those that a push sends.
func (d *declaredPolicy) files() (map[string]string, error) {
	path := d.beside(d.Path)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return policyFiles(path)
	}
	content, err := os.ReadFile(path)
	return map[string]string{filepath.Base(path): string(content)}, err
}

func (d *declaredPolicy) plan(ctx context.Context, at *platform) (changes []change, err error) {
	if at.policies == nil {
		if at.policies, err = adminapi.ListPolicies.Call(ctx, at.admin, adminapi.None{}); err != nil {
			return nil, err
		}
	}
	active, wanted := "", d.Version
	if i := slices.IndexFunc(at.policies, func(v adminapi.PolicyVersion) bool { return v.State == "active" }); i >= 0 {
		active = at.policies[i].Version
	}
	var files map[string]string
	if d.Path != "" {
		if files, err = d.files(); err != nil {
			return nil, err
		}
		if wanted, err = at.versionOf(ctx, files); err != nil {
			return nil, err
		}
	}
	i := slices.IndexFunc(at.policies, func(v adminapi.PolicyVersion) bool {
		return strings.HasPrefix(v.Version, wanted) && v.State != "refused"
	})
	switch {
	case slices.ContainsFunc(at.policies, func(v adminapi.PolicyVersion) bool {
		return strings.HasPrefix(v.Version, wanted) && v.State != "refused" && v.Version != at.policies[i].Version
	}):
		return nil, fmt.Errorf("several versions begin with %s", wanted)
	case i < 0 && d.Path == "":
		return nil, notFoundf("no version begins with %s: push it first, or declare the path of its files", wanted)
	case i < 0:
		changes = append(changes, change{What: "push " + shortVersion(wanted) + ": " + d.Message, act: doing(func(ctx context.Context) error { return d.push(ctx, at, files, active) })})
	default:
		wanted = at.policies[i].Version
	}
	if wanted == active {
		return changes, nil
	}
	activate := change{What: "put " + shortVersion(wanted) + " in force, in place of " + at.whose(active), act: func(ctx context.Context) (string, error) {
		a, _, err := at.activated(ctx, at.admin, false, func() (adminapi.PolicyActivation, error) {
			return adminapi.ActivatePolicy.Call(ctx, at.admin, adminapi.ActivatedPolicy{
				Version: wanted, Wish: adminapi.Wish{Replaces: active, Reason: at.options.Reason, Force: at.options.Force, Yes: at.options.Force},
			})
		})
		if err == nil && a.State == stateWaiting {
			return stateWaiting, nil
		}
		return stateDone, err
	}}
	return append(changes, at.inForce(activate)), nil
}

// whose is a version with who pushed it and what for: an edit that is not in the files is gone with it.
func (at *platform) whose(version string) string {
	for _, v := range at.policies {
		if v.Version == version && v.Author != "" {
			return fmt.Sprintf("%s of %s (%q)", shortVersion(version), v.Author, v.Message)
		}
	}
	return dash(shortVersion(version))
}

// inForce leaves what puts something in force to who said so.
func (at *platform) inForce(c change) change {
	if !at.options.Activate {
		c.State, c.Message = stateLeft, "--activate does it"
	}
	return c
}

// versionOf is the version of files, as the gateway names it: files without rules take those in force.
func (at *platform) versionOf(ctx context.Context, files map[string]string) (string, error) {
	source := sourceOf(adminapi.PolicyVersion{Files: files})
	if !source.HasRules() {
		active, err := adminapi.ShowPolicy.Call(ctx, at.admin, adminapi.PolicyName{Version: "active"})
		if err != nil {
			return "", err
		}
		for name, content := range sourceOf(active).Rules() {
			source[name] = content
		}
	}
	return string(source.Version()), nil
}

func (d *declaredPolicy) push(ctx context.Context, at *platform, files map[string]string, active string) error {
	wanted := adminapi.NewPolicy{Files: files, Message: d.Message, Replaces: active}
	if at.options.Force {
		wanted.Force = at.options.Reason
	}
	v, err := adminapi.PushPolicy.Call(ctx, at.admin, wanted)
	if err != nil || v.State != "refused" {
		return err
	}
	var texts []string
	for _, f := range slices.DeleteFunc(v.Findings, func(f policy.Finding) bool { return f.Warning }) {
		texts = append(texts, findingText(d.beside(d.Path), f))
	}
	return fmt.Errorf("the policy is refused: %s", strings.Join(texts, "; "))
}

// declaredPlugin is the binary of a provider that shall be approved and run.
type declaredPlugin struct {
	where `yaml:"-"`

	Kind     string   `yaml:"kind"`
	Provider string   `yaml:"provider"`
	SHA256   string   `yaml:"sha256"`
	Binary   string   `yaml:"binary,omitempty"` // from which it is approved
	Read     []string `yaml:"read,omitempty"`
	Ports    []uint16 `yaml:"ports,omitempty"`
	MemoryMB int64    `yaml:"memory_mb,omitempty"`
	User     string   `yaml:"user,omitempty"`
	Untested bool     `yaml:"untested,omitempty"`
}

func (d *declaredPlugin) title() string { return "plugin " + d.Provider }

func (d *declaredPlugin) judge() error {
	if d.Provider == "" || !digestForm.MatchString(d.SHA256) {
		return errors.New("a plugin needs a provider, and the SHA-256 of its binary in 64 digits, 0-9 and a-f")
	}
	return nil
}

func (d *declaredPlugin) plan(ctx context.Context, at *platform) (changes []change, err error) {
	if at.approvals == nil {
		if at.approvals, err = adminapi.ListApprovals.Call(ctx, at.admin, adminapi.None{}); err != nil {
			return nil, err
		}
	}
	reach := store.PluginReach{Read: d.Read, Ports: d.Ports, MemoryMB: d.MemoryMB, User: d.User}
	anyReach := reflect.DeepEqual(reach, store.PluginReach{})
	newest := -1
	for i, a := range at.approvals { // the newest first
		switch {
		case a.Provider != d.Provider || a.SHA256 != d.SHA256 || a.Unsigned:
		case a.State == "in force" && (anyReach || sameReach(a.Reach, reach)):
			return nil, nil
		case newest < 0:
			newest = i
		}
	}
	there := newest >= 0 && (anyReach || sameReach(at.approvals[newest].Reach, reach)) // only the newest can be put in force
	switch {
	case !there && d.Binary == "":
		return nil, errors.New("no such approval is there, or a newer one of the binary reaches otherwise: binary names the file from which it is approved")
	case !there:
		file := d.beside(d.Binary)
		if sum, err := host.SHA256File(file); err != nil || sum != d.SHA256 {
			return nil, cmp.Or(err, fmt.Errorf("%s has the SHA-256 %s, and another one is declared", file, sum))
		}
		what := "approve " + short(d.SHA256) + " from " + d.Binary
		if !anyReach {
			what += ", " + reachText(reach)
		}
		if d.Untested {
			what += ", untested"
		}
		changes = append(changes, change{What: what, act: func(ctx context.Context) (string, error) {
			approve := pluginApprove{
				File: file, Name: d.Provider, Read: d.Read, Port: d.Ports, MemoryMB: d.MemoryMB, User: d.User, Untested: d.Untested, Yes: true, exactly: !anyReach,
			}
			return waits(approve.approve(ctx, at.program, at.admin))
		}})
	case at.approvals[newest].State == stateWaiting:
		one := at.approvals[newest]
		changes = append(changes, change{What: "confirm that " + one.ApprovedBy + " approved " + short(d.SHA256) + ", " + reachText(one.Reach), act: func(ctx context.Context) (string, error) {
			return waits(adminapi.ConfirmPlugin.Call(ctx, at.admin, adminapi.ApprovalID{Approval: one.ApprovalID}))
		}})
	}
	activate := change{What: "put " + short(d.SHA256) + " in force", act: doing(func(ctx context.Context) error {
		changed, err := activatePlugin(ctx, at.admin, adminapi.PluginActivation{Provider: d.Provider, SHA256: d.SHA256})
		if err != nil {
			return err
		}
		return followed(ctx, at.admin, changed)
	})}
	return append(changes, at.inForce(activate)), nil
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// sameReach tells whether two reaches are one, however they are listed.
func sameReach(a, b store.PluginReach) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Read)), slices.Sorted(slices.Values(b.Read))) &&
		slices.Equal(slices.Sorted(slices.Values(a.Ports)), slices.Sorted(slices.Values(b.Ports))) && a.MemoryMB == b.MemoryMB && a.User == b.User
}

// reachText is what a plugin may reach, as a plan tells it.
func reachText(r store.PluginReach) string {
	text := "ports 443"
	if len(r.Ports) > 0 {
		text = "ports " + strings.Trim(fmt.Sprint(slices.Sorted(slices.Values(r.Ports))), "[]")
	}
	if len(r.Read) > 0 {
		text += ", reads " + strings.Join(slices.Sorted(slices.Values(r.Read)), " ")
	}
	if r.MemoryMB > 0 {
		text += fmt.Sprintf(", memory %d MB", r.MemoryMB)
	}
	if r.User != "" {
		text += ", as " + r.User
	}
	return text
}

func waits(a adminapi.PluginApproval, err error) (string, error) {
	if a.State == stateWaiting {
		return stateWaiting, err
	}
	return stateDone, err
}

// declaredOperator is an operator with a token. Those of the configuration stand there alone.
type declaredOperator struct {
	where `yaml:"-"`

	Kind   string `yaml:"kind"`
	Name   string `yaml:"name"`
	Role   string `yaml:"role"`
	Inputs bool   `yaml:"inputs,omitempty"`
}

func (d *declaredOperator) title() string { return "operator " + d.Name }

func (d *declaredOperator) judge() error {
	if d.Name == "" || d.Role == "" {
		return errors.New("an operator needs a name and a role")
	}
	return nil
}

func (d *declaredOperator) plan(ctx context.Context, at *platform) (_ []change, err error) {
	if at.tokens == nil {
		if at.tokens, err = adminapi.ListOperatorTokens.Call(ctx, at.admin, adminapi.None{}); err != nil {
			return nil, err
		}
	}
	for _, t := range at.tokens { // of each operator the newest first
		switch {
		case t.Name != d.Name || !t.Usable:
		case t.Role == d.Role && t.Inputs == d.Inputs:
			return nil, nil
		default:
			return nil, fmt.Errorf("has the role %s, inputs %t, which a token keeps: gerbang operator token revoke, and apply again", t.Role, t.Inputs)
		}
	}
	what := "create, role " + d.Role
	if d.Inputs {
		what += ", inputs"
	}
	return []change{{What: what, secret: true, act: doing(func(ctx context.Context) error {
		_, err := keepSecrets(ctx, at, "operator-"+d.Name, func() (adminapi.CreatedOperatorToken, error) {
			return adminapi.CreateOperatorToken.Call(ctx, at.admin, adminapi.NewOperatorToken{Name: d.Name, Role: d.Role, Inputs: d.Inputs})
		})
		return err
	})}}, nil
}

type exportCommand struct {
	Merchant []string `placeholder:"ID" help:"Only these merchants with their connections; may be repeated."`
}

// Run prints the declarations, and tells what none can hold.
func (c *exportCommand) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	var all []any
	var err error
	if len(c.Merchant) == 0 {
		if all, err = exportPlatform(ctx, admin); err != nil {
			return err
		}
		merchants, err := allMerchants(ctx, admin)
		if err != nil {
			return err
		}
		c.Merchant = []string{"platform"}
		for _, m := range merchants {
			c.Merchant = append(c.Merchant, m.MerchantID)
		}
	}
	for _, id := range c.Merchant {
		m, err := adminapi.ShowMerchant.Call(ctx, admin, adminapi.MerchantID{Merchant: id})
		if err != nil {
			return err
		}
		documents, left := exportMerchant(m)
		for _, one := range left {
			if _, err := fmt.Fprintf(p.err, "%s: %s is not exported\n", id, one); err != nil {
				return err
			}
		}
		all = append(all, documents...)
	}
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	for _, one := range all {
		if err := encoder.Encode(one); err != nil {
			return err
		}
	}
	if !p.json {
		_, err = fmt.Fprint(p.out, text.String())
		return err
	}
	values := []map[string]any{}
	for decoder := yaml.NewDecoder(strings.NewReader(text.String())); len(values) < len(all); {
		var value map[string]any
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		values = append(values, value)
	}
	return p.show(values)
}

// exportPlatform are operators, plugins and the policy.
func exportPlatform(ctx context.Context, admin *adminapi.Client) ([]any, error) {
	var all []any
	tokens, err := adminapi.ListOperatorTokens.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, t := range tokens {
		if t.Usable && !named[t.Name] {
			all = append(all, declaredOperator{Kind: "operator", Name: t.Name, Role: t.Role, Inputs: t.Inputs})
		}
		named[t.Name] = named[t.Name] || t.Usable
	}
	approvals, err := adminapi.ListApprovals.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return nil, err
	}
	for _, a := range approvals {
		if a.State == "in force" {
			all = append(all, declaredPlugin{
				Kind: "plugin", Provider: a.Provider, SHA256: a.SHA256, Read: a.Reach.Read, Ports: a.Reach.Ports, MemoryMB: a.Reach.MemoryMB, User: a.Reach.User,
			})
		}
	}
	versions, err := adminapi.ListPolicies.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if v.State == "active" {
			all = append(all, declaredPolicy{Kind: "policy", Version: v.Version})
		}
	}
	return all, nil
}

// exportMerchant is a merchant with its connections, and what of it no declaration can hold.
func exportMerchant(m adminapi.Merchant) (all []any, left []string) {
	d := declaredMerchant{
		Kind: "merchant", ID: m.MerchantID, Name: m.Name, Tier: m.Tier, Status: m.Status, Labels: map[string]*string{}, Callbacks: map[string]string{},
	}
	for name, value := range m.Labels {
		d.Labels[name] = &value
	}
	for _, l := range m.Limits {
		if l.ExpiresAt == nil {
			d.Limits = append(d.Limits, declaredLimit(newLimit(l)))
		} else {
			left = append(left, "limit "+l.Name+", which ends")
		}
	}
	for _, setup := range m.Callbacks {
		switch {
		case strings.Contains(setup.URL, "…"):
			left = append(left, "the callback URL in mode "+setup.Mode+", whose query is hidden")
		case setup.URL != "":
			d.Callbacks[setup.Mode] = setup.URL
		}
	}
	if m.MerchantID != "platform" {
		all = append(all, d)
	}
	for _, c := range m.Connections {
		all = append(all, declaredConnection{Kind: "connection", Merchant: m.MerchantID, Provider: c.Provider, Mode: c.Mode})
	}
	return all, left
}
