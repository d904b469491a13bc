package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/policy"
)

const (
	// decidedWithin is how long a command waits for the replicas' decision: one that is
	// silent is passed over after five seconds.
	decidedWithin = 20 * time.Second
	// runsWithin is how long --wait waits for every replica to run a version.
	runsWithin = 60 * time.Second
	// askSoon is how often it asks at first, and askEvery how often after a second.
	askSoon  = 100 * time.Millisecond
	askEvery = time.Second
)

type policyPush struct {
	Dir      string `arg:"" help:"Directory with data.json and .rego files. Without .rego files those of the version in force are taken."`
	Message  string `required:"" short:"m" help:"Why; kept with the version."`
	Activate bool   `help:"Put it in force, too."`
	Replaces string `placeholder:"VERSION" help:"Only if this version is in force, from which the directory was edited; unless given, the one that policy show --export has written there. Naming another operator's has what it changed gone."`
	Force    bool   `help:"Overrule what is wrong with its meaning, such as a tier in use that is removed. Nothing else can be overruled."`
	Reason   string `help:"Why, with --force; kept with the version."`
	Yes      bool   `with:"activate" help:"With --activate: also if the push warns that it refuses all money of a tier."`
	Wait     bool   `with:"activate" help:"With --activate: until every live replica runs it. The exit code is 5 where one does not within a minute."`
}

// Validate wants the reason of who overrules.
func (c *policyPush) Validate() error {
	return forcedFor(c.Force, c.Reason)
}

// pushed is what a push prints as JSON.
type pushed struct {
	adminapi.PolicyVersion
	Activation *adminapi.PolicyActivation `json:"activation,omitempty"`
}

// Run pushes the directory, and activates what became of it.
func (c *policyPush) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	files, err := policyFiles(c.Dir)
	if err != nil {
		return err
	}
	if c.Replaces == "active" {
		return usage(errors.New("--replaces names the version from which the directory was edited: active is whatever somebody has put in force meanwhile"))
	}
	wanted := adminapi.NewPolicy{Files: files, Message: c.Message, Replaces: c.Replaces}
	if c.Force {
		wanted.Force = c.Reason
	}
	began := beganFrom(c.Dir)
	if c.Replaces == "" && (c.Activate || len(began) > 0) { // before the push takes its rules
		if c.Replaces, err = inForce(ctx, admin); err != nil {
			return err
		}
		switch {
		case slices.Contains(began, c.Replaces):
			wanted.Replaces = c.Replaces
		case len(began) > 0:
			wanted.Replaces = began[0]
		}
	}
	v, err := adminapi.PushPolicy.Call(ctx, admin, wanted)
	if err != nil {
		return err
	}
	refused := 0
	for _, f := range v.Findings {
		if !f.Warning && v.State == "refused" {
			refused++
		}
		if _, err := fmt.Fprintln(p.err, findingText(c.Dir, f)); err != nil {
			return err
		}
	}
	if v.State == "refused" {
		if err := p.show(pushed{PolicyVersion: v}, versionRows(v)...); err != nil {
			return err
		}
		if refused == 1 {
			return errors.New("the policy is refused: it has a fault")
		}
		return fmt.Errorf("the policy is refused: it has %d faults", refused)
	}
	if len(began) > 0 && !slices.Contains(began, v.Version) {
		if err := writeBegan(c.Dir, append(began, v.Version)); err != nil {
			return err
		}
	}
	rows := versionRows(v)
	if v.Existed {
		rows = append(rows, []string{"This version was pushed before; nothing was changed."})
	}
	if !c.Activate {
		return p.show(pushed{PolicyVersion: v}, rows...)
	}
	a, took, err := p.activated(ctx, admin, c.Wait, func() (adminapi.PolicyActivation, error) {
		return adminapi.ActivatePolicy.Call(ctx, admin, adminapi.ActivatedPolicy{Version: v.Version, Wish: adminapi.Wish{Replaces: c.Replaces, Reason: c.Reason, Force: c.Force, Yes: c.Yes}})
	})
	if a.ActivationID != "" {
		v.State = a.State
		if a.InForce {
			v.State = "active"
		}
		if shown := p.show(pushed{v, &a}, append(rows[:0:0], append(versionRows(v), activationRows(a, took)...)...)...); shown != nil {
			return shown
		}
	}
	return err
}

