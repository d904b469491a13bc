package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// declaredMerchant is a merchant by its name, or by its id where names are not alone. What is not named is left alone.
type declaredMerchant struct {
	where `yaml:"-"`

	Kind      string             `yaml:"kind"`
	ID        string             `yaml:"id,omitempty"`
	Name      string             `yaml:"name"`
	Tier      string             `yaml:"tier"`
	Status    string             `yaml:"status,omitempty"`
	Labels    map[string]*string `yaml:"labels,omitempty"` // null takes one away
	Limits    []declaredLimit    `yaml:"limits,omitempty"`
	Callbacks map[string]string  `yaml:"callbacks,omitempty"` // URLs by mode, "" for none
}

// declaredLimit is a limit as the admin API takes it.
type declaredLimit struct {
	Name          string  `yaml:"name"`
	RatePerSecond float64 `yaml:"rate_per_second,omitempty"`
	Burst         int64   `yaml:"burst,omitempty"`
	Limit         *int64  `yaml:"limit,omitempty"`
	Markup        *int64  `yaml:"markup,omitempty"`
	Amount        *int64  `yaml:"amount,omitempty"`
	Transfers     *int64  `yaml:"transfers,omitempty"`
	RepeatWithin  string  `yaml:"repeat_within,omitempty"`
}

func (d *declaredMerchant) title() string {
	if d.ID != "" { // names may be several merchants'
		return "merchant " + d.Name + ", " + d.ID
	}
	return "merchant " + d.Name
}

func (d *declaredMerchant) judge() error {
	if err := trimmed("name", d.Name); err != nil {
		return err
	}
	switch {
	case d.Name == "" || d.Tier == "":
		return errors.New("a merchant needs a name and a tier")
	case !slices.Contains([]string{"", "active", "suspended"}, d.Status):
		return fmt.Errorf("status: %q must be active or suspended", d.Status)
	}
	for mode := range d.Callbacks {
		if mode != "live" && mode != "test" {
			return fmt.Errorf("callbacks: %q must be live or test", mode)
		}
	}
	return nil
}

// merchantID finds a merchant by its id or its name, "" where there is none of the name.
func (at *platform) merchantID(ctx context.Context, name string) (string, error) {
	if name == "platform" || strings.HasPrefix(name, "mer_") {
		return name, nil
	}
	if at.merchants == nil {
		at.merchants = map[string][]string{}
		all, err := allMerchants(ctx, at.admin)
		if err != nil {
			return "", err
		}
		for _, m := range all {
			at.merchants[m.Name] = append(at.merchants[m.Name], m.MerchantID)
		}
	}
	switch ids := at.merchants[name]; len(ids) {
	case 0:
		return "", nil
	case 1:
		return ids[0], nil
	default:
		return "", fmt.Errorf("several merchants have the name %q, so declare the id: %s", name, strings.Join(ids, ", "))
	}
}

func (d *declaredMerchant) plan(ctx context.Context, at *platform) ([]change, error) {
	id, err := d.ID, error(nil)
	if id == "" {
		id, err = at.merchantID(ctx, d.Name)
	}
	if err != nil {
		return nil, err
	}
	var now adminapi.Merchant
	var changes []change
	if id != "" {
		if err := at.claim(id, d.title()); err != nil {
			return nil, err
		}
		if now, err = adminapi.ShowMerchant.Call(ctx, at.admin, adminapi.MerchantID{Merchant: id}); err != nil {
			return nil, err
		}
		if now.Name != d.Name {
			return nil, fmt.Errorf("%s has the name %q, and a name can't be changed", id, now.Name)
		}
	} else {
		at.coming[d.Name] = true
		now = adminapi.Merchant{Tier: d.Tier, Status: "active", Labels: map[string]string{}}
		labels := maps.Clone(d.Labels)
		maps.DeleteFunc(labels, func(_ string, value *string) bool { return value == nil })
		for name, value := range labels {
			now.Labels[name] = *value
		}
		wanted := adminapi.NewMerchant{Name: d.Name, Tier: d.Tier, Labels: now.Labels}
		changes = append(changes, change{What: "create, tier " + d.Tier + labelsText(labels), secret: true, act: func(ctx context.Context) (string, error) {
			made, err := keepSecrets(ctx, at, "merchant-"+d.Name, func() (adminapi.CreatedMerchant, error) { return adminapi.CreateMerchant.Call(ctx, at.admin, wanted) })
			id = made.MerchantID // for the acts that follow
			return stateDone, err
		}})
	}
	status := d.statusChange(at, &id, now)
	if d.Status == "suspended" { // at once: what fails behind it must not leave the merchant active
		changes = append(changes, status...)
	}
	changes = append(changes, d.merchantChanges(at, &id, now)...)
	changes = append(changes, d.limitChanges(at, &id, now)...)
	if d.Status == "active" { // last: what is resumed has its limits by then
		changes = append(changes, status...)
	}
	return changes, nil
}

