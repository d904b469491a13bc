package operators

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	judged "github.com/seed-f006e74d/gerbang/policy"
)

func policyPath(version string) string { return "/policies/" + url.PathEscape(version) }

func (c *Console) policies(r *room) error {
	list, err := adminapi.ListPolicies.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	active := slices.IndexFunc(list, func(v adminapi.PolicyVersion) bool { return v.State == "active" })
	shown := map[string]any{"Rows": list}
	if active >= 0 {
		shown["Active"] = list[active].Version
	}
	return r.Show("policies.html", r.T("Policies"), shown)
}

// file is a policy's file with its text.
type file struct{ Name, Text string }

// policy is a version with its files and what it would change.
func (c *Console) policy(r *room) error {
	version, err := adminapi.ShowPolicy.Call(r.Request.Context(), r.admin, adminapi.PolicyName{Version: r.named("version")})
	if err != nil {
		return err
	}
	active, err := adminapi.ShowPolicy.Call(r.Request.Context(), r.admin, adminapi.PolicyName{Version: inForce})
	if err != nil {
		return err
	}
	differs, err := adminapi.DiffPolicies.Call(r.Request.Context(), r.admin, adminapi.PolicyPair{A: active.Version, B: version.Version})
	if err != nil {
		return err
	}
	var files []file
	for _, name := range slices.Sorted(maps.Keys(version.Files)) {
		files = append(files, file{name, version.Files[name]})
	}
	return r.Show("policy.html", r.T("Policy")+" "+short(version.Version), map[string]any{
		"P": version, "Path": policyPath(version.Version), "Active": active.Version, "Here": active.Version == version.Version, "Files": files,
		"Changes": changesOf(differs.Files), "Spans": spans, "Span": "24h", "Confirm": slices.ContainsFunc(version.Findings, func(f judged.Finding) bool { return f.Confirm }), "Short": short(version.Version), "ActiveShort": short(active.Version),
	})
}

// change is what differs in a file.
type change struct {
	File  string
	Lines []line
}

// line is a line of a difference.
type line struct{ Text string }

// IsOld and IsNew tell templates whose line it is, where it is of one of the two alone.
func (l line) IsOld() bool { return strings.HasPrefix(l.Text, "-") }

// IsNew is a line that was not there.
func (l line) IsNew() bool { return strings.HasPrefix(l.Text, "+") }

// changesOf are the files that differ, by name.
func changesOf(files map[string]string) []change {
	var all []change
	for _, name := range slices.Sorted(maps.Keys(files)) {
		of := change{File: name}
		for text := range strings.Lines(files[name]) {
			of.Lines = append(of.Lines, line{strings.TrimSuffix(text, "\n")})
		}
		all = append(all, of)
	}
	return all
}

// short is a version's name as people say it.
func short(version string) string { return version[:min(len(version), 12)] }

func (c *Console) numbers(r *room) error {
	active, err := adminapi.ShowPolicy.Call(r.Request.Context(), r.admin, adminapi.PolicyName{Version: inForce})
	if err != nil {
		return err
	}
	numbers, err := numbersOf(active.Files[dataFile])
	if err != nil {
		return err
	}
	return r.Show("numbers.html", r.T("Change the numbers"), map[string]any{
		"Sections": formOf(numbers), "Base": active.Version, "Short": short(active.Version), "Data": active.Files[dataFile],
	})
}

// push makes a version of the one that the form was made of, with other numbers or another
// data.json. It is judged and kept; nothing comes into force.
func (c *Console) push(r *room) error {
	base, err := adminapi.ShowPolicy.Call(r.Request.Context(), r.admin, adminapi.PolicyName{Version: r.Form("base")})
	if err != nil {
		return err
	}
	if data := r.Request.PostFormValue("data"); data != "" {
		base.Files[dataFile] = strings.ReplaceAll(data, "\r\n", "\n") // as browsers send a text
	} else if base.Files[dataFile], err = withNumbers(base.Files[dataFile], r.Request.PostForm); err != nil {
		return err
	}
	pushed, err := adminapi.PushPolicy.Call(r.Request.Context(), r.admin, adminapi.NewPolicy{Files: base.Files, Message: r.Form("message"), Replaces: base.Version})
	switch {
	case err != nil:
		return err
	case pushed.State == "refused":
		return r.Go(policyPath(pushed.Version), "This version is refused: what was found is below.")
	case pushed.Existed:
		return r.Go(policyPath(pushed.Version), "This version was there before.")
	}
	return r.Go(policyPath(pushed.Version), "The version is kept. Look at its impact, then activate it.")
}

func wishOf(r *room) adminapi.Wish {
	return adminapi.Wish{Replaces: r.Form("replaces"), Reason: r.Form("reason"), Force: r.Form("force") != "", Yes: r.Form("yes") != ""}
}

func (c *Console) activatePolicy(r *room) error {
	begun, err := adminapi.ActivatePolicy.Call(r.Request.Context(), r.admin, adminapi.ActivatedPolicy{Version: r.named("version"), Wish: wishOf(r)})
	return r.did(err, "/activations/"+url.PathEscape(begun.ActivationID), "")
}

func (c *Console) rollBackPolicy(r *room) error {
	begun, err := adminapi.RollBackPolicy.Call(r.Request.Context(), r.admin, wishOf(r))
	return r.did(err, "/activations/"+url.PathEscape(begun.ActivationID), "")
}

// activation tells what became of an activation, until it is decided.
func (c *Console) activation(r *room) error {
	a, err := adminapi.ShowActivation.Call(r.Request.Context(), r.admin, adminapi.ActivationID{Activation: r.named("activation")})
	if err != nil {
		return err
	}
	return r.Show("activation.html", r.T("Activation"), map[string]any{
		"A": a, "Short": short(a.Version), "Open": a.State == "proposed" || a.State == "done" && len(a.Behind) > 0,
	})
}
