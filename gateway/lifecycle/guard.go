package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// paused is the error of a provider or an account that operators have paused, nil for
// neither. What both are read from is in memory.
func (l *Lifecycle) paused(ctx context.Context, r Request, c Connection) error {
	platform, err := l.ofAll(ctx)
	if err != nil {
		return err
	}
	holder, provider, mode := r.Identity.Account, tenants.Provider(r.Operation.Provider), r.Identity.Mode
	if c.Owner == manifest.OwnerPlatform {
		holder = platform
	}
	if p, is := pauseOf(platform, tenants.PauseProvider, provider, mode); is {
		return refusedBy(p, "The provider is")
	}
	if p, is := pauseOf(holder, tenants.PauseConnection, provider, mode); is {
		return refusedBy(p, "The provider is")
	}
	return nil
}

// Paused is the error of what operators have paused for the request's merchant or for all,
// nil where it goes on. Words say what it is: "Transfers are".
func (l *Lifecycle) Paused(ctx context.Context, r Request, what tenants.Pausable, words string) error {
	platform, err := l.ofAll(ctx)
	if err != nil {
		return err
	}
	for _, account := range []*tenants.Account{platform, r.Identity.Account} {
		if p, is := pauseOf(account, what, "", r.Identity.Mode); is {
			return refusedBy(p, words)
		}
	}
	return nil
}

// ofAll is the platform's account, on which stands what is paused for all merchants;
// nil where there is none.
func (l *Lifecycle) ofAll(ctx context.Context) (*tenants.Account, error) {
	platform, err := l.Accounts.Account(ctx, tenants.Platform)
	if errors.Is(err, tenants.ErrNotFound) {
		return nil, nil //nolint:nilnil // then nothing is paused
	}
	return platform, err
}

func pauseOf(account *tenants.Account, what tenants.Pausable, provider tenants.Provider, mode tenants.Mode) (tenants.Pause, bool) {
	if account == nil {
		return tenants.Pause{}, false
	}
	return account.Paused(what, provider, mode)
}

func refusedBy(p tenants.Pause, what string) error {
	return fault.Newf(fault.ProviderUnavailable, "%s not available at the moment. Nothing was sent.", what).
		Because(fmt.Errorf("%s has paused the %s: %s", p.SetBy, p.What, p.Reason))
}

const (
	// lostFor is how long after a recovery began providers are asked about what the
	// restore may have lost.
	lostFor = 7 * 24 * time.Hour
	// lostAgain is when a merchant may ask again after they could not tell.
	lostAgain = 10 * time.Second
)

// holders are the providers that may have what a restore has lost.
type holders struct {
	has    *catalog.Operation   // the one that has it paid, else the first that can be paid for it; nil for none
	silent []*catalog.Operation // those that can't tell
}

// findLost asks the providers of a path under the name that the movement would have: a
// restore loses which of them was chosen, and the name survives it. It finds none where
// nothing can be lost, or the reference is taken.
//
// A provider that has it pending or paid keeps it. What a provider does not find, or
// tells as over, nobody can pay there any more. One that can't tell may have it.
func (l *Lifecycle) findLost(ctx context.Context, r Request, draft movement.Movement) (found holders, err error) {
	begun, may := l.mayBeLost(r.Operation)
	if !may || !r.NamesReference() { // a name that was drawn now is nobody's yet
		return found, nil
	}
	existing, err := l.Store.MovementByKey(ctx, draft.Key)
	switch {
	case err == nil && existing.State != movement.NotSubmitted:
		return found, nil // it is answered from that
	case err != nil && !errors.Is(err, movement.ErrNotFound):
		return found, Unjudged(r, draft, err)
	}
	if err := l.barred(); err != nil {
		return found, err
	}
	draft.CreatedAt = begun // at the latest
	serving := r.Operation.Serving()
	told := make([]sdk.Status, len(serving))
	var asking sync.WaitGroup
	for i, op := range serving {
		asking.Go(func() { told[i] = l.lostAt(ctx, r, op, draft) })
	}
	asking.Wait()
	paid := false // where one is, nobody needs the link of another
	for i, op := range serving {
		switch told[i] {
		case sdk.StatusDone:
			if !paid {
				found.has, paid = op, true
			}
		case sdk.StatusPending:
			if found.has == nil {
				found.has = op
			}
		case sdk.StatusUnknown:
			found.silent = append(found.silent, op)
		case sdk.StatusNotFound, sdk.StatusFailed, sdk.StatusExpired:
		}
	}
	return found, nil
}

// mayBeLost tells whether a restore may have lost movements of an operation that could
// be paid twice, and when its recovery began.
func (l *Lifecycle) mayBeLost(op *catalog.Operation) (begun time.Time, may bool) {
	if l.Restored == nil || !op.Rules.LostIsAsked || op.Rules.Resubmits {
		return begun, false
	}
	begun = l.Restored()
	return begun, !begun.IsZero() && l.Now().Before(begun.Add(lostFor))
}

