package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/linediff"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/conformance"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

type pluginApprove struct {
	File      string   `arg:"" type:"existingfile" help:"The plugin's binary."`
	Name      string   `help:"The provider's name; the file's unless given."`
	Read      []string `placeholder:"FILE" help:"A file or directory that the plugin may read on every replica; may be repeated. Without --read and --port it reaches what the version in force does."`
	Port      []uint16 `help:"A TCP port that it may connect to; 443 unless given; may be repeated."`
	MemoryMB  int64    `name:"memory-mb" help:"How much memory it may use; 512 unless given, or as the version in force."`
	User      string   `help:"Whom it runs as; the gateway's own user unless given, or as the version in force."`
	Examples  string   `type:"existingfile" help:"The examples of the test; examples.json beside the binary unless given. manifest.json lies beside them."`
	Simulator string   `help:"Command of the simulator of the test, which is not confined; the binary with the argument sandbox unless given."`
	Untested  bool     `help:"Run no conformance test; the approval says so."`
	Yes       bool     `help:"Approve without asking."`
	Activate  bool     `help:"Put it in force, too."`

	exactly bool // it reaches what is said, and nothing of what the one in force may
}

// Run approves the plugin, and puts it in force where that is wanted.
func (c *pluginApprove) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	approved, err := c.approve(ctx, p, admin)
	if err != nil {
		return err
	}
	change := adminapi.PluginChange{}
	if c.Activate {
		if change, err = activatePlugin(ctx, admin, adminapi.PluginActivation{Provider: approved.Provider, SHA256: approved.SHA256}); err != nil {
			return err
		}
		if err := followed(ctx, admin, change); err != nil {
			return err
		}
	}
	result := struct {
		adminapi.PluginApproval
		Change *adminapi.PluginChange `json:"change,omitempty"`
	}{approved, nil}
	rows := approvalRows(approved)
	if c.Activate {
		result.Change = &change
		rows = append(rows, []string{"in force:", "yes, since " + change.ChangedAt.UTC().Format(time.RFC3339)})
		rows = append(rows, nextOf(ctx, admin, approved.Provider)...)
	} else {
		rows = append(rows, []string{"next:", "gerbang plugin activate " + approved.Provider + " " + short(approved.SHA256)})
	}
	return p.show(result, rows...)
}

// approve starts the plugin here, shows what is to be approved, and approves it.
func (c *pluginApprove) approve(ctx context.Context, p *program, admin *adminapi.Client) (approved adminapi.PluginApproval, err error) {
	if err := c.testable(); err != nil {
		return approved, err
	}
	sum, m, err := c.inspect(ctx, p)
	if err != nil {
		return approved, err
	}
	plugins, err := adminapi.ListPlugins.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return approved, err
	}
	was := adminapi.Plugin{Approval: &adminapi.PluginApproval{}}
	if slices.ContainsFunc(plugins, func(one adminapi.Plugin) bool { return one.Provider == m.Name }) {
		if was, err = adminapi.ShowPlugin.Call(ctx, admin, adminapi.ProviderName{Provider: m.Name}); err != nil {
			return approved, err
		}
	}
	evidence, unproven, err := c.prove(ctx, p)
	if err != nil {
		return approved, err
	}
	if err := c.unchanged(sum); err != nil {
		return approved, err
	}
	reach := c.reach(was)
	if err := c.tell(p, sum, m, was, reach, evidence, unproven); err != nil {
		return approved, err
	}
	if err := p.confirm(c.Yes, "Approve it: what it is sent may move money", m.Name); err != nil {
		return approved, err
	}
	approved, err = adminapi.ApprovePlugin.Call(ctx, admin, adminapi.NewApproval{SHA256: sum, Manifest: m.Document(), Reach: reach, Evidence: evidence})
	if err == nil {
		c.place(p, approved.PluginsDir, sum)
	}
	return approved, err
}

// nextOf is what a plugin in force still needs before it takes anything.
func nextOf(ctx context.Context, admin *adminapi.Client, name string) [][]string {
	one, err := adminapi.ShowPlugin.Call(ctx, admin, adminapi.ProviderName{Provider: name})
	if err != nil || !one.WaitsForRoute {
		return nil // it is in force all the same
	}
	return [][]string{{"next:", "waits for route: connect accounts, and push a policy whose route names " + name + "; it takes nothing before"}}
}

// reach is what the plugin is approved to reach: what was said here, or what the version in
// force may.
func (c *pluginApprove) reach(was adminapi.Plugin) store.PluginReach {
	reach := store.PluginReach{Read: c.Read, Ports: c.Port, MemoryMB: c.MemoryMB, User: c.User}
	if c.inherits(was) {
		reach = was.Approval.Reach
		reach.MemoryMB, reach.User = cmp.Or(c.MemoryMB, reach.MemoryMB), cmp.Or(c.User, reach.User)
	}
	return reach
}

