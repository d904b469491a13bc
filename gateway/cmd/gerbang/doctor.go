package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/app"
)

type doctorCommand struct{}

// closed is a breaker that lets calls through.
const closed = "closed"

// Run asks the gateway about itself, and prints what it says with what to do about it.
func (*doctorCommand) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	found, err := examine(ctx, admin)
	if err != nil {
		return err
	}
	return p.showFindings(found, "Something is wrong with this gateway")
}

// examine asks for everything that an operator would look at first.
func examine(ctx context.Context, admin *adminapi.Client) ([]app.Finding, error) {
	ready := app.Finding{What: "ready", State: app.Good, Text: "every check of /readyz passes"}
	if err := admin.Ready(ctx); err != nil {
		if unreachable(err) {
			return nil, err
		}
		ready.State, ready.Text = app.Fault, err.Error()
	}
	found := []app.Finding{ready}
	for _, look := range []func(context.Context, *adminapi.Client) ([]app.Finding, error){ofReplicas, ofPlugins, ofPauses, ofPersons, ofLedger, ofAudit} {
		more, err := look(ctx, admin)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func ofReplicas(ctx context.Context, admin *adminapi.Client) ([]app.Finding, error) {
	replicas, err := adminapi.ListReplicas.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return nil, err
	}
	var found []app.Finding
	versions := map[string]int{}
	for _, r := range replicas {
		switch {
		case r.State == "silent":
			found = append(found, app.Finding{What: "replica " + r.Name, State: app.Warning,
				Text: "silent since " + timeText(&r.SeenAt) + ": it was killed, or can't reach the database"})
		case r.State == "live" && !r.HeadIsHere:
			found = append(found, app.Finding{What: "replica " + r.Name, State: app.Warning, Text: "runs the policy " + shortVersion(r.Policy) + ", which is not in force"})
		}
		if r.State == "live" {
			versions[r.Binary]++
		}
	}
	all := app.Finding{What: "replicas", State: app.Good}
	var texts []string
	for version, n := range versions {
		texts = append(texts, fmt.Sprintf("%d of %s", n, dash(version)))
	}
	slices.Sort(texts)
	if all.Text = strings.Join(texts, ", "); len(texts) > 1 {
		all.State, all.Text = app.Warning, all.Text+": an update is under way, or was left half done"
	}
	return append(found, all), nil
}

func ofPlugins(ctx context.Context, admin *adminapi.Client) ([]app.Finding, error) {
	plugins, err := adminapi.ListPlugins.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return nil, err
	}
	var found []app.Finding
	for _, one := range plugins {
		f := app.Finding{What: "plugin " + one.Provider, State: app.Good, Text: one.Version + ", " + pluginState(one)}
		for _, b := range one.Breakers {
			if b.Calls != closed || b.Lookups != closed || b.AccountsOpen > 0 {
				f.State, f.Text = app.Warning, f.Text+", breakers "+breakersText(one.Breakers)+": its upstream fails"
				break
			}
		}
		for _, r := range one.Replicas {
			if r.Runs == "" {
				f.State, f.Text = app.Fault, f.Text+", down on "+r.Name
			}
		}
		if !one.Running {
			f.State = app.Fault
		}
		found = append(found, f)
	}
	return found, nil
}

func ofPauses(ctx context.Context, admin *adminapi.Client) ([]app.Finding, error) {
	pauses, err := adminapi.ListPauses.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return nil, err
	}
	if len(pauses) == 0 {
		return []app.Finding{{What: "pauses", State: app.Good, Text: "nothing is paused"}}, nil
	}
	return []app.Finding{{What: "pauses", State: app.Warning, Text: fmt.Sprintf("%d in force: gerbang connection list", len(pauses))}}, nil
}

// ofPersons tells what waits for somebody's decision.
func ofPersons(ctx context.Context, admin *adminapi.Client) ([]app.Finding, error) {
	all, err := adminapi.ListWaiting.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return nil, err
	}
	n := len(all.Overrides) + len(all.Assignments) + len(all.Refunds) + len(all.Adjustments) + len(all.Activations) + len(all.Approvals) + len(all.Exceptions)
	if n == 0 {
		return []app.Finding{{What: "waiting", State: app.Good, Text: "nothing waits for a person"}}, nil
	}
	return []app.Finding{{What: "waiting", State: app.Warning,
		Text: fmt.Sprintf("%d things wait for a person, %d of them exceptions: gerbang waiting", n, len(all.Exceptions))}}, nil
}

func ofLedger(ctx context.Context, admin *adminapi.Client) ([]app.Finding, error) {
	check, err := adminapi.CheckLedger.Call(ctx, admin, adminapi.LedgerScope{})
	if err != nil {
		return nil, err
	}
	if !check.OK {
		return []app.Finding{{What: "ledger", State: app.Fault, Text: "breaks an invariant: gerbang ledger check"}}, nil
	}
	return []app.Finding{{What: "ledger", State: app.Good, Text: fmt.Sprintf("%d accounts balance", check.Accounts)}}, nil
}

func ofAudit(ctx context.Context, admin *adminapi.Client) ([]app.Finding, error) {
	report, err := adminapi.VerifyAudit.Call(ctx, admin, adminapi.ExportedLink{})
	if err != nil {
		return nil, err
	}
	if n := len(report.Breaks); n > 0 {
		return []app.Finding{{What: "audit", State: app.Fault, Text: "is not as gateways have written it: gerbang audit verify"}}, nil
	}
	return []app.Finding{{What: "audit", State: app.Good, Text: fmt.Sprintf("%d links prove it, %d entries wait for theirs", report.Sequence, report.Waiting)}}, nil
}