// findingText is a finding as editors like to read it, with a path that leads to the
// file from here.
func findingText(dir string, f policy.Finding) string {
	f.File = filepath.Join(dir, f.File)
	return f.String()
}

// shortVersion is a beginning of a version that people type.
func shortVersion(version string) string {
	const digits = 12
	return version[:min(len(version), digits)]
}

func versionRows(v adminapi.PolicyVersion) [][]string {
	rows := [][]string{
		{"version", v.Version}, {"number", strconv.FormatInt(v.Number, 10)}, {"state", policyState(v)}, {"author", v.Author},
		{"message", v.Message}, {"pushed", timeText(&v.PushedAt)}, {"predecessor", dash(v.Predecessor)},
	}
	if v.Forced != "" {
		rows = append(rows, []string{"forced", v.Forced})
	}
	return rows
}

// policyState is a version's state for people.
func policyState(v adminapi.PolicyVersion) string {
	if v.Unsigned {
		return v.State + ", not signed"
	}
	return v.State
}

type policyList struct{}

// Run prints the versions, the newest first.
func (*policyList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	versions, err := adminapi.ListPolicies.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return err
	}
	rows := [][]string{{"NUMBER", "VERSION", "STATE", "REPLICAS", "PUSHED", "AUTHOR", "MESSAGE"}}
	for _, v := range versions {
		rows = append(rows, []string{
			strconv.FormatInt(v.Number, 10), shortVersion(v.Version), policyState(v), strconv.Itoa(v.Replicas), timeText(&v.PushedAt), v.Author, v.Message,
		})
	}
	return p.show(versions, rows...)
}

type policyShow struct {
	adminapi.PolicyName
	Export string `placeholder:"DIR" help:"Write its files into a directory. Those of these names are replaced; a directory with other .rego files is refused, since a push would take them in."`
}

// Run prints a version, or writes its files.
func (c *policyShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	v, err := adminapi.ShowPolicy.Call(ctx, admin, c.PolicyName)
	if err != nil {
		return err
	}
	source := sourceOf(v)
	if c.Export != "" {
		if err := source.WriteDir(c.Export); err != nil {
			return err
		}
		if err := writeBegan(c.Export, []string{v.Version}); err != nil {
			return err
		}
	}
	rows := versionRows(v)
	for _, f := range v.Findings {
		rows = append(rows, []string{"finding", findingText("", f)})
	}
	for _, name := range source.Names() {
		rows = append(rows, []string{"file", fmt.Sprintf("%s, %d bytes", filepath.Join(c.Export, name), len(source[name]))})
	}
	return p.show(v, rows...)
}

// beganFile is where a directory holds the version that it was written from, and then those that were pushed of it. It is
// hidden, so it is no file of the set.
const beganFile = ".gerbang-versions"

// beganFrom are those versions, none where the directory is of elsewhere.
func beganFrom(dir string) []string {
	content, err := os.ReadFile(filepath.Join(dir, beganFile))
	if err != nil {
		return nil
	}
	return strings.Fields(string(content))
}

func writeBegan(dir string, versions []string) error {
	return os.WriteFile(filepath.Join(dir, beganFile), []byte(strings.Join(versions, "\n")+"\n"), 0o644)
}

func sourceOf(v adminapi.PolicyVersion) policy.Source {
	source := policy.Source{}
	for name, content := range v.Files {
		source[name] = []byte(content)
	}
	return source
}

type policyDiff struct{ adminapi.PolicyPair }

