package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// declaration is one document of a file: what one thing of a platform shall be.
type declaration interface {
	// title names the thing.
	title() string
	// plan reads the thing and tells what has to change, nothing where it is as declared. It changes nothing.
	plan(ctx context.Context, at *platform) ([]change, error)
}

// kinds make an empty declaration of each kind.
var kinds = map[string]func(where) declaration{
	"merchant":   func(w where) declaration { return &declaredMerchant{where: w} },
	"connection": func(w where) declaration { return &declaredConnection{where: w} },
	"policy":     func(w where) declaration { return &declaredPolicy{where: w} },
	"plugin":     func(w where) declaration { return &declaredPlugin{where: w} },
	"operator":   func(w where) declaration { return &declaredOperator{where: w} },
}

// where is the place of a document.
type where struct {
	file string
	line int
}

func (w where) String() string { return fmt.Sprintf("%s:%d", w.file, w.line) }

func (w where) place() where { return w }

// beside is a file that a document names, which lies beside its own.
func (w where) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(w.file), name)
}

// readDeclarations reads all documents of files, in their order, and tells every fault in them.
func readDeclarations(files []string) ([]declaration, error) {
	var all []declaration
	var faults []error
	seen := map[string]where{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		declared, err := readFile(file, content)
		faults = append(faults, err)
		for _, d := range declared {
			at := d.(interface{ place() where }).place()
			if first, twice := seen[d.title()]; twice {
				faults = append(faults, fmt.Errorf("%s: %s is declared at %s already", at, d.title(), first))
			}
			seen[d.title()] = at
			all = append(all, d)
		}
	}
	err := errors.Join(faults...)
	if err == nil && len(all) == 0 {
		err = errors.New("there is nothing in the files")
	}
	return all, err
}

// readFile reads the documents of a file twice, side by side: as they come, for their kinds and lines, and strictly.
func readFile(file string, content []byte) (all []declaration, err error) {
	var faults []error
	loose, strict := yaml.NewDecoder(bytes.NewReader(content)), yaml.NewDecoder(bytes.NewReader(content))
	strict.KnownFields(true)
	for {
		var head yaml.Node
		if err := loose.Decode(&head); errors.Is(err, io.EOF) {
			return all, errors.Join(faults...)
		} else if err != nil {
			return all, errors.Join(append(faults, fmt.Errorf("%s: %w", file, err))...)
		}
		d, err := readDeclaration(where{file: file}, head, strict)
		if err != nil {
			faults = append(faults, err)
		} else if d != nil {
			all = append(all, d)
		}
	}
}

var goType = regexp.MustCompile(` in type main\.\w+`)

