package lifecycle

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// outagesEvery is shorter than a breaker stays open, so that none is missed.
	outagesEvery = 2 * time.Second
	// outageSaidAgain brings an exception back that was resolved while it goes on.
	outageSaidAgain = time.Minute
	// outageOver is how long a breaker is closed before its outage is over: one that
	// opens again within that time is the same.
	outageOver = time.Minute
	// mostOutages bounds what is listed at a time. Beyond it the provider's own breaker
	// tells more than a list of its accounts.
	mostOutages = 100
)

// OutageList is where outages are listed for operators.
type OutageList interface {
	AddException(ctx context.Context, x movement.Exception) (bool, error)
	OpenExceptions(ctx context.Context, most int) ([]movement.Exception, error)
	ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
}

// Outages lists each open breaker as an exception that names the account, and ends
// the exception when calls have gone well for a while.
type Outages struct {
	l    *Lifecycle
	open func() []host.Outage
	list OutageList
	told map[outage]*saying // those that this replica answers for
}

// outage is an exception's name.
type outage struct {
	owner             movement.Owner // of the account, or the platform
	subject, provider string
}

type saying struct{ seen, said time.Time }

// NewOutages makes the list of the breakers that are not closed.
func NewOutages(l *Lifecycle, open func() []host.Outage, list OutageList) *Outages {
	return &Outages{l: l, open: open, list: list, told: map[outage]*saying{}}
}

// Run keeps the list up to date until the context ends.
func (o *Outages) Run(ctx context.Context) error {
	tick := time.NewTicker(outagesEvery)
	defer tick.Stop()
	for adopted := false; ; {
		if !adopted {
			adopted = o.adopt(ctx)
		}
		o.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// adopt answers for what replicas have listed that may be gone, so that it ends.
func (o *Outages) adopt(ctx context.Context) bool {
	listed, err := o.list.OpenExceptions(ctx, 10*mostOutages)
	if err != nil {
		return false
	}
	for _, x := range listed {
		if x.Reason == movement.ReasonOutage {
			o.told[outage{x.Owner, x.Subject, x.Provider}] = &saying{seen: o.l.Now()}
		}
	}
	return true
}

// look lists what is open, and ends what has been closed for a while.
func (o *Outages) look(ctx context.Context) {
	now, open := o.l.Now(), o.open()
	for _, at := range open[:min(len(open), mostOutages)] {
		name := nameOf(at)
		t := o.told[name]
		if t == nil {
			t = &saying{}
			o.told[name] = t
		}
		t.seen = now
		if now.Sub(t.said) >= outageSaidAgain && o.say(ctx, name, at, now) {
			t.said = now
		}
	}
	for name, t := range o.told {
		if now.Sub(t.seen) >= outageOver && o.end(ctx, name, now) {
			delete(o.told, name)
		}
	}
}

func nameOf(at host.Outage) outage {
	owner, subject := movement.Owner{MerchantID: at.Account, Mode: at.Mode}, "connection to "+at.Provider
	if at.Account == "" {
		owner.MerchantID, subject = string(tenants.Platform), "provider "+at.Provider
	}
	return outage{owner, subject, at.Provider}
}

func (o *Outages) say(ctx context.Context, name outage, at host.Outage, now time.Time) bool {
	detail := "calls are turned away for a while, again and again"
	if account := o.l.accountOf(ctx, at); account != "" {
		detail = "account " + account + ": " + detail
	}
	_, err := o.list.AddException(ctx, movement.Exception{
		Owner: name.owner, Subject: name.subject, Reason: movement.ReasonOutage, Provider: name.provider, FactID: "calls",
		Detail: Printable(detail + ": " + at.Why), At: now, Lasting: true,
	})
	return o.logged(ctx, "an outage can't be listed", name, err)
}

func (o *Outages) end(ctx context.Context, name outage, now time.Time) bool {
	err := o.list.ResolveExceptions(ctx, now, name.owner, name.subject, []string{movement.ReasonOutage}, "gateway", "calls go through again, or nobody makes any")
	return o.logged(ctx, "an outage's end can't be listed", name, err)
}

func (o *Outages) logged(ctx context.Context, what string, name outage, err error) bool {
	if err != nil && ctx.Err() == nil {
		o.l.Log.ErrorContext(ctx, what, "merchant", name.owner.MerchantID, "mode", name.owner.Mode, "subject", name.subject, "error", err)
	}
	return err == nil
}

// accountOf is how the provider names an account that fails, "" where nothing does.
func (l *Lifecycle) accountOf(ctx context.Context, at host.Outage) string {
	account, err := l.Accounts.Account(ctx, tenants.MerchantID(at.Account))
	if err != nil {
		return ""
	}
	op, offers := l.Catalog.Current().OfProvider(at.Provider)
	sealed, ok := account.Connection(tenants.Mode(at.Mode), tenants.Provider(at.Provider))
	if !offers || !ok {
		return ""
	}
	opened, err := l.Unseal(op, Sealed{sealed, manifest.OwnerMerchant})
	if err != nil {
		return ""
	}
	return opened.Account
}