// Run prints what the second version has differently from the first.
func (c *policyDiff) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	diff, err := adminapi.DiffPolicies.Call(ctx, admin, c.PolicyPair)
	if err != nil {
		return err
	}
	if p.json {
		return p.show(diff)
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(diff.Files)) {
		fmt.Fprintf(&text, "--- %s/%s\n+++ %s/%s\n%s", shortVersion(diff.A), name, shortVersion(diff.B), name, diff.Files[name])
	}
	_, err = fmt.Fprint(p.out, text.String())
	return err
}

type policyActivate struct {
	adminapi.ActivatedPolicy
	Wait bool `help:"Until every live replica runs it. The exit code is 5 where one does not within a minute."`
}

// Validate wants flags that belong together.
func (c *policyActivate) Validate() error { return forcedFor(c.Force, c.Reason) }

func forcedFor(force bool, reason string) error {
	if force && reason == "" {
		return errors.New("--force needs --reason")
	}
	return nil
}

// Run activates the version.
func (c *policyActivate) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showActivated(p.activated(ctx, admin, c.Wait, func() (adminapi.PolicyActivation, error) {
		return adminapi.ActivatePolicy.Call(ctx, admin, c.ActivatedPolicy)
	}))
}

type policyRollback struct {
	Replaces string `placeholder:"VERSION" help:"Only if this version is in force; the one that is now, unless given."`
	Reason   string `help:"Why; kept in the audit."`
	Force    bool   `help:"Overrule that it does not fit the merchants and operations there are now, such as a tier in use that it has not."`
	Wait     bool   `help:"Until every live replica runs it. The exit code is 5 where one does not within a minute."`
}

// Validate wants flags that belong together.
func (c *policyRollback) Validate() error { return forcedFor(c.Force, c.Reason) }

// Run goes one version back, from the one that is in force as it begins.
func (c *policyRollback) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if c.Replaces == "" {
		var err error
		if c.Replaces, err = inForce(ctx, admin); err != nil {
			return err
		}
	}
	return p.showActivated(p.activated(ctx, admin, c.Wait, func() (adminapi.PolicyActivation, error) {
		return adminapi.RollBackPolicy.Call(ctx, admin, adminapi.Wish{Replaces: c.Replaces, Reason: c.Reason, Force: c.Force})
	}))
}

// inForce is the version in force.
func inForce(ctx context.Context, admin *adminapi.Client) (string, error) {
	versions, err := adminapi.ListPolicies.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(versions, func(v adminapi.PolicyVersion) bool { return v.State == "active" })
	if i < 0 {
		return "", errors.New("no version is in force: name the one to be replaced, --replaces VERSION")
	}
	return versions[i].Version, nil
}

// showActivated prints what became of an activation, also where it failed.
func (p *program) showActivated(a adminapi.PolicyActivation, took time.Duration, err error) error {
	if a.ActivationID != "" {
		if shown := p.show(a, activationRows(a, took)...); shown != nil {
			return shown
		}
	}
	return err
}

// activated asks for an activation and waits until the replicas have decided it, or with
// wait until all run it. The activation is empty where it was never made.
func (p *program) activated(
	ctx context.Context, admin *adminapi.Client, wait bool, ask func() (adminapi.PolicyActivation, error),
) (a adminapi.PolicyActivation, took time.Duration, err error) {
	begun := time.Now()
	a, err = ask()
	if failure, answered := errors.AsType[*adminapi.Failure](err); answered && failure.Status < 500 {
		return a, 0, err
	}
	if err != nil {
		return a, 0, unknownActivation(err)
	}
	tick := time.NewTicker(askSoon)
	defer tick.Stop()
	var failed error // of the last question
	for {
		if took = time.Since(begun); took > askEvery {
			tick.Reset(askEvery)
		}
		switch ends := ended(a, wait, took); {
		case ends != nil && failed != nil:
			return a, took, unknownActivation(failed)
		case ends != nil && errors.Is(ends, errInForce):
			return a, took, nil
		case ends != nil:
			return a, took, ends
		}
		select {
		case <-ctx.Done():
			return a, took, unknownActivation(ctx.Err())
		case <-tick.C:
		}
		var now adminapi.PolicyActivation
		if now, failed = adminapi.ShowActivation.Call(ctx, admin, adminapi.ActivationID{Activation: a.ActivationID}); failed == nil {
			a = now
		}
	}
}

