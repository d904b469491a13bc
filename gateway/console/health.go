package console

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// probeTimeout bounds what the database is asked, so that whoever asks us gets an
// answer before it gives up.
const probeTimeout = 2 * time.Second

// alive says that the process answers, and nothing about what it needs.
func (c *Console) alive(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, map[string]bool{"alive": true})
}

// ready says whether merchants can be served, and what each check says. A load
// balancer reads the status. A plugin that does not run is named and changes nothing:
// its routes say so themselves, and all others go on. So is a policy version that does
// not run here: the one before it goes on.
func (c *Console) ready(w http.ResponseWriter, r *http.Request) {
	readiness := adminapi.Readiness{
		Ready: true, Checks: c.checks(r.Context()), Replica: c.deps.Replica.String(),
		Policy: string(c.deps.Policy().Version()), LiveReplicas: c.deps.Following.Members(),
	}
	status := http.StatusOK
	for _, check := range readiness.Checks {
		if !check.OK {
			readiness.Ready, status = false, http.StatusServiceUnavailable
		}
	}
	readiness.Checks = append(readiness.Checks, c.policyCheck())
	for _, s := range c.deps.Plugins.Status() {
		readiness.Checks = append(readiness.Checks, check("plugin "+s.Provider, s.Running, "does not run; its operations answer PROVIDER_UNAVAILABLE"))
	}
	write(w, status, readiness)
}

func (c *Console) checks(ctx context.Context) []adminapi.Check {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	problem, cause := c.deps.Probe(ctx)
	if problem != "" {
		c.log.WarnContext(ctx, "not ready: the database "+problem, "cause", cause)
	}
	return c.checksBeside(problem)
}

// checksBeside are all checks, where the database has been asked.
func (c *Console) checksBeside(problem string) []adminapi.Check {
	return []adminapi.Check{
		check("running", !c.deps.Stopping(), "is told to stop"),
		check("database", problem == "", problem),
		check("recovery", c.deps.Recovering() == nil, "the database was restored: gerbang recovery show, then gerbang recovery open"),
		c.clockCheck(),
		check("directory", c.deps.Directory.Fresh(c.deps.Now()), "can't learn of changed merchants and revoked keys"),
		check("lists", c.deps.Listing.Fresh(c.deps.Now()), "can't learn of changed lists; money is paused, reads go on"),
		check("policy", c.deps.Following.Fresh(c.deps.Now()), "can't learn which policy version is in force, or has not run it for five minutes; money is paused, reads go on"),
	}
}

// policyCheck says which version should run here and does not, and why.
func (c *Console) policyCheck() adminapi.Check {
	if lag := c.deps.Following.Lag(); lag != nil {
		return check("policy version", false, cmp.Or(string(lag.Head), "no known version")+" is in force and does not run here: "+lag.Why)
	}
	return check("policy version", true, "")
}

// clockCheck says why this replica's clock can't be relied on, if so, and by how much
// it is wrong.
func (c *Console) clockCheck() adminapi.Check {
	if err := c.deps.Clock.Fault(); err != nil {
		return check("clock", false, err.Error())
	}
	return check("clock", true, "")
}

func check(name string, ok bool, detail string) adminapi.Check {
	if ok {
		detail = ""
	}
	return adminapi.Check{Name: name, OK: ok, Detail: detail}
}