// readDeclaration reads the next document strictly, nil for one of comments alone.
func readDeclaration(at where, head yaml.Node, strict *yaml.Decoder) (declaration, error) {
	var d declaration
	var into any = new(any)
	var fault error
	if len(head.Content) > 0 && head.Content[0].Tag != "!!null" {
		at.line = head.Content[0].Line
		var kind struct{ Kind string }
		if err := head.Decode(&kind); err != nil {
			fault = fmt.Errorf("%s: must be an object with a kind: %w", at, err)
		} else if made, known := kinds[kind.Kind]; known {
			d = made(at)
			into = d
		} else {
			fault = fmt.Errorf("%s: kind: %q must be merchant, connection, policy, plugin or operator", at, kind.Kind)
		}
	}
	err := strict.Decode(into)
	switch {
	case fault != nil:
		return nil, fault
	case err != nil:
		text := strings.TrimPrefix(goType.ReplaceAllStringFunc(err.Error(), func(string) string { return " in a " + kindOf(d) }), "yaml: ")
		return nil, fmt.Errorf("%s: %s", at.file, strings.ReplaceAll(strings.TrimPrefix(text, "unmarshal errors:\n  "), "\n  ", "\n"+at.file+": "))
	case d == nil:
		return nil, nil //nolint:nilnil // there is nothing, and nothing is wrong with that
	}
	if judged, is := d.(interface{ judge() error }); is {
		if err := judged.judge(); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	return d, nil
}

// kindOf is the kind of a declaration, as a document names it.
func kindOf(d declaration) string {
	for kind, made := range kinds {
		if reflect.TypeOf(made(where{})) == reflect.TypeOf(d) {
			return kind
		}
	}
	return "document"
}

// trimmed refuses a name with spaces around it, which the gateway would not keep: it would be another one each time.
func trimmed(field, name string) error {
	if strings.TrimSpace(name) != name {
		return fmt.Errorf("%s: %q must have no spaces or lines around it", field, name)
	}
	return nil
}

// The states of a change.
const (
	statePlanned   = "planned"
	stateDone      = "done"
	stateUnchanged = "unchanged" // the gateway found that it is so already
	stateWaiting   = "waiting"   // for another operator
	stateLeft      = "left"      // for a flag that was not given
	stateFailed    = "failed"
	stateNotDone   = "not done"
)

// change is one act of a plan.
type change struct {
	Of      string `json:"of" column:"OF"`
	What    string `json:"what" column:"CHANGE"`
	State   string `json:"state" column:"STATE"`
	Message string `json:"message,omitempty" column:""`

	// compares is for what only the gateway can compare: it may turn out to be no change.
	compares bool
	secret   bool // it makes something with secrets that are shown once
	act      func(context.Context) (state string, err error)
}

// plan is what has to be done.
type plan struct {
	Plan    string   `json:"plan"` // names it: the same changes, the same name
	Changes []change `json:"changes"`
}

// platform is a gateway as declarations see it: read once, and again after forget.
type platform struct {
	*program
	admin   *adminapi.Client
	options applying
	coming  map[string]bool // names of the merchants that are made before what follows

	claimed   map[string]string   // what is declared, by what it is to the gateway: how it is titled
	merchants map[string][]string // ids by name
	policies  []adminapi.PolicyVersion
	approvals []adminapi.PluginApproval
	tokens    []adminapi.OperatorToken
}

// forget has everything read anew.
func (at *platform) forget() {
	at.merchants, at.policies, at.approvals, at.tokens = nil, nil, nil, nil
}

// claim refuses what another document declares under another name.
func (at *platform) claim(of, title string) error {
	if at.claimed == nil {
		at.claimed = map[string]string{}
	}
	if other := at.claimed[of]; other != "" && other != title {
		return fmt.Errorf("it is declared as %s, too", other)
	}
	at.claimed[of] = title
	return nil
}

// planned plans every declaration.
func (at *platform) planned(ctx context.Context, all []declaration) (plan, error) {
	p := plan{Changes: []change{}}
	var faults []error
	for _, d := range all {
		changes, err := d.plan(ctx, at)
		if unreachable(err) {
			return p, err
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", d.(interface{ place() where }).place(), d.title(), err))
		}
		p.Changes = append(p.Changes, titled(d, changes)...)
	}
	p.Plan = nameOf(p.Changes)
	return p, errors.Join(faults...)
}

func titled(d declaration, changes []change) []change {
	for i := range changes {
		changes[i].Of, changes[i].State = d.title(), cmp.Or(changes[i].State, statePlanned)
	}
	return changes
}

// nameOf digests what would be done.
func nameOf(changes []change) string {
	digest := sha256.New()
	for _, c := range changes {
		_, _ = fmt.Fprintf(digest, "%q %q %q\n", c.Of, c.What, c.State)
	}
	return hex.EncodeToString(digest.Sum(nil))[:12]
}

// apply acts, declaration by declaration. Each is planned anew before its first act, and nothing more is done
// where that comes to something else than planned.
func (at *platform) apply(ctx context.Context, all []declaration, p plan) (plan, error) {
	next, done := 0, false
	for _, d := range all {
		first := next
		for next < len(p.Changes) && p.Changes[next].Of == d.title() {
			next++
		}
		if first == next {
			continue
		}
		at.forget()
		now, err := d.plan(ctx, at)
		if now = titled(d, now); err == nil && nameOf(now) != nameOf(p.Changes[first:next]) {
			err = errors.New("it has changed since it was planned: look at gerbang diff, and apply again")
		}
		for i := first; i < next; i++ {
			c := &p.Changes[i]
			if i > first && p.Changes[i-1].State == stateWaiting { // for the same operator
				c.State = stateWaiting
			}
			if err == nil && c.State == statePlanned {
				if c.State, err = now[i-first].act(ctx); err == nil {
					done = done || c.State != stateUnchanged
				}
			}
			if err != nil {
				c.State, c.Message = stateFailed, err.Error()
				for j := range p.Changes[i+1:] {
					p.Changes[i+1+j].State = stateNotDone
				}
				if err = fmt.Errorf("%s: %s: %w", c.Of, c.What, err); done {
					err = incomplete(err)
				}
				return p, err
			}
		}
	}
	return p, nil
}

// secretFile makes the file that takes secrets which are shown once, before they are made.
func (at *platform) secretFile(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(at.options.Secrets, url.PathEscape(name)+".json"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// keepSecrets has secrets made and writes them where nobody else reads them.
func keepSecrets[T any](ctx context.Context, at *platform, name string, make func() (T, error)) (T, error) {
	file, err := at.secretFile(name)
	if err != nil {
		var none T
		return none, err
	}
	made, err := make()
	if err != nil {
		if unreachable(err) || ctx.Err() != nil {
			err = fmt.Errorf("whether it was made is not known: where it is there, rotate its secrets, which nobody has: %w", err)
		}
		return made, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	quiet := program{out: file, json: true}
	if err := errors.Join(quiet.show(made), file.Sync(), file.Close()); err != nil {
		return made, incomplete(fmt.Errorf("it is made, but its secrets could not be kept, so rotate them: %w", err))
	}
	return made, nil
}

type declaring struct {
	Files []string `arg:"" type:"existingfile" help:"Files in YAML, of one document or several; acts come in their order."`
}

// against reads the files and plans them.
func (c declaring) against(ctx context.Context, at *platform) ([]declaration, plan, error) {
	all, err := readDeclarations(c.Files)
	if err != nil {
		return nil, plan{}, err
	}
	at.coming = map[string]bool{}
	p, err := at.planned(ctx, all)
	return all, p, err
}

func (p *program) showPlan(of plan) error {
	rows := table(of.Changes)
	if len(of.Changes) == 0 {
		rows = [][]string{{"Everything is as declared."}}
	}
	return p.show(of, rows...)
}

type diffCommand struct{ declaring }

// Run prints what apply would change. The exit code is 5 where that is something.
func (c *diffCommand) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	_, found, err := c.against(ctx, &platform{program: p, admin: admin, options: applying{Activate: true, Secrets: "."}})
	if err != nil {
		return err
	}
	if err := p.showPlan(found); err != nil {
		return err
	}
	differ := 0
	for _, c := range found.Changes {
		if !c.compares {
			differ++
		}
	}
	if differ > 0 {
		return incomplete(fmt.Errorf("what is there is not yet what is declared: changes: %d", differ))
	}
	return nil
}

type applying struct {
	Yes      bool   `help:"Act. Without it the plan is printed, and nothing is changed."`
	Plan     string `placeholder:"PLAN" help:"Act only if the plan still has this name, as printed."`
	Reason   string `help:"Why; required with --yes, and kept in the audit with each act that keeps one."`
	Activate bool   `help:"Put policies and plugins in force, too; without it they are pushed and approved alone."`
	Force    bool   `help:"Overrule what is wrong with a policy's meaning, for --reason, as gerbang policy push does."`
	Secrets  string `type:"existingdir" placeholder:"DIR" help:"Where the keys of new merchants and tokens of new operators are written, which are shown once."`
}

type applyCommand struct {
	declaring
	applying
}

// Validate wants a reason of whoever acts.
func (c *applyCommand) Validate() error {
	if c.Yes && strings.TrimSpace(c.Reason) == "" {
		return errors.New("--yes needs --reason: it is kept in the audit")
	}
	return nil
}

// given are the flags on which the plan depends.
func (a applying) given() string {
	text := ""
	if a.Activate {
		text += " --activate"
	}
	if a.Force {
		text += " --force"
	}
	return text
}

// Run prints the plan, or acts and prints what became of each change.
func (c *applyCommand) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	at := &platform{program: p, admin: admin, options: c.applying}
	all, found, err := c.against(ctx, at)
	if err != nil {
		return fmt.Errorf("nothing was done: %w", err)
	}
	if c.applying.Plan != "" && c.applying.Plan != found.Plan {
		return errors.Join(p.showPlan(found), fmt.Errorf("nothing was done: the plan is %s by now, and not %s", found.Plan, c.applying.Plan))
	}
	if !c.Yes {
		if err := p.showPlan(found); err != nil || len(found.Changes) == 0 {
			return err
		}
		if p.json {
			return nil
		}
		_, err := fmt.Fprintf(p.err, "nothing was done; --yes --reason WHY --plan %s%s does just this\n", found.Plan, c.given())
		return err
	}
	if c.Secrets == "" && slices.ContainsFunc(found.Changes, func(c change) bool { return c.secret }) {
		return usage(errors.New("nothing was done: what is made new has secrets that are shown once, and --secrets names a directory for them"))
	}
	done, err := at.apply(ctx, all, found)
	if shown := p.showPlan(done); shown != nil || err != nil {
		return errors.Join(err, shown)
	}
	for _, c := range done.Changes {
		if c.State == stateWaiting {
			return incomplete(fmt.Errorf("%s waits for another operator, who applies the same", c.Of))
		}
	}
	return nil
}