// errInForce ends a wait well.
var errInForce = errors.New("in force")

// ended says how a wait ends, nil where it goes on.
func ended(a adminapi.PolicyActivation, wait bool, took time.Duration) error {
	switch {
	case a.State == "refused", a.State == "withdrawn":
		return fmt.Errorf("version %s is not in force, and nothing was changed: %s", shortVersion(a.Version), a.Detail)
	case a.State == "waiting" && !wait, a.State == "done" && (!wait || a.InForce && len(a.Behind) == 0):
		return errInForce
	case a.State == "waiting":
		return incomplete(errors.New("it waits for another operator, who has to activate the same version"))
	case a.State == "done" && !a.InForce:
		return incomplete(errors.New("it was in force, and another version is by now: gerbang policy list"))
	case a.State == "proposed" && took > decidedWithin && !wait:
		return fmt.Errorf("the replicas have not decided within %s; whoever is left will: gerbang policy list", decidedWithin)
	case wait && took > runsWithin:
		return incomplete(fmt.Errorf("these replicas do not run it after %s: %s", runsWithin, strings.Join(a.Behind, ", ")))
	}
	return nil
}

func unknownActivation(err error) error {
	return fmt.Errorf("whether the version is in force is unknown: %w; look at gerbang policy list and gerbang replica list before you try again", err)
}

func activationRows(a adminapi.PolicyActivation, took time.Duration) [][]string {
	rows := [][]string{{"activated", shortVersion(a.Version)}, {"replaces", dash(shortVersion(a.Replaces))}, {"activation", a.State}}
	if a.State == "waiting" {
		rows = append(rows, []string{"It waits for another operator: gerbang policy activate " + shortVersion(a.Version) + "."})
	}
	if a.ProposedAt != nil && a.DecidedAt != nil {
		rows = append(rows, []string{"decided after", a.DecidedAt.Sub(*a.ProposedAt).Round(time.Millisecond).String()})
	}
	if a.InForce {
		rows = append(rows, []string{"run it", fmt.Sprintf("%d of %d replicas after %s", a.Replicas-len(a.Behind), a.Replicas, took.Round(time.Millisecond))})
	}
	for _, name := range a.Behind {
		if a.InForce {
			rows = append(rows, []string{"not yet", name})
		}
	}
	if a.Detail != "" {
		rows = append(rows, []string{"detail", a.Detail})
	}
	return rows
}

type replicaCommands struct {
	List replicaList `cmd:"" help:"List the gateways that run on this database, or ran within a day, and what each runs."`
}

type replicaList struct{}

// Run prints the replicas, the oldest first.
func (*replicaList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	replicas, err := adminapi.ListReplicas.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return err
	}
	rows := [][]string{{"REPLICA", "STATE", "POLICY", "IN FORCE", "BINARY", "SCHEMAS", "PLUGINS", "STARTED", "SEEN"}}
	for _, r := range replicas {
		inForce := "no"
		if r.HeadIsHere {
			inForce = "yes"
		}
		rows = append(rows, []string{
			r.Name, r.State, dash(shortVersion(r.Policy)), inForce, dash(r.Binary), fmt.Sprintf("%d-%d", r.Schema.From, r.Schema.Below-1),
			strconv.Itoa(len(r.Plugins)), timeText(&r.StartedAt), timeText(&r.SeenAt),
		})
	}
	return p.show(replicas, rows...)
}