// lostAt is what a provider says of a movement that it may have been given before the
// recovery began. Nobody is asked who can't have it: not connected, or the request does
// not fit its bounds.
func (l *Lifecycle) lostAt(ctx context.Context, r Request, op *catalog.Operation, draft movement.Movement) sdk.Status {
	if len(op.Check(filled(r, draft))) > 0 {
		return sdk.StatusNotFound
	}
	c, err := l.Connect(ctx, op, r.Identity.Account, string(r.Identity.Mode))
	if errors.Is(err, ErrNotConnected) {
		return sdk.StatusNotFound
	}
	if err != nil {
		return sdk.StatusUnknown
	}
	draft.Provider = op.Provider
	update := l.Providers.Lookup(ctx, host.UseOf(draft), lookupOf(draft, c), lookupTimeout)
	l.Log.LogAttrs(ctx, slog.LevelInfo, "asked for what a restore may have lost", slog.String("provider", op.Provider),
		slog.String("movement", draft.ID.String()), slog.String("request_id", r.RequestID),
		slog.String("status", update.Status.String()), slog.String("detail", update.Detail))
	underWay := draft.CreatedAt.Add(op.Rules.Timeout + op.Rules.Pace.SettlesWithin)
	if update.Status == sdk.StatusNotFound && l.Now().Before(underWay) {
		return sdk.StatusUnknown
	}
	return update.Status
}

// ifSilent leaves a request the only provider that may have its movement, if it is one
// of those that may be chosen and lets no two of one name be paid: whatever that one makes
// has the name of what it may have.
func (l *Lifecycle) ifSilent(r Request, found holders) (Request, error) {
	if len(found.silent) == 0 {
		return r, nil
	}
	if only := found.silent[0]; len(found.silent) == 1 && only.Manifest.References.Unique && slices.Contains(r.candidates(), only) {
		r.Route = []string{only.Provider}
		return r, nil
	}
	now := l.Now()
	return r, fault.New(fault.ProviderUnavailable,
		"Whether this was created before an outage can't be told at the moment. Nothing was sent.").After(now, lostAgain)
}

// List makes an exception of a movement. What keeps it open stands on the list again
// where it is told again after somebody has resolved it.
func (l *Lifecycle) List(ctx context.Context, m movement.Movement, d movement.Cause) error {
	x := movement.Exception{
		Owner: m.Owner, Subject: m.ID.String(), Reason: d.Reason, FactID: d.FactID, Provider: m.Provider, Detail: d.Detail, At: l.Now(),
		Lasting: m.State.Open() && movement.OperatorsEnd(d.Reason),
	}
	fresh, err := Persist(ctx, l.Patience, func(ctx context.Context) (bool, error) { return l.Store.AddException(ctx, x) })
	log := l.Log.With("reason", d.Reason, "movement", m.ID.String(), "merchant", m.Owner.MerchantID,
		"mode", m.Owner.Mode, "provider", m.Provider, "detail", d.Detail)
	switch {
	case err != nil:
		log.ErrorContext(ctx, "an exception can't be written", "error", err)
	case fresh:
		log.WarnContext(ctx, "needs an operator")
	}
	return err
}

func (l *Lifecycle) list(ctx context.Context, m movement.Movement, causes []movement.Cause) error {
	for _, d := range causes {
		if err := l.List(ctx, m, d); err != nil {
			return err
		}
	}
	return nil
}

// Alert makes an exception of a fault of an account at a provider: nobody but an
// operator can mend it. Each fault of each version of its credentials stands there
// once, and again where it goes on after somebody has resolved it. That it can't be
// written is logged, and changes no answer.
func (l *Lifecycle) Alert(ctx context.Context, provider string, c Connection, what string) {
	what = Printable(what)
	_, err := l.Store.AddException(ctx, movement.Exception{
		Owner:   movement.Owner{MerchantID: c.MerchantID, Mode: c.Mode},
		Subject: "connection to " + provider, Reason: movement.ReasonAccount, Provider: provider,
		FactID: strconv.FormatInt(c.Version, 10) + SortOfFault(what), Detail: what, At: l.Now(), Lasting: true,
	})
	if err != nil {
		l.Log.ErrorContext(ctx, "an exception can't be written", "reason", movement.ReasonAccount, "provider", provider, "error", err)
	}
}

// SortOfFault is what a fault's text says each time: its words without those that
// have a digit in them, which are references, times and sums.
func SortOfFault(text string) string {
	var sort strings.Builder
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }) {
		if !strings.ContainsFunc(word, unicode.IsDigit) {
			sort.WriteString(" " + strings.ToLower(word))
		}
	}
	return sort.String()
}