// inherits tells whether nothing was said about files and ports, and a gateway with this
// keyset has written what is in force.
func (c *pluginApprove) inherits(was adminapi.Plugin) bool {
	return !c.exactly && len(c.Read) == 0 && len(c.Port) == 0 && was.Provider != "" && !was.Approval.Unsigned
}

// inspect starts the plugin, pinned to what the file is now, and asks for its manifest.
func (c *pluginApprove) inspect(ctx context.Context, p *program) (sum string, m *manifest.Manifest, err error) {
	if sum, err = host.SHA256File(c.File); err != nil {
		return "", nil, err
	}
	started, err := host.Start(ctx, host.Config{Specs: []host.Spec{c.spec(sum)}, Log: p.logger()})
	if err != nil {
		return "", nil, err
	}
	all := started.Manifests()
	if err := errors.Join(started.Down(), started.Close(context.WithoutCancel(ctx))); err != nil {
		return "", nil, err
	}
	return sum, all[0], nil
}

// spec is what the plugin is started by here. The user whom it is to run as may be none of
// this machine's.
func (c *pluginApprove) spec(sum string) host.Spec {
	return host.Spec{Name: cmp.Or(c.Name, filepath.Base(c.File)), Path: c.File, SHA256: sum, Read: c.Read, Memory: c.MemoryMB << 20}
}

// test is the conformance test that an approval rests on.
func (c *pluginApprove) test() *pluginTest {
	return &pluginTest{File: c.File, Examples: c.Examples, Simulator: c.Simulator, Calls: defaultCalls, Read: c.Read, MemoryMB: c.MemoryMB}
}

// testable refuses a binary of which nothing could be proven, unless nobody wants that.
func (c *pluginApprove) testable() error {
	if c.Untested || c.Examples != "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(c.File), "examples.json")); err != nil {
		return usage(errors.New("there is no examples.json beside the binary, so nothing can be proven of it: --examples says where one lies, and --untested approves it without a test"))
	}
	return nil
}

// prove runs the conformance test, unless nobody wants it. What fails a case is not
// approved; what no case proves is told, with the reason.
func (c *pluginApprove) prove(ctx context.Context, p *program) (evidence, unproven string, err error) {
	if c.Untested {
		return "no conformance run: --untested", "", nil
	}
	title, verdicts, err := c.test().verdicts(ctx, p)
	if err != nil {
		return "", "", err
	}
	passed, skipped, failed, unproven := counted(verdicts)
	if failed > 0 {
		return "", "", fmt.Errorf("%s does not conform: %d cases failed; gerbang plugin test%s %s shows them", title, failed, c.testFlags(), c.File)
	}
	level, _, _ := strings.Cut(confine.Level(), ":")
	evidence = fmt.Sprintf("conformance: %d cases passed, %d not proven; confined: %s", passed, skipped, level)
	if c.Simulator != "" {
		evidence += ", its simulator of another program not"
	}
	return evidence, unproven, nil
}

// counted counts what came of a test, and tells line by line what was not proven.
func counted(verdicts []conformance.Verdict) (passed, skipped, failed int, unproven string) {
	for _, v := range verdicts {
		switch {
		case v.Failed:
			failed++
		case v.Skipped:
			skipped++
		default:
			passed++
		}
	}
	_, open, _ := sorted(verdicts)
	for _, row := range open.rows("not proven")[1:] {
		unproven += "not proven" + row[0] + "\n"
	}
	return passed, skipped, failed, unproven
}

func (c *pluginApprove) testFlags() string {
	var flags strings.Builder
	if c.Examples != "" {
		flags.WriteString(" --examples " + c.Examples)
	}
	if c.Simulator != "" {
		fmt.Fprintf(&flags, " --simulator '%s'", c.Simulator)
	}
	for _, path := range c.Read {
		flags.WriteString(" --read " + path)
	}
	if c.MemoryMB != 0 {
		fmt.Fprintf(&flags, " --memory-mb %d", c.MemoryMB)
	}
	return flags.String()
}

// unchanged refuses a file that was built anew meanwhile: the evidence would be of another
// binary than the approval.
func (c *pluginApprove) unchanged(sum string) error {
	now, err := host.SHA256File(c.File)
	if err == nil && now != sum {
		err = fmt.Errorf("%s has changed while it was tested: nothing was approved, approve it again", c.File)
	}
	return err
}