func (d *declaredMerchant) statusChange(at *platform, id *string, now adminapi.Merchant) []change {
	if d.Status == "" || d.Status == now.Status {
		return nil
	}
	act := adminapi.SuspendMerchant
	if d.Status == "active" {
		act = adminapi.ResumeMerchant
	}
	return []change{{What: "status " + now.Status + " -> " + d.Status, act: doing(func(ctx context.Context) error {
		_, err := act.Call(ctx, at.admin, adminapi.StatusChange{Merchant: *id, Reason: at.options.Reason})
		return err
	})}}
}

// mostLimits is how many limits one act takes.
const mostLimits = 20

// limitChanges are the declared limits that the merchant has otherwise. One that ends is an operator's answer to something that
// happens now: it is left until then.
func (d *declaredMerchant) limitChanges(at *platform, id *string, now adminapi.Merchant) (changes []change) {
	var wanted []adminapi.NewLimit
	var texts []string
	for _, declared := range d.Limits {
		limit := adminapi.NewLimit(declared)
		i := slices.IndexFunc(now.Limits, func(l adminapi.Limit) bool {
			return l.Name == limit.Name && (l.ExpiresAt == nil || l.ExpiresAt.After(time.Now()))
		})
		switch {
		case i < 0:
			texts = append(texts, limit.String())
		case now.Limits[i].ExpiresAt != nil:
			changes = append(changes, change{What: "limit " + newLimit(now.Limits[i]).String() + " -> " + limit.String(), State: stateLeft,
				Message: "the one there ends at " + timeText(now.Limits[i].ExpiresAt) + "; gerbang merchant limit --remove ends it now"})
			continue
		case sameLimit(newLimit(now.Limits[i]), limit):
			continue
		default:
			texts = append(texts, newLimit(now.Limits[i]).String()+" -> "+limit.String())
		}
		wanted = append(wanted, limit)
	}
	for begin := 0; begin < len(wanted); begin += mostLimits {
		end := min(begin+mostLimits, len(wanted))
		some := wanted[begin:end]
		changes = append(changes, change{What: "limits: " + strings.Join(texts[begin:end], ", "), act: doing(func(ctx context.Context) error {
			_, err := adminapi.SetLimits.Call(ctx, at.admin, adminapi.LimitChange{Merchant: *id, Limits: some, Reason: at.options.Reason})
			return err
		})})
	}
	return changes
}

// doing makes an act of what either is done or fails.
func doing(act func(context.Context) error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return stateDone, act(ctx) }
}

// merchantChanges are those of tier, labels and callback URLs.
func (d *declaredMerchant) merchantChanges(at *platform, id *string, now adminapi.Merchant) []change {
	var changes []change
	if d.Tier != now.Tier {
		changes = append(changes, change{What: "tier " + now.Tier + " -> " + d.Tier, act: doing(func(ctx context.Context) error {
			_, err := adminapi.SetTier.Call(ctx, at.admin, adminapi.TierChange{Merchant: *id, Tier: d.Tier, Reason: at.options.Reason})
			return err
		})})
	}
	labels := map[string]*string{}
	for name, value := range d.Labels {
		if is, has := now.Labels[name]; has != (value != nil) || has && is != *value {
			labels[name] = value
		}
	}
	if len(labels) > 0 {
		changes = append(changes, change{What: strings.TrimPrefix(labelsText(labels), ", "), act: doing(func(ctx context.Context) error {
			_, err := adminapi.SetLabels.Call(ctx, at.admin, adminapi.LabelChange{Merchant: *id, Labels: labels, Reason: at.options.Reason})
			return err
		})})
	}
	for _, mode := range slices.Sorted(maps.Keys(d.Callbacks)) {
		wanted, was := d.Callbacks[mode], ""
		for _, setup := range now.Callbacks {
			if setup.Mode == mode {
				was = setup.URL
			}
		}
		shown := adminapi.PresentURL(wanted)
		if shown == was {
			if strings.Contains(shown, "=…") { // nobody is shown it, so nobody knows
				changes = append(changes, change{What: "callbacks in mode " + mode + ": the values of the query are not compared", State: stateLeft, compares: true,
					Message: "gerbang callback url sets it anew"})
			}
			continue
		}
		changes = append(changes, change{What: "callbacks in mode " + mode + ": " + dash(was) + " -> " + dash(shown), act: doing(func(ctx context.Context) error {
			_, err := adminapi.SetCallbackURL.Call(ctx, at.admin, adminapi.CallbackURL{Merchant: *id, Mode: mode, URL: &wanted})
			return err
		})})
	}
	return changes
}