// tell shows what is to be approved, and how its manifest differs from the one in force.
func (c *pluginApprove) tell(p *program, sum string, m *manifest.Manifest, was adminapi.Plugin, reach store.PluginReach, evidence, unproven string) error {
	diff := linediff.Of(indented(was.Approval.Manifest), indented(m.Document()))
	if was.ManifestDigest == m.Digest() {
		diff = "  the manifest is the one in force\n"
	}
	reached := "as given"
	if c.inherits(was) {
		reached = "as the version in force; --port and --read say it anew"
	}
	_, err := fmt.Fprintf(p.err, "plugin    %s %s\nsha256    %s\nmanifest  %s\nreach     %s\nmay read  %s\nports     %s\nmemory    %d MB\nruns as   %s\n"+
		"evidence  %s\n%s\nthe manifest, against the one in force (%s):\n%s\n",
		m.Name, m.Version, sum, m.Digest(), reached, cmp.Or(strings.Join(reach.Read, ", "), "nothing of its own"), portsText(reach.Ports),
		cmp.Or(reach.MemoryMB, 512), cmp.Or(reach.User, "the gateway's user"), evidence, unproven, cmp.Or(was.Version, "none"), diff)
	return err
}

func portsText(ports []uint16) string {
	if len(ports) == 0 {
		return "443"
	}
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.Itoa(int(port))
	}
	return strings.Join(texts, ", ")
}

func indented(document []byte) string {
	var out bytes.Buffer
	if len(document) == 0 || json.Indent(&out, document, "", "  ") != nil {
		return string(document)
	}
	return out.String() + "\n"
}

// place puts the binary into the gateway's directory where that is on this machine, and
// tells where it has to lie.
func (c *pluginApprove) place(p *program, dir, sum string) {
	target := filepath.Join(dir, sum)
	switch info, err := os.Stat(dir); {
	case dir == "":
		_, _ = fmt.Fprintln(p.err, "this gateway's configuration names no plugins_dir: it runs nothing that is approved until it does")
	case err == nil && info.IsDir() && copyInto(c.File, dir, target) == nil:
		_, _ = fmt.Fprintln(p.err, "the binary lies here as "+target+"; every other replica needs it there, too")
	default:
		_, _ = fmt.Fprintln(p.err, "put the binary on every replica: install -m 0755 "+c.File+" "+target)
	}
}

// copyInto copies a binary under its digest; nobody sees a part of it.
func copyInto(file, dir, target string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(to.Name()) // gone where it was renamed
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Chmod(0o755), to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), target)
}

type pluginApprovals struct{}

// Run prints a row for each approval.
func (*pluginApprovals) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	all, err := adminapi.ListApprovals.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return err
	}
	rows := [][]string{{"PROVIDER", "VERSION", "SHA256", "STATE", "APPROVED BY", "CONFIRMED BY", "APPROVED AT", "EVIDENCE"}}
	for _, a := range all {
		state := a.State
		if a.Unsigned {
			state = "not signed: does not run"
		}
		rows = append(rows, []string{
			a.Provider, a.Version, a.SHA256[:min(12, len(a.SHA256))], state, a.ApprovedBy, cmp.Or(a.ConfirmedBy, "-"), a.ApprovedAt.UTC().Format(time.RFC3339), a.Evidence,
		})
	}
	return p.show(all, rows...)
}

func approvalRows(a adminapi.PluginApproval) [][]string {
	return [][]string{
		{"plugin:", a.Provider + " " + a.Version}, {"sha256:", a.SHA256}, {"manifest_digest:", a.ManifestDigest},
		{"approved by:", a.ApprovedBy}, {"confirmed by:", cmp.Or(a.ConfirmedBy, "-")}, {"evidence:", a.Evidence},
	}
}

type pluginActivate struct{ adminapi.PluginActivation }

// Run puts an approval in force, and waits until the replicas run it.
func (c *pluginActivate) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	change, err := activatePlugin(ctx, admin, c.PluginActivation)
	if err != nil {
		return err
	}
	return showChange(ctx, p, admin, change)
}

// fileWithin is how long an activation waits for replicas to tell of the file.
const fileWithin = 10 * time.Second

// activatePlugin asks again for a while where replicas have not told of the file yet.
func activatePlugin(ctx context.Context, admin *adminapi.Client, a adminapi.PluginActivation) (adminapi.PluginChange, error) {
	for begun := time.Now(); ; {
		change, err := adminapi.ActivatePlugin.Call(ctx, admin, a)
		if err == nil || !strings.Contains(err.Error(), "does not lie in plugins_dir") || time.Since(begun) > fileWithin {
			return change, err
		}
		select {
		case <-ctx.Done():
			return change, err
		case <-time.After(askEvery):
		}
	}
}

// pluginName names a plugin.
type pluginName struct {
	Name string `arg:"" help:"The provider."`
}

type pluginRollback struct{ pluginName }