func labelsText(labels map[string]*string) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if value := labels[name]; value != nil {
			text += ", label " + name + "=" + *value
		} else {
			text += ", without label " + name
		}
	}
	return text
}

func newLimit(l adminapi.Limit) adminapi.NewLimit {
	return adminapi.NewLimit{
		Name: l.Name, RatePerSecond: l.RatePerSecond, Burst: l.Burst, Limit: l.Limit, Markup: l.Markup, Amount: l.Amount, Transfers: l.Transfers, RepeatWithin: l.RepeatWithin,
	}
}

// sameLimit compares what two limits say: "10m" is "10m0s".
func sameLimit(a, b adminapi.NewLimit) bool {
	for _, l := range []*adminapi.NewLimit{&a, &b} {
		if d, err := time.ParseDuration(l.RepeatWithin); err == nil {
			l.RepeatWithin = d.String()
		}
	}
	return a.String() == b.String()
}

// declaredConnection is an account at a provider, with its credentials in a file of their own, or none where only its
// being there is declared.
type declaredConnection struct {
	where `yaml:"-"`

	Kind        string `yaml:"kind"`
	Merchant    string `yaml:"merchant"` // id, name or platform
	Provider    string `yaml:"provider"`
	Mode        string `yaml:"mode"`
	Credentials string `yaml:"credentials_file,omitempty"`
	Unverified  bool   `yaml:"unverified,omitempty"`
}

func (d *declaredConnection) title() string {
	return "connection " + d.Provider + ", " + d.Mode + ", of " + d.Merchant
}

func (d *declaredConnection) judge() error {
	if err := trimmed("merchant", d.Merchant); err != nil {
		return err
	}
	if d.Merchant == "" || d.Provider == "" || d.Mode != "live" && d.Mode != "test" {
		return errors.New("a connection needs a merchant, a provider, and the mode live or test")
	}
	return nil
}

func (d *declaredConnection) plan(ctx context.Context, at *platform) ([]change, error) {
	id, err := at.merchantID(ctx, d.Merchant)
	if err != nil {
		return nil, err
	}
	var now adminapi.Merchant
	switch {
	case id != "":
		if err := at.claim("connection "+d.Provider+" "+d.Mode+" "+id, d.title()); err != nil {
			return nil, err
		}
		if now, err = adminapi.ShowMerchant.Call(ctx, at.admin, adminapi.MerchantID{Merchant: id}); err != nil {
			return nil, err
		}
	case !at.coming[d.Merchant]:
		return nil, notFoundf("there is no merchant %q, and none is declared before", d.Merchant)
	}
	i := slices.IndexFunc(now.Connections, func(c adminapi.Connection) bool { return c.Provider == d.Provider && c.Mode == d.Mode })
	if d.Credentials == "" {
		if i < 0 {
			return nil, errors.New("it is not there: credentials_file names the file of its credentials")
		}
		return nil, nil
	}
	file := d.beside(d.Credentials)
	credentials, err := os.ReadFile(file)
	if err == nil && !json.Valid(credentials) {
		err = fmt.Errorf("%s is not valid JSON", file) // nothing of it belongs into a message
	}
	if err != nil {
		return nil, err
	}
	version := int64(-1)
	one := change{What: "set, with the credentials of " + d.Credentials}
	if i >= 0 {
		version = now.Connections[i].Version
		one = change{What: "compare with the credentials of " + d.Credentials, compares: true}
	}
	if d.Unverified {
		one.What += ", unverified"
	}
	one.act = func(ctx context.Context) (string, error) {
		set, err := adminapi.SetConnection.Call(ctx, at.admin, adminapi.ConnectionSpec{Merchant: id, Provider: d.Provider, Mode: d.Mode, Unverified: d.Unverified, Credentials: credentials})
		if err == nil && set.Version == version {
			return stateUnchanged, nil
		}
		return stateDone, err
	}
	return []change{one}, nil
}