// Run puts in force what was before, and waits until the replicas run it.
func (c *pluginRollback) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	change, err := adminapi.RollBackPlugin.Call(ctx, admin, adminapi.ProviderName{Provider: c.Name})
	if err != nil {
		return err
	}
	return showChange(ctx, p, admin, change)
}

type pluginRemove struct{ adminapi.PluginRemoval }

// Run ends a plugin that nothing needs.
func (c *pluginRemove) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	change, err := adminapi.RemovePlugin.Call(ctx, admin, c.PluginRemoval)
	if err != nil {
		return err
	}
	return p.show(change, []string{"removed:", change.Provider})
}

func showChange(ctx context.Context, p *program, admin *adminapi.Client, change adminapi.PluginChange) error {
	rows := [][]string{{"plugin:", change.Provider}, {"sha256:", cmp.Or(change.SHA256, "as each replica's configuration names it")}}
	if change.ReplicaID != "" {
		rows = append(rows, []string{"only on replica:", change.ReplicaID})
	}
	err := followed(ctx, admin, change)
	rows = append(rows, nextOf(ctx, admin, change.Provider)...)
	return errors.Join(p.show(change, rows...), err)
}

// followed waits until the replicas that are to run a binary do.
func followed(ctx context.Context, admin *adminapi.Client, change adminapi.PluginChange) error {
	if change.SHA256 == "" {
		return nil
	}
	for begun := time.Now(); ; {
		replicas, err := adminapi.ListReplicas.Call(ctx, admin, adminapi.None{})
		if err != nil {
			return err
		}
		var behind []string
		for _, r := range replicas {
			if r.State == "live" && r.Plugins[change.Provider] != change.SHA256 && (change.ReplicaID == "" || change.ReplicaID == r.ReplicaID) {
				behind = append(behind, r.Name)
			}
		}
		if len(behind) == 0 {
			return nil
		}
		if time.Since(begun) > runsWithin {
			return incomplete(fmt.Errorf("it is in force, and these replicas do not run it after %s: %s; gerbang exception list says why", runsWithin, strings.Join(behind, ", ")))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askSoon):
		}
	}
}

type pluginRestart struct{ pluginName }

// Run has a plugin go on in a new process, on the replica that is asked.
func (c *pluginRestart) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if _, err := adminapi.RestartPlugin.Call(ctx, admin, adminapi.ProviderName{Provider: c.Name}); err != nil {
		return err
	}
	return p.show(map[string]string{"restarted": c.Name}, []string{"restarted on this replica:", c.Name})
}

type pluginShow struct{ pluginName }

// Run prints a plugin's condition on the replica that is asked, and what is in force.
func (c *pluginShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	one, err := adminapi.ShowPlugin.Call(ctx, admin, adminapi.ProviderName{Provider: c.Name})
	if err != nil {
		return err
	}
	rows := [][]string{
		{"plugin:", one.Provider + " " + one.Version}, {"state:", pluginState(one)}, {"sha256:", one.SHA256}, {"manifest_digest:", one.ManifestDigest},
		{"approval:", one.Approval.State}, {"evidence:", cmp.Or(one.Approval.Evidence, "-")},
		{"restarts:", strconv.Itoa(one.Restarts)}, {"in flight:", fmt.Sprintf("%d of %d", one.InFlight, one.MaxInFlight)},
		{"latency:", fmt.Sprintf("median %d ms, p99 %d ms over the last %d calls", one.Latency.MedianMS, one.Latency.P99MS, one.Latency.Calls)},
		{"memory:", fmt.Sprintf("%d MiB", one.MemoryMB)}, {"breakers:", cmp.Or(breakersText(one.Breakers), "-")},
	}
	for _, r := range one.Replicas {
		rows = append(rows, []string{"replica " + r.Name + ":", replicaText(r)})
	}
	for _, f := range one.LastErrors {
		rows = append(rows, []string{"error at " + f.At.UTC().Format(time.RFC3339) + ":", f.Why})
	}
	return p.show(one, rows...)
}

func pluginState(one adminapi.Plugin) string {
	switch {
	case one.Running && one.WaitsForRoute:
		return "running, waits for route"
	case one.Running:
		return "running"
	}
	return "down: " + one.LastFault
}

func breakersText(all []host.BreakerStatus) string {
	var texts []string
	for _, b := range all {
		text := b.Mode + " " + b.Calls + "/" + b.Lookups
		if b.AccountsOpen > 0 {
			text += " (" + strconv.Itoa(b.AccountsOpen) + " accounts open)"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func replicaText(r adminapi.PluginReplica) string {
	text := "runs " + cmp.Or(r.Runs[:min(12, len(r.Runs))], "nothing")
	if r.HasFile {
		text += ", has the file"
	}
	return text
}
